"""Memory by which the ranks of syslab_collectives.py tell each other what they call, and hand over what they send.

Needs torch.
"""
from __future__ import annotations

import mmap
import struct

import torch

PAYLOAD_BYTES = 1 << 20
SIGNATURE_BYTES = 256
STATUS_BYTES = 64


class Board:
    """Memory that the ranks of one group share: of each its status and two letterboxes, used in turn."""

    BOX_BYTES = SIGNATURE_BYTES + PAYLOAD_BYTES

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.map = mmap.mmap(-1, ranks * (STATUS_BYTES + 2 * self.BOX_BYTES))

    def clear(self) -> None:
        """For ranks that all begin again with their first collective."""
        for rank in range(self.ranks):
            self.set_status(rank, 0)
            self.set_waiting(rank, False)

    def status(self, rank: int) -> tuple[int, ...]:
        """Collectives posted, cases ended, and where it is: step and whether in its backward pass."""
        return struct.unpack_from("<qqqq", self.map, rank * STATUS_BYTES)

    def set_status(self, rank: int, *values: int) -> None:
        for place, value in enumerate(values):
            struct.pack_into("<q", self.map, rank * STATUS_BYTES + 8 * place, value)

    def set_waiting(self, rank: int, waits: bool) -> None:
        struct.pack_into("<q", self.map, rank * STATUS_BYTES + 32, int(waits))

    def is_waiting(self, rank: int) -> bool:
        return struct.unpack_from("<q", self.map, rank * STATUS_BYTES + 32)[0] != 0

    def box(self, rank: int, turn: int) -> int:
        return self.ranks * STATUS_BYTES + (2 * rank + turn % 2) * self.BOX_BYTES

    def post(self, rank: int, turn: int, signature: str, tensor: torch.Tensor) -> None:
        at = self.box(rank, turn)
        text = signature.encode()[:SIGNATURE_BYTES - 1]
        self.map[at:at + len(text) + 1] = text + b"\0"
        self.contents(rank, turn, tensor.dtype, tensor.numel()).copy_(tensor.detach().reshape(-1))

    def signature(self, rank: int, turn: int) -> str:
        at = self.box(rank, turn)
        return self.map[at:at + SIGNATURE_BYTES].split(b"\0")[0].decode()

    def contents(self, rank: int, turn: int, dtype: torch.dtype, count: int) -> torch.Tensor:
        if count == 0:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(self.map, dtype=dtype, count=count, offset=self.box(rank, turn) + SIGNATURE_BYTES)


def where(step: int, in_backward: bool | int) -> str:
    if step < 0:
        return "in the constructor"
    return f"in step {step}" + (", during the backward pass" if in_backward else "")
