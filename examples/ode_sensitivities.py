"""Gradients from sensitivity equations: predators and prey, counted for twelve years.

The prey multiply and are eaten, the predators live on them and die (Lotka and Volterra):

    d prey / dt = (birth - hunting * predators) prey
    d predators / dt = (feeding * prey - death) predators

Both are counted once a year, with a log-normal error. How the numbers change with the parameters
theta obeys equations of its own: with z = (log prey, log predators), dz/dt = f(z, theta), and the
sensitivities S = dz/dtheta,

    dS/dt = (df/dz) S + df/dtheta

Integrated together with z they give the gradient of the log likelihood, to the precision of the
integrator and without automatic differentiation: ten equations in place of two. The surrogate
learns from the gradients as well, and the inference is done after fewer evaluations.

    python examples/ode_sensitivities.py --output output
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import sparing
from sparing.plots import BLUE, ORANGE, new_figure

NAMES = ["birth", "hunting", "feeding", "death"]
YEARS = np.arange(1, 13)
START = np.log([30.0, 8.0])  # prey and predators in year zero, known
TRUTH = np.array([0.55, 0.028, 0.026, 0.8])  # of which the data are made
ERROR = 0.25  # sd of the logarithm of a count


def slopes(_, state, theta):
    """The time derivatives of z (2,) and of S (2, 4), side by side in one state (10,)."""
    birth, hunting, feeding, death = theta
    prey, predators = np.exp(state[:2])
    jacobian = np.array([[0.0, -hunting * predators], [feeding * prey, 0.0]])  # df/dz
    direct = np.array([[1.0, -predators, 0.0, 0.0], [0.0, 0.0, prey, -1.0]])  # df/dtheta
    sensitivity = jacobian @ state[2:].reshape(2, 4) + direct
    return np.concatenate(
        [[birth - hunting * predators, feeding * prey - death], sensitivity.ravel()]
    )


def log_numbers(theta, times):
    """Log numbers of both (2, m) at the times, and their derivatives (2, 4, m)."""
    start = np.concatenate([START, np.zeros(8)])  # the start does not depend on the parameters
    solution = solve_ivp(
        slopes, (0.0, times[-1]), start, "DOP853", times, args=(theta,), rtol=1e-8, atol=1e-8
    )
    return solution.y[:2], solution.y[2:].reshape(2, 4, -1)


def make_counts(seed):
    """Counts of both species (2, 12) with their errors."""
    errors = np.random.default_rng(seed).standard_normal((2, len(YEARS)))
    return np.exp(log_numbers(TRUTH, YEARS)[0] + ERROR * errors).round(1)


COUNTS = make_counts(seed=4)


def log_likelihood(theta):
    """Log probability density of the log counts, and its gradient (4,)."""
    expected, sensitivity = log_numbers(theta, YEARS)
    z = (np.log(COUNTS) - expected) / ERROR
    value = stats.norm.logpdf(z).sum() - z.size * np.log(ERROR)
    return value, np.einsum("st,spt->p", z / ERROR, sensitivity)


PRIOR = [stats.lognorm(0.5, scale=median) for median in (0.5, 0.03, 0.025, 0.8)]
PROBLEM = sparing.Problem(log_likelihood, names=NAMES, prior=PRIOR, gradient=True)
VALUES_ALONE = sparing.Problem(lambda theta: log_likelihood(theta)[0], names=NAMES, prior=PRIOR)
SMALL_ERROR = 0.05  # of the log evidence, in nats


def evaluations_until_sure(result):
    """Evaluations after which the reported error stays below SMALL_ERROR; infinite if it is not."""
    n = np.inf
    for entry in reversed(result.history):
        if entry.log_evidence_sd >= SMALL_ERROR:
            break
        n = entry.n_evaluations
    return n


def print_comparison(runs):
    """Both runs side by side."""
    results = list(runs.values())
    rows = {
        "": list(runs),
        "evaluations": [str(result.n_evaluations) for result in results],
        f"error below {SMALL_ERROR} after": [str(evaluations_until_sure(r)) for r in results],
        "log evidence": [f"{r.log_evidence:.3f} ± {r.log_evidence_sd:.3f}" for r in results],
    }
    for i, name in enumerate(NAMES):
        posteriors = [result.posterior for result in results]
        rows[name] = [f"{q.mean[i]:.4f} ± {q.sd[i]:.4f}" for q in posteriors]
    for name, (first, second) in rows.items():
        print(f"{name:<24}{first:<20}{second}".rstrip())


def draw_counts(axes, result):
    """The counts of both species, and where the posterior expects such counts."""
    times = np.linspace(0.0, YEARS[-1], 150)
    draws = result.posterior.sample(400, seed=1)
    curves = np.array([log_numbers(theta, times)[0] for theta in draws])  # (400, 2, 150)
    # One error for all times of a draw: the interval at each is the same, and the band is smooth.
    errors = ERROR * np.random.default_rng(1).standard_normal((400, 2, 1))
    low, high = np.exp(np.quantile(curves + errors, [0.025, 0.975], axis=0))
    middle = np.exp(np.median(curves, axis=0))
    for i, (ax, name) in enumerate(zip(axes, ("prey", "predators"), strict=True)):
        ax.fill_between(
            times, low[i], high[i], color=BLUE, alpha=0.2, linewidth=0, label="95 % of counts"
        )
        ax.plot(times, middle[i], color=BLUE, label="posterior median")
        ax.plot(YEARS, COUNTS[i], "o", color=ORANGE, label="counted")
        ax.set(ylabel=name, xlim=(0, YEARS[-1] + 0.4), ylim=(0, None))
    axes[0].legend(frameon=False, loc="upper center")
    axes[1].set_xlabel("year")


def draw_evidence(axes, runs):
    """The log evidence and its reported error against the number of evaluations."""
    for (name, result), colour, line in zip(runs.items(), (BLUE, ORANGE), ("-", "--"), strict=True):
        n, value, error = np.array(
            [
                (entry.n_evaluations, entry.log_evidence, entry.log_evidence_sd)
                for entry in result.history
                if not entry.warm_up
            ]
        ).T
        axes[0].fill_between(n, value - error, value + error, color=colour, alpha=0.2, linewidth=0)
        axes[0].plot(n, value, line, color=colour, label=name)
        axes[1].plot(n, error, line, color=colour)
    final = runs["with gradients"].log_evidence
    axes[0].set(ylabel="log evidence", ylim=(final - 0.5, final + 0.5))
    axes[0].legend(frameon=False)
    axes[1].axhline(SMALL_ERROR, color="0.7", linewidth=0.8, zorder=0)
    axes[1].set(ylabel="reported error", xlabel="evaluations", yscale="log")


def draw(runs):
    """Left: the counts and what the posterior expects. Right: how both runs went."""
    figure = new_figure(10.0, 5.0)
    axes = figure.subplots(2, 2, sharex="col")
    draw_counts(axes[:, 0], runs["with gradients"])
    draw_evidence(axes[:, 1], runs)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(output):
    """Infer with gradients and without, and compare."""
    runs = {
        "with gradients": sparing.infer(PROBLEM, seed=1, progress=False),
        "values alone": sparing.infer(VALUES_ALONE, seed=1, progress=False),
    }
    print_comparison(runs)

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "ode_sensitivities.png"
    draw(runs).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit an ODE with gradients from sensitivities.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    main(parser.parse_args().output)
