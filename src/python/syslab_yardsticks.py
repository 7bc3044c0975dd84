"""What a class on ranks is timed next to: our strategies for torch (syslab_parallel.py) and torch's own, around the
same module.

The plain ones are here: what a hand-out's text describes, without anything of ours.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

import syslab_handed_in
from syslab_failures import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Container(torch.nn.Module):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    def finish_gradient_synchronization(self) -> None:
        """Nothing travels."""


class Shared(Container):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)


class Naive(Shared):
    """An all-reduce a gradient, behind the backward pass."""

    def finish_gradient_synchronization(self) -> None:
        for parameter in self.module.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


class FlatCopy(Shared):
    """All gradients copied into one buffer and back."""

    def finish_gradient_synchronization(self) -> None:
        gradients = [parameter.grad for parameter in self.module.parameters()]
        flat = _flatten_dense_tensors(gradients)
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for gradient, mean in zip(gradients, _unflatten_dense_tensors(flat, gradients)):
            gradient.copy_(mean)


class Torchs(Container):
    """torch's DistributedDataParallel, with buckets of 25 MB unless the case limits them."""

    def __init__(self, module: torch.nn.Module, bucket_size_mb: float | None = None) -> None:
        limit = {} if bucket_size_mb is None else {"bucket_cap_mb": bucket_size_mb}
        super().__init__(torch.nn.parallel.DistributedDataParallel(module, **limit))


def whole(parameters: Iterable[Any], optimizer_cls: Callable[..., Any], **options: Any) -> Any:
    """Every rank has all of the optimizer's state."""
    return optimizer_cls(parameters, **options)


def torchs_optimizer(parameters: Iterable[Any], optimizer_cls: Callable[..., Any], **options: Any) -> Any:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(parameters, optimizer_class=optimizer_cls, **options)


PLAIN: dict[str, Callable[..., Any]] = {"none": Container, "naive": Naive, "flat_copy": FlatCopy, "whole": whole}
TORCHS = {"data_parallel": Torchs, "sharded_optimizer": torchs_optimizer}
OURS = {"flat_view": "FlatDDP", "overlap": "IndividualDDP", "bucketed": "BucketedDDP", "planned": "PlannedDDP",
        "optimizer": "ShardedOptimizer", "layer": "FSDP"}


def yardstick(case: dict[str, Any]) -> syslab_handed_in.Methods:
    """In the form of something that was handed in."""
    if case["whose"] == "torchs":
        return syslab_handed_in.Methods(TORCHS[case["way"]])
    if case["strategy"] in PLAIN:
        return syslab_handed_in.Methods(PLAIN[case["strategy"]])
    try:
        import syslab_parallel
    except (ImportError, OSError) as error:
        raise Unsupported(f"our '{case['strategy']}' for torch stands on libsyslab, which was not found: "
                          f"{str(error).splitlines()[0]}") from None
    return syslab_handed_in.Methods(getattr(syslab_parallel, OURS[case["strategy"]]))
