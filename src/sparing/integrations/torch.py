"""A function of PyTorch as a log density, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparing.integrations.shared import checked_value, optional_module
from sparing.numerics.arrays import Array
from sparing.problem.gradients import LogDensityWithGradient

__all__ = ["from_torch"]


@dataclass(frozen=True, eq=False)
class TorchLogDensity(LogDensityWithGradient):
    """A Torch function called with double precision; pickles when the function does."""

    function: Callable[[Any], Any]
    device: str = "cpu"

    def __call__(self, x: Array) -> float:
        """The log density at one point x (D,)."""
        torch = optional_module("torch", "torch")
        with torch.no_grad():
            value = self.function(torch.as_tensor(x, dtype=torch.float64, device=self.device))
            return _checked(value)

    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """The log density and its gradient; None for a function without a path back to x."""
        torch = optional_module("torch", "torch")
        with torch.enable_grad():
            point = torch.tensor(x, dtype=torch.float64, device=self.device, requires_grad=True)
            value = self.function(point.clone())  # which it may change in place
            gradient = None
            if torch.is_tensor(value) and value.requires_grad and value.numel() == 1:
                (gradient,) = torch.autograd.grad(value.sum(), point, allow_unused=True)
        return _checked(value), None if gradient is None else gradient.cpu().numpy()


def _checked(value: Any) -> float:
    """The one number; a module returns tensors on another device, or that require gradients."""
    value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    return checked_value(value, "torch.float64")


def from_torch(function: Callable[[Any], Any], *, device: str = "cpu") -> TorchLogDensity:
    """``function``, which takes a tensor (D,) and returns one number, for `sparing.Problem`.

    It gets a tensor of double precision on ``device``. A network with weights of single precision
    is called as ``lambda x: network(x.float()).double()``; a result of single precision brings a
    warning. The problem uses its gradient, by `torch.autograd`, unless it is given
    ``gradient=False``. To use several processes with a GPU, give ``LocalProcesses(workers=N,
    start_method="spawn")``: CUDA does not survive a fork.

    >>> import torch, sparing
    >>> problem = sparing.Problem(from_torch(lambda x: -0.5 * torch.sum(x**2)), [-2, -2], [2, 2])
    >>> problem.log_joint_and_gradient([1.0, 1.0])
    (-1.0, array([-1., -1.]))
    """
    return TorchLogDensity(function, device)
