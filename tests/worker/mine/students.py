"""Classes in the styles that students hand in. All of RIGHT pass the hand-out's own tests on the CPU; none of WRONG
does."""
import math

import torch


class Fp32Only(torch.autograd.Function):
    """Tiles of 16, the running maximum, and buffers that are fp32 whatever comes in."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        assert q.dtype == torch.float32, "fp32 only"
        batch, n, d = q.shape
        m = k.shape[1]
        o, lse = torch.zeros(batch, n, d), torch.zeros(batch, n)
        for i in range(0, n, 16):
            qi = q[:, i:i + 16]
            top = torch.full((batch, qi.shape[1]), -math.inf)
            total, out = torch.zeros(batch, qi.shape[1]), torch.zeros_like(qi)
            for j in range(0, m, 16):
                s = qi @ k[:, j:j + 16].transpose(1, 2) / math.sqrt(d)
                above = torch.maximum(top, s.max(-1).values)
                p, rescale = torch.exp(s - above[..., None]), torch.exp(top - above)
                total = rescale * total + p.sum(-1)
                out = rescale[..., None] * out + p @ v[:, j:j + 16]
                top = above
            o[:, i:i + 16] = out / total[..., None]
            lse[:, i:i + 16] = top + torch.log(total)
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        scale = 1 / math.sqrt(q.shape[-1])
        p = torch.exp(q @ k.transpose(1, 2) * scale - lse[..., None])
        ds = p * (do @ v.transpose(1, 2) - (do * o).sum(-1, keepdim=True))
        return ds @ k * scale, ds.transpose(1, 2) @ q * scale, p.transpose(1, 2) @ do, None


class Simple(torch.autograd.Function):
    """No tiles; what subclasses change is how P is rounded and what is saved."""

    @staticmethod
    def rounded(p):
        return p

    @classmethod
    def pass_forward(cls, ctx, q, k, v):
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        lse = torch.logsumexp(s, -1)
        o = cls.rounded(torch.exp(s - lse[..., None])) @ v
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @classmethod
    def pass_backward(cls, ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        scale = q.shape[-1] ** -0.5
        p = cls.rounded(torch.exp(q @ k.transpose(-1, -2) * scale - lse[..., None]))
        ds = p * (do @ v.transpose(-1, -2) - (do * o).sum(-1, keepdim=True)) * scale
        return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do, None


class IgnoresCausal(Simple):
    """As the hand-out allows: "you can ignore the is_causal flag for this task"."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return Simple.pass_forward(ctx, q, k, v)

    @staticmethod
    def backward(ctx, do):
        return Simple.pass_backward(ctx, do)


class RefusesCausal(IgnoresCausal):
    dtypes = ("fp32",)
    causal = False
    multiple_of = 16
    square = True

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        if is_causal or q.shape[1] % 16 != 0 or q.shape != k.shape or q.dtype != torch.float32:
            raise NotImplementedError("full mask, fp32, square, multiples of 16")
        return Simple.pass_forward(ctx, q, k, v)


class NoDtypeHandling(torch.autograd.Function):
    """Works in whatever comes, with buffers of torch's default dtype; keeps the mask beside L."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        n, m = q.shape[1], k.shape[1]
        s = torch.einsum("bnd,bmd->bnm", q, k) * q.shape[-1] ** -0.5
        keep = torch.arange(n)[:, None] >= torch.arange(m) if is_causal else torch.ones(n, m, dtype=torch.bool)
        s = torch.where(keep, s, torch.tensor(-1e6))
        top = s.amax(-1, keepdim=True)
        e = torch.exp(s - top)
        total = e.sum(-1, keepdim=True)
        o = torch.einsum("bnm,bmd->bnd", e / total, v)
        ctx.save_for_backward(keep, (top + total.log()).squeeze(-1), q, k, v, o)
        return o

    @staticmethod
    def backward(ctx, do):
        keep, lse, q, k, v, o = ctx.saved_tensors
        s = torch.where(keep, torch.einsum("bnd,bmd->bnm", q, k) * q.shape[-1] ** -0.5, torch.tensor(-1e6))
        p = torch.exp(s - lse.unsqueeze(-1))
        ds = p * (torch.einsum("bnd,bmd->bnm", do, v) - (o * do).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        return (torch.einsum("bnm,bmd->bnd", ds, k), torch.einsum("bnm,bnd->bmd", ds, q),
                torch.einsum("bnm,bnd->bmd", p, do), None)


class HalfRoundedP(NoDtypeHandling):
    """P rounded to bf16 before the product with V, as a kernel in half precision does it."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        o = NoDtypeHandling.forward(ctx, q, k, v, is_causal)
        keep, lse = ctx.to_save[:2]
        s = torch.where(keep, q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, torch.tensor(-1e6))
        p = torch.exp(s - lse[..., None]).to(torch.bfloat16).float()
        return o.copy_(p @ v)


class SplitKeys(NoDtypeHandling):
    """Two halves of the keys on their own, joined by their log-sum-exps in another order of additions."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        o = NoDtypeHandling.forward(ctx, q, k, v, is_causal)
        keep, half = ctx.to_save[0], k.shape[1] // 2
        s = torch.where(keep, q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, torch.tensor(-1e6))
        parts = [(torch.logsumexp(part, -1, keepdim=True), torch.softmax(part, -1) @ values)
                 for part, values in ((s[..., half:], v[:, half:]), (s[..., :half], v[:, :half]))]
        lse = torch.logaddexp(parts[0][0], parts[1][0])
        return o.copy_(sum(torch.exp(part - lse) * values for part, values in parts))


class FastExp(NoDtypeHandling):
    """exp by a polynomial of its base-2 fraction, good to about 1e-4."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        o = NoDtypeHandling.forward(ctx, q, k, v, is_causal)
        keep, lse = ctx.to_save[:2]
        s = torch.where(keep, q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, torch.tensor(-1e6))
        x = (s - lse[..., None]).clamp(min=-80) * 1.4426950408889634
        whole = torch.floor(x)
        f = x - whole
        p = torch.exp2(whole) * (1 + f * (0.69606564 + f * (0.22449434 + f * 0.07944023)))
        return o.copy_(p @ v)


class SavesTwo(IgnoresCausal):
    """D of the backward pass kept beside L: two tensors of L's shape, which the hand-out's tests refuse."""

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        o = Simple.pass_forward(ctx, q, k, v)
        ctx.save_for_backward(*ctx.to_save, torch.zeros(q.shape[:2]))
        return o


class NoScale(IgnoresCausal):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return Simple.pass_forward(ctx, q * q.shape[-1] ** 0.5, k, v)


class GradientUnscaled(IgnoresCausal):
    @staticmethod
    def backward(ctx, do):
        dq, dk, dv, none = Simple.pass_backward(ctx, do)
        return dq * 8, dk, dv, none


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        return Simple.pass_forward(ctx, q, k, v)


RIGHT = ("Fp32Only", "IgnoresCausal", "RefusesCausal", "NoDtypeHandling", "HalfRoundedP", "SplitKeys", "FastExp")
WRONG = ("SavesTwo", "NoScale", "GradientUnscaled", "NoBackward")
