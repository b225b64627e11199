"""Bridges to other packages; each is imported only by the call that needs it.

    arviz, pandas, getdist    what a run found, for other programs; methods of `sparing.Result`
    pymc, numpyro             a model of theirs as a `sparing.Problem`, and draws in its shapes
    cobaya, bilby             the same, and a chain of theirs with the evidence
    torch, jax                a function of theirs as a log density

Import the module you need, as in ``from sparing.integrations import pymc``.
"""
