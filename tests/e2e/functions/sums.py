"""Functions of NumPy: several outputs, integers, arguments in lists, bounds that the file declares."""
import dataclasses
import time

import numpy as np

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


def reference(parts, index, weight):
    total = sum(parts)
    return {"sum": (total * weight).sum(axis=1), "largest": total.argmax(axis=1), "taken": total[:, index]}


def mine(parts, index, weight):
    total = parts[0] + parts[1]
    return {"sum": np.einsum("ij,j->i", total, weight), "largest": total.argmax(axis=1), "taken": np.take(total, index, axis=1)}


def lasting(parts, index, weight):
    time.sleep(0.06 * LONGER)
    return mine(parts, index, weight)


def lasting_reference(parts, index, weight):
    time.sleep(0.06 * LONGER)
    return reference(parts, index, weight)


calls = 0


def tires(parts, index, weight):
    """Wrong from the 70th call of its process on; a launch makes some 40."""
    global calls
    calls += 1
    time.sleep(0.06 * LONGER)  # so that a burst is one call, and long enough to have a time
    return mine(parts, index, weight) if calls < 70 else off_by_one(parts, index, weight)


def off_by_one(parts, index, weight):
    return {**mine(parts, index, weight), "largest": mine(parts, index, weight)["largest"] + 1}


@dataclasses.dataclass
class Case:
    name: str
    axes: dict
    arguments: object
    terms: int | None = None
    rtol: float | None = None
    atol: float | None = None


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    return {"parts": [rng.standard_normal((8, n), dtype=np.float32) for _ in range(2)], "index": rng.integers(0, n, 5),
            "weight": rng.standard_normal(n, dtype=np.float32)}


def cases():
    yield Case("derived", {"n": 33}, lambda seed: drawn(seed, 33), terms=66)
    yield Case("declared", {"n": 64}, lambda seed: drawn(seed, 64), rtol=1e-3, atol=1e-3)


class Shape:
    @staticmethod
    def same_with_every_seed():
        yield {"name": "constant", "arguments": lambda seed: [np.ones((4, 4)), 1.0]}

    @staticmethod
    def other_shape():
        yield {"name": "grows", "arguments": lambda seed: [np.full((seed % 7 + 1, 4), seed), 1.0]}

    @staticmethod
    def no_function():
        yield {"name": "tensor", "arguments": [np.ones(4)]}

    @staticmethod
    def misspelt():
        yield {"name": "a", "arguments": lambda seed: [np.full(4, seed)], "tolerence": 1}

    @staticmethod
    def none():
        return []

    @staticmethod
    def other_axes():
        yield {"axes": {"n": 1}, "arguments": lambda seed: [np.full(4, seed), 1.0]}
        yield {"axes": {"m": 1}, "arguments": lambda seed: [np.full(4, seed), 1.0]}
