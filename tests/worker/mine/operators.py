"""Operators other than attention, in NumPy (docs/operators-of-your-own.md): right, and with faults."""
import numpy as np


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


class Operators:
    def rms_norm_forward(self, x, w, eps, delta=None):
        h = x if delta is None else x + delta
        rstd = 1 / np.sqrt((h * h).mean(1) + np.float32(eps))
        y = w * (h * rstd[:, None])
        return (y, rstd) if delta is None else (h, y, rstd)

    def rms_norm_backward(self, dy, h, w, rstd, eps, dh=None):
        normal = h * rstd[:, None]
        g = w * dy
        dx = rstd[:, None] * (g - normal * (g * normal).mean(1, keepdims=True))
        return dx if dh is None else dx + dh, (dy * normal).sum(0)

    def rope_forward(self, x, cos, sin, halves):
        c, s = cos[: x.shape[2]], sin[: x.shape[2]]
        one, two = x[..., 0::2], x[..., 1::2]
        turned = c * one - s * two, s * one + c * two
        return np.concatenate(turned, -1) if halves else np.stack(turned, -1).reshape(x.shape)

    def rope_backward(self, x, cos, sin, halves):
        c, s = cos[: x.shape[2]], sin[: x.shape[2]]
        half = x.shape[3] // 2
        one, two = (x[..., :half], x[..., half:]) if halves else (x[..., 0::2], x[..., 1::2])
        return np.stack((c * one + s * two, c * two - s * one), -1).reshape(x.shape)

    def swiglu_forward(self, gate, up):
        return gate * sigmoid(gate) * up

    def swiglu_backward(self, gate, up, dout):
        s = sigmoid(gate)
        return dout * up * s * (1 + gate * (1 - s)), dout * gate * s

    def cross_entropy_forward(self, logits, targets):
        largest = logits.max(1)
        total = np.exp(logits - largest[:, None]).sum(1)
        row_loss = np.log(total) - (logits[np.arange(len(targets)), targets] - largest)
        return row_loss, largest + np.log(total), row_loss.mean()

    def cross_entropy_backward(self, logits, targets, lse, scale):
        p = np.exp(logits - lse[:, None])
        p[np.arange(len(targets)), targets] -= 1
        return p * np.float32(scale / len(targets))

    def embedding_forward(self, ids, table):
        return table[ids]

    def embedding_backward(self, ids, dx, vocab):
        dtable = np.zeros((vocab, dx.shape[1]), np.float32)
        np.add.at(dtable, ids, dx)
        return dtable

    def adamw_step(self, p, m, v, g, beta1, rest1, beta2, rest2, step, root_factor, eps, decay_before,
                   decay_after, grad_scale,
                   clip):
        f = np.float32
        g = g * f(grad_scale * clip)
        m = f(beta1) * m + f(rest1) * g
        v = f(beta2) * v + f(rest2) * g * g
        p = p - f(decay_before) * p
        p = p - f(step) * m / (np.sqrt(v) * f(root_factor) + f(eps))
        return p - f(decay_after) * p, m, v

    def global_norm(self, g, grad_scale, max_norm=np.inf):
        norm = grad_scale * np.sqrt((g.astype(np.float64) ** 2).sum())
        return np.float32(norm), np.float32(min(1, max_norm / (norm + 1e-6)))

    def global_norm_scale(self, g, factor):
        return g * factor

    def gemm(self, a, b):
        return a @ b

    def weighted_sum_forward(self, x, w):
        return x @ w

    def weighted_sum_backward(self, x, w, dy):
        return dy[:, None] * w, dy @ x


class TurnsBack(Operators):
    def rope_forward(self, x, cos, sin, halves):
        return super().rope_forward(x, cos, -sin, halves)


class LastRowsOfTables(Operators):
    """Right as long as the tables have a row a position, and no more."""

    def rope_forward(self, x, cos, sin, halves):
        return super().rope_forward(x, cos[-x.shape[2]:], sin[-x.shape[2]:], halves)


class ShortBuffer(Operators):
    def weighted_sum_forward(self, x, w):
        return x[:, :1000] @ w[:1000]


class ForgetsEps(Operators):
    def rms_norm_forward(self, x, w, eps, delta=None):
        return super().rms_norm_forward(x, w, 0.0, delta)


class OneIdCounts(Operators):
    """`+=` with an index that repeats adds once."""

    def embedding_backward(self, ids, dx, vocab):
        dtable = np.zeros((vocab, dx.shape[1]), np.float32)
        dtable[ids] += dx
        return dtable


class Raises(Operators):
    def swiglu_forward(self, gate, up):
        raise ValueError("no gate for me")


class Nothing:
    pass
