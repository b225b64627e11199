"""Hostile cases against the library: does each end right, or refused with a clear message?"""
