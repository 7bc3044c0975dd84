"""How far from its float64 result a right function may be: the arithmetic of the bound that docs/any-function.md
derives.

On arrays of NumPy, or on tensors of torch where they lie: both libraries know the same operations by the same names.

Needs NumPy, and torch only for its tensors.
"""
from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from syslab_signature import is_torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Any

    import numpy

    Tensor = Any  # of NumPy or torch

PROBE_STEP = 2.0 ** -26       # of an argument: sqrt of a double's epsilon
SUM_ROUNDOFF = 2.0 ** -24     # half precision is summed in float32
DEVIATIONS = 6                # standard deviations of a sum of roundings that a bound allows
ROUNDINGS = 4                 # of each value on its way
STEEP = 2.0 ** 10             # sensitivity against an output's largest value, from which no dtype has digits for it
CANCELLED = 2.0 ** -40        # an output's largest value against sensitivity, below which it is float64's own rounding
# A rounding error is uniform within the unit roundoff u, so its standard deviation is u / sqrt(3).
FACTOR = DEVIATIONS * math.sqrt(ROUNDINGS / 3)


def library_of(value: Tensor) -> ModuleType:
    import numpy

    return sys.modules["torch"] if is_torch(value) else numpy


def quietly() -> AbstractContextManager[Any]:
    """NumPy warns of what infinities make; torch does not."""
    import numpy

    return numpy.errstate(all="ignore")


def widened(value: Tensor) -> Tensor:
    """A float or complex tensor in double precision; others as they are."""
    if is_torch(value):
        torch = sys.modules["torch"]
        return (value.to(torch.complex128) if value.is_complex() else value.double() if value.is_floating_point()
                else value)
    return value.astype("c16") if value.dtype.kind == "c" else value.astype("f8") if value.dtype.kind == "f" else value


def is_inexact(value: Tensor) -> bool:
    return value.is_floating_point() or value.is_complex() if is_torch(value) else value.dtype.kind in "fc"


def probed(value: Tensor, generator: numpy.random.Generator) -> Tensor:
    """Each element of a float tensor times 1 ± PROBE_STEP."""
    if not is_inexact(value):
        return value
    import numpy

    signs = PROBE_STEP * (2.0 * generator.integers(0, 2, size=tuple(value.shape)) - 1.0)
    if is_torch(value):
        return value * (1.0 + sys.modules["torch"].from_numpy(numpy.asarray(signs)).to(value.device))
    return value * (1.0 + signs)


def doubles(value: Tensor) -> Tensor:
    """As doubles in the same library and place, complex numbers as pairs."""
    if is_torch(value):
        value = value.detach()
        return (sys.modules["torch"].view_as_real(value.resolve_conj()) if value.is_complex() else value).double()
    import numpy

    if value.dtype.kind == "c":
        value = numpy.stack([value.real, value.imag], -1)
    return numpy.asarray(value, dtype="f8")


def unit_roundoff(dtype: str) -> float:
    return {"float64": 2.0 ** -53, "float32": 2.0 ** -24, "float16": 2.0 ** -11, "bfloat16": 2.0 ** -8,
            "complex64": 2.0 ** -24, "complex128": 2.0 ** -53}.get(dtype, 0.0)


def range_of(dtype: str) -> tuple[float, float]:
    """The largest number of a float dtype, and the smallest that is normal."""
    return {"float32": (3.4028234663852886e38, 2.0 ** -126), "complex64": (3.4028234663852886e38, 2.0 ** -126),
            "float16": (65504.0, 2.0 ** -14),
            "bfloat16": (3.3895313892515355e38, 2.0 ** -126)}.get(dtype, (math.inf, 2.0 ** -1022))


def change_of(moved: Tensor, value: Tensor) -> Tensor:
    """How much a result moves with its arguments, in units of them; where that is no number, 0."""
    library = library_of(value)
    with quietly():
        change = library.abs(moved - value) / PROBE_STEP
    return library.where(library.isfinite(change), change, library.zeros_like(change))


def larger(one: Tensor | None, other: Tensor) -> Tensor:
    """Of each element; `one` may be None."""
    return other if one is None else library_of(other).maximum(one, other)


def error_of(own: Tensor, value: Tensor) -> Tensor:
    with quietly():
        return library_of(value).nan_to_num(abs(own - value), nan=0, posinf=0)


def sizes_of(value: Tensor) -> Tensor:
    """Of each element; 0 where it is no number."""
    library = library_of(value)
    return library.where(library.isfinite(value), abs(value), library.zeros_like(value))


def of_a_row(value: Tensor) -> Tensor:
    """The root mean square along the last dimension, beside each element."""
    return library_of(value).sqrt((value ** 2).mean(-1, keepdims=True)) if value.ndim else value


def largest_of_a_row(value: Tensor) -> Tensor:
    """The largest along the last dimension, beside each element."""
    if not value.ndim or not math.prod(value.shape):
        return value
    largest = value.amax(-1, keepdims=True) if is_torch(value) else value.max(-1, keepdims=True)
    return library_of(value).zeros_like(value) + largest


def whole_bound(value: Tensor, rtol: float, atol: float) -> Tensor:
    """The tolerance of an output that is no float."""
    return atol + rtol * abs(value)


