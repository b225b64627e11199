"""Every kind of damage is found, and what is not damage is not called so."""

import json
import zlib
from pathlib import Path

import pytest
from tests.store.support import contents

import sparing
from sparing.cli.exit_codes import ExitCode
from sparing.executors import Outcome, outcome_to_record
from sparing.store import write_spooled_outcome

JOURNAL = "evaluations.jsonl"


@pytest.fixture
def verified(sparing_command, directory):
    """Calls the command: (exit code, {subject: [(finding, text), ...]})."""

    def verify(*arguments):
        before = contents(directory)
        answer = sparing_command("verify", directory, *arguments, "--json")
        assert contents(directory) == before
        found = {}
        for check in answer.json["checks"]:
            found.setdefault(check["subject"], []).append((check["finding"], check["text"]))
        assert answer.json["intact"] == (answer.code == ExitCode.OK)
        return answer.code, found

    return verify


def line_with_checksum(members):
    body = json.dumps(members, separators=(",", ":"))[:-1].encode()
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def rewrite(directory, change):
    """Change the events of the journal and give every line its number and checksum again."""
    lines = (directory / JOURNAL).read_bytes().splitlines()
    events = [{k: v for k, v in json.loads(line).items() if k != "crc"} for line in lines]
    change(events)
    numbered = [line_with_checksum({**event, "seq": i}) for i, event in enumerate(events)]
    (directory / JOURNAL).write_bytes(b"".join(numbered))
    for path in (directory / "snapshots").iterdir():
        path.unlink()


def findings(checks):
    return {finding for entries in checks.values() for finding, _ in entries}


def test_an_intact_run(verified, sparing_command, directory):
    code, checks = verified()
    assert (code, findings(checks)) == (ExitCode.OK, {"ok"})
    assert "30 lines with correct checksums; evaluations: 15 ok" in checks[JOURNAL][0][1]
    assert checks["points in flight"][0][1].startswith("0 submitted")
    assert "iteration" in checks["snapshots"][0][1]
    text = sparing_command("verify", directory).out
    assert text.endswith("\nintact\n")


def test_rewriting_alone_is_no_damage(verified, directory):
    rewrite(directory, lambda events: None)
    code, checks = verified()
    assert code == ExitCode.OK
    assert "from its start" in checks["snapshots"][0][1]


def test_the_model_of_the_run(verified, sparing_command, directory, model):
    _, checks = verified(model)
    assert checks["model"][0][0] == "ok"
    answer = sparing_command("verify", directory, f"{model}:narrower")
    assert answer.code == ExitCode.OTHER_PROBLEM
    assert "plausible_lower" in answer.err


@pytest.mark.parametrize("line", [0, 7, 28])
def test_a_changed_byte_is_damage_with_its_line(verified, directory, sparing_command, line):
    lines = (directory / JOURNAL).read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"seq":', b'"sEq":')
    (directory / JOURNAL).write_bytes(b"".join(lines))
    code, checks = verified()
    assert code == ExitCode.DAMAGED
    assert ("damage", f"line {line + 1}: its checksum does not match; only the lines before can "
            "be read") in checks[JOURNAL]  # fmt: skip
    assert "DAMAGED" in sparing_command("verify", directory).out


def test_a_torn_last_line_is_a_note(verified, directory):
    with (directory / JOURNAL).open("ab") as file:
        file.write(b'{"seq":30')
    (directory / "evaluations.torn-1").write_bytes(b"{")
    code, checks = verified()
    assert code == ExitCode.OK
    assert checks[JOURNAL][1][0] == "note"
    assert "9 bytes" in checks[JOURNAL][1][1]
    assert checks["evaluations.torn-1"][0][0] == "note"


def test_a_missing_line_end_is_a_note(verified, directory):
    journal = (directory / JOURNAL).read_bytes()
    (directory / JOURNAL).write_bytes(journal[:-1])
    code, checks = verified()
    assert code == ExitCode.OK
    assert checks[JOURNAL][1] == ("note", "the last line lacks only its end")


@pytest.mark.parametrize("content", [None, b"{}", b""])
def test_a_lost_problem_file_is_damage(verified, directory, content):
    path = directory / "problem.json"
    path.unlink() if content is None else path.write_bytes(content)
    code, checks = verified()
    assert code == ExitCode.DAMAGED
    assert checks["problem.json"][0][0] == "damage"


def test_settings_of_another_release_are_a_note(verified, directory):
    path = directory / "problem.json"
    members = {k: v for k, v in json.loads(path.read_text()).items() if k != "crc"}
    members["fingerprint"]["settings"]["unheard_of"] = 1
    path.write_bytes(line_with_checksum(members))
    code, checks = verified()
    assert code == ExitCode.OK
    assert "unheard_of" in checks["problem.json"][0][1]
    assert checks["snapshots"][0][0] == "note"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda events: events.pop(4), "the result of proposal 2 was never proposed"),
        (lambda events: events[5].update(x=[0.123]), "proposal 2 is of another point"),
        (lambda events: events[7].update(identifier=2), "proposal 2 is there twice"),
        (
            lambda events: [event.update(x=[0.0, 0.0]) for event in events],
            "points have 2 coordinates, the problem 1",
        ),
    ],
)
def test_lines_that_do_not_belong_together(verified, directory, change, message):
    rewrite(directory, change)
    code, checks = verified()
    assert code == ExitCode.DAMAGED
    assert any(finding == "damage" and message in text for finding, text in checks[JOURNAL])


