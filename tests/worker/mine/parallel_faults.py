"""Faults that students make in data parallelism, sharded optimizers and full sharding, each in one of the right
classes."""
import torch
import torch.distributed as dist

from parallel import Bucketed, Container, Flat, FullySharded, Individual, Naive, Sharded, after_gradient
from parallel_variants import FlatFSDP


# --- naive ---

class AverageForgotten(Naive):
    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                dist.all_reduce(p.grad)


class DividedTwice(Naive):
    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                p.grad /= dist.get_world_size()
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


class BroadcastForgotten(Naive):
    def share(self):
        pass


class FrozenNotShared(Naive):
    def share(self):
        for p in self.trained():
            dist.broadcast(p.data, 0)


class BuffersNotShared(Naive):
    def share(self):
        for p in self.module.parameters():
            dist.broadcast(p.data, 0)


class NoGradientForgotten(Naive):
    """Reduces p.grad of parameters that have none."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


class OneRankMissing(Naive):
    """The last rank does not reduce the last gradient."""

    def finish_gradient_synchronization(self):
        for i, p in enumerate(self.trained()):
            if i == len(self.trained()) - 1 and dist.get_rank() == dist.get_world_size() - 1:
                continue
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


# --- flat ---

class CopyBackForgotten(Flat):
    def finish_gradient_synchronization(self):
        buffer = torch.cat([p.grad.reshape(-1) for p in self.trained() if p.grad is not None])
        dist.all_reduce(buffer)
        buffer /= dist.get_world_size()


class ShiftedByOne(Flat):
    """Copies back from one element further on."""

    def finish_gradient_synchronization(self):
        grads = [p.grad for p in self.trained() if p.grad is not None]
        buffer = torch.cat([g.reshape(-1) for g in grads])
        dist.all_reduce(buffer)
        buffer = buffer.roll(-1) / dist.get_world_size()
        for grad, part in zip(grads, buffer.split([g.numel() for g in grads])):
            grad.copy_(part.view_as(grad))


# --- individual parameters ---

class NoWait(Individual):
    def finish_gradient_synchronization(self):
        for _, p in self.handles:
            p.grad /= dist.get_world_size()
        self.handles.clear()


class DividedBeforeWait(Individual):
    def finish_gradient_synchronization(self):
        for handle, p in self.handles:
            p.grad /= dist.get_world_size()
            handle.wait()
        self.handles.clear()


class WaitsForTheLast(Individual):
    """Waits for the last handle, as if those before it had to be done by then, and reads all."""

    def finish_gradient_synchronization(self):
        self.handles[-1][0].wait()
        for _, p in self.handles:
            p.grad /= dist.get_world_size()
        self.handles.clear()


class TiedReducedTwice(Individual):
    """Goes through the modules' parameters, where a tied weight is met twice, and hooks each."""

    def __init__(self, module):
        Container.__init__(self, module)
        self.handles, self.hooks = [], []
        for part in module.modules():
            for p in part.parameters(recurse=False):
                if p.requires_grad:
                    self.hooks.append(after_gradient(p, lambda p=p: self.reduce(p)))

    def reduce(self, p):
        p.grad /= dist.get_world_size()
        super().reduce(p)

    def finish_gradient_synchronization(self):
        for handle, _ in self.handles:
            handle.wait()
        self.handles.clear()


class NoOverlap(Individual):
    """Starts everything when the backward pass is over."""

    def __init__(self, module):
        Container.__init__(self, module)
        self.handles = []

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                self.reduce(p)
        super().finish_gradient_synchronization()


# --- buckets ---

class LastBucketLost(Bucketed):
    """Sends a bucket when the next one begins."""

    def send(self, index):
        if index < len(self.buckets) - 1:
            super().send(index)


class OrderOfRegistration(Bucketed):
    """Takes the parts of a reduced bucket for its members in the other order."""

    def finish_gradient_synchronization(self):
        for handle, buffer, members in self.sent.values():
            handle.wait()
            buffer /= dist.get_world_size()
            members = members[::-1]
            for p, part in zip(members, buffer.split([p.numel() for p in members])):
                p.grad.copy_(part.view_as(p.grad))
        self.begin()


