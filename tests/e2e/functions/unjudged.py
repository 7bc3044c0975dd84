"""What a bound cannot judge: arguments exactly at jumps, and rows of which one element is much larger than the others."""
import numpy as np


def cases():
    """Halves, at which rounding jumps."""
    yield {"name": "halves", "arguments": lambda seed: [np.random.default_rng(seed).integers(-20, 20, (64, 200)).astype("f4") / 2]}


def rounded(x):
    return np.round(x)


def a_hundred_more(x):
    return np.round(x) + 100 * np.mod(x * 2, 2)


def is_three(x):
    return (x == 3).astype(x.dtype)


def never_three(x):
    return np.zeros_like(x)


def wide_cases():
    yield {"name": "wide", "arguments": lambda seed: [np.random.default_rng(seed).standard_normal((64, 1000), dtype="f4")]}


def power(x):
    return np.exp(5 * x)


def by_doubling(x):
    return np.exp2(x * np.asarray(5 / np.log(2), x.dtype))


def half_a_power(x):
    return np.where(x < 0, np.zeros_like(x), np.exp(5 * x))
