"""What each warning of a run means, for a person who meets it for the first time."""

from __future__ import annotations

from sparing.problem.warning_text import WarningTopic
from sparing.summary.checks import Topic

# The check that sees the same as a warning.
SEEN_BY = {
    WarningTopic.CONVERGENCE: Topic.CONVERGENCE,
    WarningTopic.SEARCH: Topic.SEARCH,
    WarningTopic.BOX: Topic.BOX,
    WarningTopic.FAILURES: Topic.FAILURES,
    WarningTopic.WEIGHTS: Topic.WEIGHTS,
}

WARNING_MEANINGS = {
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
        "Correcting the evidence for the mixture's misfit needs draws wherever the posterior has "
        "mass. A few draws dominate, so some of it is hardly covered, and the uncorrected lower "
        "bound is reported instead. The true value tends to be higher."
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