class CountsNotReset(Bucketed):
    """The second step finds no bucket that becomes full."""

    def finish_gradient_synchronization(self):
        for handle, buffer, members in self.sent.values():
            handle.wait()
            buffer /= dist.get_world_size()
            for p, part in zip(members, buffer.split([p.numel() for p in members])):
                p.grad.copy_(part.view_as(p.grad))
        self.sent: dict = {}


class LimitInBits(Bucketed):
    """Takes a limit of megabytes for one of megabits."""

    def packed(self, limit_mb):
        return super().packed(None if limit_mb is None else limit_mb * 8)


# --- the sharded optimizer ---

class StaleAfterStep(Sharded):
    """Nobody sends what its owner has updated."""

    def step(self, closure=None, **options):
        return self.inner.step(closure) if self.inner is not None else None


class ShardBoundary(Sharded):
    """The last parameter of a group has no owner that sends it."""

    def step(self, closure=None, **options):
        if self.inner is not None:
            self.inner.step(**options)
        for p, owner in list(self.owner.items())[:-1]:
            dist.broadcast(p.data, owner)


class NotSharded(Sharded):
    """Every rank keeps the state of everything."""

    def add_param_group(self, group):
        super().add_param_group(group)
        self.inner = self.optimizer_cls([dict(g) for g in self.param_groups], **self.options)


class NoWaitForWeights(Sharded):
    def step(self, closure=None, **options):
        if self.inner is not None:
            self.inner.step(**options)
        for p, owner in self.owner.items():
            dist.broadcast(p.data, owner, async_op=True)


class SecondGroupForgotten(Sharded):
    """Takes the options of the first group for all."""

    def add_param_group(self, group):
        first = getattr(self, "param_groups", [])
        super().add_param_group(dict(group, **{k: first[0][k] for k in ("lr",) if first and k in first[0]}))


# --- full sharding ---

class ShardsNotAveraged(FullySharded):
    def finish_gradient_synchronization(self):
        for handle, p, mine in self.handles:
            handle.wait()
            if mine is not None:
                p.grad = mine
            else:
                p.grad /= self.ranks
        self.handles.clear()


