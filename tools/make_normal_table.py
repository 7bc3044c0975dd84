#!/usr/bin/env python3
"""Writes src/core/normal_table.inc: quantiles of the standard normal as integers, for core/random.cpp.

    tools/make_normal_table.py > src/core/normal_table.inc

A draw has 32 bits: a sign and a 31-bit integer t that stands for the upper tail probability q = t / 2^32. The table
holds z(q), the normal quantile of 1 - q, at 64 evenly spaced q of each octave [2^(16+o), 2^(17+o)) of t, o = 0 ... 14,
so that it is as fine where z bends as where it is straight; before them come 64 evenly spaced q below 2^-16, after them
z(1/2) = 0. Between neighbours core/random.cpp interpolates in integers. z(0) is infinite; in its place stands the value
that gives the first segment the true mean of the tail beyond it.
"""
from statistics import NormalDist

SEGMENTS = 64
OCTAVES = 15
FRACTION_BITS = 28  # z = entry / 2^28: |z| < 8 fits 32 bits with its sign
PER_LINE = 10

normal = NormalDist()


def quantile(t):
    return -normal.inv_cdf(t / 2**32)


def nodes():
    step = 2**16 // SEGMENTS
    first = quantile(step)
    yield 2 * normal.pdf(first) / (step / 2**32) - first
    yield from (quantile(step * j) for j in range(1, SEGMENTS))
    for octave in range(OCTAVES):
        step = 2 ** (16 + octave) // SEGMENTS
        yield from (quantile(2 ** (16 + octave) + step * j) for j in range(SEGMENTS))
    yield 0.0


entries = [round(z * 2**FRACTION_BITS) for z in nodes()]
assert len(entries) == (OCTAVES + 1) * SEGMENTS + 1
assert all(a > b for a, b in zip(entries, entries[1:])) and entries[0] < 2**31
print("// Written by tools/make_normal_table.py: standard normal quantiles times 2^28.")
for begin in range(0, len(entries), PER_LINE):
    print("".join(f"{entry}, " for entry in entries[begin:begin + PER_LINE]).rstrip())
