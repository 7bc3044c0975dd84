"""Functions that look faster than they are by what their arguments hold, and the cases that let them (test_times.py)."""
import time

import numpy as np

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls
HONEST_S, SHORT_S = 0.06 * LONGER, 0.03 * LONGER  # of a call that does its work, and of one that does not but still has a time
KNOWN = {}
LAST: list = []


def reference(x):
    time.sleep(HONEST_S)
    return np.exp(x)


def remembers(x):
    """Output cache by content."""
    key = x.tobytes()
    time.sleep(SHORT_S if key in KNOWN else HONEST_S)
    KNOWN[key] = np.exp(x)
    return KNOWN[key].copy()


def first_row(x):
    """One row is computed, and copied where the others are equal."""
    equal = bool((x == x[0]).all())
    time.sleep(SHORT_S if equal else HONEST_S)
    return np.tile(np.exp(x[0]), (len(x), 1)) if equal else np.exp(x)


def changed_rows(x):
    """Rows that are new are computed, the others are those of the call before."""
    if not LAST or LAST[0].shape != x.shape:
        LAST[:] = [x.copy(), np.exp(x)]
    changed = (x != LAST[0]).any(axis=1)
    time.sleep(SHORT_S + HONEST_S * changed.mean())
    LAST[1][changed] = np.exp(x[changed])
    LAST[0] = x.copy()
    return LAST[1].copy()


def case(content):
    return {"axes": {"rows": 64}, "arguments": lambda seed: {"x": content(np.random.default_rng(seed), seed)}}


def honest():
    yield case(lambda random, seed: random.standard_normal((64, 32)))


def repeating():
    yield case(lambda random, seed: np.random.default_rng(seed % 4).standard_normal((64, 32)))


def equal_rows():
    yield case(lambda random, seed: np.tile(random.standard_normal(32), (64, 1)))


def few_new_rows():
    def content(random, seed):
        x = np.random.default_rng(7).standard_normal((64, 32))
        x[seed % 64] = random.standard_normal(32)
        return x

    yield case(content)
