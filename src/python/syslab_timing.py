"""Ranks that train the benchmark's transformer, to be timed: with somebody's class (syslab_handed_in.py), or with one
of ours or torch's around the same module (syslab_yardsticks.py). And the same training by one process, which says what
weights must come of it.

Collectives are torch's own, Gloo's or NCCL's, so that what a class hides under its backward pass is hidden. The
functions of torch.distributed are wrapped before the user's file is imported: they note when each was called and when
it was complete, and return what torch returned. What bypasses them, as torch's own DistributedDataParallel does, is not
seen to communicate.
"""
from __future__ import annotations

import functools
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import syslab_held
import syslab_training
from syslab_transformer import Sizes, Transformer, loss_of, torchs_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Union

    from syslab_collectives import Board
    from syslab_handed_in import Functions, Methods

    Mine = Union[Methods, Functions]  # what was handed in

FOLLOWED = ("all_reduce", "all_reduce_coalesced", "reduce", "broadcast", "all_gather", "all_gather_coalesced",
            "all_gather_into_tensor", "_all_gather_base", "reduce_scatter", "reduce_scatter_tensor",
            "_reduce_scatter_base", "gather", "scatter", "all_to_all", "all_to_all_single", "barrier")
# Methods of a process group.
GROUPS_OWN = ("allreduce", "allreduce_coalesced", "reduce", "broadcast", "allgather", "allgather_coalesced",
              "_allgather_base", "reduce_scatter", "_reduce_scatter_base", "gather", "scatter", "alltoall",
              "alltoall_base", "barrier")
SUMS = ("all_reduce", "all_reduce_coalesced", "reduce", "reduce_scatter", "reduce_scatter_tensor",
        "_reduce_scatter_base", "allreduce", "allreduce_coalesced")
FIELDS = ("forward", "backward", "exposed", "update", "communicating", "hidden", "messages", "bytes", "loss", "state",
          "held", "peak")
LATE_S = 0.2  # that a completion may take to be heard of, behind a step
MEETING_S = 60.0
NAN = float("nan")


def bytes_of(values: Iterable[Any]) -> int:
    """Of the largest tensor, or list of tensors, among arguments."""
    sizes = [0]
    for value in values:
        tensors = value if isinstance(value, (list, tuple)) else [value]
        sizes.append(sum(t.numel() * t.element_size() for t in tensors if torch.is_tensor(t)))
    return max(sizes)


