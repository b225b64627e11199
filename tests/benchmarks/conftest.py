"""A stand-in for sparing that child processes import instead: quick, and failing on demand."""

import textwrap

import pytest

from sparing.numerics.blas_threads import one_blas_thread

STUB = """
import os, time, warnings
from types import SimpleNamespace
import numpy as np
from sparing.errors import SparingError

class Settings:
    @classmethod
    def paper(cls):
        settings = cls()
        settings.is_paper = True
        return settings

class Problem:
    def __init__(self, log_density, plausible_lower, plausible_upper, lower=None, upper=None,
                 gradient=None):
        self.log_density = log_density
        self.box = np.array([plausible_lower, plausible_upper])
        self.bounds = lower, upper

def infer(problem, x0=None, seed=None, max_evaluations=None, settings=None, progress=True,
          callback=None):
    mode = os.environ.get("STUB_MODE", "")
    if mode == "raise":
        raise ZeroDivisionError("deliberate")
    if mode == "affinity":
        raise RuntimeError(f"cores {sorted(os.sched_getaffinity(0))}")
    if mode == "refuse":
        raise SparingError("this input cannot be used")
    if mode == "die":
        os._exit(7)
    if mode == "hang":
        time.sleep(60)
    if mode == "warn":
        warnings.warn("deliberate", RuntimeWarning)
    lower, upper = problem.box
    generator = np.random.default_rng(seed)
    points = generator.uniform(lower, upper, size=(max_evaluations, len(lower)))
    if x0 is not None:
        points[0] = x0
    values = np.array([problem.log_density(x) for x in points])
    def estimate(n):
        weights = np.exp(values[:n] - values[:n].max())
        log_evidence = np.log(weights.mean()) + values[:n].max() + np.log(upper - lower).sum()
        weights /= weights.sum()
        mean = weights @ points[:n]
        centred = points[:n] - mean
        covariance = (weights[:, None] * centred).T @ centred + 1e-9 * np.diag((upper - lower) ** 2)
        def sample(m, seed=None):
            return points[np.random.default_rng(seed).choice(n, size=m, p=weights)]
        posterior = SimpleNamespace(mean=mean, covariance=covariance, sample=sample)
        if mode == "outside":
            posterior.sample = lambda m, seed=None: np.full((m, len(lower)), np.nan)
        return SimpleNamespace(n_evaluations=n, elbo=log_evidence - 0.5, elbo_sd=0.1,
                               n_components=2, timings={"fit": 0.25}, posterior=posterior,
                               log_evidence=log_evidence, log_evidence_sd=40 / n)
    history = tuple(estimate(n) for n in (max_evaluations // 2, max_evaluations))
    for info in history:
        if callback is not None:
            callback(info)
    last = estimate(max_evaluations)
    return SimpleNamespace(log_evidence=last.log_evidence, log_evidence_sd=0.2, elbo=last.elbo,
        elbo_sd=0.1, n_evaluations=max_evaluations, converged=settings is None or
        hasattr(settings, "is_paper"), posterior=last.posterior, history=history)
"""

ERRORS = """
class SparingError(Exception): pass
class SparingWarning(UserWarning): pass
"""


@pytest.fixture
def stub_library(tmp_path, monkeypatch):
    """Put the stand-in before the real library in child processes; return the mode setter."""
    package = tmp_path / "stub" / "sparing"
    (package / "kernels").mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(STUB))
    (package / "errors.py").write_text(ERRORS)
    (package / "kernels" / "__init__.py").write_text("")
    (package / "kernels" / "compilation.py").write_text("def compile_all(): pass\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return lambda mode: monkeypatch.setenv("STUB_MODE", mode)


@pytest.fixture(autouse=True)
def one_thread():
    """As in a campaign: sums of several threads round differently, and some methods are chaotic."""
    with one_blas_thread():
        yield
