"""A reference that loads what it is to judge (test_times.py)."""
import numpy as np
import patches

JUDGED = patches.fast


def reference(x):
    return np.exp(x)


def cases():
    yield {"axes": {"n": 64}, "arguments": lambda seed: {"x": np.random.default_rng(seed).standard_normal((64, 8))}}
