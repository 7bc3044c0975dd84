"""What a container or an optimizer has no business with while syslab_training.py trains with it.

Needs torch.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from syslab_handed_in import Fault

if TYPE_CHECKING:
    from syslab_collectives import Log

DRAWN = 64  # numbers that a module draws in a forward pass, one by one: nothing goes back by fewer


def random_streams(device: torch.device) -> list[tuple[str, Any]]:
    """(name, generator's functions) of torch's random numbers there."""
    return [("CPU", torch)] + ([("GPU", torch.cuda)] if device.type == "cuda" else [])


class Untouched:
    """Modes of layers, and torch's random numbers. A container may draw some, but starts no sequence and goes back to
    no earlier moment of one: then dropout and shuffled data would repeat themselves, and be the same on all ranks. The
    module that it wraps draws numbers as a layer of dropout does, beginning at a moment that has not been before."""

    current = None  # of this process's training, and so of any copy of its module

    def __init__(self, case: dict[str, Any], device: torch.device, rank: int, log: Log) -> None:
        self.seed, self.streams, self.log = None, random_streams(device), log
        self.seen: set[tuple[str, bytes]] = set()
        self.computed_in_eval = False
        self.what = "an optimizer" if case["way"] == "sharded_optimizer" else "a container"
        if "torch_seed" in case:
            self.seed = case["torch_seed"] ^ rank
            torch.manual_seed(self.seed)
            self.draw()
        Untouched.current = self

    def states(self) -> list[tuple[str, bytes]]:
        return [(name, stream.get_rng_state().numpy().tobytes()) for name, stream in self.streams]

    def draw(self, count: int = 1) -> None:
        """As a training does between a container's calls. A state from before it never comes back by itself."""
        for _ in range(count):
            self.seen.update(self.states())
            for device in ("cpu", "cuda")[:len(self.streams)]:
                torch.rand(1, device=device)

    @classmethod
    def of_module(cls, module: torch.nn.Module) -> None:
        """In its forward pass, of the module or a copy. One that is repeated in a backward pass has to draw what it
        drew before."""
        self = cls.current
        if self is not None and not all(layer.training for layer in module.modules()):
            self.computed_in_eval = True
        if self is None or self.seed is None or not module.training:
            return
        if not self.log.in_backward:
            self.demand_new("as the module's forward pass begins")
        self.draw(DRAWN)

    def look(self, container: torch.nn.Module, module: torch.nn.Module, when: str) -> None:
        for name, layer in [(type(container).__name__, container), *module.named_modules(prefix="module")]:
            if not layer.training:
                raise Fault(f"'{name}' is in eval() mode {when}; expected the mode that it had before, train(): "
                            "a layer of dropout would do nothing")
        if self.computed_in_eval:
            raise Fault(f"the module computes in eval() mode {when}; expected the mode that it had before, train()")
        self.look_at_numbers(when)

    def look_at_numbers(self, when: str) -> None:
        if self.seed is not None:
            self.demand_new(when)
            self.draw()

    def demand_new(self, when: str) -> None:
        for name, stream in self.streams:
            if stream.initial_seed() != self.seed:
                raise Fault(f"torch's random numbers ({name}) begin anew {when}, with the seed "
                            f"{stream.initial_seed()}; expected no torch.manual_seed() in {self.what}, and no state "
                            "of another rank: dropout and shuffled data would repeat themselves")
        for name, state in self.states():
            if (name, state) in self.seen:
                raise Fault(f"torch's random numbers ({name}) are those of an earlier moment again {when}; expected no "
                            f"torch.set_rng_state() in {self.what} that goes back, and no "
                            "torch.random.fork_rng() around the module's forward pass")
