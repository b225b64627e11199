"""A bounded real model: how faint a grating can an observer see?

In each trial a grating of some contrast appears on the left or on the right, and the observer says
where. Guessing is right half of the time, and now and then the finger slips however clear the
grating was:

    P(correct) = 1/2 + (1/2 - lapse / 2) Phi((c - threshold) / spread),   c = log10 contrast

The threshold may be any number, the spread is positive, the lapse rate lies between 0 and 1: one
parameter without bounds, one with one bound, one with two. The posterior of the lapse rate leans
against its bound, which a normal approximation would cross.

    python examples/psychometric_function.py --output output
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

import sparing
from sparing.plots import BLUE, ORANGE, new_figure, plot_posterior

CONTRAST = np.array([0.003, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.1])
TRIALS = np.full(8, 40)
CORRECT = np.array([19, 23, 22, 29, 35, 37, 40, 39])


def probability_correct(x, contrast):
    """Probability of a correct answer; x = (threshold, spread, lapse)."""
    threshold, spread, lapse = x
    return 0.5 + 0.5 * (1 - lapse) * stats.norm.cdf((np.log10(contrast) - threshold) / spread)


def log_likelihood(x):
    """Log probability of the observed numbers of correct answers."""
    return stats.binom.logpmf(CORRECT, TRIALS, probability_correct(x, CONTRAST)).sum()


PROBLEM = sparing.Problem(
    log_likelihood,
    plausible_lower=[-2.5, 0.1, 0.005],
    plausible_upper=[-1.5, 0.6, 0.1],
    lower=[None, 0, 0],
    upper=[None, None, 1],
    names=["threshold", "spread", "lapse rate"],
    prior=[stats.norm(-2, 0.5), stats.gamma(3, scale=0.1), stats.beta(1.5, 30)],
)


def simulate(x, generator):
    """Numbers of correct answers of an observer with parameters x."""
    return generator.binomial(TRIALS, probability_correct(x, CONTRAST))


def draw_fit(result):
    """The data, and the curves that the posterior holds likely."""
    contrast = np.geomspace(0.002, 0.15, 200)
    curves = [probability_correct(x, contrast) for x in result.posterior.sample(2000, seed=1)]
    low, middle, high = np.quantile(curves, [0.025, 0.5, 0.975], axis=0)

    figure = new_figure(6.0, 4.0)
    ax = figure.subplots()
    ax.fill_between(contrast, low, high, color=BLUE, alpha=0.25, linewidth=0, label="95 % interval")
    ax.plot(contrast, middle, color=BLUE, label="posterior median")
    ax.plot(
        CONTRAST, CORRECT / TRIALS, "o", color=ORANGE, label=f"observed, {TRIALS[0]} trials each"
    )
    ax.axhline(0.5, color="0.7", linewidth=0.8, zorder=0)
    ax.set(xscale="log", xlabel="contrast", ylabel="fraction correct", ylim=(0.4, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return figure


def main(output):
    """Infer the three parameters, and check that the model describes the data."""
    result = sparing.infer(PROBLEM, seed=1, progress=False)
    print(result)
    print()

    threshold, _, lapse = result.posterior.sample(20_000, seed=2).T
    low, high = np.quantile(10**threshold, [0.025, 0.975])
    print(f"contrast at threshold: between {low:.4f} and {high:.4f} (95 %)")
    print(f"probability that more than 5 % of the answers are lapses: {np.mean(lapse > 0.05):.2f}")

    # Would data simulated from the posterior be as far from its own curve as the observed are?
    replicated = sparing.posterior_predictive(result, simulate, n=1000, seed=3)
    expected = TRIALS * probability_correct(result.posterior.mean, CONTRAST)
    observed_misfit = np.sum((CORRECT - expected) ** 2 / expected)
    misfits = np.sum((replicated - expected) ** 2 / expected, axis=1)
    p_value = np.mean(misfits >= observed_misfit)
    print(f"posterior predictive check: p = {p_value:.2f} (near 0: the model misses something)")

    output.mkdir(parents=True, exist_ok=True)
    pictures = {"psychometric_function.png": draw_fit(result)}
    pictures["psychometric_posterior.png"] = plot_posterior(result)
    for name, figure in pictures.items():
        figure.savefig(output / name, dpi=150)
        print(f"picture: {output / name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Infer a psychometric function.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    main(parser.parse_args().output)
