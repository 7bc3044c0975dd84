"""DDP for torch modules: gradients travel in buckets, each begun under the backward pass, in one order on all ranks.

A gradient that is final is copied into its bucket's flat buffer, and `.grad` is a view of it from then on: sums come
back without a copy, and with zero_grad(set_to_none=False) later steps need none at all. Bucket k is sent when it is
full and bucket k − 1 has been sent, so that ranks whose gradients come in different orders still call the same
collectives. A parameter that some rank's step does not use counts as zeros there; one that no rank uses is left as it
is (ranks tell each other, in one small all-gather a step; with agree_on_unused=False there is none, and a parameter
without a gradient is an error).
"""
from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import syslab_planning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torch.nn import Parameter

    Mark = Any  # seconds of the host, or a torch.cuda.Event

MEGABYTE = 2**20


def bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def on_final_gradient(parameter: Parameter, function: Callable[[Parameter], None]) -> Any:
    """Calls function(parameter) when a backward pass has made its gradient. What is returned must be kept."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
        return parameter.register_post_accumulate_grad_hook(function)
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: function(parameter))
    return node


def share_from_rank_0(module: torch.nn.Module) -> None:
    """Every rank's parameters, trained and frozen, and buffers become rank 0's."""
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)


def kind_of(tensor: torch.Tensor) -> tuple[torch.dtype, torch.device]:
    return tensor.dtype, tensor.device


def by_kind(parameters: Iterable[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Those of one dtype and device together, in their order: a message has one dtype."""
    kinds: dict[tuple, list] = {}
    for parameter in parameters:
        kinds.setdefault(kind_of(parameter), []).append(parameter)
    return list(kinds.values())


def packed(parameters: Sequence[Parameter], limit: int | None) -> list[list[Parameter]]:
    """Buckets of at most `limit` bytes (0: one each, None: one a dtype), the first to be full first."""
    made = [bucket for alike in by_kind(parameters)
            for bucket in syslab_planning.buckets(alike, [bytes_of(p) for p in alike], limit)]
    place = {p: i for i, p in enumerate(parameters)}
    return sorted(made, key=lambda bucket: max(place[p] for p in bucket))


class Bucket:
    def __init__(self, members: Sequence[Parameter]) -> None:
        self.members = members
        self.flat = torch.zeros(sum(p.numel() for p in members), dtype=members[0].dtype, device=members[0].device)
        self.views = [part.view_as(p) for p, part in zip(members, self.flat.split([p.numel() for p in members]))]
        self.begin()

    def begin(self) -> None:
        self.missing = len(self.members)
        self.work: Any = None  # what is under way

    def take(self, parameter: Parameter, view: torch.Tensor) -> None:
        """Its gradient, if any, into the buffer, where `.grad` then is."""
        if parameter.grad is None:
            view.zero_()
            return
        if parameter.grad.is_sparse:
            raise NotImplementedError("a sparse gradient; an embedding with sparse=False has a dense one, which can be "
                                      "reduced")
        if parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad)
            parameter.grad = view


