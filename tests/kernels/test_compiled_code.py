"""Compiled code gives the same bits, whoever compiled it and wherever its arrays lie in memory.

That is so where no kernel calls another, and no loop both stores and sums (decision 3). A loop
that does is compiled twice, and a check at run time (a block `vector.memcheck`) takes the version
that sums in another order when two arrays look as if they overlapped. The check is on the safe
side: now and then it strikes for arrays that only lie close together. So the compiled code is
searched for sums (vectors carried round a loop, `phi <8 x double>`) behind such a check.
"""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from sparing.kernels import compilation

RUN = """
import importlib, pkgutil, sys
from pathlib import Path
import sparing, sparing.kernels
from sparing.kernels import compilation

for module in pkgutil.iter_modules(sparing.kernels.__path__):
    importlib.import_module(f"sparing.kernels.{module.name}")
if len(sys.argv) > 1:
    compilation.compile_all()  # in this process, which alone has the code to look at
problem = sparing.Problem(
    lambda x: -0.5 * float((x[0] - x[1] ** 2) ** 2 / 0.3 + x[1] ** 2), [-2, -2], [2, 2]
)
result = sparing.infer(problem, seed=1, max_evaluations=25, progress=False)
print(result.log_evidence.hex(), result.elbo.hex(), *[v.hex() for v in result.posterior.mean])
if len(sys.argv) > 1:
    for kernel in compilation.kernels:
        for number, code in enumerate(kernel.inspect_llvm().values()):
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}.{number}.ll"
            Path(sys.argv[1], name).write_text(code)
"""


@pytest.fixture(scope="module")
def compiling_run(tmp_path_factory):
    """A run in a process that compiles all kernels, which takes half a minute.

    Its output, its code for each kernel, and another run that finds them in the cache.
    """
    cache, code = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("code")

    def run(*arguments, cache=cache):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", RUN, *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    output = run(str(code))
    assert any(cache.rglob("*.nbc")), "nothing was compiled into the cache"
    codes = {path.stem: path.read_text() for path in code.iterdir()}
    return SimpleNamespace(output=output, codes=codes, run_again=run)


def blocks_of(code):
    """The basic blocks of a module's LLVM code, {name: lines}, function by function."""
    for body in re.findall(r"^define.*?^}", code, re.MULTILINE | re.DOTALL):
        blocks, name = {}, "entry"
        for line in body.splitlines():
            label = re.match(r'^([-\w.$"]+):', line)
            name = label.group(1) if label else name
            blocks.setdefault(name, []).append(line)
        yield blocks


def followers(block):
    return [
        name
        for line in block
        if line.strip().startswith("br ")
        for name in re.findall(r"label %([-\w.$]+)", line)
    ]


def sums_behind_a_check(code):
    """(n checks, names of loops that sum behind one)."""
    n_checks, loops = 0, []
    for blocks in blocks_of(code):
        checks = [name for name in blocks if "vector.memcheck" in name]
        n_checks += len(checks)
        todo, seen = list(checks), set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if "vector.body" in name:
                if any(re.search(r"phi <\d+ x double>", line) for line in blocks[name]):
                    loops.append(name)
            else:
                todo += [after for after in followers(blocks[name]) if after.startswith("vec")]
    return n_checks, loops


def compiled_code(function, signature):
    """As kernels are compiled."""
    compiled = numba.njit(**compilation.OPTIONS)(function)
    compiled.compile(signature)
    (code,) = compiled.inspect_llvm().values()
    return code


def test_the_search_finds_a_sum_that_is_stored_too():
    def faulty(values, result):
        total = 0.0
        for i in range(result.size):
            result[i] = np.exp(values[3 + i])
            total += result[i]
        return total

    def sound(values, result):
        for i in range(result.size):
            result[i] = np.exp(values[3 + i])
        total = 0.0
        for i in range(result.size):
            total += result[i]
        return total

    array = numba.typeof(np.empty(2))
    n_checks, loops = sums_behind_a_check(compiled_code(faulty, (array, array)))
    if n_checks == 0:
        pytest.skip("this processor's code has no checks")
    assert loops
    n_checks, loops = sums_behind_a_check(compiled_code(sound, (array, array)))
    assert n_checks > 0
    assert not loops


def test_no_kernel_does(compiling_run):
    """As a process compiles them: what comes from the cache has no code to look at."""
    assert len(compiling_run.codes) > 10
    found = {name: sums_behind_a_check(code) for name, code in compiling_run.codes.items()}
    faulty = {name: loops for name, (_, loops) in found.items() if loops}
    assert not faulty, "store in one loop and sum in the next (kernels/compilation.py)"


def test_the_compiling_run_and_the_cached_run_agree_to_the_last_bit(compiling_run):
    assert len(compiling_run.output.split()) == 4
    assert compiling_run.run_again() == compiling_run.output


def test_kernels_compiled_in_two_processes_agree_with_them_too(compiling_run, tmp_path):
    assert compiling_run.run_again(cache=tmp_path) == compiling_run.output
