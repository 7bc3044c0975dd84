"""What a rank's process holds between steps besides what its class shows: tensors that hold other ranks' state, or
whole weights that should be in parts.

All tensors that Python's garbage collector knows are looked at, each as the bytes of all its memory (in a sparse or
another layout, of what it stands for), and pieces of what should not be there are searched in them. What a class keeps
elsewhere is not seen: in arrays of NumPy with memory of their own, on disk, in C++, in another dtype, order or
encoding.
"""
from __future__ import annotations

import gc
import math
from typing import TYPE_CHECKING

import torch

from syslab_failures import Unsupported
from syslab_handed_in import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from syslab_collectives import Collectives

    Found = TypeVar("Found")

PADDING = 32  # elements of each weight, which a rank may hold besides its part
PIECE = 64  # elements that are searched together
FEWEST_KINDS = 4  # different numbers in a piece: zeros and counters are no evidence
MOST_DENSE = 1 << 24  # elements of a tensor in another layout; no case has as many weights
WIDE = (torch.float32, torch.float64)
ASIDE = 0  # objects


def bytes_of(tensor: torch.Tensor) -> bytes:
    """Of dense numbers, one behind the other."""
    return tensor.detach().reshape(-1).contiguous().cpu().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def storage_of(tensor: torch.Tensor) -> tuple[int, int]:
    """(address, bytes)"""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    return storage.data_ptr(), storage.nbytes()


def set_aside() -> None:
    """Keeps what this process has so far, which is the lab's and torch's, out of all searches for garbage and tensors:
    a rank that looked at each of these objects would copy the memory of all."""
    global ASIDE
    gc.collect()
    gc.freeze()
    ASIDE = gc.get_freeze_count()


def memories(lent: Iterable[torch.Tensor]) -> list[tuple[torch.dtype, bytes]]:
    """(dtype, bytes) of all memory behind tensors in this process, without that of the tensors that are `lent`."""
    seen, found = {storage_of(tensor)[0] for tensor in lent}, []
    if gc.get_freeze_count() != ASIDE:  # the user's file has called gc.freeze()
        gc.unfreeze()
    # The list of all objects has to go at once: a frame that keeps it is in it, too, and would not end.
    tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]
    with torch.no_grad(), torch._C.DisableTorchFunction():
        for one in tensors:
            if (dense := dense_of(one)) is not None:
                found += [(made.dtype, bytes_of(made)) for made in dense]
                continue
            address, size = storage_of(one)
            count = size // one.element_size()
            if address not in seen and count:
                seen.add(address)
                found.append((one.dtype, bytes_of(torch.as_strided(one.detach(), (count,), (1,), 0))))
    return found


def dense_of(tensor: torch.Tensor) -> list[torch.Tensor] | None:
    """The values of a tensor that does not hold them as they are (sparse, quantized, nested), and for a sparse one the
    values that it holds. None: an ordinary tensor."""
    if type(tensor).__torch_dispatch__ != torch.Tensor.__torch_dispatch__ or tensor.device.type not in ("cpu", "cuda"):
        return []  # it has no memory of its own: the tensors that it wraps are in the list
    try:
        if getattr(tensor, "is_nested", False):
            return list(tensor.detach().unbind())
        if tensor.is_quantized:
            return [tensor.detach().dequantize()]
        if tensor.layout == torch.strided:
            return None
        inside = [tensor.detach()._values()] if tensor.layout == torch.sparse_coo else []
        return inside + ([tensor.detach().to_dense()] if tensor.numel() <= MOST_DENSE else [])
    except (RuntimeError, NotImplementedError) as error:
        raise Unsupported(f"a tensor of {tensor.layout}, of {tensor.dtype}, in this rank's process cannot be looked "
                          f"into: {str(error).splitlines()[0]}") from error


def pieces_of(values: torch.Tensor) -> list[torch.Tensor]:
    """Of a flat tensor, without those of few different numbers."""
    whole = [values[at:at + PIECE] for at in range(0, len(values) - PIECE + 1, PIECE)]
    return [piece for piece in whole if len(torch.unique(piece)) >= FEWEST_KINDS]


def has(memory: bytes, piece: bytes, width: int) -> bool:
    """Whether it holds the bytes of a piece where an element may begin."""
    at = memory.find(piece)
    while at >= 0 and at % width:
        at = memory.find(piece, at + 1)
    return at >= 0


def confirmed(look: Callable[[], Found | None]) -> Found | None:
    """What it finds, also when there is no garbage any more."""
    if look() is None:
        return None
    gc.collect()
    return look()


