"""The surrogate: a Gaussian process model of the log joint (Sections 3.2, 3.4, S1.2, S2.2)."""
