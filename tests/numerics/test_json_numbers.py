"""Floats through JSON and back, to the last bit, and what is no float."""

import json
import math

import numpy as np
import pytest

from sparing.numerics.json_numbers import decode_number, encode_number


@pytest.mark.parametrize("value", [0.1 + 0.2, -0.0, 5e-324, 3, np.float64(1e300), np.float32(0.5)])
def test_a_finite_number_survives_strict_json_exactly(value):
    text = json.dumps(encode_number(value), allow_nan=False)
    again = decode_number(json.loads(text), "a")
    assert again == value
    assert math.copysign(1.0, again) == math.copysign(1.0, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64(-np.inf)])
def test_numbers_that_json_lacks_are_strings(value):
    text = json.dumps(encode_number(value), allow_nan=False)
    assert text.startswith('"')
    np.testing.assert_equal(decode_number(json.loads(text), "a"), float(value))


@pytest.mark.parametrize(
    "value", [None, True, "1.0", "infinity", [], math.nan, json.loads("1e999"), 10**400]
)
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ValueError, match="elbo must be a number in double precision, not"):
        decode_number(value, "elbo")
