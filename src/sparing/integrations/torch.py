"""A function of PyTorch as a log density, in double precision and without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparing.integrations.shared import checked_value, optional_module
from sparing.numerics.arrays import Array

__all__ = ["from_torch"]


@dataclass(frozen=True, eq=False)
class TorchLogDensity:
    """A Torch function called with double precision; pickles when the function does."""

    function: Callable[[Any], Any]
    device: str = "cpu"

    def __call__(self, x: Array) -> float:
        """The log density at one point x (D,)."""
        torch = optional_module("torch", "torch")
        with torch.no_grad():
            value = self.function(torch.as_tensor(x, dtype=torch.float64, device=self.device))
            # A module returns tensors that may be on another device or require gradients.
            value = value.detach().cpu().numpy() if torch.is_tensor(value) else value
        return checked_value(value, "torch.float64")


def from_torch(function: Callable[[Any], Any], *, device: str = "cpu") -> TorchLogDensity:
    """``function``, which takes a tensor (D,) and returns one number, for `sparing.Problem`.

    It gets a tensor of double precision on ``device``. A network with weights of single precision
    is called as ``lambda x: network(x.float()).double()``; a result of single precision brings a
    warning. To use several processes with a GPU, give ``LocalProcesses(workers=N,
    start_method="spawn")``: CUDA does not survive a fork.

    >>> import torch, sparing
    >>> problem = sparing.Problem(from_torch(lambda x: -0.5 * torch.sum(x**2)), [-2, -2], [2, 2])
    >>> problem.log_joint([1.0, 1.0])
    -1.0
    """
    return TorchLogDensity(function, device)
