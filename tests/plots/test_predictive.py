import numpy as np

from sparing.plots import plot_predictive


def test_bands_are_quantiles_of_the_simulated_data():
    data = np.random.default_rng(1).normal(size=(500, 2, 3))
    ax = plot_predictive(data, np.arange(6.0).reshape(2, 3)).axes[0]
    widest = ax.patches[0].get_data()
    low, high = np.quantile(data.reshape(500, 6), [0.025, 0.975], axis=0)
    np.testing.assert_allclose(widest.values, high)
    np.testing.assert_allclose(widest.baseline, low)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.arange(6.0))
