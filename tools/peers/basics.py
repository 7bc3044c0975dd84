"""The transformer LM of CS336's basics package and its AdamW, in PyTorch, one framework operation after the other.

What `syslab`'s model is compared with: the same parameters by name and order, the same operations in the same order, no
kernel of ours. Precision is the caller's: autocast around the forward pass and the loss, or a model in float64.

    model = Transformer(Config(vocab=10000, context=512, d_model=768, layers=12, heads=12, d_ff=3072))
    loss = cross_entropy(model(ids), targets)

The two hand-outs differ in two places. 2025: RoPE puts each rotated pair back where it was, AdamW decays after its
update. 2026: RoPE puts all first elements before all second ones, AdamW decays before its update.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

LAYOUTS = ("interleaved", "halves")
DECAY_ORDERS = ("after", "before")
EPS_MODES = ("uncorrected", "corrected")


@dataclass(frozen=True)
class Config:
    vocab: int
    context: int
    d_model: int
    layers: int
    heads: int
    d_ff: int
    theta: float = 10000.0
    layout: str = "interleaved"

    def parameters(self):
        return 2 * self.vocab * self.d_model + self.d_model + self.layers * (
            4 * self.d_model**2 + 3 * self.d_model * self.d_ff + 2 * self.d_model)


def sizes(name, context, vocab=None):
    """A model of the hand-outs, or `tiny`, for tests; `xl` is not among the names, because it means another model in
    each of them."""
    table = {
        "tiny": (64, 2, 4, 128),
        "small": (768, 12, 12, 3072),
        "medium": (1024, 24, 16, 4096),
        "large": (1280, 36, 20, 5120),
        "xl25": (1600, 48, 25, 6400),
        "xl26": (2560, 32, 32, 10240),
        "10B": (4608, 50, 36, 12288),
    }
    if name not in table:
        raise SystemExit(f"unknown model '{name}'; there are {', '.join(table)}")
    d_model, layers, heads, d_ff = table[name]
    return Config(vocab or (101 if name == "tiny" else 10000), context, d_model, layers, heads, d_ff)


def at_least_float32(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def weight_of(rows, columns, deviation):
    weight = torch.empty(rows, columns)
    return nn.Parameter(nn.init.trunc_normal_(weight, 0.0, deviation, -3 * deviation, 3 * deviation))


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = weight_of(outputs, inputs, math.sqrt(2 / (inputs + outputs)))

    def forward(self, x):
        return F.linear(x, self.weight)


class Embedding(nn.Module):
    def __init__(self, vocab, d_model):
        super().__init__()
        self.weight = weight_of(vocab, d_model, 1.0)

    def forward(self, ids):
        return self.weight[ids]


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x):
        wide = at_least_float32(x)
        rstd = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * (wide * rstd)).to(x.dtype)


class Rope(nn.Module):
    """Rotates the pairs (2k, 2k+1) of each head by position · theta^(−2k/head_dim)."""

    def __init__(self, config, dtype):
        super().__init__()
        head_dim = config.d_model // config.heads
        frequencies = config.theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        angles = torch.outer(torch.arange(config.context, dtype=torch.float64), frequencies)
        self.layout = config.layout
        self.register_buffer("cos", angles.cos().to(dtype), persistent=False)
        self.register_buffer("sin", angles.sin().to(dtype), persistent=False)

    def forward(self, x):
        seq = x.shape[-2]
        cos, sin = self.cos[:seq], self.sin[:seq]
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
        turned = (cos * first - sin * second, sin * first + cos * second)
        if self.layout == "halves":
            return torch.cat(turned, -1)
        return torch.stack(turned, -1).flatten(-2)


def softmax(x):
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    return e / e.sum(-1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, config, rope):
        super().__init__()
        d = config.d_model
        self.q_proj, self.k_proj, self.v_proj, self.output_proj = (Linear(d, d) for _ in range(4))
        self.heads, self.rope = config.heads, rope

    def forward(self, x):
        batch, seq, d_model = x.shape
        q, k, v = (projection(x).view(batch, seq, self.heads, -1).transpose(1, 2)
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self.rope(q), self.rope(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d_model // self.heads)
        position = torch.arange(seq, device=x.device)
        scores = torch.where(position[:, None] >= position, scores, -math.inf)
        mixed = softmax(scores) @ v
        return self.output_proj(mixed.transpose(1, 2).reshape(batch, seq, d_model))


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(d_model, d_ff), Linear(d_ff, d_model), Linear(d_model, d_ff)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config, rope):
        super().__init__()
        self.attn, self.ffn = Attention(config, rope), SwiGLU(config.d_model, config.d_ff)
        self.ln1, self.ln2 = RMSNorm(config.d_model), RMSNorm(config.d_model)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Transformer(nn.Module):
    def __init__(self, config, dtype=torch.float32):
        super().__init__()
        rope = Rope(config, dtype)
        self.token_embeddings = Embedding(config.vocab, config.d_model)
        self.layers = nn.ModuleList(Block(config, rope) for _ in range(config.layers))
        self.ln_final = RMSNorm(config.d_model)
        self.lm_head = Linear(config.d_model, config.vocab)
        self.to(dtype)

    def forward(self, ids):
        x = self.token_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


def cross_entropy(logits, targets):
    """Mean over all positions of minus the log-probability of the target."""
    shifted = logits - logits.max(-1, keepdim=True).values
    log_probability = shifted - torch.log(torch.exp(shifted).sum(-1, keepdim=True))
    return -log_probability.gather(-1, targets.unsqueeze(-1)).mean()


def gradient_norm(parameters):
    return torch.sqrt(sum((p.grad**2).sum() for p in parameters if p.grad is not None))


def clip_gradients(parameters, norm, max_norm):
    """Returns the factor."""
    factor = min(1.0, max_norm / (norm.item() + 1e-6))
    for p in parameters:
        if p.grad is not None:
            p.grad.mul_(factor)
    return factor


def learning_rate(step, most, least, warmup, cycle):
    """Linear warm-up, then half a cosine down to `least`; `step` counts from 0."""
    if step < warmup:
        return most * step / warmup
    if step > cycle:
        return least
    return least + (1 + math.cos(math.pi * (step - warmup) / (cycle - warmup))) / 2 * (most - least)


class AdamW(torch.optim.Optimizer):
    """eps_mode uncorrected: eps is added to the square root of the second moment as it is, the hand-outs' way;
    corrected: after that is divided by sqrt(1 − beta2^t), the framework's way."""

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decay_order="after",
                 eps_mode="uncorrected"):
        super().__init__(parameters, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        self.decay_first, self.corrected = decay_order == "before", eps_mode == "corrected"

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
            decay = lr * group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                root1, root2 = 1 - beta1 ** state["t"], math.sqrt(1 - beta2 ** state["t"])
                state["m"] = beta1 * state["m"] + (1 - beta1) * p.grad
                state["v"] = beta2 * state["v"] + (1 - beta2) * p.grad**2
                if self.decay_first:
                    p -= decay * p
                if self.corrected:
                    p -= lr / root1 * state["m"] / (torch.sqrt(state["v"]) / root2 + eps)
                else:
                    p -= lr * root2 / root1 * state["m"] / (torch.sqrt(state["v"]) + eps)
                if not self.decay_first:
                    p -= decay * p
