"""The kernels that PyTorch launches for each operator of the model, forward and backward, as its profiler sees them.

    python3 tools/peers/operators.py --kernels

What `eager_cuda` rungs spell out (`eager.hpp` of each operator) and are timed beside: the operators as basics.py has
them, at the sizes of the small model (batch 4, context 512), in fp32 and in bf16 under autocast. A table of how many
kernels there are and their time on the GPU together; `--kernels` names them, in order. Memset and Memcpy (a reduction's
semaphores, x¹) are timed, but not counted.
"""
import argparse
import re
import sys
from contextlib import nullcontext

import torch
from torch.profiler import ProfilerActivity, profile

from basics import AdamW, Config, RMSNorm, Rope, cross_entropy

ROWS, D_MODEL, D_FF, VOCAB, HEADS = 4 * 512, 768, 3072, 10000, 12


def events_of(work):
    work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as record:
        work()
        torch.cuda.synchronize()
    events = [event for event in record.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return [event for event in events if "#" not in event.name]  # without the optimizer's own mark around its kernels


def is_kernel(event):
    return not event.name.startswith(("Memset", "Memcpy"))


def short(name):
    """What a kernel's mangled name is about."""
    words = re.findall(r"(\w+?)(?:_kernel|Functor|_cuda|Kernel|Ops)\w*", name)
    return "/".join(dict.fromkeys(words))[-60:] or name.split(" ")[0]


def tell(what, events, names):
    kernels = sum(map(is_kernel, events))
    microseconds = sum(event.time_range.elapsed_us() for event in events)
    print(f"| {what} | {kernels} | {microseconds:.1f} |")
    if names:
        print("".join(f"|   {short(event.name)} | | {event.time_range.elapsed_us():.1f} |\n" for event in events),
              end="")


def operator(what, forward, leaves, names, region=nullcontext):
    def run():
        with region():
            return forward()

    tell(f"{what} forward", events_of(run), names)
    out = run()
    upstream = torch.ones_like(out)
    tell(f"{what} backward", events_of(lambda: torch.autograd.grad(out, leaves, upstream, retain_graph=True)), names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", action="store_true", help="name every kernel, with its time")
    names = parser.parse_args().kernels
    torch.manual_seed(0)

    def draw(*shape, dtype=torch.float32):
        return torch.randn(shape, device="cuda").to(dtype).requires_grad_()

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n\n| operator | kernels | µs |\n| --- | --- | "
          "--- |")
    norm, x = RMSNorm(D_MODEL).cuda(), draw(ROWS, D_MODEL)
    operator("rms_norm fp32", lambda: norm(x), [x, norm.weight], names)
    rope = Rope(Config(VOCAB, 512, D_MODEL, 1, HEADS, D_FF), torch.float32).cuda()
    ids = torch.randint(VOCAB, (ROWS,), device="cuda")
    for word, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        def region():
            return torch.autocast("cuda", torch.bfloat16) if dtype == torch.bfloat16 else nullcontext()

        gate, up = draw(ROWS, D_FF, dtype=dtype), draw(ROWS, D_FF, dtype=dtype)
        operator(f"swiglu {word}", lambda: gate * torch.sigmoid(gate) * up, [gate, up], names, region)
        q = draw(4, 512, HEADS, D_MODEL // HEADS, dtype=dtype)
        heads = q.transpose(1, 2)
        operator(f"rope {word}", lambda: rope(heads), [heads], names, region)
        logits = draw(ROWS, VOCAB, dtype=dtype)
        operator(f"cross_entropy {word}", lambda: cross_entropy(logits, ids), [logits], names, region)
    weight = draw(1 << 24)
    weight.grad = torch.randn_like(weight)
    optimizer = AdamW([weight])
    tell("adamw, 16 Mi weights", events_of(optimizer.step), names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
