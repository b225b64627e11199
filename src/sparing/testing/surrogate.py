"""Conformance suite for surrogates: each method satisfies the equation it stands for.

``check_surrogate_training(strategy)`` trains on a smooth function of two parameters. Integrals are
compared with Gauss-Hermite quadrature of what the surrogate itself predicts, updates with the
surrogate made anew.

Notation (S samples, m queries, K normals)
    f           the function, at known places                   fbar, C   see surrogate/interface.py
    I_k         integral of f against normal k                  x, w      nodes and weights of it
"""

from __future__ import annotations

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import latin_hypercube
from sparing.surrogate.interface import Surrogate, SurrogateTraining
from sparing.surrogate.training_set import TrainingSet
from sparing.testing.rules import check_it_is_data, global_generators_untouched, surrogate_contents

N_SAMPLES = 4
N_POINTS = 30
# Errors that count as none: of f where it is not known, in sds of f over the box (a surrogate of 30
# points of a smooth function is better than this by far), and of numbers that must be equal but for
# rounding in badly conditioned systems, in units of the largest of them.
LARGEST_ERROR = 0.1
ROUNDING = 1e-5
# Of quadrature with 20 nodes per dimension; the normals are narrower than f is bent.
QUADRATURE_ERROR = 1e-3
N_NODES = 20
# Nats by which a function is described better than its values in random order.
LEAST_GAIN = 5.0
# The normals of the integrals: means (K, D), scales (K,), lengths (D,).
NORMALS = (
    np.array([[0.1, 0.0], [-0.2, 0.2], [0.3, -0.1]]),
    np.array([1.0, 0.6, 0.3]),
    np.array([0.12, 0.2]),
)


def check_surrogate_training(strategy: SurrogateTraining) -> None:
    """Raise an `AssertionError` that says what a strategy, or a surrogate it trains, does wrong.

    >>> from sparing.strategies import Collapsed
    >>> from sparing.testing import check_surrogate_training
    >>> check_surrogate_training(Collapsed(n_weighted_candidates=80))
    """
    of_the_surrogate = (
        _check_facts,
        _check_the_function_is_found,
        _check_variances,
        _check_predictions_are_averages,
        _check_covariances,
        _check_subsets,
        _check_integrals,
        _check_variance_reduction,
    )
    of_the_training = (
        _check_appending,
        _check_leaving_out,
        _check_conditioning_again,
        _check_scores,
        _check_training_is_deterministic,
        _check_training_again,
        _check_training_on_little,
    )
    check_it_is_data(strategy)
    surrogate = strategy.train(example_training_set(), N_SAMPLES, np.random.default_rng(1))
    before, complaint = _bits(surrogate), "one of its methods changes the surrogate"
    for check in of_the_surrogate:
        check(surrogate)
    assert _bits(surrogate) == before, complaint
    for check in of_the_training:
        check(strategy, surrogate)
    assert _bits(surrogate) == before, complaint


def example_function(u: Array) -> Array:
    """A log joint with bumps, far from zero, at points (m, 2): (m,)."""
    hill = -5.0 * ((u[:, 0] - 0.1) ** 2 + (u[:, 1] - 0.6 * u[:, 0]) ** 2)
    return hill + np.sin(6.0 * u[:, 0]) * np.cos(5.0 * u[:, 1]) - 1000.0


def example_training_set() -> TrainingSet:
    """The function at points that fill the plausible box and a little more."""
    inputs = _points(N_POINTS, seed=2018)
    return TrainingSet(inputs, example_function(inputs), typical_noise_variance=0.02)


