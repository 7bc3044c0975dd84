"""Right data parallelism, sharded optimizers and full sharding that are built in another way than the checks might
expect: padded flat shards, gradients by all-gather, by reduce and broadcast, by reduce-scatter of padded buckets,
aligned parts of tied weights."""
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

from parallel import Bucketed, Container, Naive, Sharded

ALIGNED = 32  # elements: 128 bytes of fp32


class GathersGradients(Container):
    """Each rank gets all gradients and sums them itself."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                parts = [torch.empty_like(p.grad) for _ in range(dist.get_world_size())]
                dist.all_gather(parts, p.grad)
                p.grad.copy_(torch.stack(parts).sum(0) / dist.get_world_size())


class ReducesOnOne(Container):
    """The mean is made on rank 0, and sent from there."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                dist.reduce(p.grad, 0)
                p.grad /= dist.get_world_size()
                dist.broadcast(p.grad, 0)


class ScattersBuckets(Bucketed):
    """A bucket is padded to equal parts, each rank makes the mean of one, and gathers the others when all have
    begun."""

    def send(self, index):
        members, ranks = [p for p in self.buckets[index] if p.grad is not None], dist.get_world_size()
        if not members:
            return
        buffer = torch.cat([p.grad.reshape(-1) for p in members])
        padded = buffer.new_zeros(-(-buffer.numel() // ranks) * ranks)
        padded[:buffer.numel()] = buffer
        part = padded.new_empty(padded.numel() // ranks)
        self.sent[index] = (dist.reduce_scatter_tensor(part, padded, async_op=True), part, members)

    def finish_gradient_synchronization(self):
        for index in range(len(self.buckets)):
            if index not in self.sent:
                self.send(index)
        for handle, part, members in self.sent.values():
            handle.wait()
            part /= dist.get_world_size()
            parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, part)
            buffer = torch.cat(parts)[:sum(p.numel() for p in members)]
            for p, grad in zip(members, buffer.split([p.numel() for p in members])):
                p.grad.copy_(grad.view_as(p.grad))
        self.begin()


class DrawsNumbers(Naive):
    """Draws random numbers, and seeds them for a moment of its own."""

    def __init__(self, module):
        super().__init__(module)
        self.helper = [torch.nn.Linear(2, 2)]  # of no module
        with torch.random.fork_rng():
            torch.manual_seed(0)
            torch.rand(3)

    def forward(self, *inputs, **options):
        torch.rand(3)
        loss = super().forward(*inputs, **options)
        torch.rand(70)
        with torch.random.fork_rng():
            torch.manual_seed(1)
        return loss

    def finish_gradient_synchronization(self):
        torch.rand(1)
        super().finish_gradient_synchronization()
        self.train()


class Recomputes(Naive):
    """Each backward pass computes the module once more, with the numbers that the forward pass drew."""

    def forward(self, *inputs, **options):
        return checkpoint(lambda: super(Recomputes, self).forward(*inputs, **options), use_reentrant=False)


class PaddedShards(torch.optim.Optimizer):
    """Each parameter is divided among all ranks, in parts of one aligned size; state covers the padding, too."""

    def __init__(self, params, optimizer_cls, **options):
        self.rank, self.ranks, self.optimizer_cls, self.options = (dist.get_rank(), dist.get_world_size(),
                                                                   optimizer_cls, options)
        self.parts: list = []
        self.inner: Any = None
        super().__init__(params, dict(options))

    def add_param_group(self, group):
        super().add_param_group(group)
        added, mine = self.param_groups[-1], []
        for p in added["params"]:
            size = -(-p.numel() // (self.ranks * ALIGNED)) * ALIGNED
            part = torch.nn.Parameter(p.data.new_zeros(size), requires_grad=p.requires_grad)
            self.parts.append((p, part))
            mine.append(part)
        new = dict({k: v for k, v in added.items() if k != "params"}, params=mine)
        if self.inner is None:
            self.inner = self.optimizer_cls([new], **self.options)
        else:
            self.inner.add_param_group(new)

    def own(self, tensor, size):
        """This rank's part of a tensor, with zeros behind it."""
        flat = tensor.new_zeros(size * self.ranks)
        flat[:tensor.numel()] = tensor.reshape(-1)
        return flat[self.rank * size:(self.rank + 1) * size].clone()

    def step(self, closure=None, **options):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group, inner in zip(self.param_groups, self.inner.param_groups):
            inner.update((k, v) for k, v in group.items() if k != "params")
        for p, part in self.parts:
            part.data.copy_(self.own(p.data, part.numel()))
            part.grad = None if p.grad is None else self.own(p.grad, part.numel())
        self.inner.step(**options)
        for p, part in self.parts:
            parts = [torch.empty_like(part.data) for _ in range(self.ranks)]
            dist.all_gather(parts, part.data)
            p.data.copy_(torch.cat(parts)[:p.numel()].view_as(p))
        return loss


class RoundRobin(Sharded):
    """Owners in turn, whatever their sizes."""

    def add_param_group(self, group):
        self.held = [0] * dist.get_world_size()
        for i, p in enumerate(group["params"] if isinstance(group["params"], list) else [group["params"]]):
            self.owner.setdefault(p, (len(self.owner)) % dist.get_world_size())
        super().add_param_group(group)


class Whole(torch.autograd.Function):
    """A weight from all ranks' parts, in the dtype that layers compute in; its gradient's mean goes back to their
    owners."""

    @staticmethod
    def forward(ctx, part, shape, dtype):
        ctx.shape = shape
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part.detach())
        return torch.cat(parts)[:shape.numel()].view(shape).to(dtype)

    @staticmethod
    def backward(ctx, gradient):
        ranks, rank = dist.get_world_size(), dist.get_rank()
        size = -(-ctx.shape.numel() // (ranks * ALIGNED)) * ALIGNED
        flat = gradient.new_zeros(size * ranks, dtype=torch.float32)
        flat[:ctx.shape.numel()] = gradient.reshape(-1)
        dist.all_reduce(flat)
        return flat[rank * size:(rank + 1) * size] / ranks, None, None


class FlatFSDP(torch.nn.Module):
    """A rank's part of a weight is flat, and rounded up to whole lines of memory. Layers that have one weight share its
    part."""

    def __init__(self, module, compute_dtype=None):
        super().__init__()
        self.module, self.compute_dtype, self.shapes, seen = module, compute_dtype, {}, {}
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        ranks, rank = dist.get_world_size(), dist.get_rank()
        for layer in module.modules():
            if not isinstance(layer, (torch.nn.Linear, torch.nn.Embedding)):
                continue
            weight = layer.weight
            if weight not in seen:
                size = -(-weight.numel() // (ranks * ALIGNED)) * ALIGNED
                flat = weight.data.new_zeros(size * ranks)
                flat[:weight.numel()] = weight.data.reshape(-1)
                seen[weight] = torch.nn.Parameter(flat[rank * size:(rank + 1) * size].clone())
                self.shapes[seen[weight]] = weight.shape
            layer.weight = seen[weight]
            layer.forward = self.forward_of(layer)

    def whole(self, part, dtype):
        return Whole.apply(part, self.shapes[part], dtype or part.dtype)

    def forward_of(self, layer):
        call = torch.nn.functional.linear if isinstance(layer, torch.nn.Linear) else torch.nn.functional.embedding
        return lambda x: call(x, self.whole(layer.weight, self.compute_dtype))

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def finish_gradient_synchronization(self):
        for p in self.module.parameters():
            if p not in self.shapes and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    @torch.no_grad()
    def gather_full_params(self):
        return {name: self.whole(p, None) if p in self.shapes else p.data for name, p in self.module.named_parameters()}


class ThenDivides(Container):
    """By futures, as torch's own allreduce_hook: a work's result is the list of the tensors that were sent."""

    def finish_gradient_synchronization(self):
        futures = [(p, dist.all_reduce(p.grad.div_(dist.get_world_size()), async_op=True).get_future()
                    .then(lambda future: future.value()[0])) for p in self.trained() if p.grad is not None]
        for p, future in futures:
            p.grad = future.wait()


class TakesResults(Container):
    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                work = dist.all_reduce(p.grad, async_op=True)
                work.wait()
                p.grad = work.result()[0] / dist.get_world_size()


class ByGroup(Container):
    """Through methods of the process group."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                dist.group.WORLD.allreduce([p.grad]).wait()
                p.grad /= dist.get_world_size()


class Coalesced(Container):
    """One message for all gradients of a dtype, which torch packs."""

    def finish_gradient_synchronization(self):
        alike: dict = {}
        for p in self.trained():
            if p.grad is not None:
                alike.setdefault(p.grad.dtype, []).append(p.grad)
        for grads in alike.values():
            dist.all_reduce_coalesced(grads)
            for grad in grads:
                grad /= dist.get_world_size()


class AgreesByBits(Container):
    """What any rank has used is told by a bitwise or, and takes no message of a gradient's place."""

    def finish_gradient_synchronization(self):
        used = torch.tensor([p.grad is not None for p in self.trained()], dtype=torch.uint8)
        dist.all_reduce(used, op=dist.ReduceOp.BOR)
        for p, is_used in zip(self.trained(), used.tolist()):
            if not is_used:
                continue
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


class Halves(Naive):
    """Sums in a group of its own first, which changes nothing."""

    def __init__(self, module):
        super().__init__(module)
        self.groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                dist.all_reduce(p.grad, group=self.groups[dist.get_rank()])
        super().finish_gradient_synchronization()


class Ring(Container):
    """Gradients go from rank to rank."""

    def finish_gradient_synchronization(self):
        ranks, rank = dist.get_world_size(), dist.get_rank()
        for p in self.trained():
            if p.grad is None or ranks == 1:
                continue
            own, total = p.grad.clone(memory_format=torch.contiguous_format), p.grad.clone()
            for _ in range(ranks - 1):
                got = torch.empty_like(own)
                sending = dist.isend(own, (rank + 1) % ranks)
                dist.recv(got, (rank - 1) % ranks)
                sending.wait()
                total += got
                own = got
            p.grad.copy_(total / ranks)
