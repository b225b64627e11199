from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import sparing
from sparing.integrations.jax import from_jax

jax = pytest.importorskip("jax")

# Beyond what single precision resolves: 1e6 + 0.01 and 1e6 are then the same number.
OFFSET = 1e6


def offset_normal(x):
    return OFFSET - 0.5 * jax.numpy.sum(x**2)


def test_double_precision_without_touching_the_setting():
    before = jax.config.jax_enable_x64
    for jit in (True, False):
        value = from_jax(offset_normal, jit=jit)(np.array([0.1, 0.1]))
        assert type(value) is float
        assert value == OFFSET - 0.01
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(1).dtype == ("float64" if before else "float32")


def test_a_result_in_single_precision_is_reported():
    density = from_jax(lambda x: offset_normal(x).astype(jax.numpy.float32))
    with pytest.warns(sparing.SparingWarning, match=r"in float32.*jax\.numpy\.float64"):
        density(np.array([0.1, 0.1]))


def test_what_is_no_number_becomes_a_failed_evaluation():
    problem = sparing.Problem(from_jax(lambda x: x), [-1, -1], [1, 1])
    with pytest.raises(sparing.TargetError, match="instead of one real number"):
        problem.log_joint([0.0, 0.0])


def test_functions_that_cannot_be_compiled():
    def branching(x):
        return -x[0] if x[0] > 0 else x[0]

    assert from_jax(branching, jit=False)(np.array([-2.0])) == -2.0
    with pytest.raises(jax.errors.ConcretizationTypeError):
        from_jax(branching)(np.array([-2.0]))


def test_it_works_in_another_process():
    problem = sparing.Problem(from_jax(offset_normal), [-1, -1], [1, 1])
    x = np.array([0.1, 0.1])
    expected = problem.log_joint(x)  # compiled before it is pickled
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(problem.log_joint, x).result() == expected


def test_a_copy_is_not_compiled_again():
    traced = []

    def counted(x):
        traced.append(x)
        return offset_normal(x)

    density = from_jax(counted)
    for copy in (density, replace(density), replace(density)):  # as unpickling makes them
        copy(np.array([0.1, 0.1]))
    assert len(traced) == 1


def test_the_gradient_comes_with_it():
    traced = []

    def counted(x):
        traced.append(x)
        return jax.numpy.sum(jax.numpy.sin(x) * x[::-1] ** 2)

    x = np.array([0.3, -0.7])
    for jit in (True, False):
        density = from_jax(counted, jit=jit)
        problem = sparing.Problem(density, [-1, -1], [1, 1])
        value, gradient = problem.log_joint_and_gradient(x)
        assert value == pytest.approx(problem.log_joint(x), rel=1e-14)
        steps = 1e-6 * np.eye(2)
        expected = [(density(x + h) - density(x - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(gradient, expected, rtol=1e-8)
        assert gradient.dtype == np.float64
        assert problem.log_joint_and_gradient(x)[0] == value
    assert sparing.Problem(from_jax(counted), [-1, -1], [1, 1], gradient=False).gradient is None
    traced.clear()
    problem = sparing.Problem(from_jax(counted), [-1, -1], [1, 1])
    for _ in range(2):
        problem.log_joint_and_gradient(x)
    assert len(traced) == 1


def test_a_function_without_derivative_gives_its_value():
    def outside(x):
        shape = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(lambda x: -np.sum(np.asarray(x) ** 2), shape, x)

    problem = sparing.Problem(from_jax(outside), [-1, -1], [1, 1])
    value, gradient = problem.log_joint_and_gradient([0.5, 0.5])
    assert (value, gradient) == (-0.5, None)
    one = sparing.Problem(from_jax(lambda x: -(x**2)), -1, 1)  # an array of one number
    assert one.log_joint_and_gradient([0.5])[1].tolist() == [-1.0]
    with pytest.raises(sparing.TargetError, match="instead of one real number"):
        sparing.Problem(from_jax(lambda x: x), [-1, -1], [1, 1]).log_joint_and_gradient([0.0, 0.0])


def test_a_run_uses_it():
    problem = sparing.Problem(from_jax(offset_normal), [-2, -2], [2, 2])
    result = sparing.infer(problem, seed=1, max_evaluations=12, progress=False)
    for entry in result.evaluations:
        np.testing.assert_allclose(entry.gradient, -entry.x, rtol=1e-12)
