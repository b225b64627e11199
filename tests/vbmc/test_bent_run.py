"""A run on a banana from its start to its end, which is in bent coordinates."""

import numpy as np
import pytest
from tests.light import LIGHT
from tests.results.files.support import assert_same

import sparing

SD = 0.3  # across the parabola
BUDGET = 50


def banana(x):
    """x_1 is normal, and x_2 about its square: the evidence is 2 pi SD."""
    return -0.5 * float(x[0] ** 2 + ((x[1] - x[0] ** 2) / SD) ** 2)


def run(target=banana, store=None):
    problem = sparing.Problem(target, [-3.0, -2.0], [3.0, 8.0])
    return sparing.infer(
        problem, seed=1, max_evaluations=BUDGET, settings=LIGHT, progress=False, store=store
    )


@pytest.fixture(scope="module")
def result():
    return run()


def assert_identical(one, other, *skip):
    assert_same(one, other, skip=("problem", *skip))
    draws = [item.posterior.sample(10, seed=1) for item in (one, other)]
    np.testing.assert_array_equal(*draws)


def test_a_banana_ends_in_bent_coordinates_and_is_right(result):
    assert result.posterior.transform.bends
    assert not result.history[0].posterior.transform.bends
    error = result.log_evidence - np.log(2.0 * np.pi * SD)
    assert abs(error) < 4.0 * result.evidence.sd + 0.01
    assert result.evidence.sd < 0.1
    posterior = result.posterior
    assert np.all(np.abs(posterior.mean - [0.0, 1.0]) < 0.1 * posterior.sd)
    np.testing.assert_allclose(posterior.sd, [1.0, np.sqrt(2.0 + SD**2)], rtol=0.1)
    draws = posterior.sample(20_000, seed=2)
    across = draws[:, 1] - draws[:, 0] ** 2
    assert np.quantile(across, [0.16, 0.84]) == pytest.approx([-SD, SD], abs=0.1 * SD)


def test_it_is_saved_and_loaded_to_the_last_bit(result, tmp_path):
    result.save(tmp_path / "run.sparing")
    loaded = sparing.load(tmp_path / "run.sparing")
    assert_identical(loaded, result, "settings")
    assert loaded.settings == result.settings
    x = result.posterior.sample(5, seed=3)
    np.testing.assert_array_equal(loaded.posterior.log_density(x), result.posterior.log_density(x))
    assert loaded.summary() == result.summary()


class KilledError(BaseException):
    """Stands for a process that ends here."""


@pytest.mark.parametrize("snapshots", [True, False])
def test_it_is_resumed_to_the_last_bit(result, tmp_path, snapshots):
    """It was killed while it was bent."""
    since = next(info for info in result.history if info.posterior.transform.bends)
    calls = []

    def dies(x):
        calls.append(x)
        if len(calls) == since.n_evaluations + 3:
            raise KilledError
        return banana(x)

    with pytest.raises(KilledError):
        run(dies, tmp_path / "run")
    if not snapshots:
        for path in (tmp_path / "run" / "snapshots").iterdir():
            path.unlink()
    times = ("timings", "duration", "started", "ended")
    assert_identical(run(store=tmp_path / "run"), result, *times)
