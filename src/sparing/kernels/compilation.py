"""How kernels are compiled: one signature each, cached on disk, announced when it takes time.

About half of them are compiled by another process meanwhile, and met in the cache.

Every kernel takes C-contiguous float64 arrays, int64 and float64 scalars only, so that one
compilation serves every dimension D, number of points n, components K and samples S. What only
targets with gradients need is compiled with the first of them (`gradient_process`).

A loop that sums must not also store: where it does, the compiled code sums in another order
whenever two arrays happen to lie close together in memory, so that two equal runs differ in their
last bits. Store in one loop, sum in the next (`tests/kernels/test_compiled_code.py`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba

logger = logging.getLogger("sparing")

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# Full fastmath assumes no infinities, and -inf is a value here (an empty log density); these
# four flags let loops vectorise without that assumption.
SAFE_FAST_MATH = {"contract", "reassoc", "arcp", "nsz"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": SAFE_FAST_MATH, "error_model": "numpy"}

# Measured for all kernels on two cores from an empty cache; about twice that on one, and as much
# again for a first target with gradients. A cached start takes under a second.
COMPILE_SECONDS = 13
NOTICE = f"compiling numerical kernels, once per machine, about {COMPILE_SECONDS} s"

GRADIENT_KERNELS = "sparing.kernels.gradient_process"
kernels: list[Any] = []  # of the modules that have been imported
_warm_ups: list[Callable[[], None]] = []
_elsewhere: list[Callable[[], None]] = []  # of them those that another process may compile
# What that process runs: the package is where it is here, however this one came to know of it.
SHARE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from sparing.kernels.compilation import compile_share; compile_share()"
)


def kernel(function: Kernel) -> Kernel:
    """Compile lazily with the disk cache; without it where no place is writable."""
    try:
        compiled: Any = numba.njit(cache=True, **OPTIONS)(function)
        _stamp(compiled)
    except RuntimeError as problem:  # Numba found neither __pycache__ nor a user cache writable
        logger.debug("kernel cache unavailable: %s", problem)
        compiled = numba.njit(**OPTIONS)(function)
    kernels.append(compiled)
    return compiled


@functools.cache
def _fingerprint() -> str:
    """Of what decides what a kernel compiles to: the text of all kernels and of this module."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _stamp(compiled: Any) -> None:
    """Make the cached code outdated as soon as any kernel's file changes.

    Numba looks at the kernel's own file alone, and what is inlined from another one would stay as
    it was compiled once.
    """
    cache_file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):  # private, so another Numba may not have it
        cache_file._source_stamp = (cache_file._source_stamp, _fingerprint())


def inline(function: Kernel) -> Kernel:
    """Compile a helper that is only called from kernels and is inlined into them."""
    compiled: Any = numba.njit(inline="always", error_model="numpy", fastmath=SAFE_FAST_MATH)(
        function
    )
    return compiled


def inlined(compiled: Kernel) -> Kernel:
    """A kernel's body for use inside another kernel.

    A kernel that calls a kernel gives other last bits in the process that compiles it than in one
    that loads it from the cache: the callee is optimised together with the caller in the first and
    not in the second. One body, compiled once, is the same in both.
    """
    return inline(compiled.py_func)  # type: ignore[attr-defined]


@inline
def copy_into(target, source):
    """Write one vector into another of the same length.

    ``target[:] = source`` makes Numba compile the text of the error for other lengths: 2 s.
    """
    for i in range(source.shape[0]):
        target[i] = source[i]


def warm_up(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function that calls a module's kernels once on tiny arrays."""
    _warm_ups.append(function)
    return function


def warm_up_elsewhere(function: Callable[[], None]) -> Callable[[], None]:
    """The same, of kernels that another process may compile meanwhile: about half of the work."""
    _elsewhere.append(function)
    return warm_up(function)


def compile_share() -> None:
    """Compile into the cache what the process that started this one leaves to it."""
    for function in _elsewhere:
        function()


@functools.cache
def compile_all(*, gradients: bool = False) -> None:
    """Compile every registered kernel, or load it from the cache; once per process.

    With ``gradients`` those as well that only targets with gradients need.
    """
    if gradients:
        importlib.import_module(GRADIENT_KERNELS)
    for function in _warm_ups:
        function()


def compile_with_notice(announce: Callable[[], None], *, gradients: bool = False) -> None:
    """Compile or load every kernel; ``announce()`` first when some are not in the cache."""
    if gradients:
        importlib.import_module(GRADIENT_KERNELS)
    if not all_cached():
        announce()
        with _another_process():
            for function in _warm_ups:
                if function not in _elsewhere:
                    function()
    compile_all(gradients=gradients)


@contextmanager
def _another_process() -> Generator[None]:
    """One that compiles its share into the cache meanwhile; whatever it lacks is compiled here."""
    process = None
    if _is_worth_a_process():
        command = [sys.executable, "-c", SHARE, str(Path(__file__).parents[2])]
        nowhere = subprocess.DEVNULL
        with suppress(OSError):
            process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        yield
    except BaseException:
        if process is not None:
            process.kill()
        raise
    finally:
        if process is not None:
            process.wait()


def _is_worth_a_process() -> bool:
    """Whether there is a core for it, a cache to meet in, and an interpreter to start."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    has_cache = all(hasattr(item._cache, "_cache_file") for item in kernels)
    is_python = bool(sys.executable) and not getattr(sys, "frozen", False)
    return (n_cores or 1) > 1 and has_cache and is_python


def all_cached() -> bool:
    """Whether every kernel is compiled in this process or present in the disk cache."""
    return all(_is_ready(item) for item in kernels)


def _is_ready(compiled: Any) -> bool:
    if compiled.signatures:
        return True
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is None:
        return False
    try:
        return bool(cache_file._load_index())
    except Exception:  # a private index in another Numba version: announce rather than fail
        return False
