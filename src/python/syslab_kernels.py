"""Which kernels a call of a Python class ran on a GPU, told by torch's profiler: a hint for people, of a call that is
not timed.

Needs torch.
"""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from syslab_tensors import NoDoorbell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    import torch

    Named = dict[str, torch.Tensor]

MOST_KERNELS, MOST_LETTERS = 200, 300
NO_KERNELS = ("Memcpy ", "Memset ")


def counted(events: Iterable[Any], cuda: Any) -> list[dict[str, Any]]:
    """Name and launches of each kernel, in the order of first launches. Copies, fills and ranges are none."""
    names = Counter(event.name[:MOST_LETTERS] for event in events
                    if event.device_type == cuda and not event.name.startswith(NO_KERNELS)
                    and not getattr(event, "is_user_annotation", False))
    return [{"name": name, "launches": launches} for name, launches in list(names.items())[:MOST_KERNELS]]


def run_listened(torch: ModuleType, function: Callable[..., Named], inputs: Named,
                 options: dict[str, Any]) -> tuple[Named, dict[str, Any]]:
    """What the call returns, its kernels, and why they cannot be told where they cannot."""
    told: dict[str, Any] = {"kernels": [], "no_kernels": "nothing of the call was listened to"}

    def listened(body: Callable[[], Any], _reads: object) -> Any:
        torch.cuda.synchronize()
        watch = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        try:
            watch.start()
        except RuntimeError as error:
            told["no_kernels"] = f"torch's profiler: {error}"
            return body()
        try:
            value = body()
            torch.cuda.synchronize()
        finally:
            watch.stop()
        told["kernels"] += counted(watch.events(), torch.autograd.DeviceType.CUDA)
        told["no_kernels"] = "" if told["kernels"] else "torch's profiler saw no kernel"
        return value

    return function(inputs, options, listened, NoDoorbell()), told
