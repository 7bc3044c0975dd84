"""Results whose length depends on content: right functions, and wrong ones."""
import numpy as np


def kinds(x):
    values, counts = np.unique(x, return_counts=True)
    return {"values": values, "counts": counts}


def kinds_by_sorting(x):
    ordered = np.sort(x, axis=None)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return {"counts": np.diff(np.append(first, ordered.size)), "values": ordered[first]}


def one_counted_elsewhere(x):
    values, counts = np.unique(x, return_counts=True)
    counts[:2] += np.array([1, -1])
    return {"values": values, "counts": counts}


def one_value_off(x):
    values, counts = np.unique(x, return_counts=True)
    values[-1] *= np.float32(1.0001)
    return {"values": values, "counts": counts}


def one_kind_left_out(x):
    return {name: each[1:] for name, each in kinds(x).items()}


def cases():
    """All of three numbers, each in many places."""
    yield {"name": "three", "arguments": lambda seed: {"x": np.random.default_rng(seed).integers(0, 3, (50, 20)).astype(np.float32)}}


def cases_of_any_length():
    yield {"name": "some", "arguments": lambda seed: {"x": np.random.default_rng(seed).integers(0, 1000, 20).astype(np.float32)}}
