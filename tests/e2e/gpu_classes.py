"""Classes in torch that gpu_lab.py hands in on a GPU."""
import math

import torch


# Weighted sums that are right, but for where they queue their work.

class Here:
    def forward(self, x, w):
        return (x * w).sum(-1)


class Aside(Here):
    waits, joins = False, True

    def forward(self, x, w):
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        if self.waits:
            aside.wait_stream(here)
        with torch.cuda.stream(aside):
            if not self.joins:
                torch.cuda._sleep(2_000_000)
            y = (x * w).sum(-1)
        if self.joins:
            here.wait_stream(aside)
        return y


class ForkAndJoin(Aside):
    waits, joins = True, True


class NeverJoins(Aside):
    waits, joins = True, False


class ElsewhereAltogether(Aside):
    waits, joins = False, False


# Forward attention: right, with one memory for the scores of all calls, and with a change of q.

class Right(torch.autograd.Function):
    @staticmethod
    def scores(q, k):
        return q @ k.mT

    @classmethod
    def attend(cls, ctx, q, k, v, is_causal):
        dtype = q.dtype
        q, k, v = (one.float() for one in (q, k, v))  # half precision rounds scores by more than their bound
        s = cls.scores(q, k) * q.shape[-1] ** -0.5
        if is_causal:
            s = s.masked_fill(torch.arange(k.shape[-2], device=q.device) > torch.arange(q.shape[-2], device=q.device)[:, None], -torch.inf)
        lse = torch.logsumexp(s, -1)
        o = torch.exp(s - lse[..., None]) @ v
        ctx.save_for_backward(lse, q, k, v, o)
        return o.to(dtype)

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return Right.attend(ctx, q, k, v, is_causal)


class SharedScratch(Right):
    memory = None

    @classmethod
    def scores(cls, q, k):
        shape = (*q.shape[:-1], k.shape[-2])
        size = math.prod(shape)
        if cls.memory is None or cls.memory.numel() < size:
            cls.memory = torch.empty(max(size, 1 << 22), device=q.device, dtype=q.dtype)
        with torch.no_grad():
            return torch.matmul(q, k.mT, out=cls.memory[:size].view(shape))

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return SharedScratch.attend(ctx, q, k, v, is_causal)


class InPlace(Right):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        q.mul_(1.0009765625)
        return Right.attend(ctx, q / 1.0009765625, k, v, is_causal)
