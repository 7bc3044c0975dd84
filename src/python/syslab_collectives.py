"""torch.distributed's collectives as a rank of syslab_ranks.py sees them: counted, checked against what the other ranks
call, and completed as late as they may be.

The process group is Gloo's, or NCCL's on GPUs. What the functions below move goes through memory that all ranks share
instead: where ranks call different collectives, or one calls none, Gloo and NCCL wait or end the process, and here each
rank can say which. The result of an asynchronous collective is there when `wait` returns and, in a case that is `late`,
not before: whoever reads it earlier reads what was there before.
"""
from __future__ import annotations

import datetime
import functools
import os
import struct
import sys
import time
import types
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from syslab_board import PAYLOAD_BYTES, STATUS_BYTES, Board, where
from syslab_failures import Unsupported
from syslab_lacks import averages_over_gloo
from syslab_works import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Optional

    from torch import Tensor
    from torch.distributed import ProcessGroup, ReduceOp

    from syslab_works import Deliver, Event

    Group = Optional[ProcessGroup]
    Work = Optional["Call"]  # of an asynchronous collective

UNCOUNTED = "uncounted"  # what goes to the backend as it is: between two ranks, or to and from one
WHOLE_NUMBERS = "whole_numbers"  # of whatever collective: flags and counts, which are no gradients
KINDS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce", "barrier", UNCOUNTED, WHOLE_NUMBERS)
PATIENCE_S = 60.0  # longer than whoever asks for the case has


class Mismatch(Exception):
    """Ranks do not call the same collectives."""


TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def called_from() -> tuple[str, int]:
    """(file's name, line) of the innermost caller that is neither ours nor torch's; ("", 0): there is none. Ours are no
    files, unless SYSLAB_PYTHON_DIR says where they are."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path != "<string>" and not path.startswith(TORCH) and not os.path.basename(path).startswith("syslab_"):
            return os.path.basename(path), frame.f_lineno
        frame = frame.f_back
    return "", 0


class Log:
    """The collectives of one case, and where in it the rank is."""

    def __init__(self) -> None:
        self.step, self.in_backward, self.ready = -1, False, 0
        self.events: list[Event] = []


class Gloo:
    """Torch's own Gloo in a group of one rank: asked about what its versions and devices differ in."""

    @functools.cached_property
    def group(self) -> ProcessGroup:
        return dist.ProcessGroupGloo(dist.HashStore(), 0, 1, datetime.timedelta(seconds=10))

    @functools.cached_property
    def averages(self) -> bool:
        """Whether it reduces by AVG."""
        return averages_over_gloo()

    def demand_writable(self, tensor: Tensor) -> None:
        """Raises what it raises when it writes to a tensor like this one: what lies on a GPU it copies there by
        autograd's rules, which a leaf that requires grad is in the way of; in the CPU's memory it writes behind
        autograd's back."""
        if tensor.requires_grad and tensor.is_leaf:
            options = dist.BroadcastOptions()
            options.rootRank = options.rootTensor = 0
            self.group.broadcast([torch.zeros(1, device=tensor.device).requires_grad_()], options).wait()


