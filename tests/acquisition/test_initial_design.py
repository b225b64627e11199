"""The initial design covers the plausible box and starts with the user's points."""

import numpy as np
import pytest

from sparing.acquisition.initial_design import (
    LatinHypercube,
    UniformDesign,
    design_size,
    initial_design,
)
from sparing.problem.parameter_transform import BoundedMap, ParameterTransform
from sparing.problem.problem import Problem

PROBLEM = Problem(
    lambda x: 0.0, [1e-3, -2.0], [1e3, 2.0], lower=[0.0, -np.inf], names=["scale", "shift"]
)
TRANSFORM = ParameterTransform.from_problem(PROBLEM, BoundedMap.PROBIT)


@pytest.mark.parametrize("strategy", [LatinHypercube(), UniformDesign()])
def test_points_lie_in_the_plausible_box(strategy):
    design = initial_design(TRANSFORM, np.empty((0, 2)), 200, strategy, np.random.default_rng(1))
    assert design.shape == (200, 2)
    assert np.all(design >= PROBLEM.plausible_lower - 1e-9 * np.abs(PROBLEM.plausible_lower))
    assert np.all(design <= PROBLEM.plausible_upper + 1e-9 * np.abs(PROBLEM.plausible_upper))
    # A scale known to a factor of a million is explored in its logarithm.
    assert 0.4 < np.mean(design[:, 0] < 1.0) < 0.6


def test_a_space_filling_design_has_one_point_per_slice_of_the_box():
    own = np.array([[1.0, 0.0]])
    generator = np.random.default_rng(1)
    design = initial_design(TRANSFORM, own, 21, LatinHypercube(), generator)
    unit = TRANSFORM.standardised(design[1:]) + 0.5
    for column in unit.T:
        np.testing.assert_array_equal(np.sort(np.floor(20.0 * column)), np.arange(20))


def test_the_users_points_come_first():
    own = np.array([[1.0, 0.0], [2.0, 1.0]])
    design = initial_design(TRANSFORM, own, 10, UniformDesign(), np.random.default_rng(1))
    assert len(design) == 10
    np.testing.assert_array_equal(design[:2], own)


def test_more_points_than_asked_are_all_kept():
    own = np.tile([[1.0, 0.0]], (12, 1))
    design = initial_design(TRANSFORM, own, 10, UniformDesign(), np.random.default_rng(1))
    assert len(design) == 12


def test_the_design_grows_with_the_dimension_from_ten_on():
    sizes = [design_size(LatinHypercube().n_points, dimension) for dimension in (1, 9, 10, 15)]
    assert sizes == [10, 10, 11, 16]


def test_uniform_points_are_independent_of_each_other():
    """A Latin hypercube never has two in one slice; of 20 uniform ones some slice does."""
    unit = UniformDesign().draw(20, 2, np.random.default_rng(1))
    assert len(np.unique(np.floor(20.0 * unit[:, 0]))) < 20
