"""Integers of which several may be equally right, such as the place of a maximum: what a function found is put in place
of what the reference found, where it is as right.

Two kinds of evidence are taken. Places along a dimension of a tensor, an argument or another output, where the
reference's own are those of its largest or smallest elements, and not by chance: any place of an equal element is as
right. And what the reference itself finds with arguments that differ by as much as they are rounded: there the result
is decided by rounding.

Needs the standard library, and NumPy once it is asked.
"""
from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from syslab_bounds import widened
from syslab_signature import is_torch

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterable, Iterator
    from typing import Union

    import numpy
    from torch import Tensor

    Array = Union[numpy.ndarray, Tensor]
    Scores = tuple[numpy.ndarray, Any, Union["MovedArgument", "OutputStandsOut"]]  # array, margin, evidence

# Of arguments that differ by rounding: of two that tie, both come up in all but one of 2^16; of other places, too. A
# run has many thousands of integers: where one is left that ties with nothing, more are drawn.
DRAWS = (16, 64)


def read_doubles(memory: mmap.mmap, wire: dict[str, Any]) -> numpy.ndarray:
    """An output as the function's process wrote it; bfloat16, of which no ties are asked, as nothing."""
    import numpy

    dtypes = {"fp64": "f8", "fp32": "f4", "fp16": "f2"}
    if wire["dtype"] not in dtypes:
        return numpy.zeros(0)
    return numpy.ndarray((math.prod(wire["shape"]),), dtypes[wire["dtype"]], memory, wire["offset"]).astype("f8")


def write_doubles(value: Array, memory: mmap.mmap, offset: int) -> None:
    import numpy

    view: Any = numpy.ndarray(tuple(value.shape), "f8", memory, offset)
    if is_torch(value):
        sys.modules["torch"].from_numpy(view).copy_(value)
    else:
        view[...] = value


def array_of(value: Array) -> numpy.ndarray:
    """A result or argument as an array of NumPy; bfloat16, which that does not know, as float32."""
    import numpy

    if isinstance(value, numpy.ndarray):
        return value
    value = value.detach().cpu()
    return (value.float() if str(value.dtype) == "torch.bfloat16" else value.resolve_conj()).numpy()


def distinct(places: numpy.ndarray, axis: int) -> numpy.ndarray:
    import numpy

    ordered = numpy.sort(places, axis=axis)
    return (numpy.diff(ordered, axis=axis) != 0).all(axis=axis, keepdims=True)


def along(places: numpy.ndarray, scores: numpy.ndarray) -> Iterator[tuple[int, numpy.ndarray]]:
    """(axis, places with that axis) for each axis of `scores` along which they can be places."""
    import numpy

    for axis in range(scores.ndim):
        rest = scores.shape[:axis] + scores.shape[axis + 1:]
        if places.shape == rest:
            yield axis, numpy.expand_dims(places, axis)
        elif (places.ndim == scores.ndim and places.shape[:axis] + places.shape[axis + 1:] == rest
              and places.shape[axis] <= scores.shape[axis]):
            yield axis, places


def at_places(scores: numpy.ndarray, places: numpy.ndarray, axis: int) -> numpy.ndarray:
    import numpy

    return numpy.take_along_axis(scores, places.astype("i8"), axis)


def in_range(places: numpy.ndarray, end: int) -> numpy.ndarray:
    import numpy

    return (places == numpy.floor(places)) & (places >= 0) & (places < end)


def best_end(chosen: numpy.ndarray, scores: numpy.ndarray, axis: int, margin: Any) -> int:
    """1 if the chosen scores of each slice are its largest, -1 if they are its smallest, else 0."""
    import numpy

    length = scores.shape[axis]
    for end in (1, -1):
        ordered, mine = numpy.sort(end * scores, axis=axis), numpy.sort(end * chosen, axis=axis)
        best = numpy.take(ordered, range(length - chosen.shape[axis], length), axis)
        with numpy.errstate(invalid="ignore"):  # of infinities
            if ((mine == best) | (abs(mine - best) <= margin)).all():
                return end
    return 0


def moved(scores: numpy.ndarray, chosen: numpy.ndarray, axis: int, end: int,
          generator: numpy.random.Generator) -> numpy.ndarray:
    """The scores with the chosen ones at places drawn at random, and the worst of its slice in place of each other that
    is as good."""
    import numpy

    drawn = numpy.argsort(generator.random(scores.shape), axis=axis)
    worst = end * (end * scores).min(axis, keepdims=True)
    made = numpy.where(end * scores >= (end * chosen).min(axis, keepdims=True), worst, scores)
    numpy.put_along_axis(made, numpy.take(drawn, range(chosen.shape[axis]), axis), chosen, axis)
    return made


class MovedArgument:
    """Evidence from an argument: the reference finds its best elements wherever they are moved to. A result that
    happens to point at one of the best, such as the length of a mask, does not follow them."""

    def __init__(self, found_with: Callable[[numpy.ndarray], numpy.ndarray | None]) -> None:
        self.found_with = found_with  # what the reference finds with this array in the argument's place; None: it fails

    def shows(self, places: numpy.ndarray, scores: numpy.ndarray, axis: int, end: int) -> bool:
        import numpy

        generator, chosen = numpy.random.default_rng(20230717), at_places(scores, places, axis)
        constant = scores.max(axis, keepdims=True) == scores.min(axis, keepdims=True)
        for _ in range(DRAWS[0]):
            made = moved(scores, chosen, axis, end, generator)
            found = self.found_with(made)
            if found is None or found.size != places.size:
                return False
            found = found.reshape(places.shape)
            valid = in_range(found, scores.shape[axis])
            if not (constant | valid & (at_places(made, numpy.where(valid, found, 0), axis) == chosen)).all():
                return False
        return True