def held_elements(module: torch.nn.Module) -> float:
    """By the memory behind its parameters: a part of a tensor keeps all of it."""
    found = {}
    for parameter in module.parameters():
        address, size = storage_of(parameter.data)
        found[address] = size // parameter.element_size()
    return float(sum(found.values()))


# --- state of an optimizer --------------------------------------------------------------------------------------------


def state_tensors(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.Tensor]:
    return [tensor for one in optimizers for state in one.state.values() for tensor in state.values()
            if torch.is_tensor(tensor) and tensor.dim() > 0]


def pieces_of_state(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.Tensor]:
    """Some of each tensor of state: from its beginning, its middle and its end."""
    found = []
    for tensor in state_tensors(optimizers):
        pieces = pieces_of(tensor.detach().reshape(-1).to("cpu", torch.float32))
        last = len(pieces) - 1
        found += [pieces[place] for place in sorted({0, last // 2, last})] if pieces else []
    return found


def of_all_ranks(pieces: Sequence[torch.Tensor], collectives: Collectives,
                 device: torch.device) -> list[list[torch.Tensor]]:
    """By rank the pieces of each."""
    counts = [int(value[0]) for value in
              collectives.exchange("count of the lab's", torch.tensor([float(len(pieces))], device=device))]
    most = max(counts)
    if most == 0:
        return [[] for _ in counts]
    table = torch.zeros(most, PIECE)
    if pieces:
        table[:len(pieces)] = torch.stack(pieces)
    rows = collectives.exchange("look of the lab's", table.reshape(-1).to(device))
    return [list(row.cpu().reshape(most, PIECE)[:count]) for row, count in zip(rows, counts)]


def demand_no_other_state(optimizers: Sequence[torch.optim.Optimizer], rank: int, collectives: Collectives,
                          lent: Sequence[torch.Tensor], device: torch.device) -> None:
    """That no tensor of this process holds state that another rank shows in its optimizer and this one does not."""
    theirs = of_all_ranks(pieces_of_state(optimizers), collectives, device)
    own = b"".join(bytes_of(tensor.to(torch.float32)) for tensor in state_tensors(optimizers))
    foreign = [(other, bytes_of(piece)) for other, pieces in enumerate(theirs) for piece in pieces if other != rank]
    foreign = [(other, piece) for other, piece in foreign if not has(own, piece, 4)]
    del theirs  # which would be found

    def look() -> int | None:
        for dtype, memory in memories(lent) if foreign else ():
            memory = as_floats(memory, dtype)
            for other, piece in foreign:
                if has(memory, piece, 4):
                    return other
        return None

    if (other := confirmed(look)) is not None:
        raise Fault(f"between steps a tensor outside of optimizer.state holds state that rank {other} owns: "
                    "expected the state of each element on one rank alone")


def as_floats(memory: bytes, dtype: torch.dtype) -> bytes:
    """Bytes of floats in that dtype as bytes of fp32."""
    if dtype == torch.float32 or not dtype.is_floating_point:
        return memory
    return bytes_of(torch.frombuffer(bytearray(memory), dtype=dtype).to(torch.float32))


# --- weights ----------------------------------------------------------------------------------------------------------


class WholeWeights:
    """The weights that are sharded, as they were before and after each step so far."""

    def __init__(self, named: Sequence[tuple[str, int, int]], start: torch.Tensor, ranks: int) -> None:
        """`named`: of each its name, first element among all, and number of elements."""
        self.named, self.ranks = named, ranks
        self.versions: list[torch.Tensor] = []
        self.add(start)

    def add(self, values: torch.Tensor) -> None:
        """All elements, which are copied."""
        self.versions.append(values.detach().cpu().to(torch.float32).clone())

    def look(self, lent: Sequence[torch.Tensor]) -> tuple[str, int, int] | None:
        """(name, elements, most) of a weight of which this process holds more than its part; None: there is none."""
        held = memories([*lent, *self.versions])
        for values in self.versions:
            for name, first, count in self.named:
                most = math.ceil(count / self.ranks) + PADDING
                pieces = pieces_of(values[first:first + count])
                for dtype, width in ((torch.float32, 4), (torch.float16, 2), (torch.bfloat16, 2)):
                    inside = [memory for its, memory in held if width == 4 or its not in WIDE]
                    found = PIECE * sum(any(has(memory, bytes_of(piece.to(dtype)), width) for memory in inside)
                                        for piece in pieces)
                    if found > most:
                        return name, found, most
        return None

    def demand_parts(self, lent: Sequence[torch.Tensor]) -> None:
        if (told := confirmed(lambda: self.look(lent))) is not None:
            name, found, most = told
            raise Fault(f"between steps there are {found} elements of '{name}' in tensors of this rank's process, in "
                        f"parameters() or elsewhere; expected at most {most}, its part with padding")