class Collectives:
    def __init__(self, board: Board, rank: int, backend: str = "gloo") -> None:
        self.board, self.rank, self.turn, self.case, self.log, self.late = board, rank, 0, 0, Log(), False
        self.backend, self.gloo = backend, Gloo()

    def begin(self, late: bool) -> None:
        self.case += 1
        self.log, self.late = Log(), late
        self.tell()

    def end(self) -> None:
        """Of a case, well or not."""
        self.board.set_status(self.rank, self.turn, self.case)

    def tell(self) -> None:
        """Where this rank is, for the others' messages."""
        struct.pack_into("<qq", self.board.map, self.rank * STATUS_BYTES + 16, self.log.step, int(self.log.in_backward))

    def exchange(self, kind: str, tensor: Tensor, detail: str = "") -> list[Tensor]:
        """What each rank posts in its own turn of the same number; all must call the same."""
        board, log, turn = self.board, self.log, self.turn + 1
        if tensor.numel() * tensor.element_size() > PAYLOAD_BYTES:
            raise Unsupported(f"{kind} of {tensor.numel()} elements; syslab's ranks move at most {PAYLOAD_BYTES} bytes "
                              "at once")
        if self.backend == "nccl" and kind != "barrier" and tensor.device.type != "cuda":
            raise ValueError(f"{kind} of a tensor on the CPU: NCCL moves what lies on GPUs")
        if tensor.device.type == "cuda" and not torch.cuda.is_initialized():
            raise ValueError(f"{kind} of a tensor on {tensor.device}: the ranks compute on the CPU")
        said = f"{kind} of {tensor.numel()} elements of {str(tensor.dtype)[6:]}{detail}"
        board.post(self.rank, turn, said, tensor)
        self.turn = turn
        board.set_status(self.rank, turn)
        board.set_waiting(self.rank, True)
        values = []
        until = time.monotonic() + PATIENCE_S
        for other in range(board.ranks):
            looks = 0
            while board.status(other)[0] < turn:
                _, ended, step, in_backward = board.status(other)
                if ended >= self.case and board.status(other)[0] < turn:
                    raise Mismatch(f"rank {self.rank} waits {where(log.step, log.in_backward)} in {said}, and rank "
                                   f"{other} has ended its steps without it")
                if time.monotonic() > until:
                    raise Mismatch(f"rank {self.rank} waits {where(log.step, log.in_backward)} in {said}, and for "
                                   f"{PATIENCE_S:.0f} s rank {other} has not come to it: it is "
                                   f"{where(step, in_backward)}")
                looks += 1
                time.sleep(0 if looks < 100 else 50e-6)
            theirs = board.signature(other, turn)
            if theirs != said:
                raise Mismatch(f"{where(log.step, log.in_backward)} rank {self.rank} calls {said}, rank {other} "
                               f"{theirs}: all ranks must call the same collectives in one order")
            values.append(board.contents(other, turn, tensor.dtype, tensor.numel()).clone())
        board.set_waiting(self.rank, False)
        return values

    def note(self, kind: str, elements: int, size: int, asynchronous: bool) -> Event:
        log = self.log
        event: Event = {"step": log.step, "kind": KINDS.index(kind), "elements": elements, "bytes": size,
                        "ready": log.ready, "in_backward": log.in_backward, "async": asynchronous,
                        "waited": not asynchronous}
        event["file"], event["line"] = called_from()
        log.events.append(event)
        return event

    def call(self, kind: str, tensor: Tensor, asynchronous: bool, deliver: Deliver, results: Sequence[Any],
             detail: str = "", read: Sequence[Tensor] | None = None) -> Work:
        """`deliver` writes what all ranks posted to where the caller wants it: to `results`. `read`: the caller's
        tensors that the collective reads until it is complete; None: `tensor`."""
        noted = kind if kind == "barrier" or tensor.is_floating_point() else WHOLE_NUMBERS
        event = self.note(noted, tensor.numel(), tensor.numel() * tensor.element_size(), asynchronous)
        values = [value.to(tensor.device) for value in self.exchange(kind, tensor, detail)]
        late = self.late and asynchronous
        made = Call(values, deliver, event, late, results, self.backend)
        if late:
            made.guard([tensor] if read is None else read, values[self.rank],
                       f"{kind} of {tensor.numel()} elements {where(self.log.step, self.log.in_backward)}")
        return made if asynchronous else None

    def note_uncounted(self) -> None:
        """Once a step: laws about messages then know that they do not know all."""
        events = self.log.events
        if not any(event["kind"] == KINDS.index(UNCOUNTED) and event["step"] == self.log.step for event in events):
            self.note(UNCOUNTED, 0, 0, False)

    # --- as torch.distributed names and orders them ---

    def all_reduce(self, tensor: Tensor, op: ReduceOp = dist.ReduceOp.SUM, group: Group = None,
                   async_op: bool = False) -> Work:
        self.require_all(group)
        return self.call("all_reduce", tensor, async_op, lambda values: self.write(tensor, self.reduced(values, op)),
                         [tensor])

    def all_reduce_coalesced(self, tensors: Sequence[Tensor], op: ReduceOp = dist.ReduceOp.SUM, group: Group = None,
                             async_op: bool = False) -> torch.futures.Future | None:
        """One message. It returns the future of its work."""
        return self.future_of(self.all_reduce_together(tensors, op, group), async_op)

    @staticmethod
    def future_of(work: Any, async_op: bool) -> torch.futures.Future | None:
        if not async_op:
            work.event["async"] = False
            work.wait()
        return work.get_future() if async_op else None

    def all_reduce_together(self, tensors: Sequence[Tensor], op: ReduceOp = dist.ReduceOp.SUM,
                            group: Group = None) -> Work:
        self.require_all(group)

        def deliver(values: Sequence[Tensor]) -> None:
            for tensor, value in zip(tensors, self.reduced(values, op).split([t.numel() for t in tensors])):
                self.write(tensor, value)

        return self.call("all_reduce", joined(tensors), True, deliver, tensors, read=tensors)

    def reduce(self, tensor: Tensor, dst: int | None = None, op: ReduceOp = dist.ReduceOp.SUM, group: Group = None,
               async_op: bool = False, group_dst: int | None = None) -> Work:
        self.require_all(group)
        root = self.one_rank("dst", dst, group_dst)

        def deliver(values: Sequence[Tensor]) -> None:
            if self.rank == root:
                self.write(tensor, self.reduced(values, op))
            else:
                self.demand_writable(tensor)

        return self.call("reduce", tensor, async_op, deliver, [tensor], f" to rank {root}")

    def broadcast(self, tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False,
                  group_src: int | None = None) -> Work:
        self.require_all(group)
        root = self.one_rank("src", src, group_src)

        def deliver(values: Sequence[Tensor]) -> None:
            if self.rank != root:
                self.write(tensor, values[root])
            else:
                self.demand_writable(tensor)

        return self.call("broadcast", tensor, async_op, deliver, [tensor], f" from rank {root}",
                         read=[tensor] if self.rank == root else [])

    def all_gather(self, tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None,
                   async_op: bool = False) -> Work:
        self.require_all(group)
        if len(tensor_list) != self.board.ranks:
            raise ValueError(f"all_gather into {len(tensor_list)} tensors; there are {self.board.ranks} ranks")

        def deliver(values: Sequence[Tensor]) -> None:
            for place, value in zip(tensor_list, values):
                self.write(place, value)

        return self.call("all_gather", tensor, async_op, deliver, tensor_list)

    def all_gather_coalesced(self, output_tensor_lists: Sequence[Sequence[Tensor]], input_tensor_list: Sequence[Tensor],
                             group: Group = None, async_op: bool = False) -> torch.futures.Future | None:
        """One message. It returns the future of its work."""
        return self.future_of(self.all_gather_together(output_tensor_lists, input_tensor_list, group), async_op)

    def all_gather_together(self, output_tensor_lists: Sequence[Sequence[Tensor]], input_tensor_list: Sequence[Tensor],
                            group: Group = None) -> Work:
        self.require_all(group)
        counts = [tensor.numel() for tensor in input_tensor_list]

        def deliver(values: Sequence[Tensor]) -> None:
            for places, value in zip(output_tensor_lists, values):
                for place, part in zip(places, value.split(counts)):
                    self.write(place, part)

        return self.call("all_gather", joined(input_tensor_list), True, deliver, output_tensor_lists,
                         read=input_tensor_list)

    def all_gather_into_tensor(self, output_tensor: Tensor, input_tensor: Tensor, group: Group = None,
                               async_op: bool = False) -> Work:
        self.require_all(group)
        return self.call("all_gather", input_tensor, async_op,
                         lambda values: self.write(output_tensor, torch.cat(values)), [output_tensor])

    def reduce_scatter(self, output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = dist.ReduceOp.SUM,
                       group: Group = None, async_op: bool = False) -> Work:
        return self.scatter_reduced(output, torch.cat([one.reshape(-1) for one in input_list]), input_list, op, group,
                                    async_op)

    def reduce_scatter_tensor(self, output: Tensor, input: Tensor, op: ReduceOp = dist.ReduceOp.SUM,
                              group: Group = None, async_op: bool = False) -> Work:
        return self.scatter_reduced(output, input, [input], op, group, async_op)

    def scatter_reduced(self, output: Tensor, input: Tensor, read: Sequence[Tensor], op: ReduceOp, group: Group,
                        async_op: bool) -> Work:
        self.require_all(group)
        count = input.numel() // self.board.ranks
        own = slice(self.rank * count, (self.rank + 1) * count)
        return self.call("reduce_scatter", input, async_op,
                         lambda values: self.write(output, self.reduced(values, op)[own]), [output], read=read)

    def barrier(self, group: Group = None, async_op: bool = False, device_ids: Any = None) -> Work:
        self.require_all(group)
        return self.call("barrier", torch.empty(0), async_op, lambda _: None, [])

    def demand_writable(self, tensor: Tensor) -> None:
        """Of a tensor that Gloo copies back to a GPU on every rank, whether or not anything in it is new."""
        if self.backend == "gloo":
            self.gloo.demand_writable(tensor)

    def write(self, tensor: Tensor, value: Tensor) -> None:
        self.demand_writable(tensor)
        tensor.data.copy_(value.view(tensor.shape))  # .data: as a collective writes, behind autograd's back

    def reduced(self, values: Sequence[Tensor], op: ReduceOp) -> Tensor:
        if op == dist.ReduceOp.SUM:
            total = values[0].clone()
            for value in values[1:]:
                total += value
            return total
        if op == dist.ReduceOp.MAX:
            return torch.stack(values).amax(0)
        if op == dist.ReduceOp.MIN:
            return torch.stack(values).amin(0)
        if op == dist.ReduceOp.AVG and (self.backend == "nccl" or self.gloo.averages):
            return self.reduced(values, dist.ReduceOp.SUM) / self.board.ranks
        if op == dist.ReduceOp.PRODUCT:
            return functools.reduce(torch.mul, values)
        by_bits = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}
        who = "NCCL" if self.backend == "nccl" else "Gloo"
        name = next((name for name in dir(dist.ReduceOp) if name.isupper() and getattr(dist.ReduceOp, name) == op),
                    str(op))
        if name in by_bits and who == "Gloo" and not values[0].is_floating_point():
            return functools.reduce(by_bits[name], values)
        if name != "AVG" and name not in by_bits:
            raise Unsupported(f"a reduction by {name}: syslab's ranks do not follow it")
        error = RuntimeError(f"{who} cannot reduce by {name} here: sum, and divide by the number of ranks")
        if (who, name) == ("Gloo", "AVG"):
            setattr(error, "lacks", {"kind": "dtype", "of": "torch.distributed.ReduceOp.AVG", "name": "Gloo"})
        raise error

    def require_all(self, group: Group) -> None:
        if group is not None and dist.get_world_size(group) != self.board.ranks:
            some = max(0, dist.get_world_size(group))  # torch's −1: of others alone
            raise Unsupported(f"a collective of a group of {some} of the {self.board.ranks} ranks: syslab follows "
                              "collectives of all ranks alone")

    @staticmethod
    def one_rank(name: str, rank: int | None, in_group: int | None) -> int:
        """By its number among all, or in the group, which is that of all. From torch 2.6 on it may be either."""
        given = [one for one in (rank, in_group) if one is not None]
        if len(given) != 1:
            raise ValueError(f"{name} and group_{name}: expected one of them")
        return given[0]

    def install(self) -> None:
        """In place of torch's own, before the student's file is imported."""
        names = {name: getattr(self, name) for name in ("all_reduce", "all_reduce_coalesced", "reduce", "broadcast",
                                                        "all_gather", "all_gather_coalesced",
                                                        "all_gather_into_tensor",
                                                        "reduce_scatter", "reduce_scatter_tensor", "barrier")}
        names["_all_gather_base"] = names["all_gather_into_tensor"]
        names["_reduce_scatter_base"] = names["reduce_scatter_tensor"]
        for name in ("send", "recv", "isend", "irecv", "batch_isend_irecv", "gather", "scatter", "all_to_all",
                     "all_to_all_single"):
            if hasattr(dist, name):
                names[name] = self.noted(getattr(dist, name))
        for name, function in names.items():
            for module in (dist, dist.distributed_c10d):
                if hasattr(module, name):
                    setattr(module, name, function)
        self.install_in_groups()

    def noted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The backend's own, which these ranks do not follow."""
        @functools.wraps(original)
        def called(*arguments: Any, **options: Any) -> Any:
            self.note_uncounted()
            return original(*arguments, **options)

        return called

    def install_in_groups(self) -> None:
        """The same by methods of a process group, as dist.group.WORLD.allreduce() calls them. All of them return a
        work. Groups that torch does not list, such as that of `Gloo`, keep their own."""
        kind = type(dist.distributed_c10d._get_default_group())
        for name, replaced in GROUP_METHODS.items():
            if (original := getattr(kind, name, None)) is None:
                continue

            def called(group: ProcessGroup, *arguments: Any, replaced: Any = replaced, original: Any = original,
                       **options: Any) -> Any:
                if group in dist.distributed_c10d._pg_map and replaced is not None:
                    return replaced(self, group, *arguments, **options)
                if group in dist.distributed_c10d._pg_map:
                    self.note_uncounted()
                return original(group, *arguments, **options)

            setattr(kind, name, functools.wraps(original)(called))


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Those of a coalesced collective, which torch demands to be of one dtype."""
    if not tensors:
        raise RuntimeError("a coalesced collective requires a non-empty tensor list")
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise RuntimeError("Invalid usage of tensors with different dtypes: Found "
                           f"{' and '.join(sorted({str(tensor.dtype) for tensor in tensors}))}")
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def only(tensors: Any, tensor: Tensor | None = None) -> Tensor:
    """The tensor that a process group's method is about, which may be in a list of its own."""
    if tensor is not None or torch.is_tensor(tensors):
        return tensors if tensor is None else tensor
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors in one list; Gloo and NCCL take one for each process")
    return tensors[0]


