"""What libsyslab decides of data parallelism, on numbers alone (src/capi/syslab.h): every rank that asks alike is
answered alike."""
import ctypes

from syslab_torch import LIBRARY

ABI = 1


def check_abi():
    if not hasattr(LIBRARY, "syslab_parallel_abi"):
        raise ImportError(f"{LIBRARY._name} is of a version without data parallelism: take it and syslab_parallel.py "
                          "from one version")
    if (found := LIBRARY.syslab_parallel_abi()) != ABI:
        raise ImportError(f"{LIBRARY._name} speaks ABI {found} of data parallelism, syslab_planning.py {ABI}: take "
                          "both from one version")


check_abi()


def call(name, *arguments):
    if getattr(LIBRARY, name)(*arguments) != 0:
        raise ValueError(LIBRARY.syslab_last_error().decode())


def whole_numbers(values):
    return (ctypes.c_int64 * len(values))(*values)


def real_numbers(values):
    return (ctypes.c_double * len(values))(*values)


def cut(items, ends):
    return [items[begin:end] for begin, end in zip([0, *ends[:-1]], ends)]


def buckets(items, sizes, limit):
    """`items` in their order, cut into buckets of at most `limit` bytes; 0: each by itself, None: all in one."""
    if not items:
        return []
    ends, count = whole_numbers([0] * len(items)), ctypes.c_int64()
    call("syslab_bucket_schedule", whole_numbers(sizes), ctypes.c_int64(len(items)),
         ctypes.c_int64(-1 if limit is None else limit),
         ends, ctypes.byref(count))
    return cut(items, ends[:count.value])


def planned_buckets(items, sizes, ready, curve):
    """The buckets whose communication ends first, and the seconds that it is forecast to take behind the last gradient.
    `ready`: seconds from the beginning of the backward pass; `curve`: {bytes: seconds} of messages as they were
    measured."""
    ends, count, exposed = whole_numbers([0] * len(items)), ctypes.c_int64(), ctypes.c_double()
    call("syslab_bucket_plan", whole_numbers(sizes), real_numbers(ready), ctypes.c_int64(len(items)),
         whole_numbers(list(curve)),
         real_numbers(list(curve.values())), ctypes.c_int64(len(curve)), ends, ctypes.byref(count),
         ctypes.byref(exposed))
    return cut(items, ends[:count.value]), exposed.value


def owners(elements, loads):
    """The rank that updates each tensor; adds its elements to that rank's in `loads`."""
    held, found = whole_numbers(loads), whole_numbers([0] * len(elements))
    call("syslab_assign_owners", whole_numbers(elements), ctypes.c_int64(len(elements)), held,
         ctypes.c_int64(len(loads)), found)
    loads[:] = held
    return list(found)


def rows_of(rows, ranks, rank):
    """(first, own, padded) rows of a rank's part."""
    found = [ctypes.c_int64() for _ in range(3)]
    call("syslab_shard_rows", ctypes.c_int64(rows), ctypes.c_int64(ranks), ctypes.c_int64(rank),
         *map(ctypes.byref, found))
    return tuple(one.value for one in found)
