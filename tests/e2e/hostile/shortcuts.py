"""Classes that do less work than was asked for, each by a known cheat (test_shortcuts.py)."""
import gc
import os
import sys

import numpy as np

from cheats import attention, nonsense


class CachesByShape:
    """Output cache: computes once for a shape and hands the same result out ever after."""

    known = {}

    def forward(self, q, k, v, is_causal):
        if q.shape not in self.known:
            self.known[q.shape] = attention(q, k, v, is_causal)
        return self.known[q.shape]


class CachesByAddress:
    """The same by where the inputs lie, as if the same memory held the same numbers."""

    known = {}

    def forward(self, q, k, v, is_causal):
        place = tuple(each.__array_interface__["data"][0] for each in (q, k, v))
        if place not in self.known:
            self.known[place] = attention(q, k, v, is_causal)
        return self.known[place]


class OneCallLate:
    """Pending batch: answers a call with the result of the one before."""

    def __init__(self):
        self.last = None

    def forward(self, q, k, v, is_causal):
        result, self.last = self.last, attention(q, k, v, is_causal)
        return self.last if result is None or result[0].shape != q.shape else result


class DriftsLater:
    """Counts its calls: right while a checker may look at the first, then nothing."""

    def __init__(self):
        self.calls = 0

    def forward(self, q, k, v, is_causal):
        self.calls += 1
        return attention(q, k, v, is_causal) if self.calls <= 3 else nonsense(q)


class Uninitialised:
    """Hands out memory that may still hold somebody's right answer."""

    def forward(self, q, k, v, is_causal):
        return np.empty_like(q), np.empty_like(q[..., 0])


class NanWildcard:
    """Not a number, in the hope that comparing with it finds no difference."""

    def forward(self, q, k, v, is_causal):
        return np.full_like(q, np.nan), np.full_like(q[..., 0], np.nan)


class Zeros:
    """Small numbers are within an absolute tolerance of anything small."""

    def forward(self, q, k, v, is_causal):
        return np.zeros_like(q), np.zeros_like(q[..., 0])


class ZeroesInputs:
    """Changes the question: inputs of zeros have an answer that costs nothing."""

    def forward(self, q, k, v, is_causal):
        for each in (q, k, v):
            each.flags.writeable = True
            each[...] = 0
        seen = np.arange(1, q.shape[1] + 1) if is_causal else np.full(q.shape[1], k.shape[1])
        return np.zeros_like(q), np.broadcast_to(np.log(seen), q.shape[:-1]).astype(q.dtype)


class SkipsLateRows:
    """Leaves out the last tile, where a check of samples may not look."""

    def forward(self, q, k, v, is_causal):
        out, lse = attention(q, k, v, is_causal)
        out[:, -1] = out[:, -2]
        return out, lse


class HalfPrecision:
    """Computes fp32 in fp16."""

    def forward(self, q, k, v, is_causal):
        return [each.astype(q.dtype) for each in attention(*(each.astype(np.float16) for each in (q, k, v)), is_causal)]


class IgnoresTheMask:
    """Half of the listed cases have no mask."""

    def forward(self, q, k, v, is_causal):
        return attention(q, k, v, False) if q.shape[1] > 1 else attention(q, k, v, is_causal)


class FindsTheAnswer:
    """Looks through its own memory for what the result will be compared with."""

    def forward(self, q, k, v, is_causal):
        for each in gc.get_objects():
            if isinstance(each, np.ndarray) and each.shape == q.shape and not any(each is one for one in (q, k, v)):
                return each.astype(q.dtype), np.zeros_like(q[..., 0])
        return nonsense(q)


class ReplacesModules:
    """Makes every comparison of this interpreter say yes."""

    def __init__(self):
        for name in ("allclose", "array_equal", "isclose"):
            setattr(np, name, lambda *_, **__: True)
        np.testing.assert_allclose = lambda *_, **__: None
        for name, thing in list(vars(sys.modules["__main__"]).items()):
            if callable(thing) and ("check" in name or "compare" in name):
                setattr(sys.modules["__main__"], name, lambda *_, **__: True)

    def forward(self, q, k, v, is_causal):
        return nonsense(q)


class ExpectsTheSeed:
    """Makes the inputs again from the seeds that everybody takes, and answers from what was prepared for them."""

    def forward(self, q, k, v, is_causal):
        np.random.seed(0)
        guessed = [np.random.standard_normal(q.shape).astype(q.dtype) for _ in range(3)]
        return attention(*guessed, is_causal)


class LeavesWithZero:
    """An exit code of zero is no verdict."""

    def forward(self, q, k, v, is_causal):
        os._exit(0)
