"""A curved posterior: where is the ship, given its distance from one lighthouse?

Dead reckoning puts the ship near (2, 3) km, give or take 1.5 km. Its radar says that a lighthouse
at the origin is 4.0 km away, give or take 0.4 km. Together they leave a crescent, which one normal
distribution cannot describe. The problem has two parameters, so the exact answer can be had on a
grid, and is printed and drawn beside the inferred one.

    python examples/curved_posterior.py --output output
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import logsumexp

import sparing
from sparing.plots import plot_posterior

LIGHTHOUSE = np.array([0.0, 0.0])
RECKONED, RECKONING_SD = np.array([2.0, 3.0]), 1.5
DISTANCE, DISTANCE_SD = 4.0, 0.4


def log_likelihood(x):
    """Log density of the measured distance for a ship at x = (east, north), in km."""
    return stats.norm.logpdf(DISTANCE, np.hypot(*(x - LIGHTHOUSE)), DISTANCE_SD)


PROBLEM = sparing.Problem(
    log_likelihood,
    plausible_lower=RECKONED - 2 * RECKONING_SD,
    plausible_upper=RECKONED + 2 * RECKONING_SD,
    names=["east", "north"],
    prior=[stats.norm(centre, RECKONING_SD) for centre in RECKONED],
)


def exact_answer(n_draws, seed):
    """Log evidence, and draws (n_draws, 2) from the posterior, on a grid in polar coordinates.

    The crescent follows the circle, so a grid of distances and directions from the lighthouse
    needs few points; dx dy = r dr dphi.
    """
    r = np.linspace(DISTANCE - 6 * DISTANCE_SD, DISTANCE + 6 * DISTANCE_SD, 200)
    phi = np.linspace(-np.pi, np.pi, 1000, endpoint=False)
    cell = (r[1] - r[0]) * (phi[1] - phi[0])
    r, phi = (axis.ravel() for axis in np.meshgrid(r, phi))
    points = LIGHTHOUSE + np.column_stack([r * np.cos(phi), r * np.sin(phi)])
    log_joint = stats.norm.logpdf(DISTANCE, r, DISTANCE_SD)
    log_joint += stats.norm.logpdf(points, RECKONED, RECKONING_SD).sum(axis=1)
    log_mass = log_joint + np.log(r * cell)
    log_evidence = logsumexp(log_mass)
    drawn = np.random.default_rng(seed).choice(
        len(points), n_draws, p=np.exp(log_mass - log_evidence)
    )
    return log_evidence, points[drawn]


def main(output):
    """Infer where the ship is, and compare with the exact answer."""
    result = sparing.infer(PROBLEM, seed=1, progress=False)
    exact_log_evidence, exact_draws = exact_answer(n_draws=20_000, seed=2)

    print(result)
    print()
    print(f"log evidence, inferred: {result.log_evidence:.3f} ± {result.log_evidence_sd:.3f}")
    print(f"log evidence, exact:    {exact_log_evidence:.3f}")
    for i, name in enumerate(PROBLEM.names):
        found = f"{result.posterior.mean[i]:.2f} ± {result.posterior.sd[i]:.2f}"
        exact = f"{exact_draws[:, i].mean():.2f} ± {exact_draws[:, i].std():.2f}"
        print(f"{name} in km: {found}, exact {exact}")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "curved_posterior.png"
    plot_posterior(result, reference=exact_draws).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Infer a curved posterior.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    main(parser.parse_args().output)
