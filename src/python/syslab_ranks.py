"""Serves a Python class that several ranks use together to syslab: the worker's wire format (docs/worker-wire.md).

    python3 syslab_ranks.py --mine me=ddp.py:DDP

syslab starts this by itself for `syslab check naive_ddp --mine me=ddp.py:DDP`. The class is, as the adapters of the
hand-outs have it,

  data parallel        DDP(module), or DDP(module, bucket_size_mb) of ddp_overlap_bucketed; a torch.nn.Module that
                       broadcasts rank 0's weights when made and hands calls on; finish_gradient_synchronization() is
                       called behind each backward pass and before the optimizer's step;
                       on_train_batch_start(optimizer), where there is one, at the beginning of each step
  a sharded optimizer  Sharded(params, optimizer_cls, **kwargs) with step(closure=None), zero_grad() and
                       add_param_group(group)
  full sharding        FSDP(module), or FSDP(module, compute_dtype=dtype), of linear layers, an embedding and norms,
                       whose parameters() are this rank's parts;
                       finish_gradient_synchronization() as above, gather_full_params() gives {name in the module: whole
                       weight}

Functions of a hand-out's adapters.py, such as me=tests/adapters.py:get_ddp(), stand for such a class:
syslab_handed_in.py.

The calls: `train`, a small training that a law asks for; and, to time the class, `open` (a training of the benchmark's
transformer is set up, and whatever ranks there were end), `refresh` (tokens), `step`, which alone is timed, `told`
(what is known of that step, and some weights that it has left), `weights` and `close`. With --lab in place of --mine
the ranks train with what a class is timed beside (syslab_yardsticks.py), and `alone` is the same training by one
process.

This process imports torch, and forks a process for each rank from itself. Ranks meet in a Gloo group, import the user's
file and stay for case after case, until one of them does not answer any more. On GPUs rank r computes on GPU r, counted
on from 0 where there are fewer, as the hand-outs' tests do it; the group is NCCL's where each rank has a GPU of its
own.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from syslab_failures import Unsupported, failed
from syslab_limits import lift_memory_limit, limit_memory
from syslab_loading import parse_mine
from syslab_tensors import Memory, TorchTensors
from syslab_wire import PROTOCOL, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import torch

    from syslab_collectives import Board
    from syslab_wire import Message

STARTING_S = 120.0  # until a rank has imported the user's file and met the others
PATIENCE_S = 20.0  # of a case, which takes milliseconds; a busy machine makes it seconds
STEP_PATIENCE_S = 120.0  # of a call about a timed training
ALONE_PATIENCE_S = 570.0  # until one process has trained as far; syslab waits for ten minutes
GRACE_S = 0.5


TIMED = ("open", "refresh", "step", "told", "weights")


class RankTensors:
    """Views of the tensors of a call, in the memory that syslab shares; as TorchTensors has them."""

    def __init__(self, memory_fd: int) -> None:
        self.memory, self.device = Memory(memory_fd), "cpu"
        import torch

        self.torch = torch

    view: Any = TorchTensors.view


def own_gpu(rank: int) -> tuple[torch.device, int]:
    """This rank's GPU, and how many there are. The first look at CUDA is here: a process that has looked cannot fork
    others that do."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise Unsupported(f"torch {torch.__version__} sees no GPU")
    gpu = torch.device("cuda", rank % count)
    torch.cuda.set_device(gpu)
    torch.zeros(1, device=gpu)  # its context takes seconds, which are no part of a case
    return gpu, count


