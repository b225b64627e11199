"""Two models compared: is what we learned forgotten exponentially or by a power law?

Words of a list are asked for after a growing number of days. Both curves start at the share that
was learned at all and fall with a rate of their own; their shapes differ:

    exponential   P(recall) = learned exp(-rate t)
    power law     P(recall) = learned (1 + t)^-rate

The evidence of each model is the probability it gave to these data before it saw them. It is only
comparable because both models have the same data and proper priors (each integrates to one).

    python examples/two_models.py --output output
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

import sparing
from sparing.plots import BLUE, GREY, ORANGE, new_figure

DAYS = np.array([0.1, 0.5, 1, 2, 4, 7, 14, 28])
WORDS = np.full(8, 20)
RECALLED = np.array([17, 15, 14, 12, 9, 8, 5, 3])


def exponential(x, days):
    """Probability of recall; x = (learned, rate)."""
    return x[0] * np.exp(-x[1] * days)


def power_law(x, days):
    """Probability of recall; x = (learned, rate)."""
    return x[0] * (1 + days) ** -x[1]


CURVES = {"exponential": exponential, "power law": power_law}


def make_problem(curve):
    """The same data and prior for either curve."""

    def log_likelihood(x):
        return stats.binom.logpmf(RECALLED, WORDS, curve(x, DAYS)).sum()

    return sparing.Problem(
        log_likelihood,
        plausible_lower=[0.5, 0.05],
        plausible_upper=[0.99, 1.0],
        lower=[0, 0],
        upper=[1, None],
        names=["learned", "rate"],
        prior=[stats.uniform(0, 1), stats.gamma(2, scale=0.25)],
    )


def draw_fits(results, comparison):
    """The data, and the curves that each model's posterior holds likely."""
    days = np.linspace(0, 30, 200)
    figure = new_figure(6.5, 4.2)
    ax = figure.subplots()
    probability = {model.name: model.probability for model in comparison.models}
    for (name, result), colour in zip(results.items(), (GREY, BLUE), strict=True):
        curves = [CURVES[name](x, days) for x in result.posterior.sample(1000, seed=1)]
        low, middle, high = np.quantile(curves, [0.025, 0.5, 0.975], axis=0)
        ax.fill_between(days, low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(days, middle, color=colour, label=f"{name}: probability {probability[name]:.2g}")
    ax.plot(DAYS, RECALLED / WORDS, "o", color=ORANGE, label=f"recalled of {WORDS[0]} words")
    ax.set(xlabel="days", ylabel="probability of recall", xlim=(-0.3, 30), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return figure


def main(output):
    """Infer both models, then let the evidence decide."""
    results = {
        name: sparing.infer(make_problem(curve), seed=1, progress=False)
        for name, curve in CURVES.items()
    }
    for name, result in results.items():
        learned, rate = result.posterior.mean
        print(f"{name}: learned {learned:.2f}, rate {rate:.2f}, {result.n_evaluations} evaluations")

    comparison = sparing.compare(results)
    print()
    print(comparison)
    # With prior odds of your own instead of even ones:
    doubtful = sparing.compare(results, prior={"exponential": 100, "power law": 1})
    print()
    print(f"for someone who held the exponential 100 times as likely before: {doubtful.best.name}")

    output.mkdir(parents=True, exist_ok=True)
    picture = output / "two_models.png"
    draw_fits(results, comparison).savefig(picture, dpi=150)
    print(f"picture: {picture}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare two models by their evidence.")
    parser.add_argument("--output", type=Path, default=Path("output"), help="directory to write to")
    main(parser.parse_args().output)
