"""What each warning of a run means, for a person who meets it for the first time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparing.summary.checks import Topic


@dataclass(frozen=True)
class Explanation:
    """What a warning means; ``topic`` is the check that sees the same, if one does."""

    pattern: str
    topic: Topic | None
    meaning: str


EXPLANATIONS = (
    Explanation(
        r"the solution did not become stable",
        Topic.CONVERGENCE,
        "From one iteration to the next the posterior or the evidence still changed by more than "
        "the tolerance. The answer is the best so far, not the final one.",
    ),
    Explanation(
        r"the run ended while still searching",
        Topic.SEARCH,
        "A run begins by climbing to where the density is high and fits the posterior only then. "
        "This one ended on the way: mean, spread and evidence may be far off.",
    ),
    Explanation(
        r"the posterior of .* reaches",
        Topic.BOX,
        "The plausible box sets the scale on which the surrogate starts to learn. A posterior far "
        "outside it may be cut off or smeared out, or there is no end to it at all.",
    ),
    Explanation(
        r"\d+ of \d+ evaluations failed",
        Topic.FAILURES,
        "Where the target gives no value the surrogate can only extrapolate. That does no harm "
        "far from the posterior; inside it, the posterior's shape there is a guess.",
    ),
    Explanation(
        r"the importance weights are too heavy-tailed",
        Topic.WEIGHTS,
        "Correcting the evidence for the mixture's misfit needs draws wherever the posterior has "
        "mass. A few draws dominate, so some of it is hardly covered, and the uncorrected lower "
        "bound is reported instead. The true value tends to be higher.",
    ),
    Explanation(
        r"the last line of .* (incomplete|lacked its end)",
        None,
        "A process was killed while it wrote to the run directory. At most that one line is lost; "
        "the evaluation it would have held is made again.",
    ),
    Explanation(
        r"the lock was taken over",
        None,
        "The process that wrote to this run directory before was killed. The run has gone on "
        "from what it had recorded; no number is affected.",
    ),
    Explanation(
        r"the run goes on with its seed",
        None,
        "A run keeps the seed it began with, so that resuming it changes nothing.",
    ),
    Explanation(
        r".* (was ignored|cannot be used):",
        None,
        "A file of the run directory is damaged and was left out. What it held is computed, or "
        "evaluated, again.",
    ),
    Explanation(
        r".* Only the lines before are shown",
        None,
        "The journal is damaged in the middle. Evaluations behind the damage are not included.",
    ),
)


def explanation_of(warning: str) -> Explanation | None:
    """What is known of a warning; None for one that must speak for itself."""
    matches = (item for item in EXPLANATIONS if re.match(item.pattern, warning, re.DOTALL))
    return next(matches, None)