class Rank:
    """One rank's process, from the inside."""

    def __init__(self, rank: int, board: Board, store: str, mine: tuple[str, str], memory_fd: int, memory_limit: int,
                 device: str) -> None:
        import torch
        import syslab_handed_in

        torch.set_num_threads(1)
        self.rank, self.board, self.path = rank, board, mine[0]
        self.tensors = RankTensors(memory_fd)
        self.device, gpus = own_gpu(rank) if device == "cuda" else (torch.device("cpu"), 0)
        self.join(store, "nccl" if gpus >= board.ranks else "gloo")
        self.mine: Any = syslab_handed_in.load(*mine) if mine[0] else None
        limit_memory(memory_limit)

    def join(self, store: str, backend: str) -> None:
        import syslab_collectives
        import syslab_training  # noqa: F401, before the user's file changes where modules are looked for

        self.collectives = syslab_collectives.join_group(self.board, self.rank, store, backend)

    def begin_anew(self) -> None:
        self.collectives.turn = 0

    def behind(self) -> None:
        """What is done right behind an answer, and is no part of it."""

    def answer(self, message: Message) -> Message:
        import syslab_training

        try:
            size = message["memory_bytes"]
            inputs = {t["name"]: self.tensors.view(t, size) for t in message["inputs"]}
            outputs = {t["name"]: self.tensors.view(t, size) for t in message["outputs"]}
            case = json.loads(message["options"]["case"])
            syslab_training.train(self.mine, case, inputs, outputs, self.rank, self.collectives, self.device)
            return {"type": "returned"}
        except BaseException as error:
            self.collectives.end()  # nobody need wait for this rank
            return described(error, self.path)


class TimedRank(Rank):
    """The same where a training is timed: collectives are torch's own."""

    def join(self, store: str, backend: str) -> None:
        import syslab_timing

        self.followed = syslab_timing.join_group(self.board, self.rank, store, backend, self.device)
        self.training: Any = None
        self.asked: dict[str, Any] = {}  # of the weights that the last step has left
        self.lost: Message | None = None  # why they could not be read

    def answer(self, message: Message) -> Message:
        import syslab_timing

        try:
            size, function, options = message["memory_bytes"], message["function"], message["options"]
            inputs = {t["name"]: self.tensors.view(t, size) for t in message["inputs"]}
            outputs = {t["name"]: self.tensors.view(t, size) for t in message["outputs"]}
            if function == "open":
                self.open(json.loads(options["case"]))
            elif function == "refresh":
                self.training.refresh(int(inputs["seed"][0]))
            elif function == "step":
                began, ended = self.training.step()
                self.asked = options
                return {"type": "returned", "began": began, "ended": ended}
            elif function == "told":
                if self.lost is not None:
                    return self.lost
                if "after" in outputs:
                    outputs["after"][self.rank].copy_(self.training.left)
                self.training.tell(outputs["told"][self.rank])
            elif function == "weights":
                self.training.weights(options, outputs["weights"][self.rank])
            else:
                seeds, firsts = ([int(number) for number in options.get(name, "").split()]
                                 for name in ("seeds", "firsts"))
                asked = {**options, "firsts": firsts}
                syslab_timing.alone(json.loads(options["case"]), seeds, asked, outputs["weights"], outputs.get("after"),
                                    self.device)
            return {"type": "returned"}
        except RuntimeError as error:
            if "does not support" not in str(error):  # as a group says of a collective that laws have for all
                return described(error, self.path)
            return described(Unsupported(f"this torch cannot do it over the group that carries the bytes: {error}"),
                             self.path)
        except BaseException as error:
            return described(error, self.path)

    def behind(self) -> None:
        asked, self.asked = self.asked, {}
        try:
            if "count" in asked:
                self.training.read_weights(asked)
        except BaseException as error:
            self.lost = described(error, self.path)

    def begin_anew(self) -> None:
        """They are ended instead."""

    def open(self, case: dict[str, Any]) -> None:
        import syslab_timing

        mine = self.mine or importlib.import_module("syslab_yardsticks").yardstick(case)
        self.training = syslab_timing.Training(case, mine, self.rank, self.board, self.device, self.followed)


def described(error: BaseException, path: str) -> Message:
    import syslab_collectives
    import syslab_handed_in

    if isinstance(error, (syslab_collectives.Mismatch, syslab_handed_in.Fault)):
        kind = "waits" if isinstance(error, syslab_collectives.Mismatch) else "exception"
        finding = "hang" if kind == "waits" else "raised"  # without the lab they would wait for ever
        return {"type": "failed", "kind": kind, "finding": finding, "message": str(error), "traceback": ""}
    return failed(error, path)


