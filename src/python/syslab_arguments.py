"""What a call may change of its arguments no more than their bytes: lists and dicts, and of tensors all that says where
they lie and how they are read. And whether a result lies in their memory.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from syslab_failures import WrongAnswer
from syslab_signature import dtype_name, is_numpy, is_torch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Tensor = Any  # of torch or NumPy
    Picture = Any  # what picture() makes
    Change = tuple[str, str]  # where, what

SHOWN = 60  # signs of a value or a list of keys


def shown(value: object) -> str:
    return cut(repr(value)) if type(value) in (bool, int, float, str, type(None)) else f"a {type(value).__name__}"


def shown_keys(keys: Iterable[object]) -> str:
    return cut(f"[{', '.join(map(shown, keys))}]")


def cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN - 1] + "…"


def metadata(value: Tensor) -> dict[str, Any]:
    """Of a tensor, by name: what is another where the same memory is read otherwise, or other memory is read."""
    if is_torch(value):
        return {"type": type(value).__name__, "shape": tuple(value.shape), "dtype": dtype_name(value),
                "strides": value.stride(), "requires_grad": value.requires_grad, "memory": value.data_ptr()}
    return {"type": type(value).__name__, "shape": value.shape, "dtype": dtype_name(value), "strides": value.strides,
            "writeable": value.flags.writeable, "memory": value.__array_interface__["data"][0]}


def change_of_tensor(value: Tensor, before: dict[str, Any]) -> str | None:
    for field, now in metadata(value).items():
        if now != before[field]:
            return ("other memory than before" if field == "memory" else f"{field} from {before[field]} to {now}")
    return None


class Kept:
    """Arguments as they were: demand_same() says what a call has changed of them. It holds their values, no copy of a
    tensor's."""

    def __init__(self, names: Iterable[str], values: Iterable[Any]) -> None:
        self.arguments = [(name, value, picture(value)) for name, value in zip(names, values)]

    def demand_same(self) -> None:
        for name, value, before in self.arguments:
            if (found := change_of(name, value, before)) is not None:
                where, what = found
                raise WrongAnswer(f"the call changed its argument '{where}': {what}; whoever calls uses it again, so "
                                  "work on a copy or a view of your own", "input_changed")


def picture(value: Any) -> Picture:
    """Of a list, tuple or dict its items and theirs, of a tensor its metadata."""
    if isinstance(value, (list, tuple)):
        return [(str(i), each, picture(each)) for i, each in enumerate(value)]
    if isinstance(value, dict):
        return [(key, each, picture(each)) for key, each in value.items()]
    return metadata(value) if is_torch(value) or is_numpy(value) else None


def change_of(name: str, value: Any, before: Picture) -> Change | None:
    """(where, what) has changed in an argument, which is the same object; None: nothing. As deep as the picture is, and
    not as what it has become."""
    if not isinstance(value, (list, tuple, dict)):
        return None if before is None or (what := change_of_tensor(value, before)) is None else (name, what)
    keys = [str(i) for i in range(len(value))] if not isinstance(value, dict) else list(value)
    if keys != [key for key, _, _ in before]:
        if isinstance(value, dict):
            return name, f"keys from {shown_keys(key for key, _, _ in before)} to {shown_keys(keys)}"
        return name, f"length from {len(before)} to {len(keys)}"
    for (key, was, inner), now in zip(before, value.values() if isinstance(value, dict) else value):
        if (found := change_of_item(f"{name}.{key}", was, now, inner)) is not None:
            return found
    return None


def change_of_item(name: str, was: Any, now: Any, before: Picture) -> Change | None:
    if is_torch(was) or is_numpy(was):
        return change_of(name, now, before) if now is was else (name, "another object than before")
    same_type = type(now) is type(was)
    if same_type and isinstance(was, (list, tuple, dict)):
        return change_of(name, now, before)
    return None if now is was or same_type and now == was else (name, f"from {shown(was)} to {shown(now)}")


def storage(value: Tensor) -> tuple[int, int]:
    """Addresses of the memory that a tensor lies in, first and one past the last."""
    if is_torch(value):
        held = value.storage()
        begin = held.data_ptr()
        return begin, begin + held.nbytes()
    import numpy

    return numpy.lib.array_utils.byte_bounds(value) if hasattr(numpy.lib, "array_utils") else numpy.byte_bounds(value)


def shares(value: Tensor, other: Tensor) -> bool:
    if is_torch(value) != is_torch(other) or not math.prod(value.shape) or not math.prod(other.shape):
        return False
    if is_torch(value) and value.device != other.device:
        return False
    (a, b), (c, d) = storage(value), storage(other)
    return a < d and c < b
