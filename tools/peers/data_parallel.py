"""PyTorch's side of the data-parallel comparisons: steps of the hand-outs' transformer on several ranks, and
collectives.

    python3 tools/peers/data_parallel.py steps --ranks 2 --models xl25,xl26 --contexts 512 --batch 8
        --precisions bf16_amp
    python3 tools/peers/data_parallel.py collectives --ranks 2 --to collectives.jsonl
    torchrun --nproc_per_node 2 tools/peers/data_parallel.py steps --models xl26
    python3 tools/peers/data_parallel.py steps --device cpu --ranks 2 --models tiny --contexts 32 --samples 3

Starts a process a rank, unless a launcher did (RANK is set): NCCL and a GPU each, or with --device cpu Gloo. Prints one
JSON line a case, `--to` also writes them. Model, loss and steps are those of transformer.py. --batch counts the rows of
all ranks.

Variants of `steps`:
    none      no communication: what the others are held against
    naive     one all-reduce a gradient behind the backward pass
    flat      gradients copied into one buffer, one all-reduce, copied back
    ddp_N     DistributedDataParallel, bucket_cap_mb=N, gradients as views of buckets
    zero      DDP with 25 MB and ZeroRedundancyOptimizer: its state sharded by whole parameters; zero_views: with
              parameters_as_bucket_view
    fsdp      fully_shard of every block and of the root; fsdp_bf16: weights gathered in bf16, gradients reduced in fp32
The optimizer is PyTorch's AdamW, fused on a GPU.

A sample is a step with all ranks idle and met at a barrier before it; `samples_ms` and `median_ms` are of the slowest
rank at each, `by_rank_ms` each rank's own, `per_rank_ms` their medians. `pipelined_ms`: steps queued one behind the
other, the time of all by their number.
`parts_ms`: medians of the parts of a step on rank 0, by events; where gradients travel under the backward pass it holds
what is not hidden. `peak_gib`: the most that tensors held at once, by rank. `loss`: the mean over ranks behind as many
steps in every variant, `gradient_norm` that of the gradients it left; `replicas_equal`: whether all ranks hold the same
weights, bit for bit. Both are null where no rank holds all.

`collectives` times operations on fp32 by the clock of the host, from the call to the end of the wait: `single_ms`, the
median of calls made one by one, and `pipelined_ms`, of a call among 20 back to back with one wait; both of the slowest
rank at each sample (`single_by_rank_ms`, `pipelined_by_rank_ms`: each rank's own).
`algbw`, bytes by time, and `busbw` (times 2(n-1)/n, (n-1)/n or 1, as nccl-tests has it) are in GB/s, single and
pipelined.

A case that fails ends all ranks; its status says how (oom, failed, timeout), and without a foreign launcher the next
one starts with new ranks. NCCL's multicast (NVLS) is off unless NCCL_NVLS_ENABLE says otherwise.
"""
import argparse
import datetime
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist

import transformer
from basics import gradient_norm, sizes
from transformer import chosen, give_back, listed

VARIANTS = ("none", "naive", "flat", "ddp_1", "ddp_10", "ddp_25", "ddp_100", "ddp_1000", "zero", "zero_views", "fsdp",
            "fsdp_bf16")
BYTES = sorted([2**exponent for exponent in range(10, 31, 2)] + [10**6, 10**7, 10**8, 10**9])
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
BACK_TO_BACK = 20
OOM_EXIT = 3  # of a rank; others end with another code


class Unavailable(Exception):
    """This PyTorch cannot do it."""


# --- a device, as far as times go -------------------------------------------------------------------------------------


class Gpu:
    name, backend = "cuda", "nccl"
    synchronize = staticmethod(torch.cuda.synchronize)
    mark = staticmethod(transformer.event)

    @staticmethod
    def milliseconds(begin, end):
        return begin.elapsed_time(end)

    @staticmethod
    def peak_bytes():
        return torch.cuda.max_memory_allocated()

    @staticmethod
    def forget_peak():
        torch.cuda.reset_peak_memory_stats()

    @staticmethod
    def what():
        return torch.cuda.get_device_name()


class Cpu:
    name, backend = "cpu", "gloo"
    mark = staticmethod(time.perf_counter)

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def milliseconds(begin, end):
        return 1e3 * (end - begin)

    @staticmethod
    def peak_bytes():
        return None

    @staticmethod
    def forget_peak():
        pass

    @staticmethod
    def what():
        return "cpu"


def of_all_ranks(values, device):
    """The same list of numbers of every rank, by rank."""
    mine = torch.tensor(values, dtype=torch.float64, device=device.name)
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    return [one.tolist() for one in all_of_them]