class PaddingForgotten(FullySharded):
    """Leaves out the rows that do not divide evenly."""

    def shard(self, p):
        rows = max(p.shape[0] // self.ranks, 1)
        whole = p.data
        super().shard(p)
        p.part = p.data = torch.cat([whole, whole])[self.rank * rows:(self.rank + 1) * rows].clone()


class NeverFreed(FullySharded):
    """A part that is a view of the whole keeps the whole."""

    def shard(self, p):
        whole = p.data
        super().shard(p)
        rows = p.part.shape[0]
        if rows * self.ranks == whole.shape[0]:
            p.part = p.data = whole[self.rank * rows:(self.rank + 1) * rows]


class NormsNotReduced(FullySharded):
    def finish_gradient_synchronization(self):
        own = {p: p.grad.clone() for p in self.module.parameters() if p not in self.sharded}
        super().finish_gradient_synchronization()
        for p, grad in own.items():
            p.grad = grad


# --- of bits, schedules, and what is seldom there ---


class RoundsGradients(Naive):
    """Gradients travel in bf16."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                rounded = p.grad.to(torch.bfloat16).to(p.grad.dtype)
                dist.all_reduce(rounded)
                p.grad.copy_(rounded / dist.get_world_size())


class DropsCopies(Naive):
    """What is sent of a gradient that is not contiguous is a copy, and nothing comes back from it."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                sent = p.grad.contiguous().view(-1)
                dist.all_reduce(sent)
                sent /= dist.get_world_size()


class RateNotPassedOn(Sharded):
    """A scheduler changes the groups of the outer optimizer, and the inner one keeps its own."""

    def pass_on(self):
        pass


class StopsAtEmpty(Sharded):
    """What is behind a parameter without elements is not sent."""

    def step(self, closure=None, **options):
        before = {p: p.data.clone() for p in self.owner}
        loss = super().step(closure, **options)
        stopped = False
        for p, owner in self.owner.items():
            stopped = stopped or p.numel() == 0
            if stopped and owner != dist.get_rank():
                p.data.copy_(before[p])
        return loss


class ReducesInBf16(FlatFSDP):
    """Gradients of sharded weights are rounded before they are summed."""

    def whole(self, part, dtype):
        made = super().whole(part, dtype)
        if made.requires_grad:
            made.register_hook(lambda gradient: gradient.to(torch.bfloat16).to(gradient.dtype))
        return made


class Unties(FlatFSDP):
    """Two layers with one weight get a part each, and each part its own layer's gradient."""

    def __init__(self, module, compute_dtype=None):
        for layer in module.modules():
            if isinstance(layer, (torch.nn.Linear, torch.nn.Embedding)):
                layer.weight = torch.nn.Parameter(layer.weight.data.clone())
        super().__init__(module, compute_dtype)


# --- of sizes, numbers of dimensions, many steps and fp64 ---


class Skips(Naive):
    """Reduces what `takes` says."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None and self.takes(p):
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    def takes(self, p):
        raise NotImplementedError


class SkipsTheHandOutsLarge(Skips):
    """The hand-out's model has a weight of 500 elements."""

    def takes(self, p):
        return p.numel() < 256


class SkipsLarge(Skips):
    def takes(self, p):
        return p.numel() < 1024


class SkipsKernels(Skips):
    def takes(self, p):
        return p.dim() < 4


class SkipsCubes(Skips):
    def takes(self, p):
        return p.dim() != 3


class SkipsScalars(Skips):
    def takes(self, p):
        return p.dim() > 0


class StopsReducing(Skips):
    """After eight steps."""

    def __init__(self, module):
        super().__init__(module)
        self.steps = 0

    def finish_gradient_synchronization(self):
        self.steps += 1
        super().finish_gradient_synchronization()

    def takes(self, p):
        return self.steps <= 8


class ReducesInFp32(Naive):
    """Gradients in fp64 lose their low bits."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                sent = p.grad.float()
                dist.all_reduce(sent)
                p.grad.copy_(sent / dist.get_world_size())


class SendsSome(Sharded):
    """Weights that `skips` says are not sent."""

    def step(self, closure=None, **options):
        before = {p: p.data.clone() for p in self.owner}
        loss = super().step(closure, **options)
        for p, owner in self.owner.items():
            if self.skips(p) and owner != dist.get_rank():
                p.data.copy_(before[p])
        return loss

    def skips(self, p):
        raise NotImplementedError


class KeepsLargeWeights(SendsSome):
    def skips(self, p):
        return p.numel() >= 1024


class KeepsTheHandOutsLarge(SendsSome):
    def skips(self, p):
        return p.numel() >= 256


class KeepsKernels(SendsSome):
    def skips(self, p):
        return p.dim() >= 3


class StopsSending(SendsSome):
    """After six steps; the hand-out's test makes ten."""

    steps = 0

    def step(self, closure=None, **options):
        self.steps += 1
        return super().step(closure, **options)

    def skips(self, p):
        return self.steps > 6


class SendsInFp32(Sharded):
    """Weights in fp64 lose their low bits."""

    def step(self, closure=None, **options):
        loss = super().step(closure, **options)
        for p in self.owner:
            p.data.copy_(p.data.float())
        return loss


class LeavesLargeParts(FullySharded):
    """The gradient of a large weight is this rank's own."""

    def scatter(self, p):
        if p.grad.numel() < 256:
            return super().scatter(p)
        rows = p.part.shape[0]
        padded = p.grad.new_zeros(rows * self.ranks, *p.part.shape[1:])
        padded[:p.grad.shape[0]] = p.grad
        own = padded[self.rank * rows:(self.rank + 1) * rows] * self.ranks
        p.grad, p.data = None, p.part
        self.handles.append((Nothing(), p, own))
        return None


class Nothing:
    def wait(self):
        """There is nothing to wait for."""
