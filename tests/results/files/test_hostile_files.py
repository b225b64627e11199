"""No file can do harm: whatever is wrong with it is a `LoadError`, and nothing in it is run."""

import io
import pickle
import warnings
import zipfile

import numpy as np
import pytest

import sparing
from sparing.errors import LoadError
from sparing.results.files.result_writer import result_to_parts
from sparing.store.archive import pack, sealed


def load_bytes(content, path):
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sparing.load(path)


def test_any_flipped_byte_is_noticed(mixed_result, tmp_path):
    content = pack(*result_to_parts(mixed_result))
    generator = np.random.default_rng(1)
    ends = [*range(60), *range(len(content) - 150, len(content))]  # zip headers and the checksum
    for position in [*ends, *generator.integers(len(content), size=300)]:
        damaged = bytearray(content)
        damaged[position] ^= int(generator.integers(1, 256))
        with pytest.raises(LoadError, match=r"damaged|not a file that sparing wrote"):
            load_bytes(bytes(damaged), tmp_path / "file")


def test_any_truncation_and_anything_appended_is_noticed(mixed_result, tmp_path):
    content = pack(*result_to_parts(mixed_result))
    generator = np.random.default_rng(2)
    for length in [
        0,
        1,
        3,
        4,
        63,
        64,
        65,
        len(content) - 1,
        *generator.integers(len(content), size=50),
    ]:
        with pytest.raises(LoadError):
            load_bytes(content[:length], tmp_path / "file")
    with pytest.raises(LoadError, match="checksum"):
        load_bytes(content + b"\n", tmp_path / "file")


def seal(members, compression=zipfile.ZIP_STORED):
    """A file with the right checksum and whatever members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about members that occur twice
        for name, data in members:
            archive.writestr(name, data)
        archive.comment = b"0" * 64
    return sealed(content.getvalue()[:-64])


@pytest.fixture(scope="module")
def members(mixed_result):
    with zipfile.ZipFile(io.BytesIO(pack(*result_to_parts(mixed_result)))) as archive:
        return [(item.filename, archive.read(item)) for item in archive.infolist()]


def npy(descr="<f8", shape="(1,)", data=b"\0" * 8, fortran="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


class Harmful:
    """Would write a file if it were ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def pickled_array(path):
    content = io.BytesIO()
    np.save(content, np.array([Harmful(path)], dtype=object), allow_pickle=True)
    return content.getvalue()


def test_pickles_are_never_opened(members, tmp_path):
    trap = tmp_path / "trap"
    harmful = pickled_array(trap)
    for content in (
        pickle.dumps(Harmful(trap)),
        harmful,
        seal([*members, ("extra.npy", harmful)]),
        seal([(n, harmful if n == "evaluations.value.npy" else d) for n, d in members]),
        seal([*members, ("extra.pkl", pickle.dumps(Harmful(trap)))]),
    ):
        with pytest.raises(LoadError):
            load_bytes(content, tmp_path / "file")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("../../evil.npy", npy(), "unexpected member"),
        ("/etc/evil.npy", npy(), "unexpected member"),
        ("C:\\evil.npy", npy(), "unexpected member"),
        ("a/b.npy", npy(), "unexpected member"),
        ("notes.txt", b"hello", "unexpected member"),
        ("x.npy", b"", "not an array"),
        ("x.npy", npy(shape="(1000000000000,)"), "not as large as it claims"),
        ("x.npy", npy(shape="(9999999999999999999999,)"), "absurd size"),
        ("x.npy", npy(shape="(999999999999999999, 0, 999999999999999999)", data=b""), "absurd"),
        ("x.npy", npy(shape="(-1,)"), "never writes"),
        ("x.npy", npy(shape="(__import__('os'),)"), "never writes"),
        ("x.npy", npy(descr="|O"), "never writes"),
        ("x.npy", npy(descr="<c16"), "never writes"),
        ("x.npy", npy(fortran="True"), "never writes"),
        ("x.npy", npy(descr="|b1", data=b"\x07"), "booleans"),
        ("x.npy", npy(data=b"\0" * 9), "not as large as it claims"),
        ("record.json", b"{}", "twice"),
    ],
)
def test_crafted_members_are_refused(members, name, data, text, tmp_path):
    with pytest.raises(LoadError, match=text):
        load_bytes(seal([*members, (name, data)]), tmp_path / "file")


def test_a_compressed_bomb_is_refused_before_it_is_unpacked(members, tmp_path):
    bomb = seal([*members, ("zeros.npy", b"\0" * 50_000_000)], zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1_000_000
    with pytest.raises(LoadError, match="it is compressed, which"):
        load_bytes(bomb, tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "JSON"),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested"),
        (b'{"format": NaN}', "NaN"),
        (b'{"format": "x", "format": "y"}', "twice"),
        (b'{"format": "sparing state"}', "not a sparing result"),
        (b'{"format": "sparing result"}', "it has no 'version'"),
        (b'{"format": "sparing result", "version": 8}', "newer release"),
        (b'{"format": "sparing result", "version": 0}', "no version 0"),
        (b'{"format": "sparing result", "version": true}', "not an integer"),
        (b'{"format": "sparing result", "version": ' + b"9" * 5000 + b"}", "JSON"),
        (b'{"format": "sparing result", "version": 1}', "it has no 'problem'"),
        (b"\xff\xfe", "JSON"),
    ],
)
def test_crafted_records_are_refused(members, text, message, tmp_path):
    with pytest.raises(LoadError, match=message):
        load_bytes(seal([("record.json", text), *members[1:]]), tmp_path / "file")


