"""What is to be inferred, the coordinates of it, and what was evaluated."""

from sparing.problem.problem import Problem

__all__ = ["Problem"]
