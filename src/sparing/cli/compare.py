"""``sparing compare`` and ``sparing diagnose``: several runs side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sparing.cli.arguments import Commands, add_command, add_json, positive
from sparing.cli.exit_codes import ExitCode, UsageError
from sparing.cli.output import answer, diagnosis_members
from sparing.cli.stored_runs import pooled_of, result_of, runs_of
from sparing.results.agreement import Verdict, diagnose
from sparing.results.comparison import compare
from sparing.running.stored_run import RESULT


def add_parsers(commands: Commands) -> None:
    """The arguments of both commands."""
    example = "decay=runs/decay growth=runs/growth --prior-odds 2,1"
    models = add_command(commands, "compare", compare_models, example)
    text = "run directories or result files; the name of a model is that of its file, if not given"
    models.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help=text)
    models.add_argument(
        "--prior-odds", type=_weights, metavar="A,B,...", help="prior weights (default: equal)"
    )
    add_json(models)

    example = "runs/decay-1 runs/decay-2 runs/decay-3"
    runs = add_command(commands, "diagnose", diagnose_runs, example)
    text = "run directories or result files, or one directory of several runs"
    runs.add_argument("runs", nargs="+", metavar="RUN", help=text)
    add_json(runs)


def compare_models(options: argparse.Namespace) -> ExitCode:
    """Compare models by their evidence.

    Bayes factors with errors and posterior model probabilities. Every run must be of the same
    data, with priors that integrate to one.
    """
    paths = _named_paths(options.runs)
    results = {name: result_of(path) for name, path in paths.items()}
    comparison = compare(results, options.prior_odds)
    members = {
        "models": [asdict(model) for model in comparison.models],
        "bayes_factors": [
            {**asdict(factor), "strength": str(factor.strength)} for factor in comparison.factors
        ],
        "cautions": comparison.cautions,
    }
    answer(options, members, str(comparison))
    return ExitCode.OK


def _named_paths(texts: Sequence[str]) -> dict[str, str]:
    """Path by name of the model; a name that occurs twice becomes the path itself."""
    pairs = []
    for text in texts:
        name, equals, path = text.partition("=")
        given = bool(equals) and not Path(text).exists()
        pairs.append((name, path) if given else (_short_name(text), text))
    names = [name for name, _ in pairs]
    named = {name if names.count(name) == 1 else path: path for name, path in pairs}
    if len(named) < len(pairs):
        raise UsageError("a run is given twice, or two models have the same name")
    return named


def _short_name(path: str) -> str:
    resolved = Path(path).resolve()
    if resolved.name == RESULT:  # as the command line calls it in a run directory
        resolved = resolved.parent
    return resolved.name.removesuffix(".sparing")


def diagnose_runs(options: argparse.Namespace) -> ExitCode:
    """Judge whether several runs of one problem agree.

    Differences of the evidences against their errors, of the standard deviations, the moments
    (gsKL) and the marginals (MMTV), and which runs differ in what.
    """
    paths, pooled = options.runs, None
    if len(paths) == 1:
        paths, pooled = runs_of(paths[0]), pooled_of(paths[0])
    diagnosis = diagnose([result_of(path) for path in paths], pooled=pooled)
    answer(options, diagnosis_members(diagnosis, paths), str(diagnosis))
    return ExitCode.NOT_TRUSTED if diagnosis.verdict is Verdict.DISAGREE else ExitCode.OK


def _weights(text: str) -> list[float]:
    try:
        return [positive(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 2,1") from None