def _check_facts(surrogate: Surrogate) -> None:
    n, rows = surrogate.n_samples, surrogate.parameters.shape
    assert n == N_SAMPLES, f"{n} samples instead of {N_SAMPLES}"
    assert len(rows) == 2 and rows[0] == n, f"parameters have the shape {rows}, not ({n}, p)"
    assert np.isfinite(surrogate.parameters).all(), "a parameter is not finite"
    training, given = surrogate.training, example_training_set()
    same = np.array_equal(training.inputs, given.inputs)
    same = same and np.array_equal(training.values, given.values)
    assert same, "training is something else than it was trained on"
    assert surrogate.dimension == 2, f"dimension is {surrogate.dimension}, not 2"
    lengths, jitter = surrogate.length_scales, surrogate.jitter
    assert lengths.shape == (2,) and (lengths > 0.0).all(), f"length_scales are {lengths}"
    assert jitter.shape == (n,) and (jitter >= 0.0).all(), f"jitter is {jitter}"
    noise = surrogate.noise_variance
    assert isinstance(noise, float) and noise >= 0.0, f"noise_variance is {noise!r}"


def _check_the_function_is_found(surrogate: Surrogate) -> None:
    queries = 0.8 * _points(200, seed=1)
    truth = example_function(queries)
    mean, _ = surrogate.predict(queries)
    error = float(np.sqrt(np.mean((mean - truth) ** 2)) / truth.std())
    assert error < LARGEST_ERROR, f"between its points it is wrong by {error:.2g} sds of the values"
    training = surrogate.training
    at_data = np.abs(surrogate.predict(training.inputs)[0] - training.values).max()
    assert at_data < LARGEST_ERROR * truth.std(), f"at its own points it is wrong by {at_data:.2g}"


def _check_variances(surrogate: Surrogate) -> None:
    inputs = surrogate.training.inputs
    for queries in (inputs, _points(100, seed=1), 100.0 * _points(20, seed=1)):
        _means, variances = surrogate.predict_each(queries)
        assert (variances >= 0.0).all(), "a variance is negative"
    _mean, at_data = surrogate.predict(inputs)
    _mean, far = surrogate.predict(inputs + 3.0)
    sd = float(np.sqrt(at_data.max()))
    assert sd < LARGEST_ERROR * surrogate.training.values.std(), (
        f"its sd is {sd:.2g} at a point whose value it was told"
    )
    assert far.min() > at_data.max(), "it is as sure far from all points as at them"


def _check_predictions_are_averages(surrogate: Surrogate) -> None:
    queries = _points(50, seed=1)
    means, variances = surrogate.predict_each(queries)
    wanted = (N_SAMPLES, len(queries))
    assert means.shape == variances.shape == wanted, f"predict_each gives {means.shape}"
    mean, variance = surrogate.predict(queries)
    assert mean.shape == variance.shape == (len(queries),), f"predict gives {mean.shape}"
    _assert_equal(mean, means.mean(axis=0), "predict's mean is not the average over the samples")
    total = variances.mean(axis=0) + means.var(axis=0, ddof=1)
    _assert_equal(
        variance, total, "predict's variance is not their average plus the variance of their means"
    )


def _check_covariances(surrogate: Surrogate) -> None:
    a, b = _points(12, seed=1), _points(7, seed=2)
    covariance = surrogate.covariance(a, b)
    wanted = (N_SAMPLES, len(a), len(b))
    assert covariance.shape == wanted, f"covariance gives {covariance.shape}, not {wanted}"
    swapped = surrogate.covariance(b, a).transpose(0, 2, 1)
    _assert_equal(covariance, swapped, "covariance(a, b) is not the transpose of covariance(b, a)")
    own = surrogate.covariance(a, a)
    diagonals = np.diagonal(own, axis1=1, axis2=2)
    _, variances = surrogate.predict_each(a)
    _assert_equal(diagonals, variances, "the diagonal of covariance is not predict_each's variance")
    lowest = np.linalg.eigvalsh(own).min()
    assert lowest > -ROUNDING * own.max(), "a covariance has a negative eigenvalue"


