"""Attention of libsyslab beside PyTorch's kernels: one process, one GPU, the same tensors, the same clock.

    python3 tools/peers/attention.py --rungs flash_mma --pass forward --grid paper --peers flash,cudnn
    python3 tools/peers/attention.py --rungs flash_mma,flash_mma_deterministic --pass backward --grid paper
        --peers flash,deterministic
    python3 tools/peers/attention.py --rungs flash_fp32 --dtype fp32 --pass forward,backward --grid long
        --peers efficient

Every case is checked before it is timed: relative error in the Frobenius norm against float64, at most twice that of
attention op by op in the same dtype (with a floor where that is too large to hold). A wrong rung gets no time, and the
exit code is 1.

Kernel time: graphs of k calls over input sets of more than twice the L2 cache together, replayed; the median of
replays, divided by k. `--eager` has the same calls launched one by one between two events, ours and the peers' alike
through
torch: O and gradients are made by the call. Rung `choice` is whichever the library takes. Peers are PyTorch's
scaled_dot_product_attention with the backend named: flash, deterministic (flash under
torch.use_deterministic_algorithms), cudnn, efficient, math. TFLOP/s count 4·B·H·pairs·D forward and 2.5 times that
backward, whoever computes what.

Grids: paper (16k tokens, hidden 2048, head_dim 64 and 128, S 512 to 16,384, full and causal) · handout (one head,
causal, head_dim 16 to 128, S 128 to 8192) · long (the same, S 16,384 to 65,536) · leaderboard (16 heads, S 16,384,
head_dim 64) · wide (16k tokens, hidden 1920 or 2048, head_dim 192 or 256, S 1024, 4096 and 16,384, full and causal) ·
between (the same of head_dim 96, hidden 2016) · figure (16 heads, causal, head_dim 128, S 512 to 16,384: for the
report's figures of the rate). `--cases "D64 causal"` leaves those whose label has all of these words.

`--log FILE` writes the peers' results for `syslab import`, so that tables and figures have them beside ours. A peer's
outputs are then held to the same bound as ours, and one that misses it is not in the file. `--environment` names what
`syslab env
--json` prints on this machine; without it the results are comparable with nothing.
"""
import argparse
import csv
import ctypes
import math
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from attention_log import Case, log_head, log_of, operations, written  # noqa: E402
from syslab_torch import LIBRARY, FlashAttention, Options, as_dlpack  # noqa: E402

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "deterministic": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
# Errors that op by op makes, where it is too large to be run: bf16 and fp16 round P and O, fp32 adds up rounding.
USUAL_ERROR = {"fp32": 1e-6, "fp16": 5e-4, "bf16": 4e-3}
ROWS_AT_ONCE = 1 << 26  # scores of the float64 reference held at once
MOST_SCORES = 1 << 31  # of op by op


