"""What a call of attention costs the host, beside PyTorch's own: one head, so short that the GPU waits for the host.

    python3 tools/peers/attention_calls.py                         through torch's operators
    SYSLAB_TORCH_CALLS=ctypes python3 tools/peers/attention_calls.py

Microseconds a call, in rounds of 200 calls queued one after another and ended by a synchronisation, the sides in turn;
the median of 15 rounds. `forward` is under torch.no_grad(); `with backward` is a forward and a backward pass, by
torch.autograd.grad, of which `nothing` is the price when there is nothing to compute: a Function that returns its
input.
"""
import argparse
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import syslab_torch  # noqa: E402

CALLS, ROUNDS = 200, 15
PEERS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
         "efficient": SDPBackend.EFFICIENT_ATTENTION}


def microseconds(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16")
    arguments = parser.parse_args()
    shape = (1, 1, arguments.seq, arguments.head_dim)
    q, k, v, do = (torch.randn(shape, device="cuda", dtype=getattr(torch, arguments.dtype)) for _ in range(4))
    inputs = [t.clone().requires_grad_() for t in (q, k, v)]

    def ours(q, k, v):
        return syslab_torch.FlashAttention.apply(q, k, v, True)

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            ctx.save_for_backward(q, k, v)
            return q

        @staticmethod
        def backward(ctx, do):
            return ctx.saved_tensors

    def theirs(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    sides = [("syslab", ours, None), ("nothing", Nothing.apply, None),
             *((name, theirs, backend) for name, backend in PEERS.items())]
    found: dict = {}
    for _ in range(ROUNDS + 1):  # the first is thrown away
        for name, attend, backend in sides:
            with sdpa_kernel(backend or SDPBackend.MATH):
                calls = {"forward": torch.no_grad()(lambda: attend(q, k, v)),
                         "with backward": lambda: torch.autograd.grad(attend(*inputs), inputs, do)}
                for what, call in calls.items():
                    try:
                        found.setdefault((name, what), []).append(microseconds(call))
                    except RuntimeError:
                        found[name, what] = None
        found = {key: value for key, value in found.items() if value is not None}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.dtype}, S = {arguments.seq}, "
          f"D = {arguments.head_dim}; syslab by {'ctypes' if syslab_torch.WHY_CTYPES else 'operators'}\n")
    print("| µs a call | forward | with backward |\n| --- | --- | --- |")
    for name, _, _ in sides:
        cells = [f"{statistics.median(found[name, what][1:]):.1f}" if (name, what) in found else "–"
                 for what in ("forward", "with backward")]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
