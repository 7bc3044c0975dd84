"""Classes that hold more between steps than they show, and right ones that hold buffers of their own."""
import torch
import torch.distributed as dist

from parallel import Sharded
from parallel_variants import FlatFSDP

# --- right ---


class FlatBuffers(Sharded):
    """Keeps a copy of all gradients, and sends weights through a buffer that it keeps, too."""

    sent = copied = None

    def step(self, closure=None, **options):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.copied = torch.cat([p.grad.reshape(-1) for p in self.owner if p.grad is not None])
        if self.inner is not None:
            self.pass_on()
            self.inner.step(**options)
        self.sent = {owner: self.shared_by(owner) for owner in range(dist.get_world_size())}
        return loss

    def shared_by(self, owner):
        members = [p for p, its in self.owner.items() if its == owner]
        if not members:
            return None
        buffer = torch.cat([p.data.reshape(-1) for p in members])
        dist.broadcast(buffer, owner)
        for p, part in zip(members, buffer.split([p.numel() for p in members])):
            p.data.copy_(part.view_as(p))
        return buffer


class KeepsPart(FlatFSDP):
    """Keeps a copy of each of its parts, and the memory of a gathered weight, which it wipes."""

    def whole(self, part, dtype):
        made = super().whole(part, dtype)
        self.__dict__.setdefault("memory", {})[id(part)] = torch.zeros(self.shapes[part])
        return made


# --- not sharded, but it looks so ---


class HidesState:
    """Each rank holds and updates everything, sends nothing, and shows its part of the state between steps."""

    def __init__(self, params, optimizer_cls, **options):
        self.inner, self.hidden, self.owner = optimizer_cls(params, **options), {}, {}
        self.held = [0] * dist.get_world_size()
        self.param_groups = self.inner.param_groups
        self.assign()

    def assign(self):
        for p in (p for group in self.param_groups for p in group["params"]):
            if p not in self.owner:
                self.owner[p] = self.held.index(min(self.held))
                self.held[self.owner[p]] += p.numel()

    def add_param_group(self, group):
        self.inner.add_param_group(group)
        self.assign()

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)

    def step(self, closure=None):
        self.inner.state.update(self.restored())
        loss = self.inner.step(closure)
        hidden = {p: s for p, s in self.inner.state.items() if self.owner[p] != dist.get_rank()}
        for p in hidden:
            del self.inner.state[p]
        self.hide(hidden)
        return loss

    def hide(self, states):
        self.hidden = states

    def restored(self):
        return self.hidden


class HidesStateFlat(HidesState):
    """In one tensor, behind something else."""

    def hide(self, states):
        self.hidden = {p: {name: value for name, value in s.items() if not self.is_large(value)}
                       for p, s in states.items()}
        self.places = [(p, name, value.shape) for p, s in states.items() for name, value in s.items()
                       if self.is_large(value)]
        self.flat = torch.cat([torch.ones(3)] + [states[p][name].reshape(-1) for p, name, _ in self.places])

    def restored(self):
        at = 3
        for p, name, shape in self.places if self.hidden else ():
            self.hidden[p][name] = self.flat[at:at + shape.numel()].view(shape).clone()
            at += shape.numel()
        return self.hidden

    @staticmethod
    def is_large(value):
        return torch.is_tensor(value) and value.dim() > 0


class CachesWhole(FlatFSDP):
    """Gathers each weight, and keeps what it gathered for the backward pass, and for ever."""

    def whole(self, part, dtype):
        made = super().whole(part, dtype)
        self.__dict__.setdefault("kept", {})[id(part)] = made.detach().clone()
        return made


class CachesPieces(FlatFSDP):
    """Keeps what other ranks have sent, each by itself."""

    def whole(self, part, dtype):
        made = super().whole(part, dtype)
        self.__dict__.setdefault("kept", {})[id(part)] = [one.clone() for one in made.detach().reshape(-1).split(
            part.numel())]
        return made
