"""Benchmarks: ours and each installed peer in turn, in one process, with equal values checked.

``make bench``, or ``python -m benchmarks --help``.
"""
