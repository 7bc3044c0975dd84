"""Faults of waits, of modes and of memory that show only where a class is looked at closely."""
import copy
import gc

import torch
import torch.distributed as dist

from parallel import FullySharded, Individual, Naive, Sharded


class FrozenNoWait(Naive):
    """What does not train is sent, and not waited for."""

    def share(self):
        for tensor in [*self.module.parameters(), *self.module.buffers()]:
            dist.broadcast(tensor.data, 0, async_op=not tensor.requires_grad)


class WideNoWait(Naive):
    """Gradients in fp64 are not waited for."""

    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                work = dist.all_reduce(p.grad, async_op=True)
                if p.dtype == torch.float32:
                    work.wait()
                p.grad /= dist.get_world_size()


class AsksOnce(Individual):
    """Takes is_completed() for wait()."""

    def finish_gradient_synchronization(self):
        for handle, p in self.handles:
            handle.is_completed()
            p.grad /= dist.get_world_size()
        self.handles.clear()


class OneScratch(Naive):
    """Fills its one buffer again while what it held is still on its way."""

    def finish_gradient_synchronization(self):
        grads = [p.grad for p in self.trained() if p.grad is not None]
        scratch = {g.dtype: torch.empty(max(g.numel() for g in grads), dtype=g.dtype) for g in grads}
        sent = []
        for grad in grads:
            part = scratch[grad.dtype][:grad.numel()]
            part.copy_(grad.reshape(-1))
            parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
            sent.append((grad, parts, dist.all_gather(parts, part, async_op=True)))
        for grad, parts, work in sent:
            work.wait()
            grad.copy_((sum(parts) / dist.get_world_size()).view_as(grad))


class SecondNoWait(Sharded):
    """Weights of the second group are not waited for."""

    def step(self, closure=None, **options):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.inner is not None:
            self.pass_on()
            self.inner.step(**options)
        for number, group in enumerate(self.param_groups):
            for p in group["params"]:
                work = dist.broadcast(p.data, self.owner[p], async_op=True)
                if number == 0:
                    work.wait()
        return loss


class GathersFirst(Naive):
    """Reduces the first gradient, and gathers the others."""

    def finish_gradient_synchronization(self):
        ranks, first = dist.get_world_size(), True
        for p in self.trained():
            if p.grad is None:
                continue
            if first:
                dist.all_reduce(p.grad)
                p.grad /= ranks
                first = False
                continue
            parts = [torch.empty_like(p.grad) for _ in range(ranks)]
            dist.all_gather(parts, p.grad.contiguous())
            p.grad.copy_(sum(parts) / ranks)


class FirstBlocks(Individual):
    """Only the last message is asynchronous."""

    def reduce(self, p):
        last = len(self.handles) == len(self.trained()) - 1
        self.handles.append((dist.all_reduce(p.grad, async_op=last), p))

    def finish_gradient_synchronization(self):
        self.handles[-1][0].wait()
        for _, p in self.handles:
            p.grad /= dist.get_world_size()
        self.handles.clear()


class CopyComputesInEval(Naive):
    """A shallow copy of the module computes, in eval() mode."""

    def forward(self, *inputs, **options):
        other = copy.copy(self.module)
        other.__dict__ = dict(self.module.__dict__)
        loss = other.eval()(*inputs, **options)
        self.module.train()
        return loss


class StaleAfterThree(Naive):
    """From the fourth step on, gradients are those of the third step's weights."""

    steps = 0

    def forward(self, *inputs, **options):
        self.steps += 1
        weights = list(self.module.parameters())
        if self.steps == 3:
            self.__dict__["kept"] = [p.detach().clone() for p in weights]
        if self.steps > 3:
            self.__dict__["now"] = [p.detach().clone() for p in weights]
            for p, old in zip(weights, self.kept):
                p.data.copy_(old)
        return super().forward(*inputs, **options)

    def finish_gradient_synchronization(self):
        for p, now in zip(self.module.parameters(), self.__dict__.get("now", [])):
            p.data.copy_(now)
        super().finish_gradient_synchronization()


class KeepsAll(Sharded):
    """Every rank keeps the state of all parameters, and shows its own."""

    hidden = None

    def hide(self, tensor):
        return tensor

    def step(self, closure=None, **options):
        loss, kept = super().step(closure, **options), []
        for p, owner in self.owner.items():
            own = self.inner.state.get(p, {}).get("momentum_buffer") if self.inner else None
            state = own.clone() if own is not None else torch.zeros_like(p.data)
            dist.broadcast(state, owner)
            kept.append(self.hide(state))
        self.hidden = kept
        return loss


class KeepsFrozen(KeepsAll):
    """Where Python's garbage collector does not look."""

    def step(self, closure=None, **options):
        loss = super().step(closure, **options)
        gc.freeze()
        return loss


class KeepsSparse(KeepsAll):
    def hide(self, tensor):
        return tensor.to_sparse()


class WholeUnderAdamW(Sharded):
    """Is sharded under SGD alone."""

    def add_param_group(self, group):
        super().add_param_group(group)
        if issubclass(self.optimizer_cls, torch.optim.AdamW):
            self.inner = self.optimizer_cls([dict(g) for g in self.param_groups], **self.options)
            self.pairs = list(zip(self.param_groups, self.inner.param_groups))


class ShardedInEval(FullySharded):
    def forward(self, *inputs, **options):
        self.module.eval()
        loss = super().forward(*inputs, **options)
        self.module.train()
        return loss


class ShardedSeeds(FullySharded):
    def forward(self, *inputs, **options):
        torch.manual_seed(0)
        return super().forward(*inputs, **options)


class KeepsInBf16(FullySharded):
    """With a compute_dtype, it waits for no gather and keeps what it gathered."""

    def __init__(self, module, compute_dtype=None):
        self.dtype, self.kept = compute_dtype, {}
        super().__init__(module)

    def gather(self, p):
        if self.dtype is None:
            return super().gather(p)
        part = p.part.to(self.dtype).float()
        parts = [torch.zeros_like(part) for _ in range(self.ranks)]
        self.last = dist.all_gather(parts, part, async_op=True)
        self.kept[p] = p.data = torch.cat(parts)[:self.sharded[p][0]].clone()
        return None
