"""The hand-outs' tests of data parallelism, sharded optimizers and FSDP, of both years and in our words, through
src/python/syslab_parallel.py: two ranks in a Gloo group on the CPU. And what they do not ask of it.

    python3 parallel_official.py [NAME ...]      (SYSLAB_LIBRARY; exit code 77: this Python has no torch)
"""
import copy
import importlib.util
import os
import pathlib
import sys
import tempfile
import traceback
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src" / "python"))
try:
    import torch
except ImportError:
    print("this Python has no torch")
    sys.exit(77)
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

RANKS = 2


class Skipped(Exception):
    pass


def adapters(year):
    described = importlib.util.spec_from_file_location(f"adapters_{year}", ROOT / "tests" / "worker" / "mine" / f"ours_{year}" / "adapters.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


# --- the hand-outs' models: names, shapes and what trains ---


class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 50)
        self.fc.bias.requires_grad = False

    def forward(self, x):
        return self.fc(x)


class Toy(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(10, 10, bias=False), Biased(), nn.Linear(50, outputs, bias=False)
        self.no_grad_fixed_param = nn.Parameter(torch.tensor([2.0, 2.0]), requires_grad=False)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Tied(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        sizes = [(10, 10), (10, 50), (50, 10), (10, 50), (50, outputs)]
        self.layers = nn.ModuleList(nn.Linear(*size, bias=False) for size in sizes)
        self.layers[3].weight = self.layers[1].weight

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * (2 / (inputs + outputs)) ** 0.5)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Embedding(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, width))

    def forward(self, ids):
        return self.weight[ids, :]


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5))).to(x.dtype)


# As the hand-out's own package has them: found by name.
sys.modules["cs336_basics"] = types.ModuleType("cs336_basics")
sys.modules["cs336_basics.model"] = types.ModuleType("cs336_basics.model")
vars(sys.modules["cs336_basics.model"]).update(Linear=Linear, Embedding=Embedding)


class Chain(nn.Module):
    """Of FSDP's tests."""

    def __init__(self, rows=100):
        super().__init__()
        self.embedding, self.norm1, self.up = Embedding(rows, 64), Norm(64), Linear(64, 128)
        self.norm2, self.down, self.head = Norm(128), Linear(128, 64), Linear(64, rows)

    def forward(self, ids):
        x = self.norm1(self.embedding(ids))
        return self.head(self.down(self.norm2(torch.relu(self.up(x)))))


def require(condition, message):
    if not condition:
        raise AssertionError(message)


def require_close(found, expected, message, **tolerance):
    for (name, one), (_, other) in zip(found, expected):
        require(torch.allclose(one, other, **tolerance),
                f"{message}: '{name}' differs by up to {(one - other).abs().max():.3g}")


def differ_on_ranks(tensor):
    ranks = [torch.empty_like(tensor) for _ in range(RANKS)]
    dist.all_gather(ranks, tensor.detach().contiguous())
    return any(not torch.equal(ranks[0], one) for one in ranks)


# --- DDP ---


def ddp(rank, model, outputs, wrap, after_backward, begin=lambda container, optimizer: None, set_to_none=True):
    torch.manual_seed(rank)
    alone = model(outputs)
    container = wrap(copy.deepcopy(alone))
    for (name, mine), (_, theirs) in zip(container.named_parameters(), alone.named_parameters()):
        alike = torch.equal(mine, theirs)
        require(alike == (rank == 0 or "no_grad_fixed_param" in name), f"'{name}' is {'' if alike else 'not '}rank {rank}'s own when wrapped")
    require(not any(differ_on_ranks(value) for value in container.module.state_dict().values()), "ranks begin with other states")
    torch.manual_seed(0)
    data, labels = torch.randn(20, 10), torch.randn(20, outputs)
    own = slice(rank * 10, rank * 10 + 10)
    loss = nn.MSELoss()
    sgd, sgd_alone = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (container, alone))
    for step in range(5):
        begin(container, sgd)
        sgd.zero_grad(set_to_none=set_to_none)
        sgd_alone.zero_grad()
        loss(alone(data), labels).backward()
        sgd_alone.step()
        loss(container(data[own]), labels[own]).backward()
        after_backward(container, sgd)
        if rank == 0:
            for (name, mine), (_, theirs) in zip(container.named_parameters(), alone.named_parameters()):
                require(torch.allclose(mine, theirs) != theirs.requires_grad, f"'{name}' before the update of step {step}")
        sgd.step()
        if rank == 0:
            require_close(container.module.named_parameters(), alone.named_parameters(), f"after step {step}")
        torch.manual_seed(42 + step)
        order = torch.randperm(20)
        data, labels = data[order], labels[order]
    require(not any(differ_on_ranks(value) for value in container.module.state_dict().values()), "ranks end with other states")
    return container