def operation(given: Any) -> ReduceOp:  # of options such as AllreduceOptions, or an operation itself
    return getattr(given, "reduceOp", given)


def group_allreduce(self: Collectives, group: ProcessGroup, tensors: Any = None, opts: Any = dist.ReduceOp.SUM,
                    op: ReduceOp | None = None, tensor: Tensor | None = None) -> Work:
    return self.all_reduce(only(tensors, tensor), operation(opts if op is None else op), group, True)


def group_broadcast(self: Collectives, group: ProcessGroup, tensors: Any = None, opts: Any = 0, root: int | None = None,
                    tensor: Tensor | None = None) -> Work:
    return self.broadcast(only(tensors, tensor), getattr(opts, "rootRank", opts) if root is None else root, group, True)


def group_reduce(self: Collectives, group: ProcessGroup, tensors: Any = None, opts: Any = 0, op: ReduceOp | None = None,
                 root: int | None = None, tensor: Tensor | None = None) -> Work:
    by = op if op is not None else getattr(opts, "reduceOp", dist.ReduceOp.SUM)
    return self.reduce(only(tensors, tensor), getattr(opts, "rootRank", opts) if root is None else root, by, group,
                       True)


def group_allgather(self: Collectives, group: ProcessGroup, output_tensors: Any, input_tensors: Any = None,
                    opts: Any = None, input_tensor: Tensor | None = None) -> Work:
    lists = output_tensors[0] if isinstance(output_tensors[0], (list, tuple)) else output_tensors
    return self.all_gather(lists, only(input_tensors, input_tensor), group, True)


