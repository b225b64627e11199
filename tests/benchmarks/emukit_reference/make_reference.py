"""Write what emukit says of a small quadrature problem: reference.json beside this file.

    python -m venv ENV && ENV/bin/pip install emukit==0.5.1
    ENV/bin/python tests/benchmarks/emukit_reference/make_reference.py

emukit has vanilla Bayesian quadrature and WSABI-L, and leaves the Gaussian process to its user: the
one below is as plain as can be. The tests read the file and do not need emukit.

Notation: z points in prior units, l likelihoods with the largest at one.
"""

import json
from pathlib import Path

import numpy as np
from emukit.quadrature.acquisitions import UncertaintySampling
from emukit.quadrature.interfaces import IRBF, IBaseGaussianProcess
from emukit.quadrature.kernels import QuadratureRBFGaussianMeasure
from emukit.quadrature.measures import GaussianMeasure
from emukit.quadrature.methods import WSABIL, VanillaBayesianQuadrature

LENGTHS = np.array([0.7, 1.1])
VARIANCE = 0.8
NOISE_VARIANCE = 1e-6


class Kernel(IRBF):
    @property
    def lengthscales(self):
        return LENGTHS

    @property
    def variance(self):
        return VARIANCE

    def K(self, x1, x2):  # noqa: N802
        steps = (x1[:, None, :] - x2[None, :, :]) / LENGTHS
        return VARIANCE * np.exp(-0.5 * np.sum(steps**2, axis=2))


class Process(IBaseGaussianProcess):
    def set_data(self, X, Y):
        self._X, self._Y = X, Y
        self._gram = self.kern.K(X, X) + NOISE_VARIANCE * np.eye(len(X))

    @property
    def X(self):  # noqa: N802
        return self._X

    @property
    def Y(self):  # noqa: N802
        return self._Y

    def solve_linear(self, z):
        return np.linalg.solve(self._gram, z)

    def graminv_residual(self):
        return self.solve_linear(self._Y)

    def predict(self, X):
        k = self.kern.K(X, self._X)
        variance = VARIANCE - np.sum(k * self.solve_linear(k.T).T, axis=1)
        return k @ self.graminv_residual(), variance[:, None]


def main():
    generator = np.random.default_rng(2014)
    z = generator.standard_normal((12, 2))
    log_l = -0.5 * np.sum((z - [0.3, -0.4]) ** 2 / [0.5, 0.8], axis=1) + 0.3 * np.sin(3 * z[:, 0])
    l = np.exp(log_l - log_l.max())[:, None]  # noqa: E741
    queries = generator.standard_normal((5, 2))

    def process():
        measure = GaussianMeasure(mean=np.zeros(2), variance=np.ones(2))
        return Process(QuadratureRBFGaussianMeasure(Kernel(), measure))

    vanilla = VanillaBayesianQuadrature(process(), z, l)
    wsabi = WSABIL(process(), z, l)
    mean, variance = vanilla.integrate()
    answers = {
        "lengths": LENGTHS.tolist(),
        "variance": VARIANCE,
        "noise_variance": NOISE_VARIANCE,
        "points": z.tolist(),
        "log_likelihoods": log_l.tolist(),
        "queries": queries.tolist(),
        "vanilla_mean": float(mean),
        "vanilla_variance": float(variance),
        "wsabi_mean": wsabi.integrate()[0],
        "wsabi_offset": float(wsabi.bound),
        "wsabi_acquisition": UncertaintySampling(wsabi).evaluate(queries).ravel().tolist(),
    }
    Path(__file__).with_name("reference.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
