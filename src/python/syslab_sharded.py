"""An optimizer for torch whose state is divided among the ranks: whole parameters with an owner each, largest first to
whom has least, as libsyslab assigns them. Gradients must be means over the ranks when step() is called, as a DDP
container leaves them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import syslab_planning
from syslab_ddp import MEGABYTE, by_kind, bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE_BYTES = 25 * MEGABYTE  # small parameters of one owner travel together, up to so many


class ShardedOptimizer(torch.optim.Optimizer):
    """`optimizer_cls` over what this rank owns; step() then gives all ranks all new weights. Options of param_groups,
    such as a scheduler's learning rates, hold from the next step on. Frozen parameters are nobody's and stay as they
    are."""

    def __init__(self, params: Any, optimizer_cls: Callable[..., torch.optim.Optimizer], **options: Any) -> None:
        self.rank, self.loads = dist.get_rank(), [0] * dist.get_world_size()
        self.owner: dict = {}
        self.inner: Any = None
        self.optimizer_cls, self.options = optimizer_cls, options
        super().__init__(params, dict(options))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """On all ranks, with the same parameters."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        new = [p for p in group["params"] if p.requires_grad and p not in self.owner]
        self.owner.update(zip(new, syslab_planning.owners([p.numel() for p in new], self.loads)))
        own = dict(group, params=[p for p in group["params"] if self.owner.get(p) == self.rank])
        if self.inner is None:
            self.inner = self.optimizer_cls([own], **self.options)
            self.state = self.inner.state  # one dictionary: a state dict is that of what this rank owns
        else:
            self.inner.add_param_group(own)
        for name, value in self.inner.param_groups[-1].items():
            group.setdefault(name, value)  # the class's defaults, for schedulers to find

    def step(self, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.requires_grad and p not in self.owner:
                raise RuntimeError(f"a parameter of shape {tuple(p.shape)} was frozen when it was given to this "
                                   "optimizer and trains now: it has no owner. Make the optimizer behind the change")
        for own, group in zip(self.inner.param_groups, self.param_groups):
            own.update((name, value) for name, value in group.items() if name != "params")
        self.inner.step(**options)
        self.share()
        return loss

    @torch.no_grad()
    def share(self) -> None:
        """From owners to all, all messages on their way at once."""
        sent = []
        for owner in range(len(self.loads)):
            for alike in by_kind([p for p, its in self.owner.items() if its == owner and p.numel() > 0]):
                for members in syslab_planning.buckets(alike, [bytes_of(p) for p in alike], MESSAGE_BYTES):
                    flat = self.gathered(members, owner)
                    sent.append((dist.broadcast(flat, owner, async_op=True), members, flat))
        for work, members, flat in sent:
            work.wait()
            for p, part in zip(members, flat.split([p.numel() for p in members])):
                if part.data_ptr() != p.data_ptr():
                    p.data.copy_(part.view_as(p))

    def gathered(self, members: list[torch.Tensor], owner: int) -> torch.Tensor:
        if len(members) == 1 and members[0].is_contiguous():
            return members[0].data.view(-1)
        if owner == self.rank:
            return torch.cat([p.data.reshape(-1) for p in members])
        return torch.empty(sum(p.numel() for p in members), dtype=members[0].dtype, device=members[0].device)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What state_dict() gave on this rank, of as many ranks."""
        given = {index for index in state_dict["state"]}
        parameters = [p for group in self.param_groups for p in group["params"]]
        if strange := [i for i in given if i >= len(parameters) or self.owner.get(parameters[i]) != self.rank]:
            raise ValueError(f"the state of parameters {sorted(strange)[:5]} is not of rank {self.rank} of "
                             f"{len(self.loads)}: load what this rank saved, with as many ranks")
        super().load_state_dict(state_dict)
        self.inner.state = self.state
