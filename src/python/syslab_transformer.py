"""The benchmark's transformer in torch: what ranks of Python train when they are timed (syslab_timing.py).

The parameters are those of syslab's own model (src/model), by shape and order, and so is the arithmetic, one operation
of torch after the other: no kernel of ours, so that a step with somebody's class and one with ours differ in the class
alone. Layers are torch's, or whatever `makers` gives, since a class that shards layers knows them by their type.
"""
from __future__ import annotations

import math
import typing

import torch
from torch import nn

Maker = typing.Callable[..., nn.Module]  # of a layer, given its sizes


class Sizes(typing.NamedTuple):
    vocab: int
    context: int
    d_model: int
    d_ff: int
    layers: int
    heads: int
    theta: float = 10000.0
    # Of RoPE's pairs: all first elements before all second ones (2026), or each pair in place (2025).
    halves: bool = True


def torchs_layers() -> tuple[Maker, Maker]:
    return lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False), nn.Embedding


class Norm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Rotation(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.d_model // sizes.heads
        rates = sizes.theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.outer(torch.arange(sizes.context, dtype=torch.float64), rates)
        self.halves = sizes.halves
        self.register_buffer("cos", angles.cos().to(torch.float32), persistent=False)
        self.register_buffer("sin", angles.sin().to(torch.float32), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x[..., 0::2], x[..., 1::2]
        cos, sin = self.cos[:x.shape[-2]], self.sin[:x.shape[-2]]
        turned = [cos * first - sin * second, sin * first + cos * second]
        return torch.cat(turned, -1) if self.halves else torch.stack(turned, -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, sizes: Sizes, linear: Maker) -> None:
        super().__init__()
        d = sizes.d_model
        self.q_proj, self.k_proj, self.v_proj, self.output_proj = (linear(d, d) for _ in range(4))
        self.heads = sizes.heads

    def forward(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        rows, tokens, width = x.shape
        q, k, v = (one(x).view(rows, tokens, self.heads, -1).transpose(1, 2)
                   for one in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotation(q), rotation(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        mixed = torch.softmax(scores.masked_fill(later, -math.inf), -1) @ v
        return self.output_proj(mixed.transpose(1, 2).reshape(rows, tokens, width))


class FeedForward(nn.Module):
    def __init__(self, sizes: Sizes, linear: Maker) -> None:
        super().__init__()
        self.w1 = linear(sizes.d_model, sizes.d_ff)
        self.w2 = linear(sizes.d_ff, sizes.d_model)
        self.w3 = linear(sizes.d_model, sizes.d_ff)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Block(nn.Module):
    def __init__(self, sizes: Sizes, linear: Maker) -> None:
        super().__init__()
        self.attn, self.ffn = Attention(sizes, linear), FeedForward(sizes, linear)
        self.ln1, self.ln2 = Norm(sizes.d_model), Norm(sizes.d_model)

    def forward(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        x = x + self.attn(self.ln1(x), rotation)
        return x + self.ffn(self.ln2(x))


class Transformer(nn.Module):
    """Token ids (rows, tokens) to logits (rows, tokens, vocab)."""

    def __init__(self, sizes: Sizes, makers: typing.Callable[[], tuple[Maker, Maker]] = torchs_layers) -> None:
        super().__init__()
        linear, embedding = makers()
        self.token_embeddings = embedding(sizes.vocab, sizes.d_model)
        self.layers = nn.ModuleList(Block(sizes, linear) for _ in range(sizes.layers))
        self.ln_final = Norm(sizes.d_model)
        self.lm_head = linear(sizes.d_model, sizes.vocab)
        self.rotation = Rotation(sizes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.token_embeddings(ids)
        for layer in self.layers:
            x = layer(x, self.rotation)
        return self.lm_head(self.ln_final(x))

    def draw(self, seed: int) -> Transformer:
        """Weights as the hand-outs draw them, but for the cut at three deviations; the same from one seed whatever made
        the layers."""
        numbers = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() == 2:
                    deviation = 1.0 if name.startswith("token_embeddings") else math.sqrt(2 / sum(parameter.shape))
                    parameter.copy_(torch.randn(parameter.shape, generator=numbers) * deviation)
        return self


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean over all positions of minus the log-probability of the target."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