def of_slowest(by_rank):
    return [max(sample) for sample in zip(*by_rank)]


def meet(device):
    dist.barrier()
    device.synchronize()


# --- steps ------------------------------------------------------------------------------------------------------------


def mean_over_ranks(tensor, device):
    if device.backend == "nccl":
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
    else:
        dist.all_reduce(tensor)
        tensor /= dist.get_world_size()


def shard(model, wire):
    try:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except Exception as error:  # of any kind: an older PyTorch cannot even be asked under a newer Python
        raise Unavailable(f"this PyTorch has no fully_shard: {error}") from error
    policy = MixedPrecisionPolicy(param_dtype=wire, reduce_dtype=torch.float32) if wire else MixedPrecisionPolicy()
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)


class RankStep(transformer.Step):
    """A rank's part of a step: the same weights everywhere, rows of its own."""

    def __init__(self, config, rows, precision, variant, seed, device):
        self.on, self.variant = device, variant
        super().__init__(config, rows, precision, variant, None, seed, device.name)
        torch.manual_seed(seed + 1 + dist.get_rank())
        self.draw_batch(config, rows)

    def prepare(self, variant, compile_what):
        options = dict(lr=1e-4, weight_decay=0.01, **({"fused": True} if self.on is Gpu else {}))
        self.plain = self.model
        if variant.startswith("fsdp"):
            shard(self.model, torch.bfloat16 if variant == "fsdp_bf16" else None)
        elif variant.startswith(("ddp", "zero")):
            cap = 25 if variant.startswith("zero") else int(variant.split("_")[1])
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, bucket_cap_mb=cap,
                                                                   gradient_as_bucket_view=True)
        if variant.startswith("zero"):
            from torch.distributed.optim import ZeroRedundancyOptimizer
            self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.AdamW,
                                                     parameters_as_bucket_view=variant == "zero_views", **options)
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), **options)

    def reduce_gradients(self, mark):
        if self.variant == "naive":
            for parameter in self.model.parameters():
                mean_over_ranks(parameter.grad, self.on)
        elif self.variant == "flat":
            gradients = [parameter.grad for parameter in self.model.parameters()]
            flat = torch._utils._flatten_dense_tensors(gradients)
            mean_over_ranks(flat, self.on)
            for gradient, reduced in zip(gradients, torch._utils._unflatten_dense_tensors(flat, gradients)):
                gradient.copy_(reduced)
        else:
            return
        mark("communication")

    def replicas_equal(self):
        """The sum of every tensor's bits, which is the same where the tensors are."""
        bits = torch.stack([p.detach().view(torch.int32).sum(dtype=torch.int64) for p in self.plain.parameters()])
        least, most = bits.clone(), bits.clone()
        dist.all_reduce(least, dist.ReduceOp.MIN)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        return bool(torch.equal(least, most))


def each_step(step, device, samples):
    found = []
    for _ in range(samples):
        meet(device)
        begin = device.mark()
        step.step()
        end = device.mark()
        device.synchronize()
        found.append(device.milliseconds(begin, end))
    return found


def queued_steps(step, device, samples):
    meet(device)
    begin = device.mark()
    for _ in range(samples):
        step.step()
    end = device.mark()
    device.synchronize()
    return device.milliseconds(begin, end) / samples


def parts_of_steps(step, device, samples):
    found: dict = {}
    for _ in range(samples):
        marks = {}
        meet(device)
        loss = step.step(mark=lambda part: marks.update({part: device.mark()}))
        device.synchronize()
        for (_, before), (part, end) in itertools.pairwise(marks.items()):
            found.setdefault(part, []).append(device.milliseconds(before, end))
    return {part: statistics.median(times) for part, times in found.items()}, loss


