"""A softmax of torch, right and wrong in every way that test_functions.py asks for."""
import ctypes
import os
import platform
import subprocess
import time

import numpy as np
import torch

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


def reference(x, scale):
    return torch.softmax(x * scale, -1)


def cases():
    for n, dtype in ((24, "float32"), (40, "bfloat16")):
        def arguments(seed, n=n, dtype=dtype):
            generator = torch.Generator().manual_seed(seed)
            return {"x": torch.randn(n, n, generator=generator).to(getattr(torch, dtype)), "scale": 0.5}

        yield {"axes": {"n": n, "dtype": dtype}, "arguments": arguments}


def fast(x, scale):
    y = torch.exp((x * scale).float())
    return (y / y.sum(-1, keepdim=True)).to(x.dtype)


def lasting(x, scale):
    """As long as a call must be that has a time."""
    time.sleep(0.06 * LONGER)
    return fast(x, scale)


def lasting_reference(x, scale):
    time.sleep(0.06 * LONGER)
    return reference(x, scale)


def cases_that_tell():
    for case in cases():
        yield {**case, "arguments": lambda seed, made=case["arguments"]: {f"x_of_{os.getpid()}": made(seed)["x"], "scale": 0.5}}


def tells(x, scale):
    return {f"made_by_{os.getpid()}": reference(x, scale)}


class Module(torch.nn.Module):
    def forward(self, x, scale):
        return torch.softmax(x * scale, -1)


def zeros(x, scale):
    return torch.zeros_like(x)


def nearly(x, scale):
    return reference(x, scale) * (1 + 1e-4)  # within no bound in float32


def mutates(x, scale):
    return x.mul_(scale).softmax(-1)


def view(x, scale):
    return x.view_as(x)


class Lazy:
    def __init__(self, x):
        self.shape, self.dtype, self.x = x.shape, x.dtype, x

    def __array__(self):
        return torch.softmax(self.x, -1).numpy()


def lazy(x, scale):
    return Lazy(x)


def subclass(x, scale):
    class Late(torch.Tensor):
        pass

    return reference(x, scale).as_subclass(Late)


def flat(x, scale):
    return reference(x, scale).flatten()


def double(x, scale):
    return reference(x, scale).double()


def noisy(x, scale):
    return reference(x, scale) + 1e-9 * torch.rand_like(x)


OWN = np.random.default_rng()


def own_noise(x, scale):
    return reference(x, scale) * float(OWN.uniform(1, 2))


def flags(x, scale):
    torch.backends.cuda.matmul.allow_tf32 = True
    return reference(x, scale)


def flags_for_one(x, scale):
    if x.shape[0] == 24:
        torch.backends.cudnn.benchmark = True
    return reference(x, scale)


LATE = [0]


def flags_late(x, scale):
    LATE[0] += x.shape[0] == 24
    if LATE[0] > 4 and x.shape[0] == 24:
        torch.backends.cudnn.benchmark = True
    return reference(x, scale)


def flushes(x, scale):
    torch.set_flush_denormal(True)
    return reference(x, scale)


def keeps_settings(x, scale):
    """It changes what others compute by for a time of its own."""
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False
    with torch.enable_grad(), torch.cpu.amp.autocast(enabled=False), torch.inference_mode(False), np.errstate(all="ignore"):
        found = reference(x, scale)
    torch.backends.cudnn.enabled = before
    return found


def gradients(x, scale):
    found = reference(x, scale)
    torch.set_grad_enabled(not torch.is_grad_enabled())
    return found


ENTERED = []


def inference(x, scale):
    ENTERED.append(torch.inference_mode())
    ENTERED[-1].__enter__()
    return reference(x, scale)


def cudnn(x, scale):
    torch.backends.cudnn.enabled = False
    return reference(x, scale)


def sums_of_fp16(x, scale):
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return reference(x, scale)


def autocast(x, scale):
    torch.cpu.amp.autocast().__enter__()
    return reference(x, scale)


def onednn(x, scale):
    torch._C._set_mkldnn_enabled(False)
    return reference(x, scale)


def errors(x, scale):
    np.seterrcall(print)
    return reference(x, scale)


def rounds(x, scale):
    ctypes.CDLL(None).fesetround({"x86_64": 0x800}.get(platform.machine(), 0x400000))  # upward
    return reference(x, scale)


def flags_and_raises(x, scale):
    if x.shape[0] == 24:
        torch.backends.cudnn.benchmark = True
        raise ValueError("no kernel")
    return reference(x, scale)


def small_only(x, scale):
    if x.shape[0] > 24:
        raise ValueError(f"no kernel for {x.shape[0]} rows")
    return reference(x, scale)


CALLS = [0]


def cached(x, scale):
    CALLS[0] += 1
    if CALLS[0] == 1 or not hasattr(cached, "kept"):
        cached.kept = reference(x, scale)
    return cached.kept.clone()


def compiles(x, scale):
    subprocess.run(["true"], check=True)  # a compiler
    return reference(x, scale)


def traces(x, scale):
    return torch.jit.trace(lambda y: reference(y, scale), (x,), check_trace=False)(x)


BUILT: list = []


def compiles_once(x, scale):
    if not BUILT:
        BUILT.append(subprocess.run(["true"], check=True))
    return reference(x, scale)


def deterministic(x, scale):
    torch.use_deterministic_algorithms(True)
    return reference(x, scale)


def early_exit(x, scale):
    raise SystemExit(0)
