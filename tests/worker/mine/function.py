"""torch.autograd.Functions as the hand-out asks for them, and one that forgets to save the log-sum-exp."""
import torch


def probabilities(q, k, is_causal):
    scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
    if is_causal:
        mask = torch.arange(q.shape[1])[:, None] >= torch.arange(k.shape[1])[None, :]
        scores = scores.masked_fill(~mask, float("-inf"))
    lse = torch.logsumexp(scores, -1)
    return torch.exp(scores - lse[..., None]), lse


class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        p, lse = probabilities(q.float(), k.float(), is_causal)
        o = (p @ v.float()).to(q.dtype)
        ctx.save_for_backward(lse, q, k, v, o)
        ctx.is_causal = is_causal
        return o

    @staticmethod
    def backward(ctx, do):
        _, q, k, v, o = (t.float() for t in ctx.saved_tensors)
        p, _ = probabilities(q, k, ctx.is_causal)
        ds = p * (do.float() @ v.transpose(1, 2) - (do * o).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        return tuple(t.to(do.dtype) for t in (ds @ k, ds.transpose(1, 2) @ q, p.transpose(1, 2) @ do.float())) + (None,)


class ForwardOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return Flash.forward(ctx, q, k, v, is_causal)


class SavesNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return q * 1

    @staticmethod
    def backward(ctx, do):
        return do, do, do, None


class WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum(-1)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy[..., None] * w, (dy[..., None] * x).reshape(-1, w.shape[0]).sum(0)


class Plain:
    """No Function: gets torch tensors, since this file imports torch and not NumPy."""

    def forward(self, x, w):
        assert isinstance(x, torch.Tensor)
        return x @ w
