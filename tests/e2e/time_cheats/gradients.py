"""A pass back whose work is done in the forward call, which nobody times (test_times.py)."""
import time

import torch

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls


class Honest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, given):
        time.sleep(0.06 * LONGER)
        return given * ctx.saved_tensors[0].exp()


class Early(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(0.06 * LONGER)
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, given):
        time.sleep(0.03 * LONGER)
        return given * ctx.saved_tensors[0]


def cases():
    yield {"axes": {"n": 64}, "backward": True,
           "arguments": lambda seed: {"x": torch.randn(64, 8, generator=torch.Generator().manual_seed(seed))}}