def individual_2025(rank, model):
    own = adapters(2025)
    ddp(rank, model, 5, own.get_ddp_individual_parameters, own.ddp_individual_parameters_on_after_backward)


def bucketed_2025(rank, model, limit):
    own = adapters(2025)
    ddp(rank, model, 5, lambda module: own.get_ddp_bucketed(module, limit), own.ddp_bucketed_on_after_backward,
        own.ddp_bucketed_on_train_batch_start)


def ddp_2026(rank, model):
    own = adapters(2026)
    ddp(rank, model, 10, own.get_ddp, own.ddp_on_after_backward)


# --- the sharded optimizer ---


def sharded(rank, model, year):
    own = adapters(year)
    outputs = 5 if year == 2025 else 10
    torch.manual_seed(42)
    mine = model(outputs)
    theirs = copy.deepcopy(mine)
    options = {"lr": 0.1, "weight_decay": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}
    optimizers = [own.get_sharded_optimizer(mine.parameters(), torch.optim.AdamW, **options), torch.optim.AdamW(theirs.parameters(), **options)]
    for _ in range(10):
        inputs, labels = torch.rand(32, 10), torch.rand(32, outputs)
        for one, optimizer in zip((mine, theirs), optimizers):
            optimizer.zero_grad()
            ((labels - one(inputs)) ** 2).sum().backward()
            optimizer.step()
    require_close(mine.named_parameters(), theirs.named_parameters(), "after 10 steps", rtol=1e-7, atol=0)


# --- FSDP ---


def chain_alone(ids, model, compute_dtype):
    """Gradients of one process: weights of layers rounded for the pass, gradients in fp32."""
    rounded = copy.deepcopy(model)
    if compute_dtype is not None:
        for layer in rounded.modules():
            if isinstance(layer, (Linear, Embedding)):
                layer.weight.data = layer.weight.data.to(compute_dtype)
    return rounded


def targets(ids):
    return ids[:, 0]


def fsdp_trains(rank, compute_dtype):
    own = adapters(2026)
    if compute_dtype is torch.float16:
        try:
            torch.ones(2, 2, dtype=torch.float16) @ torch.ones(2, 2, dtype=torch.float16)
        except RuntimeError:
            raise Skipped(f"needs torch >= 2.1, whose CPU multiplies in fp16; this is {torch.__version__}") from None
    torch.manual_seed(42)
    alone = Chain()
    container = own.get_fsdp(copy.deepcopy(alone), compute_dtype)
    sgd, rate = torch.optim.SGD(container.parameters(), lr=0.01), 0.01
    torch.manual_seed(123)
    ids = torch.randint(0, 100, (20, 8))
    largest = 0.0
    for step in range(3):
        rounded = chain_alone(ids, alone, compute_dtype)
        nn.functional.cross_entropy(rounded(ids)[:, -1].float(), targets(ids)).backward()
        with torch.no_grad():
            for p, q in zip(alone.parameters(), rounded.parameters()):
                largest = max(largest, float(q.grad.float().abs().max()))
                p -= rate * q.grad.float()
        sgd.zero_grad(set_to_none=True)
        mine = ids[rank * 10:rank * 10 + 10]
        nn.functional.cross_entropy(container(mine)[:, -1].float(), targets(mine)).backward()
        own.fsdp_on_after_backward(container, sgd)
        sgd.step()
        whole = own.fsdp_gather_full_params(container)
        require(set(whole) == {name for name, _ in alone.named_parameters()}, f"names are {sorted(whole)}")
        tolerance = {None: {"atol": 1e-6, "rtol": 1e-4}, torch.float16: {"atol": 1e-4, "rtol": 1e-4},
                     # Rounded twice more than alone, once a rank, and again where weights came to lie on either side of a midpoint.
                     torch.bfloat16: {"atol": (step + 1) * rate * largest * 2**-6, "rtol": 0}}[compute_dtype]
        require_close(sorted(whole.items()), sorted(alone.named_parameters()), f"after step {step}", **tolerance)
        torch.manual_seed(42 + step)
        ids = ids[torch.randperm(20)]