def serve_rank(source: int, target: int, path: str, make: Callable[..., Rank]) -> None:
    """The loop of one rank; does not return."""
    code = 0
    try:
        with os.fdopen(source, "r") as lines, os.fdopen(target, "w") as answers:

            def say(answer: Message) -> None:
                answers.write(json.dumps(answer) + "\n")
                answers.flush()

            try:
                rank = make()
            except BaseException as error:  # the user's file could not be imported
                say(described(error, path))
                return
            say({"type": "returned"})
            for line in lines:
                message = json.loads(line)
                if message["anew"]:
                    rank.begin_anew()
                say(rank.answer(message))
                rank.behind()
    except BaseException:
        code = 1
    finally:
        os._exit(code)


class Gang:
    """The processes of one number of ranks."""

    def __init__(self, ranks: int, mine: tuple[str, str], memory_fd: int, memory_limit: int, keep_from: Iterable[int],
                 device: str = "cpu", kind: type[Rank] = Rank) -> None:
        """`keep_from`: descriptors of this process that are none of the ranks' business."""
        import syslab_collectives

        self.usable, self.board = True, syslab_collectives.Board(ranks)
        handle, self.store = tempfile.mkstemp(prefix="ranks-")
        os.close(handle)
        self.pids: list[int] = []
        self.to: list = []
        self.answers: list = []
        self.started, self.anew = False, False
        for rank in range(ranks):
            from_parent, to_child = os.pipe()
            from_child, to_parent = os.pipe()
            pid = os.fork()
            if pid == 0:
                for fd in [to_child, from_child, *keep_from] + [pipe.fileno() for pipe in self.to + self.answers]:
                    os.close(fd)
                serve_rank(from_parent, to_parent, mine[0],
                           lambda rank=rank: kind(rank, self.board, self.store, mine, memory_fd, memory_limit, device))
            os.close(from_parent)
            os.close(to_parent)
            self.pids.append(pid)
            self.to.append(os.fdopen(to_child, "w"))
            self.answers.append(os.fdopen(from_child, "r"))

    def where(self, rank: int) -> str:
        import syslab_collectives

        return syslab_collectives.where(*self.board.status(rank)[2:4])

    def call(self, message: Message, patience: float | None = None) -> Message:
        """The first rank's answer that is no success, or success of all."""
        if not self.started:
            answer = self.heard(STARTING_S)
            if answer["type"] == "failed":
                return answer
            self.started = True
        if self.anew:
            self.board.clear()
        line = json.dumps(dict(message, anew=self.anew)) + "\n"
        self.anew = False
        for pipe in self.to:
            try:
                pipe.write(line)
                pipe.flush()
            except OSError:  # it has ended; its answer will say so
                pass
        return self.heard(patience or PATIENCE_S)

    def heard(self, patience: float) -> Message:
        waiting = {pipe.fileno(): rank for rank, pipe in enumerate(self.answers)}
        until, failures, windows = time.monotonic() + patience, {}, []
        while waiting and time.monotonic() < until:
            ready, _, _ = select.select(list(waiting), [], [], max(0.0, until - time.monotonic()))
            for fd in ready:
                rank = waiting.pop(fd)
                text = self.answers[rank].readline()
                answer = (json.loads(text) if text else {"type": "failed", "kind": "ended", "finding": "crash",
                                                         "traceback": "",
                                                         "message": f"its process ended {self.where(rank)}"})
                if answer["type"] == "failed":
                    failures[rank] = answer
                    until = min(until, time.monotonic() + GRACE_S)
                elif "began" in answer:
                    windows.append((answer["began"], answer["ended"]))
        if not failures and not waiting:  # from the first rank's beginning to the last one's end
            taken = max(end for _, end in windows) - min(begin for begin, _ in windows) if windows else 0
            return {"type": "returned", "elapsed_ns": taken}
        self.usable = self.started and not waiting and all(answer["kind"] != "ended" for answer in failures.values())
        self.anew = True
        return self.blamed(failures, sorted(waiting.values()), patience)

    @staticmethod
    def said(rank: int, answer: Message) -> Message:
        said = answer["message"] if answer["kind"] == "waits" else f"rank {rank}: {answer['message']}"
        return dict(answer, kind="exception" if answer["kind"] in ("waits", "ended") else answer["kind"], message=said)

    def blamed(self, failures: dict[int, Message], silent: list[int], patience: float) -> Message:
        """What a rank raised by itself comes before what others then waited for, and that before silence."""
        for rank, answer in sorted(failures.items()):
            if answer["kind"] not in ("waits", "unsupported"):
                return self.said(rank, answer)
        for rank, answer in sorted(failures.items(), key=lambda item: item[1]["kind"] != "unsupported"):
            return answer if answer["kind"] == "unsupported" else self.said(rank, answer)
        busy = min(silent, key=self.board.is_waiting)  # the others wait for it
        return {"type": "failed", "kind": "exception", "finding": "hang", "traceback": "",
                "message": f"rank {busy} has not ended after {patience:.0f} s: it is {self.where(busy)}"}

    def end(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for pipe in self.to + self.answers:
            try:
                pipe.close()
            except OSError:  # what was not sent yet
                pass
        os.unlink(self.store)


class Conductor:
    def __init__(self, mine: tuple[str, str], hello: Message, pipe: Pipe) -> None:
        import torch  # noqa: F401, ranks are forked with it

        import syslab_collectives  # noqa: F401
        import syslab_held
        import syslab_timing  # noqa: F401
        import syslab_training  # noqa: F401

        syslab_held.set_aside()
        self.device = hello.get("device", "cpu")
        self.mine, self.memory_fd, self.limit = mine, hello.get("memory_fd", -1), hello.get("memory_limit_bytes", 0)
        self.gangs: dict[int, Gang] = {}
        self.own = (pipe.input.fileno(), pipe.output.fileno())
        self.timed: Gang | None = None

    def call(self, message: Message) -> Message:
        if message["function"] != "train":
            return self.call_timed(message)
        ranks = json.loads(message["options"]["case"])["ranks"]
        gang = self.gangs.get(ranks) or Gang(ranks, self.mine, self.memory_fd, self.limit, self.own, self.device)
        self.gangs[ranks] = gang
        answer = gang.call(message)
        if answer["type"] == "failed" and not gang.usable:
            self.gangs.pop(ranks).end()
        return answer

    def call_timed(self, message: Message) -> Message:
        function = message["function"]
        if function in ("open", "close", "alone"):  # memory and processors are for those to come
            self.end_all()
        if function == "close":
            return {"type": "returned", "elapsed_ns": 0}
        if function in ("open", "alone"):
            ranks = json.loads(message["options"]["case"])["ranks"] if function == "open" else 1
            self.timed = Gang(ranks, self.mine, self.memory_fd, self.limit, self.own, self.device, TimedRank)
        if self.timed is None:
            return {"type": "failed", "kind": "protocol", "message": f"'{function}' before 'open'", "traceback": ""}
        answer = self.timed.call(message, ALONE_PATIENCE_S if function == "alone" else STEP_PATIENCE_S)
        if answer["type"] == "failed" or function == "alone":
            self.end_all()
        return answer

    def end_all(self) -> None:
        for gang in [*self.gangs.values(), *([self.timed] if self.timed else [])]:
            gang.end()
        self.gangs, self.timed = {}, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--mine", metavar="NAME=FILE.py:CLASS")
    what.add_argument("--lab", action="store_true", help="no class: what one is timed beside")
    arguments = parser.parse_args()
    lift_memory_limit()
    pipe = Pipe()
    mine = ("", "") if arguments.lab else parse_mine(arguments.mine)
    calls = (*TIMED, "close", "alone") if arguments.lab else ("train", *TIMED, "close")
    conductor = None
    while (message := pipe.read()) is not None and message["type"] != "bye":
        if message["type"] == "hello":
            try:
                conductor = Conductor(mine, message, pipe)
            except BaseException as error:
                pipe.write(failed(error, mine[0]))
                return 1
            pipe.write({"type": "hello", "protocol": PROTOCOL, "name": (arguments.mine or "lab").removeprefix("="),
                        "language": "Python",
                        "serves": ["call"], "domain": {}})
        elif message["type"] == "call" and conductor is not None and message["function"] in calls:
            pipe.write(conductor.call(message))
        else:
            pipe.write({"type": "failed", "kind": "protocol",
                        "message": f"this worker serves {', '.join(calls)} after 'hello', not "
                        f"'{message.get('function', message['type'])}'"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
