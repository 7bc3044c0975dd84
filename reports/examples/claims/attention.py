"""Attention by each backend that PyTorch's scaled_dot_product_attention has, at the shapes of public tables."""
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