class Marks:
    """Moments of a step, in seconds from its beginning: by the host's clock, or by events of the current stream of a
    GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def mark(self) -> Any:
        if self.device.type == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        return end - begin if self.device.type == "cpu" else begin.elapsed_time(end) / 1e3


class Followed:
    """The collectives of a step: when each began and was complete."""

    def __init__(self, marks: Marks) -> None:
        self.marks, self.inside, self.on, self.side = marks, threading.local(), False, None
        self.begin()

    def begin(self) -> None:
        self.spans: list[list[Any]] = []
        self.messages, self.bytes = 0, 0

    def install(self) -> None:
        for name in FOLLOWED:
            if hasattr(dist, name):
                wrapped = self.wrapped(name, getattr(dist, name))
                for module in (dist, dist.distributed_c10d):
                    if hasattr(module, name):
                        setattr(module, name, wrapped)
        kind = type(dist.distributed_c10d._get_default_group())
        for name in GROUPS_OWN:
            if hasattr(kind, name):
                setattr(kind, name, self.wrapped(name, getattr(kind, name)))

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            if not self.on or getattr(self.inside, "is_in", False):
                return function(*arguments, **options)
            self.inside.is_in = True
            try:
                if name in SUMS:
                    self.messages += 1
                    self.bytes += bytes_of([*arguments, *options.values()])
                span = [self.marks.mark(), None]
                self.spans.append(span)
                work = function(*arguments, **options)
                self.follow(work, span)
                return work
            finally:
                self.inside.is_in = False

        return called

    def follow(self, work: Any, span: list[Any]) -> None:
        if work is None:
            span[1] = self.marks.mark()
        elif self.marks.device.type == "cuda":
            self.side = self.side or torch.cuda.Stream()
            with torch.cuda.stream(self.side):
                work.wait()
                span[1] = self.marks.mark()
        else:
            def complete(_: Any) -> None:
                span[1] = self.marks.mark()

            try:  # coalesced functions return the future itself
                (work.get_future() if hasattr(work, "get_future") else work).then(complete)
            except RuntimeError:  # a backend without futures: when it was complete is not known
                pass

    def busy(self, begin: Any, until: float) -> tuple[float, float]:
        """Seconds of the step in which something travelled, and how many of them before `until`; NaN: not known."""
        late = time.monotonic() + LATE_S
        while any(end is None for _, end in self.spans) and time.monotonic() < late:
            time.sleep(1e-3)
        if any(end is None for _, end in self.spans):
            return NAN, NAN
        spans = sorted((self.marks.between(begin, one), self.marks.between(begin, end)) for one, end in self.spans)
        last, busy, hidden = 0.0, 0.0, 0.0
        for one, end in spans:
            one = max(one, last)
            if end > one:
                busy += end - one
                hidden += max(0.0, min(end, until) - one)
                last = end
        return busy, hidden


def state_bytes(optimizers: list[Any]) -> float:
    return float(sum(t.numel() * t.element_size() for t in syslab_held.state_tensors(optimizers)))


def tokens_of(case: dict[str, Any], seed: int) -> torch.Tensor:
    """(rows of all ranks, context + 1), the same from one seed in every process."""
    numbers = torch.Generator().manual_seed(seed)
    return torch.randint(case["sizes"]["vocab"], (case["ranks"] * case["rows"], case["sizes"]["context"] + 1),
                         generator=numbers)


def adamw_of(parameters: Iterable[torch.nn.Parameter], case: dict[str, Any]) -> torch.optim.AdamW:
    return torch.optim.AdamW(parameters, **case["adamw"])


class Training:
    """One rank's part. `mine` is asked as by the laws (syslab_training.py)."""

    def __init__(self, case: dict[str, Any], mine: Mine, rank: int, board: Board, device: torch.device,
                 followed: Followed) -> None:
        self.case, self.mine, self.rank = case, mine, rank
        self.board, self.device, self.followed = board, device, followed
        self.marks, self.turn, self.steps, self.left = followed.marks, 0, 0, None
        self.made: list = []
        torch.set_num_threads(case["threads"])
        mine.demand_way(case["way"])
        sharded = case["way"] == "fully_sharded"
        # Of data parallelism each rank begins elsewhere: the class has to share rank 0's.
        seed = case["seed"] + (rank if case["way"] == "data_parallel" and case["communicates"] else 0)
        module = Transformer(Sizes(**case["sizes"]),
                             syslab_training.layer_makers if sharded else torchs_layers).draw(seed).to(device)
        self.names = [name for name, _ in module.named_parameters()]
        self.shapes = [tuple(p.shape) for _, p in module.named_parameters()]
        if case["way"] == "sharded_optimizer":
            self.container, self.parameters = module, list(module.parameters())
            base = syslab_training.counted(torch.optim.AdamW, self.made)
            self.optimizer = mine.optimizer(list(self.parameters), base, **case["adamw"])
            syslab_training.need(self.optimizer, "step")
            syslab_training.need(self.optimizer, "zero_grad")
            return
        buckets = [case["bucket_mb"]] if "bucket_mb" in case else []
        self.container = mine.container(module, *buckets)
        self.parameters = list(self.container.parameters())
        if not sharded and [tuple(p.shape) for p in self.parameters] != self.shapes:
            raise syslab_training.Fault(f"parameters() of {type(self.container).__name__} are not the wrapped module's "
                                        "in their order")
        self.optimizer = adamw_of(self.parameters, case)
        self.made.append(self.optimizer)

    def refresh(self, seed: int) -> None:
        rows = self.case["rows"]
        own = tokens_of(self.case, seed)[self.rank * rows:(self.rank + 1) * rows].to(self.device)
        self.ids, self.targets = own[:, :-1], own[:, 1:]
        self.settle()

    def settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def meet(self) -> None:
        """Ranks begin together."""
        self.turn += 1
        self.board.set_status(self.rank, self.turn, 0, self.steps, 0)
        until = time.monotonic() + MEETING_S
        while any(self.board.status(other)[0] < self.turn for other in range(self.board.ranks)):
            if time.monotonic() > until:
                raise RuntimeError("the other ranks did not come to the beginning of a step")
            os.sched_yield()

    def after_backward(self) -> None:
        if self.case["way"] == "sharded_optimizer":  # means over the ranks are the lab's to make
            for parameter in self.parameters:
                if self.case["ranks"] > 1 and parameter.grad is not None:
                    dist.all_reduce(parameter.grad)
                    parameter.grad /= self.case["ranks"]
        else:
            self.mine.after_backward(self.container, self.optimizer)

    def step(self) -> tuple[int, int]:
        """One step; when it began and ended by the monotonic clock, in ns. What else is known of it tell() says, which
        is in no time."""
        marks, followed = self.marks, self.followed
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        followed.begin()
        followed.on = True
        self.meet()
        began = time.monotonic_ns()
        begin = marks.mark()
        if self.case["way"] == "data_parallel":
            self.mine.begin_batch(self.container, self.optimizer)
        self.optimizer.zero_grad()
        loss = loss_of(self.container(self.ids), self.targets)
        forward = marks.mark()
        loss.backward()
        backward = marks.mark()
        self.after_backward()
        finished = marks.mark()
        self.optimizer.step()
        updated = marks.mark()
        self.settle()
        ended = time.monotonic_ns()
        followed.on = False
        self.steps += 1
        # A loss with its graph would keep what autograd has kept.
        self.last = loss.detach(), begin, (forward, backward, finished, updated)
        return began, ended

    def tell(self, told: torch.Tensor) -> None:
        """`told`: this rank's row of numbers, of the last step."""
        loss, begin, moments = self.last
        ends = [self.marks.between(begin, one) for one in moments]
        followed = self.followed
        busy, hidden = followed.busy(begin, ends[1])
        values = {"forward": ends[0], "backward": ends[1] - ends[0], "exposed": ends[2] - ends[1],
                  "update": ends[3] - ends[2],
                  "communicating": busy, "hidden": hidden, "messages": followed.messages, "bytes": followed.bytes,
                  "loss": float(loss), "state": state_bytes(self.made),
                  "held": 4 * syslab_held.held_elements(self.container),
                  "peak": torch.cuda.max_memory_allocated() if self.device.type == "cuda" else NAN}
        told.copy_(torch.tensor([float(values[field]) for field in FIELDS], dtype=torch.float64))

    def read_weights(self, asked: dict[str, Any]) -> None:
        """Some weights as a step has left them when it had ended: what goes on later is too late. For `told`, which
        comes milliseconds later where processors are busy."""
        self.left = torch.empty(asked["count"], dtype=torch.float32)
        sample(self.parameters, asked, self.left)

    def weights(self, asked: dict[str, Any], row: torch.Tensor) -> None:
        if self.case["way"] == "fully_sharded":
            gathered = self.mine.whole_weights(self.container)
            for name, shape in zip(self.names, self.shapes):
                if name not in gathered or tuple(gathered[name].shape) != shape:
                    raise syslab_training.Fault(f"{self.mine.gather} returned no '{name}' of shape {list(shape)}")
            sample([gathered[name] for name in self.names], asked, row)
        else:
            sample(self.parameters, asked, row)


