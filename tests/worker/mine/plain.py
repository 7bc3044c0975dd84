"""Plain classes on NumPy arrays: right ones, and the mistakes that students make."""
import sys
import time

import numpy as np


def probabilities(q, k, is_causal):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.arange(q.shape[1])[:, None] >= np.arange(k.shape[1])[None, :], scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    lse = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.exp(scores - lse), lse[..., 0]


class Naive:
    def forward(self, q, k, v, is_causal):
        print("a print from user code")
        p, lse = probabilities(q, k, is_causal)
        return p @ v, lse

    def backward(self, q, k, v, o, lse, do, is_causal):
        p, _ = probabilities(q, k, is_causal)
        dp = do @ v.transpose(0, 2, 1)
        ds = p * (dp - (do * o).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
        return ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ do


class ForwardOnly:
    def forward(self, q, k, v, is_causal):
        p, lse = probabilities(q, k, is_causal)
        return p @ v, lse


class WeightedSum:
    def forward(self, x, w):
        return x @ w

    def backward(self, x, w, dy):
        return dy[..., None] * w, np.tensordot(dy, x, axes=dy.ndim)


class Raises:
    def forward(self, q, k, v, is_causal):
        return self.helper(q)

    def helper(self, q):
        raise ValueError("tile 7 does not divide 12")


class WrongShape:
    def forward(self, q, k, v, is_causal):
        return q[:, :-1], q[..., 0]


class OneResult:
    def forward(self, q, k, v, is_causal):
        return q


class Exits:
    def forward(self, q, k, v, is_causal):
        sys.exit(3)


class Dies:
    def forward(self, q, k, v, is_causal):
        import os

        print("about to die", file=sys.stderr)
        os._exit(9)


class Sleeps:
    def forward(self, q, k, v, is_causal):
        time.sleep(600)


class Greedy:
    def forward(self, q, k, v, is_causal):
        return np.ones(1 << 45), None


class NeedsArguments:
    def __init__(self, tile):
        self.tile = tile


class MaskOffByOne(Naive):
    """Sees one key too many: what the conformance test must notice."""

    def forward(self, q, k, v, is_causal):
        if not is_causal:
            return super().forward(q, k, v, False)
        rolled = np.tril(np.ones((q.shape[1], k.shape[1])), 1)
        scores = np.where(rolled > 0, q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf)
        lse = np.log(np.exp(scores).sum(-1))
        return np.exp(scores - lse[..., None]) @ v, lse
