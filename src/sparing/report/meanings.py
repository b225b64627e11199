"""What each check and each warning is about, for a reader who has never met the method."""

from __future__ import annotations

from sparing.problem.warning_text import WarningTopic
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
    Topic.ELSEWHERE: (
        "A run goes uphill from where it began, and could miss a mode elsewhere. Before it may "
        "stop, the surrogate is sampled from the whole box, hills that do not lead to the "
        "posterior are climbed, and points are placed where a mode like those found could hide."
    ),
    Topic.SHAPE: (
        "Means, standard deviations and correlations describe a compact posterior with one mode. "
        "Of others look at the picture, and quote draws or intervals. A ridge that bends, a funnel "
        "and an edge cost evaluations, and often go away when the parameters are chosen anew."
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

WARNING_MEANINGS = {
    None: "This warning has no further explanation.",
    WarningTopic.CONVERGENCE: (
        "From one iteration to the next the posterior or the evidence still changed by more than "
        "the tolerance. The answer is the best so far, not the final one."
    ),
    WarningTopic.SEARCH: (
        "A run begins by climbing to where the density is high and fits the posterior only then. "
        "This one ended on the way: mean, spread and evidence may be far off."
    ),
    WarningTopic.BOX: (
        "The plausible box sets the scale on which the surrogate starts to learn. A posterior far "
        "outside it may be cut off or smeared out, or there is no end to it at all."
    ),
    WarningTopic.FAILURES: (
        "Where the target gives no value the surrogate can only extrapolate. That does no harm "
        "far from the posterior; inside it, the posterior's shape there is a guess."
    ),
    WarningTopic.WEIGHTS: (
        "Posterior and evidence are those of the surrogate, by draws that adapt to it. A few draws "
        "dominate, so some of it is hardly covered. The true value tends to be higher."
    ),
    WarningTopic.GRADIENTS: (
        "Where a gradient is missing, not finite or of another shape, the surrogate learns from "
        "the value alone. The answer does not suffer, but takes more evaluations."
    ),
    WarningTopic.INCOMPLETE_LINE: (
        "A process was killed while it wrote to the run directory. At most that one line is lost; "
        "the evaluation it would have held is made again."
    ),
    WarningTopic.LOCK_TAKEN_OVER: (
        "The process that wrote to this run directory before was killed. The run has gone on "
        "from what it had recorded; no number is affected."
    ),
    WarningTopic.SEED_KEPT: (
        "A run keeps the seed it began with, so that resuming it changes nothing."
    ),
    WarningTopic.DAMAGED_FILE: (
        "A file of the run directory is damaged and was left out. What it held is computed, or "
        "evaluated, again."
    ),
    WarningTopic.DAMAGED_JOURNAL: (
        "The journal is damaged in the middle. Evaluations behind the damage are not included."
    ),
    WarningTopic.REBUILT_RESULT: (
        "A run directory holds the points and values of a run, from which its result is computed "
        "again to the last bit. Whether its budget was used up or it was stopped is not in it."
    ),
}
