"""No kernel sums in an order that depends on where its arrays lie in memory.

A loop that stores and sums is compiled twice, and a check at run time (a block `vector.memcheck`)
takes the version that sums in another order when two arrays look as if they overlapped. The check
is on the safe side: now and then it strikes for arrays that only lie close together. So the
compiled code is searched for sums (vectors carried round a loop, `phi <8 x double>`) behind such a
check.
"""

import re

import numba
import numpy as np
import pytest

from sparing.kernels import compilation


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


@pytest.mark.slow
def test_no_kernel_does(compiling_run):
    """As a process compiles them: what comes from the cache has no code to look at."""
    assert len(compiling_run.codes) > 10
    found = {name: sums_behind_a_check(code) for name, code in compiling_run.codes.items()}
    faulty = {name: loops for name, (_, loops) in found.items() if loops}
    assert not faulty, "store in one loop and sum in the next (kernels/compilation.py)"