class Reducer:
    """Means over the ranks of the gradients of some parameters."""

    def __init__(self, parameters: Iterable[Parameter], limit: int | None, agree_on_unused: bool = True) -> None:
        """`parameters`: in the order in which their gradients are expected."""
        self.parameters = [p for p in parameters if p.requires_grad and p.numel() > 0]
        self.agree_on_unused, self.synchronises = agree_on_unused, True
        self.on_ready: Callable[[Parameter], None] | None = None
        self.rebuild(packed(self.parameters, limit))
        self.hooks = [on_final_gradient(p, self.ready) for p in self.parameters]

    def rebuild(self, buckets: Iterable[Sequence[Parameter]]) -> None:
        """Not within a step. Gradients stay where they are until the next ones come."""
        self.buckets = [Bucket(members) for members in buckets]
        self.place = {p: (bucket, view) for bucket in self.buckets for p, view in zip(bucket.members, bucket.views)}
        self.begin()

    def begin(self) -> None:
        self.next = 0
        self.used: set[Parameter] = set()
        self.taken: set[Parameter] = set()
        for bucket in self.buckets:
            bucket.begin()

    def ready(self, parameter: Parameter) -> None:
        if self.on_ready is not None:
            self.on_ready(parameter)
        self.used.add(parameter)
        if not self.synchronises:
            return
        if parameter in self.taken:
            raise RuntimeError("a second backward pass before finish_gradient_synchronization(): its gradients would "
                               "be added to what is on its way. Finish after each pass; where the container has "
                               "no_sync(), it is for all but the last pass of a step")
        bucket, view = self.place[parameter]
        self.taken.add(parameter)
        bucket.take(parameter, view)
        bucket.missing -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            self.send(self.buckets[self.next])

    def send(self, bucket: Bucket) -> None:
        bucket.work = dist.all_reduce(bucket.flat, async_op=True)
        self.next += 1

    def used_anywhere(self) -> set[Parameter]:
        """The parameters that some rank's step has used; an all-gather."""
        if not self.agree_on_unused or not self.parameters:
            return self.used
        device = "cpu" if dist.get_backend() == "gloo" else self.parameters[0].device
        mine = torch.tensor([p in self.used for p in self.parameters], dtype=torch.uint8, device=device)
        all_ranks = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(all_ranks, mine)
        flags = torch.stack(all_ranks).amax(0).tolist()
        return {p for p, flag in zip(self.parameters, flags) if flag}

    def finish(self) -> None:
        """Sends what waits for gradients that did not come, and waits for all."""
        left = [p for p in self.parameters if p not in self.taken]
        if not self.agree_on_unused and (never := [p for p in left if p not in self.used]):
            shapes = ", ".join(str(tuple(p.shape)) for p in never[:3])
            for bucket in self.buckets[:self.next]:
                bucket.work.wait()
            self.begin()
            raise RuntimeError(f"{len(never)} parameters have no gradient in this step (of shapes {shapes}); "
                               "agree_on_unused=True allows that")
        before = {}
        for p in left:
            bucket, view = self.place[p]
            before[p] = None if p.grad is None else p.grad.clone()
            bucket.take(p, view)
        while self.next < len(self.buckets):
            self.send(self.buckets[self.next])
        used = self.used_anywhere()
        for bucket in self.buckets:
            bucket.work.wait()
            bucket.flat /= dist.get_world_size()
        for p in left:
            p.grad = self.place[p][1] if p in used else before[p]
        self.begin()


