"""A function of lists, dicts and arrays, right, and with each change of an argument that its caller would find."""
import numpy as np
import torch


def reference(xs, d, a):
    return xs[0] * d["k"] + xs[1] + torch.from_numpy(a)


def cases():
    def arguments(seed):
        x, y = torch.randn(2, 16, 64, generator=torch.Generator().manual_seed(seed)).unbind()
        return {"xs": [x, y], "d": {"k": 3.0, "of": (None, "k", {"more": [1, 2]})},
                "a": np.random.default_rng(seed).standard_normal((16, 64)).astype("f4")}

    yield {"name": "containers", "arguments": arguments}


def right(xs, d, a):
    """Views, copies, and what is another object with the same content, are nobody's fault."""
    x, y = xs[0].t().unsqueeze(0), list(reversed(xs))[0]
    own = dict(d, k=float(d["k"]))
    xs[1] = xs[1].contiguous()
    d["of"] = (None, "k", dict(d["of"][2]))
    return (x[0] * own.pop("k")).t() + y + torch.from_numpy(a.reshape(-1).reshape(16, 64))


def changing(change):
    def function(xs, d, a):
        y = reference(xs, d, a)
        change(xs, d, a)
        return y

    return function


def swap(xs, d, a):
    xs[0], xs[1] = xs[1], xs[0]


def shape(xs, d, a):
    a.shape = (64, 16)


CALLS = [0]


def late(xs, d, a):
    CALLS[0] += 1
    if CALLS[0] > 4:
        xs.append(xs[0])


swaps, unsqueezes, appends_late, shapes = (changing(each) for each in (swap, lambda xs, d, a: xs[0].unsqueeze_(0), late, shape))
pops, sets, deep = (changing(each) for each in (lambda xs, d, a: d.pop("of"), lambda xs, d, a: d.update(k=5.0),
                                                lambda xs, d, a: d["of"][2]["more"].append(3)))
locks, requires = (changing(each) for each in (lambda xs, d, a: a.setflags(write=False), lambda xs, d, a: xs[1].requires_grad_(True)))