def fsdp_gradients(rank, compute_dtype):
    own = adapters(2026)
    torch.manual_seed(42)
    container = own.get_fsdp(Chain(), compute_dtype)
    sgd = torch.optim.SGD(container.parameters(), lr=0.01)
    torch.manual_seed(rank)
    container(torch.randint(0, 100, (4, 8))).sum().backward()
    own.fsdp_on_after_backward(container, sgd)
    sharded_ones = {layer.weight for layer in container.module.modules() if isinstance(layer, (Linear, Embedding))}
    for name, p in container.module.named_parameters():
        require(p.grad is not None and p.grad.shape == p.data.shape and p.grad.dtype == p.data.dtype == torch.float32,
                f"'{name}' {tuple(p.shape)} has the gradient {None if p.grad is None else (tuple(p.grad.shape), p.grad.dtype)}")
        if p in sharded_ones:
            require(p.shape[0] * RANKS in (100, 128, 64), f"'{name}' has {p.shape[0]} rows")
        else:
            require(not differ_on_ranks(p.grad), f"the gradient of '{name}' differs on ranks")


# --- what no hand-out asks ---


def zeroed(rank):
    """Gradients stay where the buckets are when they are cleared to zeros."""
    from syslab_parallel import BucketedDDP

    container = ddp(rank, Toy, 5, lambda module: BucketedDDP(module, 0.0016), lambda container, _: container.finish_gradient_synchronization(),
                    set_to_none=False)
    flats = [bucket.flat.data_ptr() for bucket in container.reducer.buckets]
    require(sorted(bucket.members[0].grad.data_ptr() for bucket in container.reducer.buckets) == sorted(flats), "gradients were copied back")


def planned(rank):
    from syslab_parallel import PlannedDDP

    container = ddp(rank, Tied, 5, PlannedDDP, lambda container, _: container.finish_gradient_synchronization())
    require(container.plan is not None and sum(container.plan["buckets"]) == 10 * 10 + 2 * 500 + 50 * 5, f"the plan is {container.plan}")
    require(len(container.reducer.buckets) == len(container.plan["buckets"]), "the plan is not what is used")
    counts = torch.tensor(container.plan["buckets"] + [0] * (8 - len(container.plan["buckets"])))
    require(not differ_on_ranks(counts), "ranks have other plans")


def unused_on_one_rank(rank):
    """Rank 0 uses both layers, rank 1 the first: the second has half of rank 0's gradient on both; nobody uses the third."""
    from syslab_parallel import IndividualDDP

    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Parameter(torch.ones(3)) for _ in range(3))

        def forward(self, both):
            return self.a.sum() * 2 + (self.b.sum() * 6 if both else 0)

    container = IndividualDDP(Three())
    container(rank == 0).backward()
    container.finish_gradient_synchronization()
    own = container.module
    require(own.c.grad is None, "a parameter that nobody used has a gradient")
    require(torch.equal(own.a.grad, torch.full((3,), 2.0)) and torch.equal(own.b.grad, torch.full((3,), 3.0)), f"{own.a.grad}, {own.b.grad}")
    strict = IndividualDDP(Three(), agree_on_unused=False)
    strict(False).backward()
    try:
        strict.finish_gradient_synchronization()
    except RuntimeError as error:
        require("2 parameters have no gradient" in str(error), str(error))
    else:
        raise AssertionError("missing gradients were taken")


def no_sync(rank):
    from syslab_parallel import BucketedDDP

    container = BucketedDDP(nn.Linear(4, 4), None)
    inputs = [torch.full((1, 4), float(2 * part + rank + 1)) for part in range(2)]
    with container.no_sync():
        container(inputs[0]).sum().backward()
    container(inputs[1]).sum().backward()
    container.finish_gradient_synchronization()
    require(torch.equal(container.module.weight.grad, torch.full((4, 4), (1 + 2 + 3 + 4) / 2)), f"{container.module.weight.grad[0]}")
    container(inputs[0]).sum().backward()
    try:
        container(inputs[1]).sum().backward()
    except RuntimeError as error:
        require("no_sync()" in str(error), str(error))
    else:
        raise AssertionError("a second pass was added to what was on its way")
    container.finish_gradient_synchronization()


