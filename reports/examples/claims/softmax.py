"""Row-wise softmax of the shapes of Triton's tutorial 02: a fused kernel, torch.softmax, and PyTorch operations one by one."""
import torch


def naive(x):
    shifted = x - x.max(dim=1)[0][:, None]
    powers = torch.exp(shifted)
    return powers / powers.sum(dim=1)[:, None]


def library(x):
    return torch.softmax(x, -1)


try:
    import triton
    import triton.language as tl

    @triton.jit
    def softmax_rows(y, x, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * columns
        at = tl.arange(0, BLOCK)
        value = tl.load(x + row + at, mask=at < columns, other=-float("inf"))
        power = tl.exp(value - tl.max(value, 0))
        tl.store(y + row + at, power / tl.sum(power, 0), mask=at < columns)

    def fused(x):
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        softmax_rows[(rows,)](y, x, columns, BLOCK=block, num_warps=4 if block <= 2048 else 8 if block <= 8192 else 16)
        return y
except ImportError:
    pass


def cases():
    for columns in (1024, 4096, 12288):
        def arguments(seed, columns=columns):
            return {"x": torch.randn(4096, columns, generator=torch.Generator().manual_seed(seed))}

        yield {"axes": {"columns": columns}, "arguments": arguments, "bytes": 8 * 4096 * columns}


def claimed_cases():
    """For `claim`, which makes new arguments for every call: 256 rows of random numbers, sixteen times by another factor."""
    for columns in (1024, 4096):
        def arguments(seed, columns=columns):
            rows = torch.randn(256, columns, generator=torch.Generator().manual_seed(seed))
            return {"x": (torch.linspace(0.5, 2, 16)[:, None, None] * rows).reshape(4096, columns)}

        yield {"axes": {"columns": columns}, "arguments": arguments, "bytes": 8 * 4096 * columns, "rtol": 1e-5, "atol": 1e-9}
