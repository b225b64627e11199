"""A file of each version of the format is kept, and every later release must read it."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sparing
from sparing.results.files.result_writer import VERSION

SAMPLES = Path(__file__).parent / "sample"


def test_there_is_a_sample_of_every_version():
    names = {path.name for path in SAMPLES.glob("result-v*.sparing")}
    assert names == {f"result-v{version}.sparing" for version in range(1, VERSION + 1)}


def test_version_1_reads_as_it_was_written():
    """The numbers beside the file were taken from the result when it was saved."""
    result = sparing.load(SAMPLES / "result-v1.sparing")
    expected = json.loads((SAMPLES / "result-v1.json").read_text(encoding="utf-8"))
    exact = {
        "log_evidence": result.log_evidence,
        "elbo": result.elbo,
        "seed": result.seed,
        "converged": result.converged,
        "stop_reason": result.stop_reason.name,
        "names": list(result.problem.names),
        "prior": result.problem.prior and result.problem.prior.description(),
        "bounds": [
            [str(v) for v in b.tolist()] for b in (result.problem.lower, result.problem.upper)
        ],
        "n_iterations": len(result.history),
        "whitened": [info.whitened for info in result.history],
        "statuses": [entry.status.name for entry in result.evaluations],
        "values": [entry.value if entry.usable else None for entry in result.evaluations],
        "first_point": result.evaluations[0].x.tolist(),
        "message": result.evaluations[3].message,
        "bounded_map": result.settings.bounded_map.name,
        "warnings": list(result.warnings),
    }
    assert exact == {name: expected[name] for name in exact}
    # Computed, not stored: libraries may round differently.
    x = np.array(expected["points"])
    for actual, wanted in [
        (result.posterior.mean, expected["mean"]),
        (result.posterior.covariance, expected["covariance"]),
        (result.posterior.log_density(x), expected["log_density"]),
    ]:
        np.testing.assert_allclose(actual, wanted, rtol=1e-9)
    assert "log evidence" in result.summary()
    with pytest.raises(sparing.TargetError, match="loaded from a file"):
        result.problem.log_joint(result.evaluations[0].x)


def test_version_1_has_no_member_that_its_description_does_not_name():
    description = (Path(__file__).parents[3] / "docs" / "result-file.md").read_text("utf-8")
    with zipfile.ZipFile(SAMPLES / "result-v1.sparing") as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    missing = [name for name in names if f"`{name}`" not in description]
    assert not missing
