"""Functions of any arguments that are judged on a GPU (tests/e2e/gpu_lab.py): a millisecond's work, and what would be seen for less."""
import time

import torch

CYCLES = 2_000_000  # about a millisecond
told = torch.cuda.Event.elapsed_time
side: list = []
kept: dict = {}


def reference(x, w):
    return (x * w).sum(-1)


def cases():
    def arguments(seed):
        generator = torch.Generator().manual_seed(seed)
        return {"x": torch.randn(4096, 256, generator=generator), "w": torch.randn(256, generator=generator)}

    yield {"axes": {"rows": 4096}, "arguments": arguments}


def honest(x, w):
    torch.cuda._sleep(CYCLES) if x.is_cuda else time.sleep(1e-3)
    return reference(x, w)


def forges_its_events(x, w):
    """A tenth of a millisecond, whatever happened."""
    torch.cuda.Event.elapsed_time = lambda self, end: 0.1
    time.monotonic_ns = time.perf_counter_ns = lambda: 0
    return honest(x, w)


def tells_half(x, w):
    torch.cuda.Event.elapsed_time = lambda self, end: told(self, end) / 2
    return honest(x, w)


def remembers_addresses(x, w):
    key = (x.data_ptr(), w.data_ptr())
    if key not in kept:
        kept[key] = honest(x, w)
    return kept[key].clone()


def returns_early(x, w):
    """Its work goes on in a stream that nothing waits for."""
    if not x.is_cuda:
        return honest(x, w)
    side.append(torch.cuda.Stream()) if not side else None
    out = torch.empty(x.shape[:-1], device=x.device)
    side[0].wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side[0]):
        out.copy_(honest(x, w))
    return out
