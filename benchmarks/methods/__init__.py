"""Inference methods by name; each imports its library only when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.errors import BenchmarkError
from benchmarks.methods.base import Method
from benchmarks.methods.comparisons import COMPARISON_METHODS
from benchmarks.methods.mcmc import MCMC
from benchmarks.methods.nested_sampling import NESTED_SAMPLING
from benchmarks.methods.pyvbmc_method import PYVBMC_METHODS
from benchmarks.methods.sparing_method import SPARING_METHODS

# Methods that need tens of thousands of evaluations and have a budget of their own.
SAMPLERS: Mapping[str, Method] = {method.name: method for method in (NESTED_SAMPLING, MCMC)}
WITHOUT_EVIDENCE = frozenset({MCMC.name})
METHODS: Mapping[str, Method] = {
    **{m.name: m for m in (*SPARING_METHODS, *COMPARISON_METHODS, *PYVBMC_METHODS)},
    **SAMPLERS,
}


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise BenchmarkError(f"unknown method {name!r}: use one of {', '.join(METHODS)}")
    return METHODS[name]
