"""The suite accepts the package's own surrogates and refuses one that breaks each promise."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sparing.strategies import Collapsed, MapThenSlice
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.surrogate.training_set import TrainingSet
from sparing.testing import check_surrogate_training


@pytest.mark.parametrize("strategy", [Collapsed(), MapThenSlice()], ids=lambda s: type(s).__name__)
def test_our_own_surrogates_conform(strategy):
    check_surrogate_training(strategy)


# ---------------------------------------------------------------------- broken surrogates


@dataclass(frozen=True)
class Making(Collapsed):
    """Trains well, and makes surrogates of another class."""

    kind: type[GaussianProcess] = GaussianProcess

    def train(self, training, n_samples, generator, previous=None):
        return self.kind(**fields_of(super().train(training, n_samples, generator, previous)))

    def condition(self, training, parameters):
        return self.kind(**fields_of(super().condition(training, parameters)))


def fields_of(gp):
    names = ("training", "parameters", "cholesky", "alpha", "jitter")
    return {name: getattr(gp, name) for name in names}


class Shifted(GaussianProcess):
    def predict_each(self, queries):
        means, variances = super().predict_each(queries)
        return means + 1.0, variances


class Negative(GaussianProcess):
    def predict_each(self, queries):
        means, variances = super().predict_each(queries)
        return means, variances - 1e-3


class Unsure(GaussianProcess):
    def predict_each(self, queries):
        means, variances = super().predict_each(queries)
        return means, variances + 1.0


class EquallySure(GaussianProcess):
    def predict(self, queries):
        mean, variance = super().predict(queries)
        return mean, np.full_like(variance, 1e-6)


class OneMean(GaussianProcess):
    def predict(self, queries):
        means, variances = self.predict_each(queries)
        return means[0], variances.mean(axis=0) + means.var(axis=0, ddof=1)


class NarrowAverage(GaussianProcess):
    def predict(self, queries):
        means, variances = self.predict_each(queries)
        return means.mean(axis=0), variances.mean(axis=0)


class Lopsided(GaussianProcess):
    def covariance(self, a, b):
        return super().covariance(a, b) * (1.0 + 0.01 * np.arange(len(a))[:, None])


class PriorCovariance(GaussianProcess):
    def covariance(self, a, b):
        return 2.0 * super().covariance(a, b)


class OffDiagonal(GaussianProcess):
    def covariance(self, a, b):
        covariance = super().covariance(a, b)
        same = np.all(a[:, None] == b, axis=-1)
        return np.where(same, covariance, 2.0 * covariance)


class FirstSubset(GaussianProcess):
    def subset(self, samples):
        found = super().subset(samples)
        return replace(found, alpha=self.alpha[: len(samples)])


class WholeSubset(GaussianProcess):
    def subset(self, samples):
        return self


class WrongIntegrals(GaussianProcess):
    def integrals(self, means, scales, lengths):
        expected, covariances = super().integrals(means, 1.1 * scales, lengths)
        return expected, covariances


class SureIntegrals(GaussianProcess):
    def integrals(self, means, scales, lengths):
        expected, covariances = super().integrals(means, scales, lengths)
        return expected, 0.9 * covariances


class OtherExpansion(GaussianProcess):
    @property
    def expansion(self):
        found = super().expansion
        return replace(found, coefficients=0.999 * found.coefficients)

    def integrals(self, means, scales, lengths):
        return GaussianProcess(**fields_of(self)).integrals(means, scales, lengths)


class Boasting(GaussianProcess):
    def variance_reduction(self, references):
        reduction = super().variance_reduction(references)
        return lambda candidates: 1.1 * reduction(candidates)


class Noiseless(GaussianProcess):
    def variance_reduction(self, references):
        exact = replace(self.training, typical_noise_variance=0.0)
        return replace(GaussianProcess(**fields_of(self)), training=exact).variance_reduction(
            references
        )


class Forgetting(GaussianProcess):
    def append(self, x, y, noise_variance=0.0):
        return self


class Doubting(GaussianProcess):
    def append(self, x, y, noise_variance=0.0):
        return super().append(x, y, noise_variance + 0.1)


class Foreseeing(GaussianProcess):
    def left_out(self, s):
        residuals, variances = super().left_out(s)
        return 0.9 * residuals, variances


class Noisy(GaussianProcess):
    def left_out(self, s):
        residuals, variances = super().left_out(s)
        return residuals, variances + 0.01


class Writing(GaussianProcess):
    def covariance(self, a, b):
        np.add(self.jitter, 1e-12, out=self.jitter)
        return super().covariance(a, b)


class Retuning(GaussianProcess):
    def append(self, x, y, noise_variance=0.0):
        found = super().append(x, y, noise_variance)
        return replace(found, parameters=found.parameters + 1e-9)


class Integer(GaussianProcess):
    @property
    def noise_variance(self):
        return 0


class Scalar(GaussianProcess):
    @property
    def length_scales(self):
        return np.array(0.3)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Integer, "noise_variance is 0"),
        (Scalar, "length_scales are 0.3"),
        (Shifted, "it is wrong by"),
        (Negative, "a variance is negative"),
        (Unsure, "at a point whose value it was told"),
        (EquallySure, "as sure far from all points as at them"),
        (OneMean, "not the average over the samples"),
        (NarrowAverage, "plus the variance of their means"),
        (Lopsided, "not the transpose"),
        (PriorCovariance, "the diagonal of covariance"),
        (OffDiagonal, "a negative eigenvalue"),
        (FirstSubset, "a subset predicts otherwise"),
        (WholeSubset, "a subset of 2 has 4 samples"),
        (WrongIntegrals, "integrals are not those of the mean"),
        (SureIntegrals, "covariances of integrals"),
        (OtherExpansion, "its expansion has other integrals"),
        (Boasting, "variance_reduction is not by how much"),
        (Noiseless, "variance_reduction is not by how much"),
        (Forgetting, "append adds no point|variance_reduction is not by how much"),
        (Doubting, "append is not what condition makes|variance_reduction is not by how much"),
        (Retuning, "append changes the parameters"),
        (Foreseeing, "left_out is not what a surrogate without the point"),
        (Noisy, "left_out is not what a surrogate without the point"),
        (Writing, "changes the surrogate"),
    ],
)
def test_the_suite_refuses_broken_surrogates(kind, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_surrogate_training(Making(kind=kind))


# ---------------------------------------------------------------------- broken trainings


class Changeable:
    train, condition, score = Collapsed.train, Collapsed.condition, Collapsed.score


class TooMany(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        n_samples = None if n_samples is None else n_samples + 1
        return super().train(training, n_samples, generator, previous)


class Half(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        half = TrainingSet(training.inputs[::2], training.values[::2])
        return super().train(half, n_samples, generator, previous)


class NeverBest(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        return super().train(training, n_samples or 4, generator, previous)


class Approximate(Collapsed):
    def condition(self, training, parameters):
        return super().condition(training, parameters * (1.0 + 1e-15))


class Flattering(Collapsed):
    def score(self, surrogate, training):
        return 0.0


class Undefined(Collapsed):
    def score(self, surrogate, training):
        return float("nan")


class Unseeded(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        return super().train(training, n_samples, np.random.default_rng(), previous)


class Global(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        np.random.seed(1)  # noqa: NPY002
        return super().train(training, n_samples, generator, previous)


class Stubborn(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        return previous or super().train(training, n_samples, generator)


class WritingWhenTrained(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        found = super().train(training, n_samples, generator, previous)
        if previous is not None:
            np.add(previous.jitter, 1e-12, out=previous.jitter)
        return found


class Fragile(Collapsed):
    def train(self, training, n_samples, generator, previous=None):
        found = super().train(training, n_samples, generator, previous)
        return found if training.dimension > 1 else replace(found, alpha=np.nan * found.alpha)


@pytest.mark.parametrize(
    ("strategy", "complaint"),
    [
        (Changeable(), "no frozen dataclass"),
        (TooMany(), "5 samples instead of 4"),
        (Half(), "something else than it was trained on"),
        (NeverBest(), "the single best surrogate has 4 samples"),
        (Approximate(), "append is not|to the last bit"),
        (Flattering(), "its values in disorder 0.0"),
        (Undefined(), "the score is nan"),
        (Unseeded(), "equal generators give different surrogates"),
        (Global(), "draws from a global generator"),
        (Stubborn(), "training again uses the old points"),
        (WritingWhenTrained(), "changes the surrogate"),
        (Fragile(), "predictions that are not finite"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_the_suite_refuses_broken_trainings(strategy, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_surrogate_training(strategy)
