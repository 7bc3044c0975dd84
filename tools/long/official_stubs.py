"""Small stand-ins for packages that the hand-outs' tests and submissions import, where a Python has none: as much of
each as they use."""
import importlib.util
import pathlib

PYTEST = '''"""Marks as pytest keeps them on functions; official_suites.py reads them."""
import collections
import contextlib

Mark = collections.namedtuple("Mark", "name args kwargs")


class _Marks:
    def __getattr__(self, name):
        def made(*args, **kwargs):
            def put(function):
                function.pytestmark = [*getattr(function, "pytestmark", []), Mark(name, args, kwargs)]
                return function
            return put
        return made


mark = _Marks()


def fixture(*args, **kwargs):
    return args[0] if args and callable(args[0]) else lambda function: function


@contextlib.contextmanager
def raises(kind, match=None):
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")
'''

EINOPS = '''"""einsum, rearrange, reduce and repeat of torch tensors, for named axes, "..." and groups in
parentheses."""
import re
import string

import torch


def _groups(side):
    """[["b"], ["h", "d"], ["..."]] of "b (h d) ..."."""
    return [part.strip("()").split() if part.startswith("(") else [part]
            for part in re.findall(r"\\([^)]*\\)|\\S+", side)]


def einsum(*arguments):
    *tensors, pattern = arguments
    left, right = pattern.split("->")
    names = {}

    def letters(side):
        return "".join("..." if name == "..." else names.setdefault(name, string.ascii_letters[len(names)])
                       for name in side.split())

    return torch.einsum(",".join(letters(side) for side in left.split(",")) + "->" + letters(right), *tensors)


def _transform(tensor, pattern, sizes, reduction=None):
    left, right = (_groups(side) for side in pattern.split("->"))
    rest = tensor.dim() - sum(1 for group in left if group != ["..."])

    def expand(groups):
        return [one for group in groups
                for one in ([[f"...{i}"] for i in range(rest)] if group == ["..."] else [group])]

    left, right = expand(left), expand(right)
    shape = {}
    for group, size in zip(left, tensor.shape):
        open_ones = [name for name in group if name not in sizes and name != "1"]
        known = 1
        for name in group:
            known *= sizes.get(name, 1)
        for name in group:
            shape[name] = sizes[name] if name in sizes else 1 if name == "1" else size // known
        assert len(open_ones) <= 1, f"{pattern}: {group}"
    flat = [name for group in left for name in group]
    tensor = tensor.reshape([shape[name] for name in flat])
    wanted = [name for group in right for name in group if name != "1"]
    gone = [i for i, name in enumerate(flat) if name not in wanted]
    if gone:
        if reduction is None:
            assert all(shape[flat[i]] == 1 for i in gone), pattern
            tensor = tensor.reshape([shape[name] for name in flat if name in wanted])
        else:
            tensor = getattr(torch, {"max": "amax", "min": "amin"}.get(reduction, reduction))(tensor, dim=gone)
        flat = [name for name in flat if name in wanted]
    for name in wanted:
        if name not in flat:
            shape[name] = sizes[name]
            tensor, flat = tensor.unsqueeze(-1).expand(*tensor.shape, sizes[name]), [*flat, name]
    tensor = tensor.permute([flat.index(name) for name in wanted])
    out = []
    for group in right:
        size = 1
        for name in group:
            size *= shape.get(name, 1)
        out.append(size)
    return tensor.reshape(out)


def rearrange(tensor, pattern, **sizes):
    return _transform(tensor, pattern, sizes)


def reduce(tensor, pattern, reduction, **sizes):
    return _transform(tensor, pattern, sizes, reduction)


def repeat(tensor, pattern, **sizes):
    return _transform(tensor, pattern, sizes)
'''

JAXTYPING = '''"""Annotations that say nothing."""


class _Any:
    def __class_getitem__(cls, item):
        return item[0] if isinstance(item, tuple) else item


Float = Float32 = Float16 = BFloat16 = Real = Complex = _Any
Int = Int64 = Int32 = Integer = UInt8 = Bool = Num = Shaped = _Any


def jaxtyped(*args, **kwargs):
    return lambda function: function
'''

BASICS = '''"""The layers of the hand-out's model that its tests of FSDP train."""
import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) * (2 / (d_in + d_out)) ** 0.5)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x.to(self.weight.dtype), self.weight)


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))

    def forward(self, token_ids):
        return self.weight[token_ids]


class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * x).to(kind)
'''


def write(folder):
    """Into `folder` those that this Python has not; their names."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    stubbed = []
    for name, text in (("pytest", PYTEST), ("einops", EINOPS), ("jaxtyping", JAXTYPING)):
        if importlib.util.find_spec(name) is None:
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
            stubbed.append(name)
    if importlib.util.find_spec("cs336_basics") is None:
        (folder / "cs336_basics").mkdir(exist_ok=True)
        (folder / "cs336_basics" / "__init__.py").touch()
        (folder / "cs336_basics" / "model.py").write_text(BASICS, encoding="utf-8")
        stubbed.append("cs336_basics.model")
    return stubbed
