"""A reference that shares a module with what it judges (test_times.py)."""
import time

import numpy as np
from shared import exponential

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


def reference(x):
    time.sleep(0.06 * LONGER)
    return exponential(x)


def cases():
    yield {"axes": {"n": 64}, "arguments": lambda seed: {"x": np.random.default_rng(seed).standard_normal((64, 8))}}