def test_points_in_flight_and_the_spool(verified, directory):
    rewrite(directory, lambda events: events.pop())
    outcome = outcome_to_record(Outcome(-1.0, sparing.Status.OK, 0.1))
    for identifier in (3, 14):
        write_spooled_outcome(str(directory / "spool"), identifier, outcome)
    code, checks = verified()
    assert (code, findings(checks)) == (ExitCode.OK, {"ok"})
    assert checks["points in flight"][0][1].startswith("1 submitted and without a result; ev")
    assert checks["spool"] == [
        ("ok", "1 results that workers left, to be taken up when the run goes on; 1 already "
         "recorded")
    ]  # fmt: skip
    (directory / "spool" / "14.json").write_bytes(b"{}")
    code, checks = verified()
    assert code == ExitCode.OK
    assert checks["spool"][1][0] == "note"
    assert "that point is evaluated again" in checks["spool"][1][1]
    write_spooled_outcome(str(directory / "spool"), 14, outcome | {"value": 1e300})
    code, checks = verified()
    assert "14.json cannot be used: the value of status 'ok' is finite" in checks["spool"][1][1]


def test_a_damaged_snapshot_is_a_note(verified, directory):
    newest = max((directory / "snapshots").iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    code, checks = verified()
    assert code == ExitCode.OK
    assert checks["snapshots"][0][0] == "note"
    assert "only a cache" in checks["snapshots"][0][1]


def test_the_saved_result(verified, directory, result):
    path = directory / "result.sparing"
    result.save(path)
    assert verified()[1]["result.sparing"] == [("ok", "has every evaluation")]
    rewrite(directory, lambda events: events.pop())
    assert verified()[1]["result.sparing"][0][0] == "note"
    path.write_bytes(path.read_bytes()[:-1])
    code, checks = verified()
    assert code == ExitCode.OK
    assert "resuming the run writes it again" in checks["result.sparing"][0][1]


def test_a_lock_left_behind_is_a_note(verified, directory):
    (directory / "lock").write_bytes(b"{")
    code, checks = verified()
    assert (code, checks["lock"][0][0]) == (ExitCode.OK, "note")


def test_not_a_run_directory(sparing_command, tmp_path):
    answer = sparing_command("verify", tmp_path)
    assert answer.code == ExitCode.USAGE
    assert "is not a run directory" in answer.err


@pytest.mark.parametrize("line", [6, 7])
def test_a_damaged_run_is_repaired_and_goes_on(sparing_command, directory, tmp_path, model, line):
    damage(directory, line)
    new = tmp_path / "new"
    assert sparing_command("verify", directory, model, "--repair", new).code == ExitCode.USAGE
    done = sparing_command("verify", directory, "--repair", new, "--json").json["runs"][0]
    lost_result = line % 2
    assert done["n_evaluations"] == 15 - lost_result
    assert f"line {line + 1}: its checksum does not match" in done["missing"]
    assert sparing_command("verify", new).code == ExitCode.OK
    answer = sparing_command("resume", new, model, "--max-evaluations", "15", "--json")
    assert answer.json["n_evaluations"] == 15
    assert "must not be there" in sparing_command("verify", directory, "--repair", new).err


def damage(run, line):
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"seq":', b'"sEq":')
    (run / JOURNAL).write_bytes(b"".join(lines))


def test_several_runs_are_repaired_together_and_go_on(sparing_command, tmp_path, model):
    old, new = tmp_path / "old", tmp_path / "new"
    options = ("--seed", 1, "--quiet", "--max-evaluations", 11, "--json")
    before = sparing_command("run", model, "--store", old, "--runs", 3, *options).json
    damage(old / "run-1", 7)  # a result
    damage(old / "run-2", 6)  # a proposal
    damage(old / "pooled-33", 2)  # what it was told
    assert sparing_command("verify", old).code == ExitCode.DAMAGED
    assert sparing_command("resume", old, model).code == ExitCode.DAMAGED
    answer = sparing_command("verify", old, "--repair", new, "--json")
    assert answer.code == ExitCode.OK
    kept = {Path(run["path"]).name: run["n_evaluations"] for run in answer.json["runs"]}
    n_pooled = before["result"]["n_evaluations"]
    assert kept == {"run-1": 10, "run-2": 11, "run-3": 11, "pooled-33": n_pooled - 1}
    assert [len(run["missing"]) > 0 for run in answer.json["runs"]] == [True, True, False, True]
    assert sparing_command("verify", new).code == ExitCode.OK
    after = sparing_command("resume", new, model, "--quiet", "--max-evaluations", 11, "--json").json
    assert [run["n_evaluations"] for run in after["diagnosis"]["runs"]] == [11, 11, 11]
    assert after["result"]["log_evidence"] == pytest.approx(0.0, abs=0.02)


def test_a_run_of_several_that_cannot_be_repaired_does_not_keep_the_others_from_it(
    sparing_command, tmp_path, model
):
    old, new = tmp_path / "old", tmp_path / "new"
    options = ("--seed", 1, "--quiet", "--max-evaluations", 11)
    sparing_command("run", model, "--store", old, "--runs", 3, *options)
    (old / "run-2" / "problem.json").unlink()
    answer = sparing_command("verify", old, "--repair", new)
    assert answer.code == ExitCode.DAMAGED
    assert "cannot be repaired: it has no problem.json" in answer.out
    assert sorted(path.name for path in new.iterdir()) == [
        "pooled-33",
        "run-1",
        "run-3",
        "runs.json",
    ]
    again = ("run", model, "--store", new, "--runs", 3, *options, "--json")
    after = sparing_command(*again).json
    assert len(after["diagnosis"]["runs"]) == 3