class Container(torch.nn.Module):
    """`module` with rank 0's weights on every rank, and gradients that are means over the ranks."""

    def __init__(self, module: torch.nn.Module, limit: int | None, agree_on_unused: bool = True) -> None:
        super().__init__()
        self.module = module
        share_from_rank_0(module)
        self.reducer = Reducer(list(module.parameters())[::-1], limit, agree_on_unused)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return self.module(*inputs, **options)

    def finish_gradient_synchronization(self) -> None:
        """Behind backward(), before the optimizer's step."""
        self.reducer.finish()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes in it add up gradients on each rank; the first one behind it sends the sums."""
        self.reducer.synchronises = False
        try:
            yield
        finally:
            self.reducer.synchronises = True


class IndividualDDP(Container):
    """A message for each gradient."""

    def __init__(self, module: torch.nn.Module, agree_on_unused: bool = True) -> None:
        super().__init__(module, 0, agree_on_unused)


class FlatDDP(Container):
    """One message for all gradients (of a dtype), when the last of them is final."""

    def __init__(self, module: torch.nn.Module, agree_on_unused: bool = True) -> None:
        super().__init__(module, None, agree_on_unused)


class BucketedDDP(Container):
    """Buckets of at most `bucket_size_mb` · 2^20 bytes, in reverse order of registration; None: one for all."""

    def __init__(self, module: torch.nn.Module, bucket_size_mb: float | None = 25.0,
                 agree_on_unused: bool = True) -> None:
        super().__init__(module, None if bucket_size_mb is None else max(1, int(bucket_size_mb * MEGABYTE)),
                         agree_on_unused)


class PlannedDDP(Container):
    """Buckets that libsyslab plans from what is measured: how long messages take, when the container is made, and when
    gradients are final, in the first `measured_steps` steps, which send each by itself. The plan is of rank 0's last
    such step, and `plan` says it: {"buckets": elements of each, "exposed": forecast seconds behind the last
    gradient}."""

    def __init__(self, module: torch.nn.Module, measured_steps: int = 2, agree_on_unused: bool = True) -> None:
        if measured_steps < 1:
            raise ValueError(f"measured_steps is {measured_steps}: a plan needs at least one step to be made of")
        super().__init__(module, 0, agree_on_unused)
        self.marks: list[tuple[Parameter, Mark]] = []
        self.steps_left = measured_steps
        self.plan: dict[str, Any] | None = None
        self.curve = measured_curve(self.reducer.parameters)
        self.reducer.on_ready = lambda parameter: self.marks.append((parameter, mark_on(parameter.device)))

    def forward(self, *inputs: Any, **options: Any) -> Any:
        result = super().forward(*inputs, **options)
        if self.steps_left > 0 and torch.is_grad_enabled() and self.reducer.parameters:
            self.marks, self.began = [], mark_on(self.reducer.parameters[0].device)
        return result

    def finish_gradient_synchronization(self) -> None:
        super().finish_gradient_synchronization()
        if self.steps_left > 0:
            self.steps_left -= 1
            if self.steps_left == 0:
                self.reducer.on_ready = None
                self.replan()

    def replan(self) -> None:
        parameters = self.reducer.parameters
        if not parameters:
            return
        number = {p: i for i, p in enumerate(parameters)}
        # What did not come is expected last.
        latest = torch.full((len(parameters),), float("inf"), dtype=torch.float64)
        for p, mark in self.marks:
            latest[number[p]] = seconds_between(self.began, mark)
        latest[latest.isinf()] = max([0.0, *latest[~latest.isinf()].tolist()])
        agreed = latest.to(parameters[0].device)
        dist.broadcast(agreed, 0)
        ready = dict(zip(parameters, agreed.tolist()))
        order = sorted(parameters, key=lambda p: (ready[p], number[p]))
        made, exposed = [], 0.0
        for alike in by_kind(order):
            cut, behind = syslab_planning.planned_buckets(alike, [bytes_of(p) for p in alike],
                                                          [ready[p] for p in alike], self.curve)
            made += cut
            exposed = max(exposed, behind)
        place = {p: i for i, p in enumerate(order)}
        made.sort(key=lambda bucket: max(place[p] for p in bucket))
        self.reducer.rebuild(made)
        self.plan = {"buckets": [sum(p.numel() for p in bucket) for bucket in made], "exposed": exposed}


def mark_on(device: torch.device) -> Mark:
    """A moment: of the host, or of the device's current stream."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def seconds_between(begin: Mark, end: Mark) -> float:
    if isinstance(begin, float):
        return max(0.0, end - begin)
    end.synchronize()
    return max(0.0, begin.elapsed_time(end) * 1e-3)


def measured_curve(parameters: Sequence[Parameter], repeats: int = 3) -> dict[int, float]:
    """{bytes: seconds} of all-reduces up to the size of all gradients together: the best of a few, rank 0's on all
    ranks."""
    if not parameters:
        return {}
    device, total = parameters[0].device, sum(bytes_of(p) for p in parameters)
    sizes = [size for size in (4**k for k in range(6, 15)) if size < total] + [max(4, total // 4 * 4)]
    times = []
    for size in sizes:
        tensor, took = torch.zeros(size // 4, device=device), []
        for _ in range(1 + repeats):
            begin = mark_on(device)
            dist.all_reduce(tensor)
            took.append(seconds_between(begin, mark_on(device)))
        times.append(max(1e-9, min(took[1:])))  # the first one warms up
    agreed = torch.tensor(times, dtype=torch.float64, device=device)
    dist.broadcast(agreed, 0)
    return dict(zip(sizes, agreed.tolist()))
