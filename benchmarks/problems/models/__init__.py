"""Models with data and real priors, whose answers come from a table made once (``make_truth``)."""
