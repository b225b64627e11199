from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from sparing.errors import SettingsError
from sparing.numerics.random_streams import RandomStreams


def test_a_stream_depends_on_seed_name_and_counters_only():
    streams = RandomStreams(3)
    first = streams.generator("entropy", 4).random(5)
    streams.generator("other").random(100)
    assert np.array_equal(first, streams.generator("entropy", 4).random(5))
    assert np.array_equal(first, RandomStreams(3).generator("entropy", 4).random(5))


def test_different_streams_have_nothing_in_common():
    # Including keys that a naive concatenation would confuse.
    keys = [
        (0, "a"), (1, "a"), (0, "b"), (0, "a", 0), (0, "a", 1), (0, "a", 0, 1), (0, "a", 1, 0),
        (0, "a", 2**32), (0, "a", 10), (0, "a1", 0), (10, "a", 0), (2**70, "a"), (0, "a,0"),
    ]  # fmt: skip
    draws = [tuple(RandomStreams(k[0]).generator(*k[1:]).random(3)) for k in keys]
    assert len(set(itertools.chain(*draws))) == 3 * len(keys)


@pytest.mark.slow
def test_streams_are_the_same_in_every_process():
    code = (
        "from sparing.numerics.random_streams import RandomStreams;"
        "print(RandomStreams(7).generator('acquisition', 12, 3).integers(2**62, size=4).tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    here = RandomStreams(7).generator("acquisition", 12, 3).integers(2**62, size=4).tolist()
    assert outputs == {str(here)}


def test_the_streams_of_a_seed_never_change():
    # A stored run is resumed by later versions: this value must stay what it is.
    assert RandomStreams(1).generator("pinned", 2).integers(2**32) == 555409169


def test_a_fresh_seed_is_recorded_and_reproducible():
    streams = RandomStreams()
    assert isinstance(streams.seed, int)
    assert streams.seed != RandomStreams(None).seed
    again = RandomStreams(streams.seed)
    assert again.generator("a").random() == streams.generator("a").random()


def test_numpy_integers_are_seeds():
    streams = RandomStreams(np.int64(5))
    assert streams == RandomStreams(5)
    assert type(streams.seed) is int


@pytest.mark.parametrize("seed", [-1, True, np.bool_(True), 1.0, "1", [1], np.array([1, 2])])
def test_anything_else_is_refused(seed):
    with pytest.raises(SettingsError, match="seed must be a non-negative integer or None"):
        RandomStreams(seed)


@pytest.mark.parametrize("counter", [-1, True, 0.5, "1", None])
def test_counters_are_non_negative_integers(counter):
    with pytest.raises(ValueError, match="counters"):
        RandomStreams(0).generator("a", counter)


def test_names_are_strings():
    with pytest.raises(TypeError, match="name"):
        RandomStreams(0).generator(1)  # pyright: ignore[reportArgumentType]


def test_the_seed_cannot_be_changed():
    with pytest.raises(AttributeError):
        RandomStreams(0).seed = 1  # pyright: ignore[reportAttributeAccessIssue]