def _check_appending(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    x, y = np.array([0.55, -0.5]), -995.0
    queries = _points(50, seed=1)
    for noise_variance in (0.0, 4.0):
        appended = surrogate.append(x, y, noise_variance)
        enlarged = surrogate.training.with_point(x, y, noise_variance)
        again = strategy.condition(enlarged, surrogate.parameters)
        assert appended.training.n_points == enlarged.n_points, "append adds no point"
        same = np.array_equal(appended.parameters, surrogate.parameters)
        assert same, "append changes the parameters"
        for found, wanted in zip(
            appended.predict_each(queries), again.predict_each(queries), strict=True
        ):
            _assert_equal(found, wanted, "append is not what condition makes of one point more")
    exact, noisy = (surrogate.append(x, y, v).predict(x[None, :])[1][0] for v in (0.0, 4.0))
    assert exact < noisy, "a noisy value teaches as much as an exact one"


def _check_subsets(surrogate: Surrogate) -> None:
    chosen = np.array([2, 0])
    few, queries = surrogate.subset(chosen), _points(50, seed=1)
    assert few.n_samples == 2, f"a subset of 2 has {few.n_samples} samples"
    same = np.array_equal(few.parameters, surrogate.parameters[chosen])
    assert same, "a subset has other parameters than those samples"
    for found, wanted in zip(
        few.predict_each(queries), surrogate.predict_each(queries), strict=True
    ):
        _assert_equal(found, wanted[chosen], "a subset predicts otherwise than those samples")


def _check_integrals(surrogate: Surrogate) -> None:
    means, covariances = surrogate.integrals(*NORMALS)
    n_normals = len(NORMALS[0])
    wanted = (N_SAMPLES, n_normals), (N_SAMPLES, n_normals, n_normals)
    shapes = means.shape, covariances.shape
    assert shapes == wanted, f"integrals give the shapes {shapes}, not {wanted}"
    nodes, weights = _quadrature()
    averages = np.stack([surrogate.predict_each(x)[0] @ weights for x in nodes], axis=1)
    spread = surrogate.training.values.std()
    _assert_equal(means, averages, "integrals are not those of the mean", QUADRATURE_ERROR * spread)
    for j, k in np.ndindex(n_normals, n_normals):
        double = surrogate.covariance(nodes[j], nodes[k]) @ weights @ weights
        scale = np.sqrt(covariances[:, j, j] * covariances[:, k, k]).max()
        complaint = "covariances of integrals are not the integrals of the covariance"
        _assert_equal(covariances[:, j, k], double, complaint, 10.0 * QUADRATURE_ERROR * scale)
    _assert_equal(
        surrogate.expansion.integrals(*NORMALS), means, "its expansion has other integrals"
    )


def _check_variance_reduction(surrogate: Surrogate) -> None:
    references, candidates = _points(40, seed=1), _points(5, seed=2)
    promised = surrogate.variance_reduction(references)(candidates)
    assert promised.shape == (len(candidates),), f"variance_reduction gives {promised.shape}"
    before = surrogate.predict_each(references)[1].mean()
    noise = surrogate.training.typical_noise_variance
    after = [surrogate.append(x, 0.0, noise).predict_each(references)[1].mean() for x in candidates]
    drop = before - np.array(after)
    complaint = "variance_reduction is not by how much an evaluation lowers the variance"
    _assert_equal(promised, drop, complaint, ROUNDING * before + QUADRATURE_ERROR * drop.max())


def _check_leaving_out(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    training, s = surrogate.training, surrogate.n_samples - 1
    found = np.array(surrogate.left_out(s))
    shape = (2, training.n_points)
    assert found.shape == shape, f"left_out gives the shape {found.shape}, not {shape}"
    wanted = []
    for i in range(training.n_points):
        others = training.of_points(np.delete(np.arange(training.n_points), i))
        without = strategy.condition(others, surrogate.parameters)
        means, variances = without.predict_each(training.inputs[i : i + 1])
        wanted.append([training.values[i] - means[s, 0], variances[s, 0]])
    complaint = "left_out is not what a surrogate without the point predicts"
    _assert_equal(found, np.transpose(wanted), complaint, ROUNDING * np.abs(wanted).max())


def _check_conditioning_again(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    again = strategy.condition(surrogate.training, surrogate.parameters)
    assert _bits(again) == _bits(surrogate), (
        "condition does not make the surrogate again from its parameters, to the last bit"
    )


def _check_scores(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    training = surrogate.training
    shuffled = np.random.default_rng(1).permutation(training.values)
    disorder = TrainingSet(training.inputs, shuffled)
    score = strategy.score(surrogate, training)
    mixed = strategy.train(disorder, N_SAMPLES, np.random.default_rng(1))
    worse = strategy.score(mixed, disorder)
    assert isinstance(score, float) and np.isfinite(score), f"the score is {score!r}"
    assert score > worse + LEAST_GAIN, (
        f"the score of a smooth function is {score:.1f}, that of its values in disorder {worse:.1f}"
    )


def _check_training_is_deterministic(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    training = example_training_set()
    with global_generators_untouched():
        strategy.train(training, N_SAMPLES, np.random.default_rng(2))
        again = strategy.train(training, N_SAMPLES, np.random.default_rng(1))
    same = again.parameters.tobytes() == surrogate.parameters.tobytes()
    assert same, "equal generators give different surrogates"


def _check_training_again(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    """With one point more, and the last surrogate to start from."""
    x = np.array([[0.05, 0.1]])
    training = surrogate.training.with_point(x[0], float(example_function(x)[0]))
    for previous in (surrogate, surrogate.subset(np.array([1]))):
        again = strategy.train(training, N_SAMPLES, np.random.default_rng(3), previous)
        assert again.training.n_points == training.n_points, "training again uses the old points"
        _check_the_function_is_found(again)


def _check_training_on_little(strategy: SurrogateTraining, surrogate: Surrogate) -> None:
    """The best sample alone; and the first surrogate of a run, which knows next to nothing."""
    best = strategy.train(surrogate.training, None, np.random.default_rng(1))
    assert best.n_samples == 1, f"the single best surrogate has {best.n_samples} samples"
    inputs = np.array([[-0.4], [0.0], [0.3], [0.3]])
    training = TrainingSet(inputs, np.array([-3.0, -1.0, -2.0, -2.0]))
    first = strategy.train(training, N_SAMPLES, np.random.default_rng(1))
    predicted = first.predict(np.linspace(-1.0, 1.0, 21)[:, None])
    finite = all(np.isfinite(part).all() for part in predicted)
    assert finite, "four points, two of them equal, give predictions that are not finite"


# ---------------------------------------------------------------------- the checks' tools


def _points(n: int, seed: int) -> Array:
    """Points of the plausible box and a little more, (n, 2)."""
    return 1.2 * (latin_hypercube(n, 2, np.random.default_rng(seed)) - 0.5)


def _quadrature() -> tuple[list[Array], Array]:
    """Nodes for each normal, (m, 2) each, and their weights, (m,)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    both = np.outer(weights, weights).ravel()
    means, scales, lengths = NORMALS
    placed = [mean + scale * lengths * grid for mean, scale in zip(means, scales, strict=True)]
    return placed, both / both.sum()


def _assert_equal(found: Array, wanted: Array, complaint: str, allowed: float = 0.0) -> None:
    """Equal but for rounding, or for what is allowed."""
    allowed = max(allowed, ROUNDING * float(np.ptp(wanted)))
    difference = float(np.abs(found - wanted).max())
    assert difference <= allowed, f"{complaint}: they differ by {difference:.2g}"


def _bits(surrogate: Surrogate) -> list[bytes]:
    mean, variance = surrogate.predict_each(_points(20, seed=3))
    return [array.tobytes() for array in (*surrogate_contents(surrogate), mean, variance)]
