"""Variational Bayesian Monte Carlo: Algorithm 1, its parts, and what it concludes."""