def memory_is_given_back(rank):
    """A gather begins when the layer two before it is done, and not before it: forward, and backward in reverse. Between steps no
    whole weight is there."""
    import syslab_fsdp

    torch.manual_seed(42)
    container = syslab_fsdp.FSDP(Chain())
    layers = list(container.parts.values())
    said, uses = [], set()
    fill, free = syslab_fsdp.Use.fill, syslab_fsdp.Use.free

    def noted_fill(use):
        if use.work is None and not use.done:
            said.append(f"+{layers.index(use.part)}")
        uses.add(use)
        return fill(use)

    def noted_free(use, done=False):
        said.append(f"-{layers.index(use.part)}")
        free(use, done)

    def whole_ones():
        return [use for use in uses if (use.memory.untyped_storage() if hasattr(use.memory, "untyped_storage") else use.memory.storage()).nbytes()]

    syslab_fsdp.Use.fill, syslab_fsdp.Use.free = noted_fill, noted_free
    try:
        for _ in range(2):
            said.clear()
            container(torch.randint(0, 100, (4, 8))).sum().backward()
            container.finish_gradient_synchronization()
            require(" ".join(said) == "+0 +1 -0 +2 -1 +3 -2 -3 +3 +2 -3 +1 -2 +0 -1 -0", " ".join(said))
            require(not whole_ones(), "whole weights are there between steps")
        said.clear()
        with torch.no_grad():
            container(torch.randint(0, 100, (4, 8)))
        require(" ".join(said) == "+0 +1 -0 +2 -1 +3 -2 -3" and not whole_ones(), " ".join(said))
    finally:
        syslab_fsdp.Use.fill, syslab_fsdp.Use.free = fill, free


def optimizer_resumes(rank):
    from syslab_parallel import ShardedOptimizer

    torch.manual_seed(42)
    one, other = Toy(5), Toy(5)
    other.load_state_dict(one.state_dict())
    first = ShardedOptimizer(one.parameters(), torch.optim.AdamW, lr=0.1)
    whole = torch.optim.AdamW(other.parameters(), lr=0.1)

    def steps(pairs):
        torch.manual_seed(7)
        for _ in range(3):
            x = torch.rand(8, 10)
            for model, optimizer in pairs:
                optimizer.zero_grad()
                model(x).pow(2).sum().backward()
                optimizer.step()

    steps([(one, first), (other, whole)])
    second = ShardedOptimizer(one.parameters(), torch.optim.AdamW, lr=0.5)
    second.load_state_dict(first.state_dict())
    require(second.param_groups[0]["lr"] == 0.1, "the rate was not loaded")
    steps([(one, second), (other, whole)])
    require_close(one.named_parameters(), other.named_parameters(), "after the restart", rtol=1e-7, atol=0)
    if rank == 1:
        strange = {"state": {i: {} for i in range(5)}, "param_groups": first.state_dict()["param_groups"]}
        try:
            second.load_state_dict(strange)
        except ValueError as error:
            require("not of rank 1 of 2" in str(error), str(error))
        else:
            raise AssertionError("the state of other ranks was taken")


def cases():
    for name, model in (("toy", Toy), ("tied", Tied)):
        yield f"2025 individual {name}", lambda rank, m=model: individual_2025(rank, m)
        for limit in (0.0016, 0.0001, 0.01):
            yield f"2025 bucketed {name} {limit} MB", lambda rank, m=model, mb=limit: bucketed_2025(rank, m, mb)
        yield f"2026 ddp {name}", lambda rank, m=model: ddp_2026(rank, m)
        for year in (2025, 2026):
            yield f"{year} sharded optimizer {name}", lambda rank, m=model, y=year: sharded(rank, m, y)
    for dtype in (None, torch.float16, torch.bfloat16):
        yield f"2026 fsdp trains {dtype}", lambda rank, d=dtype: fsdp_trains(rank, d)
    for dtype in (None, torch.bfloat16):
        yield f"2026 fsdp gradients {dtype}", lambda rank, d=dtype: fsdp_gradients(rank, d)
    for one in (zeroed, planned, unused_on_one_rank, no_sync, memory_is_given_back, optimizer_resumes):
        yield one.__name__, one


def run_rank(rank, folder, wanted):
    """All cases; the first that fails ends the rank, since the other then waits in vain."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/store", RANKS), rank=rank, world_size=RANKS)
    for name, body in cases():
        if wanted and not any(word in name for word in wanted):
            continue
        dist.barrier()
        said = "ok"
        try:
            body(rank)
        except Skipped as why:
            said = f"skipped: {why}"
        except BaseException:
            print(f"rank {rank} FAILED {name}\n{traceback.format_exc()}", flush=True)
            os._exit(1)
        if rank == 0:
            print(f"{name}: {said}", flush=True)
    dist.barrier()
    os._exit(0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        pids = []
        for rank in range(RANKS):
            if (pid := os.fork()) == 0:
                run_rank(rank, folder, sys.argv[1:])
            pids.append(pid)
        codes = {}
        while len(codes) < RANKS:
            pid, status = os.wait()
            codes[pid] = os.waitstatus_to_exitcode(status)
            if codes[pid] != 0:
                for other in set(pids) - set(codes):
                    os.kill(other, 15)
    print(f"torch {torch.__version__}")
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
