"""Containers and an optimizer that change what is not theirs: the mode of layers, and torch's random numbers."""
import torch
import torch.distributed as dist

from parallel import Naive, Sharded


class Evals(Naive):
    """As if it were for inference."""

    def __init__(self, module):
        super().__init__(module.eval())


class EvalsInStep(Naive):
    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        self.module.layers[0].eval()


class ComputesInEval(Naive):
    def forward(self, *inputs, **options):
        self.module.eval()
        loss = super().forward(*inputs, **options)
        self.module.train()
        return loss


class DiffersInEval(Naive):
    def forward(self, *inputs, **options):
        loss = super().forward(*inputs, **options)
        return loss if self.training else loss + 1


class MovesRng(Naive):
    """So that all ranks begin with the same weights, it thinks."""

    def __init__(self, module):
        torch.manual_seed(0)
        super().__init__(module)


class MovesRngInStep(Naive):
    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        torch.manual_seed(1)


class RewindsRng(Naive):
    """Each step draws the same numbers."""

    def __init__(self, module):
        super().__init__(module)
        self.state = torch.get_rng_state()

    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        torch.set_rng_state(self.state)


class SeedsInStep(Sharded):
    def step(self, closure=None, **options):
        torch.manual_seed(0)
        return super().step(closure, **options)


class PutsBackTheModulesDraws(Naive):
    """Dropout in the module has the same mask in each step."""

    def forward(self, *inputs, **options):
        before = torch.get_rng_state()
        loss = super().forward(*inputs, **options)
        torch.set_rng_state(before)
        return loss


class PutsBackLate(PutsBackTheModulesDraws):
    """And it draws some of its own, so that it is not quite where it was."""

    def forward(self, *inputs, **options):
        loss = super().forward(*inputs, **options)
        torch.rand(8)
        return loss


class ForksAroundTheModule(Naive):
    def forward(self, *inputs, **options):
        with torch.random.fork_rng():
            return super().forward(*inputs, **options)


class SeedsForTheModule(Naive):
    def forward(self, *inputs, **options):
        with torch.random.fork_rng():
            torch.manual_seed(2)
            return super().forward(*inputs, **options)


class RepeatsForTheModule(Naive):
    """From a moment of its own."""

    def __init__(self, module):
        super().__init__(module)
        self.state = torch.get_rng_state()

    def forward(self, *inputs, **options):
        now = torch.get_rng_state()
        torch.set_rng_state(self.state)
        loss = super().forward(*inputs, **options)
        torch.set_rng_state(now)
        return loss


class SharesRng(Naive):
    """All ranks go on with rank 0's numbers, so that dropout is the same on all."""

    def forward(self, *inputs, **options):
        state = torch.get_rng_state()
        dist.broadcast(state, src=0)
        torch.set_rng_state(state)
        return super().forward(*inputs, **options)


class PutsBackTheClosuresDraws(Sharded):
    def step(self, closure=None, **options):
        before = torch.get_rng_state()
        loss = super().step(closure, **options)
        torch.set_rng_state(before)
        return loss