def bound(value: Tensor, dtype: str, *, given: float, terms: int, sensitivity: Tensor | None, erring: Tensor | None,
          exact: bool, declared: tuple[float, float] | None, within: Tensor | None = None,
          largest: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """What was expected of an output of that dtype, its tolerance, and each element's own tolerance (own_tolerance).
    `value`: the float64 result; `given`: the coarsest unit roundoff of output and arguments; `terms`: of the longest
    sum; `sensitivity`: change_of() probes, or None; `erring`: the reference's own error in its own dtype, or None;
    `exact`: it computed in float64; `declared`: (rtol, atol) of the case, or None; `within`: the same as `sensitivity`
    of what lies between (syslab_within.py), or None; `largest`: the largest number there.
    """
    library, own = library_of(value), unit_roundoff(dtype)
    reach, tiny = range_of(dtype)
    zero = library.zeros_like(value)
    finite = library.isfinite(value)
    size = library.where(finite, abs(value), zero)
    if declared:
        rtol, atol = declared
        tolerance = narrower = atol + rtol * size
    else:
        summed = math.sqrt(terms) * min(given, SUM_ROUNDOFF)
        sensitivity = size if not exact else zero if sensitivity is None else sensitivity

        def of(moved: Tensor) -> Tensor:
            found = FACTOR * (given * moved + summed * (moved + size)) + 2 * own * size + tiny
            return 2 * found if not exact or own <= 2.0 ** -53 else found  # the reference errs as much

        cancels = None
        if within is not None:
            # Elsewhere the bound by the arguments alone is wider than one rounding of what lies between.
            cancels = within > FACTOR * library.maximum(library.maximum(sensitivity, of_a_row(sensitivity)), size)
            sensitivity = library.where(cancels, within, sensitivity)
        # Neighbours along the last dimension lend each other what few probes have missed.
        tolerance = of(library.maximum(sensitivity, of_a_row(sensitivity)))
        lent, doubt = zero, sensitivity
        if erring is not None and (erring > tolerance).any():
            # Of one row, so that an element at which the reference is right by chance is not held to that.
            lent = FACTOR * library.maximum(erring, of_a_row(erring))
            tolerance = library.maximum(tolerance, lent)
            doubt = library.maximum(sensitivity, lent / given)
        if exact:
            narrower = own_tolerance(size, sensitivity, lent, doubt, of)
            if cancels is not None:
                # Another formula has other roundings, and may have more: there, and in rows of which no digit is left.
                moves = largest_of_a_row(sensitivity)
                cancels = cancels | ((moves > 0) & (largest_of_a_row(size) <= given * moves))
                other = of(lent_by_operations(size, within, largest, terms, of))
                tolerance = library.where(cancels, library.maximum(tolerance, other), tolerance)
        else:  # what its arguments' rounding does is not known, but half of a value is no rounding
            narrower = library.minimum(tolerance, library.maximum(of(size), size / 2))
    with quietly():
        value = library.where(size > reach * (1 + own / 2), math.inf * library.sign(value), value)
    finite = library.isfinite(value)
    return value, library.where(finite, tolerance, zero), library.where(finite, narrower, zero)


def largest_of(value: Tensor) -> Tensor | float:
    return value.max() if math.prod(value.shape) else 0.0


def is_hopeless(found: Tensor, size: Tensor, steep: Tensor, doubt: Tensor) -> Tensor:
    """Where a tolerance is no smaller than any value of the output: it allows anything, because the element lies at a
    jump or is too steep for its dtype. A sum that cancels to nothing looks the same, but is not hopeless: the values
    are small against all that goes into them by more digits than float64 has to spare.
    """
    scale = largest_of(size)
    return (found >= scale) & (scale >= CANCELLED * doubt) & steep & (scale > 0)


def own_tolerance(size: Tensor, sensitivity: Tensor, lent: Tensor, doubt: Tensor,
                  of: Callable[[Tensor], Tensor]) -> Tensor:
    """The tolerance of each element without what neighbours lend it. Where that is hopeless, its sensitivity is left
    out.
    """
    library = library_of(size)
    found = library.maximum(of(sensitivity), lent)
    scale = largest_of(size)
    steep = (sensitivity >= STEEP * scale) | (lent >= scale)
    return library.where(is_hopeless(found, size, steep, doubt), of(library.zeros_like(size)), found)


def lent_by_operations(size: Tensor, within: Tensor, largest: float, terms: int,
                       of: Callable[[Tensor], Tensor]) -> Tensor:
    """How far the roundings of another formula may move an element that cancels.

    At most by the largest number on the way; and at most √terms times as far as those of the reference move its row, or
    an element of the output that is not hopeless. One operation of torch may hide that much: layer_norm returns the
    mean of n numbers, whose rounding is 1/√n of theirs. The second limit is for large numbers that move nothing, such
    as a mask of -1e9.
    """
    library = library_of(size)
    zero = library.zeros_like(size)
    hopeless = is_hopeless(of(within), size, within >= STEEP * largest_of(size), within)
    lenders = library.where(hopeless, zero, within)
    moved = library.maximum(largest_of_a_row(within), zero + largest_of(lenders))
    return library.minimum(math.sqrt(terms) * moved, zero + largest)
