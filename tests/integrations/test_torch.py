import pickle

import numpy as np
import pytest

import sparing
from sparing.integrations.torch import from_torch

torch = pytest.importorskip("torch")

OFFSET = 1e6  # single precision does not resolve 0.01 beside it


def offset_normal(x):
    return OFFSET - 0.5 * torch.sum(x**2)


def test_double_precision_and_no_gradient():
    seen = []

    def watched(x):
        seen.append((x.dtype, torch.is_grad_enabled()))
        return offset_normal(x)

    value = from_torch(watched)(np.array([0.1, 0.1]))
    assert type(value) is float
    assert value == OFFSET - 0.01
    assert seen == [(torch.float64, False)]
    assert torch.is_grad_enabled()


def test_the_point_is_not_shared_with_the_caller():
    problem = sparing.Problem(from_torch(lambda x: x.mul_(2.0).sum()), [-1, -1], [1, 1])
    x = np.array([0.25, 0.5])
    assert problem.log_joint(x) == 1.5
    assert x.tolist() == [0.25, 0.5]


def test_a_module_with_parameters():
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    x = np.array([0.3, -0.7])
    weights, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    assert from_torch(layer)(x) == pytest.approx((weights @ x + bias)[0], abs=1e-14)


def test_a_result_in_single_precision_is_reported_unless_converted():
    x = np.array([0.1, 0.1])
    with pytest.warns(sparing.SparingWarning, match=r"in float32.*torch\.float64"):
        from_torch(lambda x: offset_normal(x.float()))(x)
    assert from_torch(lambda x: offset_normal(x.float()).double())(x) == OFFSET


def test_numbers_and_what_is_none():
    x = np.zeros(2)
    assert from_torch(lambda x: -1.5)(x) == -1.5
    with pytest.raises(sparing.TargetError, match="instead of one real number"):
        from_torch(lambda x: x)(x)


def test_it_pickles():
    density = from_torch(offset_normal)
    x = np.array([0.1, 0.1])
    assert pickle.loads(pickle.dumps(density))(x) == density(x)


def test_the_gradient_comes_with_it():
    def curved(x):
        return torch.sum(torch.sin(x) * x.flip(0) ** 2)

    density = from_torch(curved)
    problem = sparing.Problem(density, [-1, -1], [1, 1])
    x = np.array([0.3, -0.7])
    value, gradient = problem.log_joint_and_gradient(x)
    assert value == problem.log_joint(x)
    expected = [(density(x + h) - density(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-8)
    assert sparing.Problem(density, [-1, -1], [1, 1], gradient=False).gradient is None
    with torch.no_grad():  # whatever the rest of the program does
        assert problem.log_joint_and_gradient(x)[1].tolist() == gradient.tolist()


def test_gradients_of_what_changes_its_argument_of_a_module_and_of_nothing():
    def gradient_of(function):
        problem = sparing.Problem(from_torch(function), [-1, -1], [1, 1])
        return problem.log_joint_and_gradient([0.25, 0.5])[1]

    assert gradient_of(lambda x: x.mul_(2.0).sum()).tolist() == [2.0, 2.0]
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    np.testing.assert_allclose(gradient_of(layer), layer.weight.detach().numpy()[0])
    assert gradient_of(lambda x: -1.5) is None
    assert gradient_of(lambda x: x.detach().sum()) is None
    assert gradient_of(lambda x: layer(torch.zeros(2, dtype=torch.float64))) is None
    with pytest.raises(sparing.TargetError, match="instead of one real number"):
        gradient_of(lambda x: x)