def change(metadata, path, value):
    """A deep copy with one value replaced."""
    if not path:
        return value
    copied = dict(metadata) if isinstance(metadata, dict) else list(metadata)
    copied[path[0]] = change(metadata[path[0]] if path[1:] else None, path[1:], value)
    return copied


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (["settings", "surprise"], 1, "settings has fields .* not know: ..surprise"),
        (["settings", "bounded_map"], "__class__", "not one of LOGIT, PROBIT"),
        (["settings", "bounded_map"], 3, "not one of"),
        (["settings", "coordinates", "every"], 2.5, "not of type int"),
        (["settings", "coordinates", "every"], True, "not of type int"),
        (["settings", "coordinates", "kind"], "Popen", "not one of Whitened, Unwhitened"),
        (["settings", "surrogate", "prior", "hpd_fraction"], 7.0, "surrogate.prior is invalid"),
        (["settings", "rules"], "PosteriorDraw", "not a list"),
        (["settings", "rules"], [None], "not an object"),
        (["settings", "rules"], [], "one or more, each with"),
        (["settings", "acquisition"], {}, "this release does not know"),
        (["settings", "acquisition"], None, "this release does not know"),
        (["surrogate", "transform"], 99, "points at nothing"),
        (["settings", "stopping", "tolerance_sd"], "1e3", "must be a number"),
        (["stop_reason"], "os.system", "not one of STABLE"),
        (["problem", "names"], ["rate", "rate", "shift"], "inconsistent"),
        (["problem", "names"], ["rate"], "shape"),
        (["coordinates", 0], {"kind": "Popen"}, "no coordinate"),
        (["coordinates", 0, "edge"], 0.0, "impossible"),
        (["coordinates", 0, "edge"], "nan", "impossible"),
        (["evidence"], None, "not an object"),
        (["evidence"], {}, "evidence is invalid"),
        (["seed"], -1, "negative"),
        (["seed"], "1", "not an integer"),
        (["evaluations", "status", 0], "GREAT", "not one of OK"),
        (["warning_topics"], [], "more or fewer warnings than topics"),
        (["warning_topics", 0], "__class__", "not one of CONVERGENCE"),
        (["warning_topics", 0], [], "not one of CONVERGENCE"),
        (["elbo"], 10**400, "double precision"),
    ],
)
def test_records_that_do_not_fit_are_refused(mixed_result, path, value, text, tmp_path):
    arrays, metadata = result_to_parts(mixed_result)
    with pytest.raises(LoadError, match=text):
        load_bytes(pack(arrays, change(metadata, path, value)), tmp_path / "file")


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield [*path, key]
        if isinstance(item, dict | list):
            yield from leaves(item, (*path, key))


@pytest.mark.slow
def test_no_change_of_a_sealed_record_leads_to_anything_but_a_load_error(mixed_result, tmp_path):
    """Any JSON value in any place, with the right checksum: a result or LoadError."""
    arrays, metadata = result_to_parts(mixed_result)
    places = [place for place in leaves(metadata) if place[:1] != ["evaluations"]]
    values = [None, True, -1, 10**30, 1e308, "nan", "x", [], [[]], {}, {"kind": "bounded"}]
    generator = np.random.default_rng(4)
    n_refused = 0
    for _ in range(400):
        place = places[generator.integers(len(places))]
        value = values[generator.integers(len(values))]
        content = pack(arrays, change(metadata, place, value))
        try:
            load_bytes(content, tmp_path / "file")
        except LoadError:
            n_refused += 1
    assert n_refused > 200


@pytest.mark.parametrize(
    ("name", "place", "value", "text"),
    [
        ("weights", -1, 0.0, "weights of a mixture"),
        ("weights", -1, np.nan, "not finite"),
        ("means", (-1, 0), np.inf, "not finite"),
        ("factors", (-1, 0, 0), 0.0, "no Cholesky factors"),
        ("factors", (-1, 0, 1), 0.5, "no Cholesky factors"),
        ("any_shape", -1, False, "lengths has the unexpected shape"),
        ("n_components", -1, 10**9, "wrong sizes"),
    ],
)
def test_what_is_no_mixture_is_refused(tilted_result, name, place, value, text, tmp_path):
    arrays, metadata = result_to_parts(tilted_result)
    assert arrays["mixtures.any_shape"][-1]
    arrays[f"mixtures.{name}"][place] = value
    with pytest.raises(LoadError, match=text):
        load_bytes(pack(arrays, metadata), tmp_path / "file")


@pytest.mark.slow
@pytest.mark.parametrize("result", ["mixed_result", "tilted_result"])
def test_no_change_of_a_sealed_array_leads_to_anything_but_a_load_error(result, request, tmp_path):
    arrays, metadata = result_to_parts(request.getfixturevalue(result))
    generator = np.random.default_rng(5)
    names = list(arrays)
    for _ in range(300):
        name = names[generator.integers(len(names))]
        changed = np.array(arrays[name], order="C")
        if changed.size and generator.random() < 0.7:
            special = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, 1e-308]
            with np.errstate(invalid="ignore"):
                value = np.array(special[generator.integers(len(special))]).astype(changed.dtype)
            changed.flat[generator.integers(changed.size)] = value
        else:
            changed = changed[: len(changed) // 2]
        try:
            load_bytes(pack({**arrays, name: changed}, metadata), tmp_path / "file")
        except LoadError as error:
            assert "file cannot be loaded" in str(error)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(LoadError, match="no such file"):
        sparing.load(tmp_path / "absent")
    with pytest.raises(LoadError):
        sparing.load(tmp_path)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**31)  # sparse: it takes no space on the disk
    with pytest.raises(LoadError, match="larger than any result"):
        sparing.load(tmp_path / "huge")
    with pytest.raises(LoadError, match="not a file that sparing wrote"):
        load_bytes(b"PK is not enough", tmp_path / "text")
