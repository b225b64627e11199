"""Settings for tests to which it matters what a run does, not how precise its answer is."""

from dataclasses import replace

import sparing
from sparing.strategies import SurrogatePosterior, ThoroughSample

# With the defaults sampling the surrogate is the largest part of a short run.
FEW = {"n_first": 512, "n_draws": 1024, "n_components": 10}
LIGHT = replace(
    sparing.Settings(), evidence=SurrogatePosterior(**FEW), final_fit=ThoroughSample(**FEW)
)
