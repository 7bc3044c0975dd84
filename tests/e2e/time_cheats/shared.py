"""What a function and its reference both import, and that denies it (test_times.py)."""
import sys

import numpy as np

getattr(sys.modules["__main__"], "READ", []).clear()


def exponential(x):
    sys.modules.pop("shared", None)
    return np.exp(x)
