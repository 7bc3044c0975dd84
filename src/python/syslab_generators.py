"""The random numbers that everybody in a process shares: what a call has drawn of them.

Needs the standard library and whichever of NumPy and torch is loaded.
"""
from __future__ import annotations

import random

from syslab_failures import WrongAnswer
from syslab_settings import loaded


def generators() -> dict[str, object]:
    """States of the generators that everybody shares, by name."""
    states: dict[str, object] = {"random": random.getstate()}
    torch, numpy = loaded("torch"), loaded("numpy")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["torch.cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
    if numpy is not None:  # with the second of two normal numbers, which it keeps
        states["numpy.random"] = str(numpy.random.get_state(legacy=False))
    return states


def demand_undrawn(before: dict[str, object]) -> None:
    """That no generator has moved since; one that has come with a library meanwhile is left out."""
    for name, state in generators().items():
        if before.get(name, state) != state:
            raise WrongAnswer(f"it draws random numbers of its own (the state of {name} has moved), so that two calls "
                              "with equal arguments may differ; let the case draw them and pass them as an argument")
