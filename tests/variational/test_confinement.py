import numpy as np

from sparing.surrogate.gaussian_process import TrainingSet, condition
from sparing.variational.fit import VariationalSettings, fit
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import NoPenalties, SoftPenalties


def runaway_gp():
    """Data in a unit box, and a mean function whose maximum is a thousand boxes away."""
    inputs = np.random.default_rng(1).uniform(-0.5, 0.5, size=(20, 2))
    psi = np.array([0.0, 0.0, 0.0, np.log(1e-2), 0.0, 1e3, 1e3, -3.0, -3.0])
    values = -0.5 * np.sum((inputs - 1e3) ** 2, axis=1) / np.exp(-3.0) ** 2
    return condition(TrainingSet(inputs, values), psi[None, :])


MIXTURE = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.array([0.1]), np.ones(2))


def fitted(settings):
    return fit(
        MIXTURE,
        runaway_gp(),
        n_components=1,
        settings=settings,
        searching=True,
        first=True,
        generator=np.random.default_rng(2),
    )


def test_a_fit_stays_near_the_data_whatever_the_mean_function_promises():
    assert np.all(np.abs(fitted(VariationalSettings()).means) < 3.0)


def test_components_wider_than_the_bounds_are_narrowed_and_others_left_alone():
    penalties, gp = SoftPenalties(), runaway_gp()
    largest_sd = np.exp(penalties.bounds(gp)[3])
    wide = GaussianMixture(np.ones(1), np.full((1, 2), 1e6), np.array([1e4]), np.array([1.0, 2.0]))
    confined = penalties.confined(wide, gp)
    assert np.all(confined.scales[:, None] * confined.lengths <= largest_sd * 1.01)
    same = penalties.confined(MIXTURE, gp)
    np.testing.assert_array_equal(same.means, MIXTURE.means)
    np.testing.assert_array_equal(same.lengths, MIXTURE.lengths)


def test_the_paper_leaves_everything_where_it_is():
    far = GaussianMixture(np.ones(1), np.full((1, 2), 1e6), np.array([1e4]), np.ones(2))
    assert NoPenalties().confined(far, runaway_gp()) is far
