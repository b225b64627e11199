"""One seed split into named random streams that hold no state.

A stream is a function of (seed, name, counters) alone, for example ("entropy", iteration), and
not of how many numbers were drawn before it. A resumed run asks for the same streams as an
uninterrupted one, so both are identical to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass

import numpy as np

from sparing.errors import SettingsError

# A fresh seed is an integer that every JSON reader keeps exactly (2^53 is the limit of a double).
FRESH_SEED_BITS = 53


@dataclass(frozen=True, init=False)
class RandomStreams:
    """Named streams derived from one seed; `seed` is recorded even when it was drawn afresh."""

    seed: int

    def __init__(self, seed: int | np.integer | None = None) -> None:
        object.__setattr__(self, "seed", _checked_seed(seed))

    def generator(self, name: str, *counters: int) -> np.random.Generator:
        """The stream of this name and these counters, from its beginning.

        The triple is hashed (SHA-256 of its JSON text, which is unambiguous), so streams of
        nearby seeds, names or counters have nothing in common, on every platform.
        """
        if not isinstance(name, str):
            raise TypeError(f"a stream's name is a string, not {name!r}")
        integers = [_as_integer(counter) for counter in counters]
        if any(counter is None or counter < 0 for counter in integers):
            raise ValueError(f"a stream's counters are non-negative integers, not {counters!r}")
        text = json.dumps([self.seed, name, integers])
        digest = hashlib.sha256(text.encode()).digest()
        entropy = np.random.SeedSequence(int.from_bytes(digest, "big"))
        # PCG64 by name: what default_rng stands for may change between NumPy versions.
        return np.random.Generator(np.random.PCG64(entropy))


def _checked_seed(seed: object) -> int:
    if seed is None:
        return secrets.randbits(FRESH_SEED_BITS)
    integer = _as_integer(seed)
    if integer is None or integer < 0:
        raise SettingsError([f"seed must be a non-negative integer or None, not {seed!r}"])
    return integer


def _as_integer(value: object) -> int | None:
    """The value as a Python integer; None when it is not an integer (a bool is not)."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return None