def grid(name):
    if name == "paper":
        return [Case(16384 // s, 2048 // d, s, d, c) for d in (64, 128) for c in (True, False)
                for s in (512, 1024, 2048, 4096, 8192, 16384)]
    if name == "handout":
        return [Case(1, 1, s, d, True) for d in (16, 32, 64, 128) for s in (128, 256, 512, 1024, 2048, 4096, 8192)]
    if name == "long":
        return [Case(1, 1, s, d, True) for d in (16, 32, 64, 128) for s in (16384, 32768, 65536)]
    if name == "leaderboard":
        return [Case(1, 16, 16384, 64, True)]
    if name == "wide":
        return [Case(16384 // s, 2048 // d, s, d, c) for d in (192, 256) for c in (True, False)
                for s in (1024, 4096, 16384)]
    if name == "figure":
        return [Case(1, 16, s, 128, True) for s in (512, 1024, 2048, 4096, 8192, 16384)]
    if name == "between":
        return [Case(16384 // s, 2048 // 96, s, 96, c) for c in (True, False) for s in (1024, 4096, 16384)]
    sys.exit(f"unknown grid '{name}'; there are paper, handout, long, leaderboard, wide, between and figure")


def label_of(case):
    return f"B{case.batch} H{case.heads} S{case.seq} D{case.head_dim}{' causal' if case.causal else ' full'}"


def draw(case, dtype, seed):
    """q, k, v and dO."""
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = (case.batch, case.heads, case.seq, case.head_dim)
    return [torch.randn(shape, device="cuda", generator=generator).to(DTYPES[dtype]) for _ in range(4)]


# --- ours -------------------------------------------------------------------------------------------------------------


class Rung:
    """One implementation of libsyslab, with memory of its own to work in: a captured call must not ask for any."""

    def __init__(self, name):
        self.name, self.workspace = name, None
        self.implementation = None if name == "choice" else name

    def attend(self, q, k, v, causal):
        """As PyTorch's function: through torch, with a gradient where one is wanted."""
        return FlashAttention.apply(q, k, v, causal, self.implementation)

    def __call__(self, function, tensors, causal):
        options = Options(struct_size=ctypes.sizeof(Options), causal=int(causal))
        options.implementation = self.implementation.encode() if self.implementation else None
        bytes_needed = ctypes.c_size_t()
        q, k, v = (ctypes.byref(as_dlpack(t)) for t in tensors[:3])
        self.demand(LIBRARY.syslab_attention_workspace(q, k, v, int("backward" in function), ctypes.byref(options),
                                                       ctypes.byref(bytes_needed)))
        if bytes_needed.value > 0:
            if self.workspace is None or self.workspace.numel() < bytes_needed.value:
                self.workspace = torch.empty(bytes_needed.value, dtype=torch.uint8, device="cuda")
            options.workspace, options.workspace_bytes = self.workspace.data_ptr(), self.workspace.numel()
        views = [ctypes.byref(as_dlpack(t)) for t in tensors]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.demand(getattr(LIBRARY, function)(*views, ctypes.byref(options), stream))

    def demand(self, status):
        if status != 0:
            raise RuntimeError(f"{self.name}: {LIBRARY.syslab_last_error().decode()}")

    def forward(self, q, k, v, out, lse, causal):
        self("syslab_attention_forward", (q, k, v, out, lse), causal)

    def backward(self, q, k, v, out, lse, do, dq, dk, dv, causal):
        self("syslab_attention_backward", (q, k, v, out, lse, do, dq, dk, dv), causal)


# --- what is right ----------------------------------------------------------------------------------------------------


def exact(q, k, v, do, causal):
    """O, L, dQ, dK, dV in float64, a block of rows of one head at a time."""
    seq, scale = q.shape[2], 1 / math.sqrt(q.shape[3])
    out, dq, dk, dv = (torch.zeros(q.shape, dtype=torch.float64, device="cuda") for _ in range(4))
    lse = torch.zeros(q.shape[:3], dtype=torch.float64, device="cuda")
    columns = torch.arange(seq, device="cuda")
    step = max(1, ROWS_AT_ONCE // seq)
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            keys, values = k[batch, head].double(), v[batch, head].double()
            for first in range(0, seq, step):
                rows = slice(first, min(first + step, seq))
                queries, upstream = q[batch, head, rows].double(), do[batch, head, rows].double()
                scores = queries @ keys.T * scale
                if causal:
                    scores.masked_fill_(columns > columns[rows, None], -math.inf)
                lse[batch, head, rows] = torch.logsumexp(scores, -1)
                p = scores.sub_(lse[batch, head, rows, None]).exp_()
                out[batch, head, rows] = p @ values
                dv[batch, head] += p.T @ upstream
                row_dot = (upstream * out[batch, head, rows]).sum(-1, keepdim=True)
                ds = (upstream @ values.T).sub_(row_dot).mul_(p).mul_(scale)
                dq[batch, head, rows] = ds @ keys
                dk[batch, head] += ds.T @ queries
    return {"out": out, "lse": lse, "dq": dq, "dk": dk, "dv": dv}


def op_by_op(q, k, v, do, causal):
    """The same in the tensors' own dtype: the yardstick."""
    inputs = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
    return dict(zip(("out", "dq", "dk", "dv"), (out.detach(), *torch.autograd.grad(out, inputs, do))))


def relative_error(found, wanted):
    return ((found.double() - wanted).norm() / wanted.norm()).item()  # NaN compares as wrong below


def errors_of(found, wanted, tensors, case, dtype):
    """{tensor: (its error, the error allowed)}"""
    yardstick = {}
    q, k, v, do = tensors
    if case.batch * case.heads * case.seq**2 <= MOST_SCORES:
        yardstick = {name: relative_error(t, wanted[name]) for name, t in op_by_op(q, k, v, do, case.causal).items()}
    usual = USUAL_ERROR[dtype]
    allowed = {name: 2 * max(yardstick.get(name, 1.5 * usual), usual / 2) for name in found}
    if "lse" in found:
        allowed["lse"] = USUAL_ERROR["fp32"]
    return {name: (relative_error(tensor, wanted[name]), allowed[name]) for name, tensor in found.items()}


def check(rung, case, dtype, passes):
    """{tensor: (its error, the error allowed)}"""
    q, k, v, do = draw(case, dtype, seed=1)
    wanted = exact(q, k, v, do, case.causal)
    found = {}
    if "forward" in passes:
        found["out"] = torch.full_like(q, math.nan)
        found["lse"] = torch.full(q.shape[:3], math.nan, device="cuda")
        rung.forward(q, k, v, found["out"], found["lse"], case.causal)
    if "backward" in passes:
        gradients = {name: torch.full_like(q, math.nan) for name in ("dq", "dk", "dv")}
        rung.backward(q, k, v, wanted["out"].to(q.dtype), wanted["lse"].float(), do, *gradients.values(), case.causal)
        found.update(gradients)
    torch.cuda.synchronize()
    return errors_of(found, wanted, (q, k, v, do), case, dtype)


def check_peer(peer, case, dtype):
    """The same of a peer, both passes; None if it does not take the case."""
    q, k, v, do = draw(case, dtype, seed=1)
    inputs = [t.detach().clone().requires_grad_() for t in (q, k, v)]
    try:
        with sdpa_kernel(BACKENDS[peer]):
            out = F.scaled_dot_product_attention(*inputs, is_causal=case.causal)
            found = dict(zip(("out", "dq", "dk", "dv"), (out.detach(), *torch.autograd.grad(out, inputs, do))))
    except RuntimeError:
        return None
    return errors_of(found, exact(q, k, v, do, case.causal), (q, k, v, do), case, dtype)


# --- clocks -----------------------------------------------------------------------------------------------------------


def between_events(work):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def milliseconds(call, sets, eager, together_ms=1.5, most_calls=64, total_ms=60):
    """Times of call(i), i going round the sets; in a graph, or launched one by one."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(3):
            call(i % sets)
        one = max(between_events(lambda: call(0)), 1e-3)
        calls = max(1, min(most_calls, int(together_ms / one)))

        def several():
            for i in range(calls):
                call(i % sets)

        timed = several
        if not eager:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                several()
            timed = graph.replay
        timed()
        repeats = max(5, min(30, int(total_ms / (one * calls))))
        return [between_events(timed) / calls for _ in range(repeats)]


def times(rungs, peers, case, dtype, passes, eager):
    """{(pass, who): milliseconds of each replay, None where there is no time}, and how many of ours are missing."""
    bytes_of_set = 4 * case.batch * case.heads * case.seq * case.head_dim * DTYPES[dtype].itemsize
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(8, 2 * cache // bytes_of_set + 1))
    data = [draw(case, dtype, seed) for seed in range(sets)]
    shape = data[0][0].shape
    made = [(torch.empty_like(q), torch.empty(shape[:3], device="cuda")) for q, *_ in data]
    own = next(iter(rungs))
    for (q, k, v, _), (out, lse) in zip(data, made):
        own.forward(q, k, v, out, lse, case.causal)
    gradients = [[torch.empty_like(q) for _ in range(3)] for q, *_ in data]
    found, failures = {}, []

    def clock(which, who, call):
        try:
            found[which, who] = milliseconds(call, sets, eager)
        except RuntimeError as error:
            found[which, who] = None
            failures.append(who)
            print(f"  no time of {who} {which}: {str(error).splitlines()[0]}", file=sys.stderr)

    def clock_through_torch(who, attend):
        if "forward" in passes and who != "deterministic":
            clock("forward", who, lambda i: attend(*data[i][:3]))
        if "backward" in passes:
            inputs = [[t.detach().clone().requires_grad_() for t in one[:3]] for one in data]
            try:
                with torch.cuda.stream(torch.cuda.Stream()):  # a capture must not wait for the default stream
                    outs = [attend(*one) for one in inputs]
            except RuntimeError as error:
                print(f"  {who} does not take this case: {str(error).splitlines()[0]}", file=sys.stderr)
                return
            torch.cuda.synchronize()
            clock("backward", who, lambda i: torch.autograd.grad(outs[i], inputs[i], data[i][3], retain_graph=True))

    for rung in rungs:
        if eager:
            clock_through_torch(rung.name, lambda *one: rung.attend(*one, case.causal))
            continue
        if "forward" in passes:
            clock("forward", rung.name, lambda i: rung.forward(*data[i][:3], *made[i], case.causal))
        if "backward" in passes:
            clock("backward", rung.name,
                  lambda i: rung.backward(*data[i][:3], *made[i], data[i][3], *gradients[i], case.causal))
    for peer in peers:
        torch.use_deterministic_algorithms(peer == "deterministic")  # only to warn would leave flash as it is
        with sdpa_kernel(BACKENDS[peer]):
            clock_through_torch(peer, lambda *one: F.scaled_dot_product_attention(*one, is_causal=case.causal))
        torch.use_deterministic_algorithms(False)
    return found, sum(who not in peers for who in failures)


# --- table ------------------------------------------------------------------------------------------------------------


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rungs", required=True, help="implementations of libsyslab, by commas, or `choice`")
    parser.add_argument("--peers", default="flash", help="of PyTorch, by commas")
    parser.add_argument("--pass", dest="passes", default="forward", help="forward, backward or both by a comma")
    parser.add_argument("--grid", default="paper")
    parser.add_argument("--cases", default="", help="words that the label of a case must have")
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--eager", action="store_true", help="launch call by call instead of in graphs")
    parser.add_argument("--no-check", action="store_true", help="time only what was checked before")
    parser.add_argument("--csv", help="write one line a time to this file")
    parser.add_argument("--log", help="write the peers' results to this file, for `syslab import`")
    parser.add_argument("--environment", help="file that `syslab env --json` wrote on this machine, for --log")
    arguments = parser.parse_args()
    rungs = [Rung(name) for name in arguments.rungs.split(",")]
    peers, passes = [name for name in arguments.peers.split(",") if name], arguments.passes.split(",")
    for peer in peers:
        if peer not in BACKENDS:
            sys.exit(f"unknown peer '{peer}'; there are {', '.join(BACKENDS)}")
    if arguments.log and arguments.eager:
        sys.exit("--log is of graphs: how the launch of single calls is timed here is none of syslab's protocols")
    torch.backends.cuda.matmul.allow_tf32 = False
    # Else whatever a deterministic kernel's caller takes would be filled with NaN first, inside what is timed.
    torch.utils.deterministic.fill_uninitialized_memory = False

    how = "eager" if arguments.eager else "graph"
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.dtype}, {how} time\n")
    names = [rung.name for rung in rungs] + peers
    print("| case | pass | " + " | ".join(f"{name} ms (TFLOP/s)" for name in names) + " |")
    print("| --- | --- |" + " --- |" * len(names))
    wrong, lines, log = 0, [], []
    ratios: dict = {}
    cases = [case for case in grid(arguments.grid) if set(arguments.cases.split()) <= set(label_of(case).split())]
    if not cases:
        sys.exit(f"no case of grid '{arguments.grid}' has all of '{arguments.cases}'")
    for case in cases:
        label = label_of(case)
        right = []
        for rung in rungs:
            errors = {} if arguments.no_check else check(rung, case, arguments.dtype, passes)
            bad = {name: pair for name, pair in errors.items() if not pair[0] <= pair[1]}
            for name, (error, most) in bad.items():
                print(f"WRONG {rung.name} {label}: {name} is off by {error:.2e}, at most {most:.2e} is allowed")
            wrong += bool(bad)
            right += [] if bad else [rung]
            torch.cuda.empty_cache()
        if not right:
            continue
        found, untimed = times(right, peers, case, arguments.dtype, passes, arguments.eager)
        wrong += untimed
        if arguments.log:
            torch.cuda.empty_cache()
            errors = {peer: check_peer(peer, case, arguments.dtype) for peer in peers}
            log += [line for which in passes for peer in peers if errors[peer] and found.get((which, peer))
                    for line in log_of(peer, torch.__version__, case, arguments.dtype, which, found[which, peer],
                                       errors[peer])]
        found = {key: statistics.median(all_of_it) if all_of_it else None for key, all_of_it in found.items()}
        for which in passes:
            row = [found.get((which, name)) for name in names]
            work = operations(case, which)
            cells = ["–" if ms is None else f"{ms:.4f} ({work / ms * 1e-9:.0f})" for ms in row]
            print(f"| {label} | {which} | " + " | ".join(cells) + " |", flush=True)
            lines += [(label, which, name, how, ms) for name, ms in zip(names, row) if ms is not None]
            for rung in right:
                for peer in peers:
                    ours, theirs = found.get((which, rung.name)), found.get((which, peer))
                    if ours and theirs:
                        ratios.setdefault((which, rung.name, peer), []).append(theirs / ours)
        torch.cuda.empty_cache()
    print()
    for (which, rung, peer), values in ratios.items():
        print(f"{which}: {rung} is {geometric_mean(values):.3f} times as fast as {peer} (geometric mean of "
              f"{len(values)}; worst {min(values):.3f}, best {max(values):.3f})")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            csv.writer(file).writerows([("case", "pass", "implementation", "launch", "milliseconds"), *lines])
    if arguments.log:
        pathlib.Path(arguments.log).write_text(written([log_head("graph", arguments.environment), *log]))
    print(f"{wrong} wrong" + (", nothing checked" if arguments.no_check else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
