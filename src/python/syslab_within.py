"""Rounding of what lies between a reference's arguments and its result: torch's operations, each result of which is
moved a little.

Where a result cancels, as the gradient of softmax(x).sum() does to 0, moving the arguments shows nothing of what
rounding does there.

Needs torch, and does nothing where it has no TorchDispatchMode.
"""
from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from syslab_bounds import PROBE_STEP
from syslab_signature import is_torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy
    from torch import Tensor

# What these return has been rounded already, whichever the dtype.
EXACT = frozenset("""
_reshape_alias _to_copy _unsafe_view abs amax amin aminmax argsort bernoulli_ cat ceil clamp clamp_ clamp_max
clamp_max_ clamp_min clamp_min_ clone constant_pad_nd contiguous copy copy_ cummax cummin detach diagonal_scatter
embedding empty_like expand_copy eye fill fill_ flip floor full_like gather index index_copy index_copy_ index_fill
index_fill_ index_select kthvalue masked_fill masked_fill_ masked_select max max_pool2d_with_indices maximum median
min minimum mode nan_to_num nanmedian neg neg_ new_empty new_full new_ones new_zeros normal_ ones_like pad
pixel_shuffle rand_like randn_like random_ relu relu_ repeat roll rot90 round scatter scatter_ select_backward
select_scatter sgn sign slice_backward slice_scatter sort split stack take threshold_backward topk tril tril_ triu
triu_ trunc unfold_backward uniform_ view_copy where zero_ zeros_like
""".split())


def operation_of(function: Any) -> str:
    named = function.overloadpacket if hasattr(function, "overloadpacket") else function
    return getattr(named, "__name__", "")


def is_view(function: Any) -> bool:
    """Whether a result is memory of an argument that the operation does not write."""
    schema = getattr(function, "_schema", None)
    if schema is None:
        return True
    return any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns)


def moved_of(value: Tensor, arrangement: str, generator: numpy.random.Generator) -> Any:
    """A tensor of factors 1 ± PROBE_STEP: of each element by itself, of a row together, or of the whole tensor."""
    torch = sys.modules["torch"]
    shape = list(value.shape)
    if arrangement == "row" and shape:
        shape[-1] = 1
    elif arrangement == "tensor":
        shape = [1] * len(shape)
    if not shape:
        return 1.0 + PROBE_STEP * (2.0 * int(generator.integers(0, 2)) - 1.0)
    signs = torch.from_numpy(2.0 * generator.integers(0, 2, size=tuple(shape)) - 1.0)
    return 1.0 + PROBE_STEP * signs.to(value.device)


# Roundings are independent, but for those of what a row or a whole tensor shares: a maximum, a sum that all are divided
# by.
ARRANGEMENTS = ("element", "row", "tensor", "element")


class Largest:
    """`value`: of all numbers that operations take and give, of a backward pass without those of the forward pass,
    which is asked with gradients enabled. None before there is any, or where torch cannot be watched."""
    value = None

    def take(self, tensor: Tensor) -> None:
        size = sys.modules["torch"].nan_to_num(tensor.detach().abs(), nan=0.0, posinf=0.0)
        if size.numel():
            self.value = max(self.value or 0.0, float(size.max()))


@contextlib.contextmanager
def results_moved(arrangement: str, generator: numpy.random.Generator) -> Iterator[Largest]:
    """Within it, each double that an operation of torch computes of other doubles is moved. Gives the Largest of
    them."""
    largest = Largest()
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:  # of another torch
        yield largest
        return
    torch = sys.modules["torch"]

    def doubles_of(values: Any) -> Iterator[Tensor]:
        for each in values if isinstance(values, (list, tuple)) else (values,):
            if isinstance(each, (list, tuple)):
                yield from doubles_of(each)
            elif is_torch(each) and each.dtype in (torch.float64, torch.complex128):
                yield each

    class Moving(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: tuple[Any, ...] = (),
                               kwargs: dict[str, Any] | None = None) -> Any:
            result = function(*args, **(kwargs or {}))
            taken, given = list(doubles_of(args)), list(doubles_of(result))
            if is_view(function) or operation_of(function) in EXACT or not taken:
                return result
            for value in [] if torch.is_grad_enabled() else taken + given:
                largest.take(value)
            for value in given:
                value.mul_(moved_of(value, arrangement, generator))
            return result

    with Moving():
        yield largest
