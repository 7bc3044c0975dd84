"""A product of NumPy: some of its sums cancel, so that a bound that moves no argument is too narrow for them."""
import time

import numpy as np

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


def reference(x, y):
    return x @ y


def fused(x, y):
    return np.einsum("ij,jk->ik", x, y)


def cases():
    def arguments(seed):
        draw = np.random.default_rng(seed).standard_normal
        return {name: draw((48, 48), dtype="f4") for name in "xy"}

    yield {"name": "n48", "arguments": arguments}


def lasting(*arguments):
    """As long as a call must be that has a time."""
    time.sleep(0.06 * LONGER)
    return fused(*arguments)


def lasting_reference(*arguments):
    time.sleep(0.06 * LONGER)
    return reference(*arguments)
