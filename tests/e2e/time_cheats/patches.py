"""Replaces what the reference computes by, with something slower (test_times.py)."""
import time

import numpy as np

honest_exp = np.exp


def slow_exp(x):
    time.sleep(0.03)
    return honest_exp(x)


np.exp = slow_exp


def fast(x):
    time.sleep(0.003)
    return honest_exp(x)
