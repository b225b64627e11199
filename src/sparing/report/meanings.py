"""What each check of a run is about, for a reader who has never met the method."""

from __future__ import annotations

from sparing.summary import Topic

MEANINGS = {
    Topic.CONVERGENCE: (
        "A run may end by itself once the posterior and the evidence have stopped changing, "
        "several times in a row. One that ends before may still be on its way."
    ),
    Topic.SEARCH: (
        "At first the run climbs to where the density is high; only then does it begin to "
        "describe the posterior's shape."
    ),
    Topic.POSTERIOR: (
        "Many functions agree with the values that were evaluated. How much their posteriors "
        "differ shows how far the reported one may be from the truth. An error of 0.2 standard "
        "deviations is seldom worth another evaluation."
    ),
    Topic.EVIDENCE: (
        "The difference of two log evidences is a log Bayes factor. Errors below 0.1 are "
        "negligible for comparing models; an error of 1 changes the factor by 2.7."
    ),
    Topic.SURROGATE: (
        "The run replaces the expensive function by a cheap model of it, the surrogate. Points "
        "drawn from the posterior are predicted before they are evaluated, which shows whether "
        "the surrogate knows how wrong it is. Where it does not, the reported error is widened."
    ),
    Topic.NOISE: (
        "The surrogate is smooth and tells scatter from shape. Scatter that it sees is averaged "
        "out, at the price of evaluations, and is part of the reported errors."
    ),
    Topic.WEIGHTS: (
        "Draws from the reported posterior are weighted by how likely the surrogate finds them. "
        "Few draws with huge weights mean that the posterior leaves out a region. A Pareto shape "
        "below 0.5 is good, above 0.7 the weights cannot be used."
    ),
    Topic.FAILURES: (
        "An evaluation that raises, returns no number or runs out of time is recorded and its "
        "surroundings are avoided. Nothing is known of the posterior there."
    ),
    Topic.BOX: (
        "The plausible box tells the run where to look and on what scale. A posterior somewhere "
        "else is found more slowly, or not at all."
    ),
    Topic.BOUNDS: (
        "A posterior that leans on a hard bound would extend beyond it. Then the bound is part of "
        "the answer, and should be meant."
    ),
}
