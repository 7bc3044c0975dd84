"""Replaces what the reference computes by, with something slower (test_times.py)."""
import time

import numpy as np

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls
honest_exp = np.exp


def slow_exp(x):
    time.sleep(0.06 * LONGER)
    return honest_exp(x)


np.exp = slow_exp


def fast(x):
    time.sleep(0.03 * LONGER)
    return honest_exp(x)
