"""FSDP for torch modules: of the weight of every linear layer and embedding a rank keeps its rows, and has the whole
only while the layer computes. What else there is (norms, biases) stays whole on every rank.

A layer's forward gets the gathered weight in place of its parameter, so that autograd's own graph ends in
Gathered.backward(), which sends the gradient's rows to their owners. In between the weight's memory is given back: its
storage has no bytes, and is filled again before the layer's backward pass. The gather of layer i begins when layer i −
2 is done, forward and backward; the order is that of the pass before. All ranks must run the same layers in the same
order.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

import syslab_planning
from syslab_ddp import MEGABYTE, Reducer, share_from_rank_0

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

AHEAD = 2  # layers whose weights are there or on their way


def moves_natively() -> bool:
    """Whether the group has all-gather into one tensor and reduce-scatter. Gloo's has none (or emulates it, from some
    version on)."""
    return dist.get_backend() != "gloo"


def layer_classes() -> tuple[type[torch.nn.Module], ...]:
    """torch's, and the hand-out's own where it has been imported."""
    own = sys.modules.get("cs336_basics.model")
    return tuple([torch.nn.Linear, torch.nn.Embedding] + [getattr(own, name) for name in ("Linear", "Embedding")
                                                          if hasattr(own, name)])


def resize(tensor: torch.Tensor, elements: int) -> None:
    """The memory of a tensor that is all of its storage."""
    if hasattr(tensor, "untyped_storage"):
        tensor.untyped_storage().resize_(elements * tensor.element_size())
    else:
        tensor.storage().resize_(elements)


class Part:
    """This rank's rows of one weight; `master` has rows of zeros behind them, so that all ranks' are of one size."""

    def __init__(self, parameter: torch.nn.Parameter, compute_dtype: torch.dtype | None) -> None:
        self.parameter, self.shape, self.ranks = parameter, parameter.shape, dist.get_world_size()
        first, own, padded = syslab_planning.rows_of(self.shape[0], self.ranks, dist.get_rank())
        self.own, self.rows, self.dtype = own, padded, compute_dtype or parameter.dtype
        self.master = torch.zeros(padded, *self.shape[1:], dtype=parameter.dtype, device=parameter.device)
        self.master[:own] = parameter.data[first:first + own]
        parameter.data = self.master[:own]

    def empty(self, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(self.rows * self.ranks, *self.shape[1:], dtype=dtype, device=self.master.device)

    def gather_into(self, whole: torch.Tensor, part: torch.Tensor) -> dist.Work:
        if moves_natively():
            return dist.all_gather_into_tensor(whole, part, async_op=True)
        if part.dtype == torch.bfloat16:  # which Gloo does not know
            whole, part = whole.view(torch.uint8), part.view(torch.uint8)
        return dist.all_gather(list(whole.chunk(self.ranks)), part, async_op=True)

    def gathered(self) -> torch.Tensor:
        whole = self.empty(self.master.dtype)
        self.gather_into(whole, self.master).wait()
        return whole[:self.shape[0]]

    def scatter(self, gradient: torch.Tensor) -> Scattered:
        """Begins to send the rows of a whole gradient to their owners."""
        padded = self.empty(self.master.dtype)
        padded[:self.shape[0]] = gradient
        padded[self.shape[0]:] = 0
        if moves_natively():
            mine = torch.empty_like(self.master)
            return Scattered(self, [dist.reduce_scatter_tensor(mine, padded, async_op=True)], mine, padded)
        chunks = padded.chunk(self.ranks)
        works = [dist.reduce(chunk, rank, async_op=True) for rank, chunk in enumerate(chunks)]
        return Scattered(self, works, chunks[dist.get_rank()], padded)


class Scattered:
    """A gradient on its way to its owners."""

    def __init__(self, part: Part, works: Sequence[dist.Work], mine: torch.Tensor, whole: torch.Tensor) -> None:
        self.part, self.works, self.mine, self.whole = part, works, mine, whole

    def finish(self) -> None:
        for work in self.works:
            work.wait()
        mean = self.mine[:self.part.own] / self.part.ranks  # memory of its own: the whole gradient's is given back
        parameter, self.whole = self.part.parameter, None
        parameter.grad = mean if parameter.grad is None else parameter.grad + mean


class Use:
    """The whole weight of one layer in one forward pass."""

    def __init__(self, part: Part) -> None:
        self.part, self.done, self.number = part, False, -1
        self.work: Any = None  # what is under way
        self.memory = part.empty(part.dtype)
        self.fill()

    def fill(self) -> Use:
        if self.work is None and not self.done:
            resize(self.memory, self.memory.numel())
            self.sent = self.part.master.to(self.part.dtype)
            self.work = self.part.gather_into(self.memory, self.sent)
        return self

    def wait(self) -> torch.Tensor:
        self.fill().work.wait()
        self.sent = None
        return self.memory[:self.part.shape[0]].data  # .data: filling it again is no change that autograd should see

    def free(self, done: bool = False) -> None:
        if self.work is not None:
            self.work.wait()
        self.work, self.done = None, done
        resize(self.memory, 0)


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parameter: torch.nn.Parameter, use: Use, owner: FSDP) -> torch.Tensor:
        ctx.use, ctx.owner = use, owner
        return use.wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, None]:
        ctx.owner.layer_done(ctx.use, gradient)
        return None, None, None  # the optimizer's gradient comes with finish_gradient_synchronization()


class FSDP(torch.nn.Module):
    """`compute_dtype`: weights are gathered, and layers compute, in it; rows, gradients and updates stay in the
    weights' own."""

    def __init__(self, module: torch.nn.Module, compute_dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.module, self.compute_dtype = module, compute_dtype
        share_from_rank_0(module)
        self.parts: dict[torch.nn.Parameter, Part] = {}
        self.order: list[Part] = []
        for layer in module.modules():
            if isinstance(layer, layer_classes()):
                if layer.weight not in self.parts:
                    self.parts[layer.weight] = Part(layer.weight, compute_dtype)
                self.order.append(self.parts[layer.weight])
                layer.register_forward_pre_hook(self.before_forward)
                layer.register_forward_hook(self.after_forward)
        whole = [p for p in module.parameters() if p not in self.parts]
        self.reducer = Reducer(whole[::-1], 25 * MEGABYTE)
        self.begin_step()
        self.begin_pass()

    def begin_step(self) -> None:
        self.uses: list[Use] = []
        self.scattered: list[Scattered] = []

    def begin_pass(self) -> None:
        self.met: list[Part] = []
        self.ahead: dict[int, Use] = {}  # by places in the pass
        self.current: dict[torch.nn.Module, Use] = {}

    def forward(self, *inputs: Any, **options: Any) -> Any:
        self.begin_pass()
        result = self.module(*inputs, **options)
        self.drop_ahead()
        self.order = self.met
        return result

    def drop_ahead(self) -> None:
        for use in self.ahead.values():
            use.free(done=True)
        self.ahead = {}

    def look_ahead(self, place: int) -> None:
        """Begins the gather of the layer that is expected at `place` of the pass."""
        if place < len(self.order) and place not in self.ahead:
            self.ahead[place] = Use(self.order[place])

    def before_forward(self, layer: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        part, place = self.parts[layer._parameters["weight"]], len(self.met)
        if place < len(self.order) and self.order[place] is not part:  # another way than the pass before
            self.drop_ahead()
            self.order = []
        if place == 0:
            for first in range(AHEAD):
                self.look_ahead(first)
        use = self.ahead.pop(place, None) or Use(part)
        self.current[layer] = use
        vars(layer)["weight"] = Gathered.apply(part.parameter, use, self)
        if self.compute_dtype is None:
            return None
        if layer._parameters.get("bias") is not None:
            vars(layer)["bias"] = layer._parameters["bias"].to(self.compute_dtype)
        return tuple(x.to(self.compute_dtype) if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)

    def after_forward(self, layer: torch.nn.Module, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        vars(layer).pop("weight")
        vars(layer).pop("bias", None)
        use, place = self.current.pop(layer), len(self.met)
        self.met.append(use.part)
        use.free()
        if output.requires_grad:
            use.number = len(self.uses)
            self.uses.append(use)
            output.register_hook(lambda gradient: self.before_backward(use))
        self.look_ahead(place + AHEAD)

    def before_backward(self, use: Use) -> None:
        if use.work is None:  # the first of a backward pass
            for number in range(use.number, max(-1, use.number - AHEAD), -1):
                self.uses[number].fill()
        use.wait()

    def layer_done(self, use: Use, gradient: torch.Tensor) -> None:
        use.free(done=True)
        self.scattered.append(use.part.scatter(gradient))
        if use.number >= AHEAD:
            self.uses[use.number - AHEAD].fill()

    @torch.no_grad()
    def finish_gradient_synchronization(self) -> None:
        """Behind backward(), before the optimizer's step."""
        for use in self.uses:
            if not use.done:
                use.free(done=True)
        for one in self.scattered:
            one.finish()
        self.begin_step()
        self.reducer.finish()

    @torch.no_grad()
    def gather_full_params(self) -> dict[str, torch.Tensor]:
        """{name in the module: whole weight}, on every rank; a collective."""
        return {name: self.parts[p].gathered() if p in self.parts else p.detach().clone()
                for name, p in self.module.named_parameters()}
