"""Beside NUTS: the same target, with its gradient, for NumPyro's NUTS and for sparing.

`python -m benchmarks nuts`: chains of several lengths, and sparing with gradients and without; what
each evaluates, how long it takes when an evaluation takes a tenth of a second, and how far its
answer is from the exact one. Needs the extra `numpyro`.

Both call the same NumPy function, one call at a time, and start at the same point of the plausible
box. Calls are counted in that function. sparing waits for a target that sleeps; a chain would wait
for an hour, and is charged for its calls instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.errors import BenchmarkError
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from benchmarks.problems.base import Array, BenchmarkProblem, normal_log_density
from benchmarks.problems.importance import importance_sample

SECONDS = 0.1  # of an evaluation
LENGTHS = (100, 500, 1000)  # draws kept, after a warm-up of as many; NumPyro's tutorials take 1000
ACCEPTANCE = 0.8  # that NUTS chooses its step size for: NumPyro's default

N_CASES, PRIOR_SD = 100, 2.0  # of the logistic regression
COEFFICIENTS = np.array([-0.5, 1.2, -0.8, 0.5, 0.0, 0.3, -1.5])
REFERENCE_DRAWS = 100_000  # standard error of the log evidence: 0.001


def logistic_regression() -> BenchmarkProblem:
    """An intercept and six correlated predictors of a binary outcome; nearly normal."""
    D, sd = len(COEFFICIENTS), np.full(len(COEFFICIENTS), PRIOR_SD)
    generator = np.random.default_rng(7)
    predictors = generator.standard_normal((N_CASES, D - 1))
    predictors += 0.7 * generator.standard_normal((N_CASES, 1))
    design = np.column_stack([np.ones(N_CASES), predictors])
    outcome = generator.uniform(size=N_CASES) < expit(design @ COEFFICIENTS)
    signs = np.where(outcome, 1.0, -1.0)

    def log_likelihood(x: Array) -> float:
        return -float(np.sum(np.logaddexp(0.0, -signs * (design @ x))))

    def gradient(x: Array) -> Array:
        return (signs * expit(-signs * (design @ x))) @ design

    def log_joints(x: Array) -> Array:
        log_likelihoods = -np.sum(np.logaddexp(0.0, -signs * (x @ design.T)), axis=1)
        constant = normal_log_density(np.zeros(D), np.zeros(D), sd)
        return log_likelihoods + constant - 0.5 * np.sum((x / sd) ** 2, axis=1)

    start = generator.standard_normal((1000, D))
    reference = importance_sample(
        log_joints, start, generator, 4000, components=4, last_draws=REFERENCE_DRAWS
    )
    mean, covariance = reference.moments()
    return BenchmarkProblem(
        name="logistic regression",
        log_likelihood=log_likelihood,
        prior_mean=np.zeros(D),
        prior_sd=sd,
        log_evidence=reference.log_evidence,
        posterior_mean=mean,
        posterior_covariance=covariance,
        marginals=None,
        gradient=gradient,
    )


PROBLEMS: Mapping[str, Callable[[], BenchmarkProblem]] = {
    "logistic regression": logistic_regression,
    "predators and prey": lambda: load_problem("predators-4-0", None),
    "banana": lambda: load_problem("banana-6-0", None),
}


@dataclass(frozen=True)
class Outcome:
    """What one run cost and how good it is; NaN for what it does not estimate."""

    evaluations: float
    seconds: float  # on the wall, with the target's
    lml_error: float
    lml_sd: float  # as the run reports it
    gskl: float
    effective_draws: float  # of the coordinate that has fewest


class Target:
    """Log joint and gradient at a point; sleeps until a call has taken as long as it should.

    Counts its calls and what they took.
    """

    def __init__(self, problem: BenchmarkProblem, seconds: float) -> None:
        self.problem = problem
        self.seconds = seconds
        self.calls = 0
        self.wall = 0.0

    def __call__(self, x: Array) -> tuple[float, Array]:
        begin = time.perf_counter()
        answer = self.problem.log_joint(x), self.problem.log_joint_gradient(x)
        time.sleep(max(0.0, begin + self.seconds - time.perf_counter()))
        self.calls += 1
        self.wall += time.perf_counter() - begin
        return answer

    def value(self, x: Array) -> float:
        return self(x)[0]


def run_sparing(
    problem: BenchmarkProblem, seed: int, seconds: float, *, with_gradients: bool
) -> Outcome:
    """sparing as users get it, truly waiting for its target."""
    import sparing

    target = Target(problem, seconds)
    begin = time.perf_counter()
    result = sparing.infer(
        sparing.Problem(
            target if with_gradients else target.value,
            problem.plausible_lower,
            problem.plausible_upper,
            gradient=with_gradients,
        ),
        x0=problem.starting_point(seed),
        seed=seed,
        progress=False,
    )
    wall = time.perf_counter() - begin
    divergence = _divergence(problem, result.posterior.mean, result.posterior.covariance)
    error = abs(result.log_evidence - problem.log_evidence)
    return Outcome(target.calls, wall, error, result.log_evidence_sd, divergence, math.nan)


def run_nuts(
    problem: BenchmarkProblem, seed: int, seconds: float, *, length: int, acceptance: float
) -> Outcome:
    """A chain of NUTS with its default mass matrix; warm-up and draws are of the same length.

    Time is its own, compiling included, and what its calls of the target would have taken.
    """
    import jax
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

    target = Target(problem, 0.0)
    with double_precision(jax):
        begin = time.perf_counter()
        energy = potential(jax, target, problem.dimension)
        kernel = NUTS(potential_fn=energy, target_accept_prob=acceptance)
        chain = MCMC(kernel, num_warmup=length, num_samples=length, progress_bar=False)
        start = jax.numpy.asarray(problem.starting_point(seed))
        chain.run(jax.random.PRNGKey(seed), init_params=start)
        draws = np.asarray(chain.get_samples())
        own = time.perf_counter() - begin - target.wall
    divergence = _divergence(problem, draws.mean(axis=0), np.cov(draws.T))
    effective = float(np.min(effective_sample_size(draws[None])))
    wall = own + seconds * target.calls
    return Outcome(target.calls, wall, math.nan, math.nan, divergence, effective)


def potential(jax: Any, target: Target, D: int) -> Callable[[Any], Any]:
    """Minus the log joint as a function that JAX differentiates, one call for both."""
    number = jax.numpy.float64
    shapes = jax.ShapeDtypeStruct((), number), jax.ShapeDtypeStruct((D,), number)

    def on_host(x: Any) -> tuple[Array, Array]:
        value, gradient = target(np.array(x, dtype=float))
        return np.asarray(-value), -gradient

    @jax.custom_vjp
    def energy(x: Any) -> Any:
        return jax.pure_callback(on_host, shapes, x)[0]

    energy.defvjp(
        lambda x: jax.pure_callback(on_host, shapes, x),
        lambda slope, change: (change * slope,),
    )
    return energy


@contextmanager
def double_precision(jax: Any) -> Iterator[None]:
    """For the whole program: callbacks run in threads that ``jax.enable_x64`` does not reach."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def _divergence(problem: BenchmarkProblem, mean: Array, covariance: Array) -> float:
    return gskl(mean, covariance, problem.posterior_mean, problem.posterior_covariance)


