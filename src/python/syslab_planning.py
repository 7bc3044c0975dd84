"""What libsyslab decides of data parallelism, on numbers alone (src/capi/syslab.h): every rank that asks alike is
answered alike."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from syslab_torch import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")

ABI = 1


def check_abi() -> None:
    if not hasattr(LIBRARY, "syslab_parallel_abi"):
        raise ImportError(f"{LIBRARY._name} is of a version without data parallelism: take it and syslab_parallel.py "
                          "from one version")
    if (found := LIBRARY.syslab_parallel_abi()) != ABI:
        raise ImportError(f"{LIBRARY._name} speaks ABI {found} of data parallelism, syslab_planning.py {ABI}: take "
                          "both from one version")


check_abi()


def call(name: str, *arguments: Any) -> None:
    if getattr(LIBRARY, name)(*arguments) != 0:
        raise ValueError(LIBRARY.syslab_last_error().decode())


def whole_numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


def real_numbers(values: Sequence[float]) -> ctypes.Array[ctypes.c_double]:
    return (ctypes.c_double * len(values))(*values)


def cut(items: list[T], ends: list[int]) -> list[list[T]]:
    return [items[begin:end] for begin, end in zip([0, *ends[:-1]], ends)]


def buckets(items: list[T], sizes: list[int], limit: int | None) -> list[list[T]]:
    """`items` in their order, cut into buckets of at most `limit` bytes; 0: each by itself, None: all in one."""
    if not items:
        return []
    ends, count = whole_numbers([0] * len(items)), ctypes.c_int64()
    call("syslab_bucket_schedule", whole_numbers(sizes), ctypes.c_int64(len(items)),
         ctypes.c_int64(-1 if limit is None else limit),
         ends, ctypes.byref(count))
    return cut(items, ends[:count.value])


def planned_buckets(items: list[T], sizes: list[int], ready: list[float],
                    curve: dict[int, float]) -> tuple[list[list[T]], float]:
    """The buckets whose communication ends first, and the seconds that it is forecast to take behind the last gradient.
    `ready`: seconds from the beginning of the backward pass; `curve`: {bytes: seconds} of messages as they were
    measured."""
    ends, count, exposed = whole_numbers([0] * len(items)), ctypes.c_int64(), ctypes.c_double()
    call("syslab_bucket_plan", whole_numbers(sizes), real_numbers(ready), ctypes.c_int64(len(items)),
         whole_numbers(list(curve)),
         real_numbers(list(curve.values())), ctypes.c_int64(len(curve)), ends, ctypes.byref(count),
         ctypes.byref(exposed))
    return cut(items, ends[:count.value]), exposed.value


def owners(elements: list[int], loads: list[int]) -> list[int]:
    """The rank that updates each tensor; adds its elements to that rank's in `loads`."""
    held, found = whole_numbers(loads), whole_numbers([0] * len(elements))
    call("syslab_assign_owners", whole_numbers(elements), ctypes.c_int64(len(elements)), held,
         ctypes.c_int64(len(loads)), found)
    loads[:] = held
    return list(found)


def rows_of(rows: int, ranks: int, rank: int) -> tuple[int, ...]:
    """(first, own, padded) rows of a rank's part."""
    found = [ctypes.c_int64() for _ in range(3)]
    call("syslab_shard_rows", ctypes.c_int64(rows), ctypes.c_int64(ranks), ctypes.c_int64(rank),
         *map(ctypes.byref, found))
    return tuple(one.value for one in found)