class OutputStandsOut:
    """Evidence from another output: with arguments that differ by rounding, no other element of it is as good as those
    at the places, in most slices. A mask has many that are."""

    MOST = 0.75

    def __init__(self, runs: list[tuple[numpy.ndarray, numpy.ndarray]]) -> None:
        self.runs = runs  # (places, scores) that the reference finds

    @staticmethod
    def alone(chosen: numpy.ndarray, places: numpy.ndarray, scores: numpy.ndarray, axis: int,
              end: int) -> numpy.ndarray:
        """Of each slice: whether nothing ties with what was chosen."""
        import numpy

        if places.shape[axis] == scores.shape[axis]:  # an order of all of them
            steps = numpy.diff(chosen, axis=axis)
            return (steps > 0).all(axis) | (steps < 0).all(axis)
        rest = end * scores
        numpy.put_along_axis(rest, places.astype("i8"), -numpy.inf, axis)
        return rest.max(axis) < (end * chosen).min(axis)

    def shows(self, places: numpy.ndarray, scores: numpy.ndarray, axis: int, end: int) -> bool:
        alone = slices = 0
        for found, computed in self.runs:
            if (computed.shape != scores.shape or found.size != places.size
                    or not in_range(found, scores.shape[axis]).all()):
                return False
            found = found.reshape(places.shape)
            each = self.alone(at_places(computed, found, axis), found, computed, axis, end)
            alone, slices = alone + each.sum(), slices + each.size
        return alone >= self.MOST * slices > 0


def as_right_by_scores(wanted: numpy.ndarray, found: numpy.ndarray, scores: numpy.ndarray, margin: Any,
                       evidence: MovedArgument | OutputStandsOut) -> numpy.ndarray | None:
    """Where `found` is a place as good as `wanted` in these scores, of which each is known up to `margin`; None: they
    are no evidence, because the reference's places are not those of their best, or only by chance."""
    import numpy

    if scores.dtype.kind not in "iufb" or scores.dtype.kind == "f" and numpy.isnan(scores).any():
        return None
    scores = scores.astype("f8")
    for axis, places in along(wanted, scores):
        length = scores.shape[axis]
        if not scores.size or not in_range(places, length).all() or (scores.max(axis) == scores.min(axis)).all():
            continue
        best = at_places(scores, places, axis)
        limit = numpy.broadcast_to(margin, scores.shape)
        of_best = at_places(limit, places, axis)
        end = best_end(best, scores, axis, of_best.max(initial=0))
        if end == 0:
            continue
        other = found.reshape(places.shape)
        valid = in_range(other, length)
        at = numpy.where(valid, other, 0)
        chosen = at_places(scores, at, axis)
        with numpy.errstate(invalid="ignore"):  # of infinities
            equal = valid & ((chosen == best) | (abs(chosen - best) <= of_best + at_places(limit, at, axis)))
        if distinct(places, axis).all():
            equal = equal & distinct(at, axis)
        if (equal & (other != places)).any() and evidence.shows(places, scores, axis, end):
            return equal.reshape(wanted.shape)
    return None


def settled(wanted: numpy.ndarray, found: numpy.ndarray, scores: Iterable[Scores],
            drawn: list[numpy.ndarray]) -> numpy.ndarray:
    """`wanted` with what was found where that is as right. `scores`: (array, margin, evidence that the reference finds
    places in it) of arguments and other outputs; `drawn`: what the reference finds with arguments that differ by
    rounding."""
    import numpy

    wanted = numpy.asarray(wanted, "f8")
    if not (found != wanted).any():
        return wanted
    right = found == wanted
    for one, margin, evidence in scores:
        equal = as_right_by_scores(wanted, found, one, margin, evidence)
        if equal is not None:
            right = right | equal
    once = numpy.zeros_like(right)
    for other in drawn:
        once |= found == other
    for axis in range(wanted.ndim if wanted.size else 0):
        # By chance a few places differ in one run, and not in all of those that choose others.
        if all(distinct(each, axis).all() for each in (wanted, *drawn)):
            once &= distinct(found, axis)
    return numpy.where(right | once, found, wanted)


def in_place_of(value: Array, scores: numpy.ndarray) -> Array:
    """The scores as an argument like `value`."""
    import numpy

    if isinstance(value, numpy.ndarray):
        return scores.astype(value.dtype)
    import torch

    return torch.from_numpy(numpy.ascontiguousarray(scores)).to(value.dtype).to(value.device)


def rounded(value: Array, size: float, generator: numpy.random.Generator, wide: bool) -> Array:
    """A float tensor of which each element differs by up to `size` of itself; `wide`: in double precision."""
    import numpy

    steps = 1 + size * (2 * generator.random(math.prod(value.shape)).reshape(tuple(value.shape)) - 1)
    if isinstance(value, numpy.ndarray):
        made = widened(value) * steps
        return made if wide else made.astype(value.dtype)
    import torch

    made = widened(value) * torch.from_numpy(numpy.asarray(steps)).to(value.device)
    return made if wide else made.to(value.dtype)
