"""Containers and an optimizer that change what is not theirs: the mode of layers, and torch's random numbers."""
import torch

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
