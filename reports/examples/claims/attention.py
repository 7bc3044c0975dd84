"""Attention by each backend that PyTorch's scaled_dot_product_attention has, at the shapes of public tables; and this lab's own, where
SYSLAB_LIBRARY names its library.
"""
import pathlib
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def by(backend):
    def call(q, k, v, causal):
        with sdpa_kernel(backend):  # refuses what the backend does not support, float64 among it
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return call


flash = by(SDPBackend.FLASH_ATTENTION)
cudnn = by(SDPBackend.CUDNN_ATTENTION)
efficient = by(SDPBackend.EFFICIENT_ATTENTION)
math = by(SDPBackend.MATH)


def ours(q, k, v, causal):
    if "syslab_torch" not in sys.modules:
        folders = [each / "tools" / "python" for each in pathlib.Path(__file__).resolve().parents]
        sys.path.insert(0, str(next(each for each in folders if (each / "syslab_torch.py").exists())))
    import syslab_torch

    return syslab_torch.FlashAttention.apply(q, k, v, causal)


def plain(q, k, v, causal):
    """What all are compared with: head by head in float32, on whatever has q."""
    result = torch.empty_like(q)
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1) if causal else None
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = q[b, h].float() @ k[b, h].float().T / q.shape[-1] ** 0.5
            if causal:
                scores.masked_fill_(hidden, -torch.inf)
            result[b, h] = (torch.softmax(scores, -1) @ v[b, h].float()).to(q.dtype)
    return result

#         batch, heads, seq, head_dim, causal
SHAPES = {
    "ort": (16, 32, 256, 128, False),        # microsoft/onnxruntime, pull request 21629
    "causal8k": (2, 16, 8192, 128, True),    # Dao-AILab/flash-attention, pull request 1893
    "full16k": (1, 16, 16384, 128, False),   # FlashAttention-3, figure 5: 16 Ki tokens, hidden 2048
    "causal16k64": (1, 32, 16384, 64, True),
    "training": (4, 32, 2048, 128, True),    # huggingface/transformers, issue 48163
}


def shaped(names, dtype):
    for name in names:
        batch, heads, seq, head_dim, causal = SHAPES[name]

        def arguments(seed, shape=(batch, heads, seq, head_dim), causal=causal):
            generator = torch.Generator().manual_seed(seed)
            return {**{each: torch.randn(shape, generator=generator).to(dtype) for each in "qkv"}, "causal": causal}

        yield {"axes": {"shape": name}, "arguments": arguments, "rtol": 2e-2, "atol": 2e-2,
               "flops": 4 * batch * heads * seq * seq * head_dim / (2 if causal else 1)}


def cases():
    return shaped(SHAPES, torch.bfloat16)


def half_cases():
    return shaped(["ort"], torch.float16)


# The same for `claim`, which makes new arguments for every call and compares them with `plain` on the CPU: fewer heads where 16 would
# take long, enough of them to fill the GPU three times over.
CLAIMED = {
    "ort": (16, 32, 256, 128, False),
    "causal8k": (1, 8, 8192, 128, True),
    "full16k": (1, 4, 16384, 128, False),
    "causal16k64": (1, 4, 16384, 64, True),
    "training": (1, 32, 2048, 128, True),
}


def claimed(names, dtype):
    for name in names:
        batch, heads, seq, head_dim, causal = CLAIMED[name]

        def arguments(seed, shape=(batch, heads, seq, head_dim), causal=causal):
            """A head of random numbers; the others are the same numbers, moved by as many places for each of q, k and v."""
            generator = torch.Generator().manual_seed(seed)
            made = {}
            for each, apart in (("q", 37), ("k", 59), ("v", 83)):
                head = torch.randn(shape[2:], generator=generator).to(dtype)
                made[each] = torch.stack([head.roll(apart * n, 0) for n in range(shape[0] * shape[1])]).reshape(shape)
            return {**made, "causal": causal}

        yield {"axes": {"shape": name}, "arguments": arguments, "rtol": 2e-2, "atol": 2e-2,
               "flops": 4 * batch * heads * seq * seq * head_dim / (2 if causal else 1)}


def claimed_cases():
    return claimed([name for name in CLAIMED if name != "ort"], torch.bfloat16)


def claimed_half_cases():
    return claimed(["ort"], torch.float16)
