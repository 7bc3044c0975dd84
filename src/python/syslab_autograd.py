"""Gradients of any function of torch, through autograd: the forward call is made untimed, and what takes its time is
the way back.

A gradient arrives and leaves by name: `d(out)` is given, `d(x)` of an argument and `d(weight)` of a module's parameter
are returned.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syslab_arguments import Kept
from syslab_failures import WrongAnswer
from syslab_functions import changes, named_results
from syslab_signature import is_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import torch

    from syslab_signature import Signature

BACKWARD = " pass=backward"  # behind the name of a case whose gradients are asked for


def is_inexact(value: Any) -> bool:
    return is_torch(value) and (value.is_floating_point() or value.is_complex())


def parameters_of(function: Callable[..., Any]) -> list[tuple[str, torch.nn.Parameter]]:
    """Names and parameters of a module that learn; of anything else none."""
    torch = sys.modules["torch"]
    if not isinstance(function, torch.nn.Module):
        return []
    return [(name, value) for name, value in function.named_parameters() if value.requires_grad]


class Backward:
    """One forward call on leaves of its own, whose gradients gradients() takes."""

    def __init__(self, function: Callable[..., Any], signature: Signature, values: Iterable[Any]) -> None:
        """`values`: one for each tensor of the arguments."""
        self.torch = sys.modules["torch"]
        leaves = [value.detach().requires_grad_(True) if is_inexact(value) else value for value in values]
        arguments = signature.build(leaves)
        self.kept = Kept(signature.names, arguments)  # of the forward call
        with self.torch.enable_grad():
            results = named_results(function(*arguments), keeps_graph=True)
            enabled = self.torch.is_grad_enabled()
        if not enabled:
            raise changes("torch.set_grad_enabled", True, False)
        self.wanted = [(f"d({tensor['name']})", leaf) for tensor, leaf in zip(signature.tensors, leaves)
                       if is_inexact(leaf)]
        self.wanted += [(f"d({name})", value) for name, value in parameters_of(function)]
        # Of what is computed and depends on something: labels and masks have no gradient.
        self.results = [(name, value) for name, value in results if is_inexact(value) and value.requires_grad]

    def demand(self, late: Sequence[str], given: Iterable[torch.Tensor]) -> None:
        """That the outputs are those whose gradients are given."""
        shapes = {name: list(value.shape) for name, value in self.results}
        for name, gradient in zip(late, given):
            if name not in shapes:
                raise WrongAnswer(f"'{name}' has no gradient: by way of autograd it depends on no argument")
            if shapes[name] != list(gradient.shape):
                raise WrongAnswer(f"'{name}' has shape {tuple(shapes[name])}, expected {tuple(gradient.shape)}")
        by_name = dict(self.results)
        self.results = [(name, by_name[name]) for name in late]  # in the order of `given`, whichever the function has

    def gradients(self, given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        """For each wanted one its gradient, None where no result depends on it."""
        return self.torch.autograd.grad([value for _, value in self.results], [leaf for _, leaf in self.wanted], given,
                                        allow_unused=True)

    def named(self, gradients: Iterable[torch.Tensor | None]) -> dict[str, torch.Tensor]:
        zeros = self.torch.zeros_like
        return {name: zeros(leaf) if gradient is None else gradient
                for (name, leaf), gradient in zip(self.wanted, gradients)}
