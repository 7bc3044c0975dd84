"""What an asynchronous collective of syslab_collectives.py returns, in place of torch's Work.

Needs torch.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from syslab_failures import Unsupported
from syslab_handed_in import Fault

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Sequence
    from typing import Any

    from torch import Tensor

    Event = dict[str, Any]  # one collective, as the log has it
    Deliver = Callable[[Sequence[Tensor]], Any]  # writes what all ranks posted to where the caller wants it

LOOKS = 3  # by is_completed(), to which a late collective is not complete yet


def has_memory(tensor: Tensor) -> bool:
    """Not if its memory was given back while it was sent."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
    return storage.nbytes() >= tensor.numel() * tensor.element_size()


def is_same(tensor: Tensor, posted: Tensor) -> bool:
    """NaNs are like each other."""
    now = tensor.detach().reshape(-1).to(posted.device)
    return bool(((now == posted) | ((now != now) & (posted != posted))).all())


class Call:
    """One collective that has been called. Its result is the list of the caller's tensors that it writes to, as torch's
    backends have it. If it is late, it is complete when wait() returns, or when is_completed() has been asked a few
    times, and reads the caller's tensors until then."""

    def __init__(self, values: Sequence[Tensor], deliver: Deliver | None, event: Event, late: bool,
                 results: Sequence[Any], backend: str = "gloo") -> None:
        self.values, self.deliver, self.event, self.results, self.backend = values, deliver, event, results, backend
        self.looks, self.posted, self.said = LOOKS, torch.empty(0), ""
        self.read: list[Tensor] = []
        if not late:
            self.complete()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(dist.distributed_c10d.Work, name):
            raise Unsupported(f"the method {name}() of a collective's work: syslab's ranks do not have it")
        raise AttributeError(f"'Work' object has no attribute '{name}'")

    def guard(self, read: Sequence[Tensor], posted: Tensor, said: str) -> None:
        """`posted`: what it sends of the tensors `read`, which nobody may write to before it is complete."""
        self.read, self.posted, self.said = list(read), posted, said

    def look_at_what_it_reads(self) -> None:
        at = 0
        for tensor in self.read:
            count = tensor.numel()
            if has_memory(tensor) and not is_same(tensor, self.posted[at:at + count]):
                begun = f", begun at {self.event['file']}:{self.event['line']}," if self.event.get("line") else ""
                raise Fault(f"the input of {self.said}{begun} was written to before it was waited for: what other "
                            "ranks get of it is a matter of luck")
            at += count

    def complete(self) -> None:
        if self.deliver is not None:
            self.look_at_what_it_reads()
            self.deliver(self.values)
            # A call that a class keeps holds no copies of ours.
            self.deliver, self.values, self.read, self.posted = None, (), [], torch.empty(0)

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        self.event["waited"] = True
        self.complete()
        return True

    def is_completed(self) -> bool:
        if self.deliver is not None and self.looks > 0:
            self.looks -= 1
            return False
        return self.wait()

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def synchronize(self) -> None:
        """NCCL's streams wait; of Gloo, nobody does."""
        if self.backend == "nccl":
            self.wait()

    def result(self) -> list[Any]:
        if self.deliver is not None and self.backend == "gloo":
            raise RuntimeError("Work needs to be completed before calling result(). Should call wait() before "
                               "result().")
        return list(self.results)

    def get_future(self) -> torch.futures.Future:
        self.wait()
        future = torch.futures.Future()
        future.set_result(list(self.results))
        return future
