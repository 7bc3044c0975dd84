"""Functions that take as long as their names say, to test which times are told (test_times.py)."""
import hashlib
import os
import time

import numpy as np

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


def reference(x):
    return x * 2.0


def spinning(microseconds):
    def function(x):
        until = time.perf_counter_ns() + int(1000 * microseconds)
        while time.perf_counter_ns() < until:
            pass
        return x * 2.0

    return function


def sleeping(milliseconds):
    def function(x):
        time.sleep(milliseconds / 1000)
        return x * 2.0

    return function


empty, us_7 = spinning(0), spinning(7)
ms_20, ms_30 = sleeping(20 * LONGER), sleeping(30 * LONGER)


def cases():
    yield {"axes": {"n": 16}, "arguments": lambda seed: {"x": np.random.default_rng(seed).standard_normal(16)}}


def what_it_sees():
    """All that tells a process which side it is: its command line and the names of its environment."""
    with open("/proc/self/cmdline", "rb") as line:
        seen = line.read() + " ".join(sorted(os.environ)).encode()
    return RuntimeError(f"it sees {hashlib.sha256(seen).hexdigest()}")


def one_side(x):
    raise what_it_sees()


def other_side(x):
    raise what_it_sees()
