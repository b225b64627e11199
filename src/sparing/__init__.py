"""sparing: posterior and log evidence from few evaluations of an expensive log likelihood."""