def group_reduce_scatter(self: Collectives, group: ProcessGroup, output_tensors: Any, input_tensors: Any = None,
                         opts: Any = dist.ReduceOp.SUM, op: ReduceOp | None = None, input_tensor: Any = None) -> Work:
    lists = input_tensor if input_tensors is None else input_tensors
    lists = lists[0] if isinstance(lists[0], (list, tuple)) else lists
    return self.reduce_scatter(only(output_tensors), lists, operation(opts if op is None else op), group, True)


GROUP_METHODS: dict = {
    "allreduce": group_allreduce, "broadcast": group_broadcast, "reduce": group_reduce,
    "allgather": group_allgather, "reduce_scatter": group_reduce_scatter,
    "_allgather_base": lambda self, group, output, input, opts=None: self.all_gather_into_tensor(
        output, input, group, True),
    "_reduce_scatter_base": lambda self, group, output, input, opts=dist.ReduceOp.SUM: self.reduce_scatter_tensor(
        output, input, operation(opts), group, True),
    "allreduce_coalesced": lambda self, group, tensors, opts=dist.ReduceOp.SUM: self.all_reduce_together(
        tensors, operation(opts), group),
    "allgather_coalesced": lambda self, group, output_lists, input_list, opts=None: self.all_gather_together(
        output_lists, input_list, group),
    "barrier": lambda self, group, opts=None: self.barrier(group, True),
    # The group's own, which these ranks do not follow.
    **dict.fromkeys(("send", "recv", "recv_anysource", "gather", "scatter", "alltoall", "alltoall_base")),
}


def join_group(board: Board, rank: int, store: str, backend: str = "gloo") -> Collectives:
    """This process as a rank of that backend's group, with the collectives of `board`. NCCL connects ranks when
    something is first sent, which is never. All ranks are on this machine, and behind the walls they have its loopback
    alone, whatever a cluster's settings name."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(backend, store=dist.FileStore(store, board.ranks), rank=rank, world_size=board.ranks)
    made = Collectives(board, rank, backend)
    made.install()
    return made
