"""Benchmark problems with exact answers, metrics, and the runner that compares inference methods.

Run from the project root: ``python -m benchmarks --help``.
"""
