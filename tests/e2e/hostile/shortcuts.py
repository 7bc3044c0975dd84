"""Classes that do less work than was asked for, each by a known cheat (test_shortcuts.py)."""
import gc
import mmap
import os
import random
import sys
import threading
import time

import numpy as np

from cheats import attention, nonsense


class CachesByShape:
    """Output cache: computes once for a shape and hands the same result out ever after."""

    known: dict = {}

    def forward(self, q, k, v, is_causal):
        if q.shape not in self.known:
            self.known[q.shape] = attention(q, k, v, is_causal)
        return self.known[q.shape]


class CachesByAddress:
    """The same by where the inputs lie, as if the same memory held the same numbers."""

    known: dict = {}

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


class EverySecondCall:
    """Answers every n-th call with its last result."""

    every = 2

    def __init__(self):
        self.calls, self.last = 0, None

    def forward(self, q, k, v, is_causal):
        self.calls += 1
        if self.calls % self.every or self.last is None or self.last[0].shape != q.shape:
            self.last = attention(q, k, v, is_causal)
        return self.last


class EverySeventhCall(EverySecondCall):
    every = 7


class StaleFromThen(EverySecondCall):
    """Right for five calls of at least ten, however busy the machine; its last result from then on."""

    def forward(self, q, k, v, is_causal):
        self.calls += 1
        if self.calls <= 5 or self.last[0].shape != q.shape:
            self.last = attention(q, k, v, is_causal)
        return self.last


class HalfOfTheRows:
    """After the first calls only rows of even number are computed; the others are a neighbour's."""

    def __init__(self):
        self.calls = 0

    def forward(self, q, k, v, is_causal):
        self.calls += 1
        out, lse = attention(q, k, v, is_causal)
        if self.calls > 5:
            out[:, 1::2], lse[:, 1::2] = out[:, 0::2], lse[:, 0::2]
        return out, lse


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


class PatchesRandom:
    """Makes every generator of random numbers give zeros, and answers as is right for inputs of zeros."""

    def __init__(self):
        def zeros(*shape, size=None, **_):
            return np.zeros(size if size is not None else shape)

        for name in ("rand", "randn", "random", "normal", "standard_normal", "uniform"):
            setattr(np.random, name, zeros)
        np.random.default_rng = lambda *_: type("Zeros", (), {name: staticmethod(zeros) for name in ("random", "normal", "standard_normal", "uniform")})()
        random.random = random.gauss = lambda *_: 0.0

    def forward(self, q, k, v, is_causal):
        seen = np.arange(1, q.shape[1] + 1) if is_causal else np.full(q.shape[1], k.shape[1])
        return np.zeros_like(q), np.broadcast_to(np.log(seen), q.shape[:-1]).astype(q.dtype)


class OnlyListedShapes:
    """Is right for the sizes that every list has, powers of two, and for no other."""

    def forward(self, q, k, v, is_causal):
        listed = all(size & (size - 1) == 0 and size >= 16 for size in (*q.shape[1:], k.shape[1]))
        return attention(q, k, v, is_causal) if listed else nonsense(q)


class ScansItself:
    """Searches all of its own memory for the seed of the run, as a number and as digits. What it looks for it knows turned over alone."""

    def __init__(self):
        words = [int(text) for text in os.environ["TURNED_OVER"].split()]
        self.wanted = [np.uint64(word) for word in words]
        self.room = mmap.mmap(-1, 1 << 22)  # neither what is read nor what is made of it stays anywhere else

    def forward(self, q, k, v, is_causal):
        room = np.frombuffer(self.room, np.uint64)
        own = room.__array_interface__["data"][0]
        found, read = 0, 0
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            for line in maps.read().splitlines():
                first, last = (int(text, 16) for text in line.split()[0].split("-"))
                if " rw" not in line or first <= own < last or "memfd" in line:
                    continue
                # Once from every byte of a word, since nobody says where in a word a number begins.
                for at in range(first, last, len(self.room) - 8):
                    size = min(len(self.room), last - at)
                    for shift in range(8):
                        try:
                            got = os.preadv(memory.fileno(), [memoryview(self.room)[: size - shift]], at + shift) // 8
                        except OSError:
                            break
                        np.invert(room[:got], out=room[:got])
                        found += sum(int((room[:got] == word).sum()) for word in self.wanted)
                        read += 8 * got
        self.room[:] = bytes(len(self.room))
        raise RuntimeError(f"reached: {'the seed' if found else 'nothing'} (in {read >> 20} MiB)")


class LeavesWithZero:
    """An exit code of zero is no verdict."""

    def forward(self, q, k, v, is_causal):
        os._exit(0)


WORK_S = 0.02  # what an honest call of the classes below takes at least


def slow_attention(q, k, v, is_causal):
    time.sleep(WORK_S)
    return attention(q, k, v, is_causal)


class WorksHonestly:
    """What the others are beside."""

    def forward(self, q, k, v, is_causal):
        return slow_attention(q, k, v, is_causal)


class PatchesTheClock:
    """Stops every clock of its process."""

    def __init__(self):
        for name in ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns", "process_time"):
            setattr(time, name, lambda: 0)

    def forward(self, q, k, v, is_causal):
        return slow_attention(q, k, v, is_causal)


class Promise:
    """Has the shape of a result, and computes it when somebody looks."""

    def __init__(self, shape, compute):
        self.shape, self.compute = shape, compute

    def __array__(self, dtype=None):
        return self.compute()


class AnswersLazily:
    """Returns at once: the work is done where results are copied, behind the end of the call."""

    def forward(self, q, k, v, is_causal):
        return (Promise(q.shape, lambda: slow_attention(q, k, v, is_causal)[0]),
                Promise(q.shape[:-1], lambda: attention(q, k, v, is_causal)[1]))


class WorksBehindItsBack:
    """Returns at once: a thread fills the result when the clock has stopped."""

    def forward(self, q, k, v, is_causal):
        out, lse = nonsense(q)
        copies = [each.copy() for each in (q, k, v)]

        def work():
            out[...], lse[...] = slow_attention(*copies, is_causal)

        threading.Thread(target=work, daemon=True).start()
        return out, lse


class RemembersContent:
    """Output cache by what the inputs hold: the same question is answered once."""

    known: dict = {}

    def forward(self, q, k, v, is_causal):
        content = hash(b"".join(each.tobytes() for each in (q, k, v)))
        if content not in self.known:
            self.known[content] = slow_attention(q, k, v, is_causal)
        return self.known[content]


class RemembersACorner:
    """The same by a few numbers of each, which is faster to hash."""

    known: dict = {}

    def forward(self, q, k, v, is_causal):
        corner = hash(b"".join(each.reshape(-1)[:4].tobytes() for each in (q, k, v)))
        if corner not in self.known:
            self.known[corner] = slow_attention(q, k, v, is_causal)
        return self.known[corner]


class SlowWarmUp:
    """Takes long at first, so that a protocol that adapts takes fewer samples."""

    def __init__(self):
        self.calls = 0

    def forward(self, q, k, v, is_causal):
        self.calls += 1
        time.sleep(5 * WORK_S if self.calls <= 3 else 0)
        return slow_attention(q, k, v, is_causal)


class ReturnsItsInput:
    """An output that shares its memory with an input is there before the call."""

    def forward(self, q, k, v, is_causal):
        return v, q[..., 0]
