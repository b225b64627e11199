"""Numba kernels: the hot loops, compiled once per machine for every D, n, K and S."""
