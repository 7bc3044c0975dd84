"""Layer normalisation, forward, of the shapes of Triton's tutorial 05: one kernel that holds a row, and PyTorch's."""
import torch


def library(x, weight, bias):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


try:
    import triton
    import triton.language as tl

    @triton.jit
    def normalise_rows(y, x, weight, bias, columns, epsilon, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * columns
        at = tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + row + at, mask=inside, other=0).to(tl.float32)
        mean = tl.sum(value, 0) / columns
        centred = tl.where(inside, value - mean, 0)
        scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
        w = tl.load(weight + at, mask=inside, other=0).to(tl.float32)
        b = tl.load(bias + at, mask=inside, other=0).to(tl.float32)
        tl.store(y + row + at, centred * scale * w + b, mask=inside)

    def fused(x, weight, bias):
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        normalise_rows[(rows,)](y, x, weight, bias, columns, 1e-5, BLOCK=block, num_warps=min(max(block // 256, 1), 16))
        return y
except ImportError:
    pass


def cases():
    for columns in (1024, 4096, 8192):
        def arguments(seed, columns=columns):
            generator = torch.Generator().manual_seed(seed)
            return {name: torch.randn(shape, generator=generator).half()
                    for name, shape in (("x", (4096, columns)), ("weight", (columns,)), ("bias", (columns,)))}

        yield {"axes": {"columns": columns}, "arguments": arguments, "bytes": 4 * 4096 * columns, "rtol": 1e-2, "atol": 1e-2}


def claimed_cases():
    """For `claim`, which makes new arguments for every call: 256 rows of random numbers, sixteen times by another factor."""
    for columns in (1024, 4096, 8192):
        def arguments(seed, columns=columns):
            generator = torch.Generator().manual_seed(seed)
            rows = torch.randn(256, columns, generator=generator)
            x = (torch.linspace(0.5, 2, 16)[:, None, None] * rows).reshape(4096, columns).half()
            return {"x": x, **{name: torch.randn(columns, generator=generator).half() for name in ("weight", "bias")}}

        yield {"axes": {"columns": columns}, "arguments": arguments, "bytes": 4 * 4096 * columns, "rtol": 1e-2, "atol": 1e-2}