def step_case(case, arguments, device):
    ranks = dist.get_world_size()
    config = sizes(case["model"], case["context"])
    step = RankStep(config, case["batch"] // ranks, case["precision"], case["variant"], arguments.seed, device)
    for _ in range(arguments.warmup):
        step.step()
    device.synchronize()
    device.forget_peak()
    by_rank = of_all_ranks(each_step(step, device, arguments.samples), device)
    pipelined = of_all_ranks([queued_steps(step, device, arguments.samples)], device)
    parts, loss = parts_of_steps(step, device, arguments.samples)
    peak = device.peak_bytes()
    peaks = of_all_ranks([peak / 2**30], device) if peak is not None else None
    loss = loss.double()
    dist.all_reduce(loss)
    slowest, whole = of_slowest(by_rank), not step.variant.startswith("fsdp")
    return [{**asdict(config), "parameters": config.parameters(), "n": len(slowest),
             "median_ms": statistics.median(slowest),
             "per_rank_ms": [statistics.median(times) for times in by_rank],
             "pipelined_ms": max(time for (time,) in pipelined),
             "parts_ms": parts, "samples_ms": slowest, "by_rank_ms": by_rank,
             "peak_gib": [one for (one,) in peaks] if peaks else None,
             "loss": loss.item() / ranks, "gradient_norm": gradient_norm(step.plain.parameters()).item()
             if whole else None,
             "replicas_equal": step.replicas_equal() if whole else None}]


def step_cases(arguments):
    for batch in listed(arguments.batch):
        if int(batch) % arguments.ranks:
            sys.exit(f"{batch} rows are not divided evenly among {arguments.ranks} ranks")
    for model in listed(arguments.models):
        sizes(model, 1)
    return [{"model": model, "context": int(context), "batch": int(batch), "precision": precision, "variant": variant}
            for model, context, batch, precision, variant in itertools.product(
                listed(arguments.models), listed(arguments.contexts), listed(arguments.batch),
                chosen(arguments.precisions, transformer.PRECISIONS), chosen(arguments.variants, VARIANTS))]


# --- collectives ------------------------------------------------------------------------------------------------------


class Collective:
    """`size` bytes of fp32, of the larger buffer; rank r's numbers are r + 1 until the first call."""

    def __init__(self, operation, size, device):
        ranks = dist.get_world_size()
        self.operation = operation
        self.part = torch.full((max(size // 4 // ranks, 1),), dist.get_rank() + 1.0, device=device.name)
        elements = self.part.numel() * ranks if operation in ("reduce_scatter", "all_gather") else size // 4
        self.whole = torch.full((elements,), dist.get_rank() + 1.0, device=device.name)

    def __call__(self):
        if self.operation == "all_reduce":
            dist.all_reduce(self.whole)
        elif self.operation == "broadcast":
            dist.broadcast(self.whole, 0)
        elif self.operation == "all_gather":
            gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
            gather(self.whole, self.part)
        else:
            scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
            scatter(self.part, self.whole)

    def is_right(self):
        """After one call."""
        ranks = dist.get_world_size()
        total = ranks * (ranks + 1) / 2
        if self.operation == "all_gather":
            parts = self.whole.view(ranks, -1)
            return all(bool((parts[rank] == rank + 1).all()) for rank in range(ranks))
        if self.operation == "broadcast":
            return bool((self.whole == 1).all())
        return bool(((self.part if self.operation == "reduce_scatter" else self.whole) == total).all())

    def bus_factor(self):
        ranks = dist.get_world_size()
        return {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1}.get(self.operation, (ranks - 1) / ranks)


def timed(work, calls, samples, device):
    """Milliseconds of a call at each sample, by rank."""
    found = []
    for _ in range(samples):
        meet(device)
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        device.synchronize()
        found.append(1e3 * (time.perf_counter() - begin) / calls)
    return of_all_ranks(found, device)


def collective_case(case, arguments, device):
    for size in map(int, listed(arguments.bytes)):
        call = Collective(case["operation"], size, device)
        line = {"bytes": 4 * call.whole.numel()}
        try:
            call()
        except (RuntimeError, NotImplementedError) as error:
            if device is Gpu:
                raise
            raise Unavailable(f"{device.backend} has no {case['operation']}: {str(error).splitlines()[0]}") from error
        device.synchronize()
        if not min(right for (right,) in of_all_ranks([float(call.is_right())], device)):
            yield {**line, "status": "check_failed"}
            continue
        call.whole.zero_()
        call.part.zero_()
        for _ in range(arguments.warmup):
            call()
        single, pipelined = timed(call, 1, arguments.samples,
                                  device), timed(call, BACK_TO_BACK, arguments.samples, device)
        for name, by_rank in (("single", single), ("pipelined", pipelined)):
            median = statistics.median(of_slowest(by_rank))
            rate = 1e-6 * line["bytes"] / median
            line.update({f"{name}_ms": median, f"{name}_algbw": rate, f"{name}_busbw": rate * call.bus_factor()})
        yield {**line, "n": arguments.samples, "bus_factor": call.bus_factor(), "single_samples_ms": of_slowest(single),
               "single_by_rank_ms": single, "pipelined_by_rank_ms": pipelined}


def collective_cases(arguments):
    return [{"operation": operation} for operation in chosen(arguments.operations, OPERATIONS)]


# --- ranks ------------------------------------------------------------------------------------------------------------


def tell(line, arguments):
    text = json.dumps(line)
    print(text, flush=True)
    if arguments.to:
        with open(arguments.to, "a", encoding="utf-8") as file:
            print(text, file=file)


def run_rank(arguments, cases):
    """The cases from arguments.first on, as one of the ranks that RANK and WORLD_SIZE name."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device: Any = Cpu if arguments.device == "cpu" else Gpu
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    where = {}
    if device is Gpu:
        where["device_id"] = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))
        torch.cuda.set_device(where["device_id"])
    folder = pathlib.Path(arguments.folder) if arguments.folder else None
    dist.init_process_group(device.backend, init_method=f"file://{folder}/meet" if folder else "env://", rank=rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=arguments.limit), **where)
    about = {"ranks": ranks, "backend": device.backend, "device": device.what(), "torch": torch.__version__,
             "cuda": torch.version.cuda,
             "nccl": ".".join(map(str, torch.cuda.nccl.version())) if device is Gpu else None,
             "nvls": os.environ["NCCL_NVLS_ENABLE"], "warmup": arguments.warmup, "seed": arguments.seed}
    for index in range(arguments.first, len(cases)):
        case = cases[index]
        if folder and rank == 0:
            (folder / "begun").write_text(str(index))
        try:
            for found in arguments.case(case, arguments, device):
                if rank == 0:
                    tell({**case, **about, "status": "ok", **found}, arguments)
        except Unavailable as error:  # on all ranks alike
            if rank == 0:
                tell({**case, **about, "status": "unsupported", "note": str(error)}, arguments)
        except torch.cuda.OutOfMemoryError as error:
            print(f"rank {rank}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            os._exit(OOM_EXIT)  # others may wait for this rank inside a collective
        give_back()
    dist.barrier()
    dist.destroy_process_group()
    return 0


def wait_for(processes, begun, limit):
    """0, or why the ranks ended: all others are ended with the first that fails."""
    started = time.time()
    why: int | str = 0
    while any(process.poll() is None for process in processes) and not why:
        time.sleep(0.05)
        codes = [process.poll() for process in processes]
        if any(codes):
            why = "oom" if OOM_EXIT in codes else "failed"
        elif time.time() - max(started, begun.stat().st_mtime if begun.exists() else 0) > limit:
            why = "timeout"
    for process in processes:
        if process.poll() is None and why:
            process.kill()
        process.wait()
    return why or ("failed" if any(process.returncode for process in processes) else 0)


def launch(arguments, cases):
    bad = 0
    while arguments.first < len(cases):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(pathlib.Path(__file__).resolve()), *sys.argv[1:], "--folder",
                       folder, "--first",
                       str(arguments.first)]
            processes = [subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                                        "WORLD_SIZE": str(arguments.ranks)})
                         for rank in range(arguments.ranks)]
            begun = pathlib.Path(folder) / "begun"
            why = wait_for(processes, begun, arguments.limit)
            if not why:
                break
            if not begun.exists():
                sys.exit("the ranks ended before their first case")
            arguments.first = int(begun.read_text())
        tell({**cases[arguments.first], "ranks": arguments.ranks, "status": why}, arguments)
        bad += why != "oom"
        arguments.first += 1
    return 1 if bad else 0


def main():
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--ranks", type=int, default=2, help="processes to start, a GPU each")
    common.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    common.add_argument("--warmup", type=int, default=3)
    common.add_argument("--samples", type=int, default=10)
    common.add_argument("--seed", type=int, default=0)
    common.add_argument("--limit", type=float, default=240, help="seconds that a case may take")
    common.add_argument("--to", help="write the lines to this file too")
    common.add_argument("--first", type=int, default=0, help="begin with the case of this number, from 0")
    common.add_argument("--folder", help=argparse.SUPPRESS)

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("steps", help="measure data-parallel training steps", parents=[common])
    verb.add_argument("--models", default="xl26", help="by commas")
    verb.add_argument("--contexts", default="512")
    verb.add_argument("--batch", default="8", help="rows of all ranks together")
    verb.add_argument("--precisions", default="bf16_amp")
    verb.add_argument("--variants", default=",".join(VARIANTS))
    verb.set_defaults(cases=step_cases, case=step_case)
    verb = verbs.add_parser("collectives", help="measure collective operations", parents=[common])
    verb.add_argument("--operations", default="all_reduce")
    verb.add_argument("--bytes", default=",".join(map(str, BYTES)), help="of the larger buffer")
    verb.set_defaults(cases=collective_cases, case=collective_case)

    arguments = parser.parse_args()
    arguments.ranks = int(os.environ.get("WORLD_SIZE", arguments.ranks))
    cases = arguments.cases(arguments)
    is_rank = "RANK" in os.environ
    if arguments.to and not arguments.folder and os.environ.get("RANK", "0") == "0":
        open(arguments.to, "w", encoding="utf-8").close()
    return run_rank(arguments, cases) if is_rank else launch(arguments, cases)


if __name__ == "__main__":
    sys.exit(main())