def campaign(
    names: Sequence[str] = tuple(PROBLEMS),
    seeds: int = 3,
    lengths: Sequence[int] = LENGTHS,
    seconds: float = SECONDS,
    acceptance: float = ACCEPTANCE,
) -> None:
    """A row for each problem and method: medians over the seeds."""
    _require_numpyro()
    from sparing.kernels.compilation import compile_all

    compile_all(gradients=True)  # once per machine; not a cost of the runs
    print(HEADER, flush=True)
    for name in names:
        problem = PROBLEMS[name]()
        methods: dict[str, Callable[..., Outcome]] = {
            "sparing, gradients": partial(run_sparing, with_gradients=True),
            "sparing, values alone": partial(run_sparing, with_gradients=False),
        }
        for n in lengths:
            methods[f"NUTS, {n} + {n}"] = partial(run_nuts, length=n, acceptance=acceptance)
        for method, run in methods.items():
            outcomes = [run(problem, seed, seconds) for seed in range(1, seeds + 1)]
            print(row(f"{name}, D = {problem.dimension}", method, outcomes), flush=True)


HEADER = (
    "| | | evaluations | wall time, s | LML error | its reported sd | gsKL | effective draws |\n"
    "|---|---|---|---|---|---|---|---|"
)


def row(name: str, method: str, outcomes: Sequence[Outcome]) -> str:
    """Medians as a line of the table; "-" for what the method does not estimate."""
    evaluations, seconds, *errors, effective = np.median([astuple(o) for o in outcomes], axis=0)
    cells = [f"{evaluations:.0f}", f"{seconds:.0f}", *(f"{value:.2g}" for value in errors)]
    cells = [name, method, *cells, f"{effective:.0f}"]
    return f"| {' | '.join('-' if cell == 'nan' else cell for cell in cells)} |"


def _require_numpyro() -> None:
    """Before the first run, of which some are long."""
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise BenchmarkError("numpyro is not installed: pip install 'sparing[numpyro]'") from error
