"""A step of AdamW on four parameters: op by op on each (foreach=False), in lists (foreach), and in one kernel (fused). Each works on
copies, since a function may not change its arguments: the copying is in the times of all, so that ratios are nearer to 1 than without.
"""
import torch
from torch.optim.adamw import adamw

RATES = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "lr": 1e-3, "weight_decay": 0.01, "eps": 1e-8, "maximize": False}


def by(**how):
    def step(parameters, gradients, first, second):
        p, m, v = ([each.clone() for each in one] for one in (parameters, first, second))
        steps = [torch.full((), 3.0, device=p[0].device) if how.get("fused") else torch.tensor(3.0) for _ in p]
        adamw(p, list(gradients), m, v, [], steps, **how, **RATES)
        return [*p, *m, *v]
    return step


one_by_one = by(foreach=False)
foreach = by(foreach=True)
fused = by(fused=True)


def plain(parameters, gradients, first, second):
    t, b1, b2 = 4, RATES["beta1"], RATES["beta2"]
    made = [], [], []
    for p, g, m, v in zip(parameters, gradients, first, second):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        denominator = (v / (1 - b2 ** t)).sqrt() + RATES["eps"]
        made[0].append(p * (1 - RATES["lr"] * RATES["weight_decay"]) - RATES["lr"] * (m / (1 - b1 ** t)) / denominator)
        made[1].append(m)
        made[2].append(v)
    return made[0] + made[1] + made[2]


def cases():
    def arguments(seed, shapes=((1024, 512),) * 4):
        generator = torch.Generator().manual_seed(seed)

        def drawn():
            return [torch.randn(shape, generator=generator) for shape in shapes]

        return {"parameters": drawn(), "gradients": drawn(), "first": [0.1 * each for each in drawn()],
                "second": [0.1 + each * each for each in drawn()]}

    yield {"axes": {"parameters": 4}, "arguments": arguments, "rtol": 1e-5, "atol": 1e-6}