def sample(tensors: list[torch.Tensor], asked: dict[str, Any], row: torch.Tensor) -> None:
    """Every `stride`-th element from `first` on of all, one behind the other, as many as `row` holds."""
    first, stride, at, found = asked["first"], asked["stride"], 0, []
    for tensor in tensors:
        skip = (first - at) % stride if at > first else first - at
        found.append(tensor.detach().reshape(-1)[skip::stride])
        at += tensor.numel()
    whole = torch.cat(found)[:row.numel()]
    if whole.numel() != row.numel():
        raise RuntimeError(f"{whole.numel()} elements were found where {row.numel()} were asked for")
    row.copy_(whole)


def alone(case: dict[str, Any], seeds: list[int], asked: dict[str, Any], rows: torch.Tensor, after: torch.Tensor | None,
          device: torch.device) -> None:
    """The weights of one process after steps on these tokens, both ways to be right that round differently: the ranks'
    shares one after the other, their gradients added and divided, and all rows at once. `after`: both, some after each
    step (`firsts`, `step_stride`)."""
    torch.set_num_threads(case["threads"])
    for way, row in enumerate(rows):
        model = Transformer(Sizes(**case["sizes"])).draw(case["seed"]).to(device)
        optimizer = adamw_of(model.parameters(), case)
        for step, seed in enumerate(seeds):
            tokens = tokens_of(case, seed).to(device)
            optimizer.zero_grad()
            for part in tokens.split(case["rows"]) if way == 0 else [tokens]:
                loss_of(model(part[:, :-1]), part[:, 1:]).backward()
            if way == 0:
                for parameter in model.parameters():
                    parameter.grad /= case["ranks"]
            optimizer.step()
            if after is not None:
                sample(list(model.parameters()), {"first": asked["firsts"][step], "stride": asked["step_stride"]},
                       after[way][step])
        sample(list(model.parameters()), asked, row)
        del model, optimizer
    if device.type == "cuda":
        torch.cuda.synchronize()


def join_group(board: Board, rank: int, store: str, backend: str, device: torch.device) -> Followed:
    """This process as a rank of that backend's group. All ranks are on this machine, and behind the walls they have its
    loopback alone, whatever a cluster's settings name."""
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(backend, store=dist.FileStore(store, board.ranks), rank=rank, world_size=board.ranks)
    followed = Followed(Marks(device))
    followed.install()
    return followed
