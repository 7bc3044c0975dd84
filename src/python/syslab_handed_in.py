"""How the trainings of syslab_training.py call what was handed in: a class's methods, or the functions of a hand-out's
`adapters.py`.

    me=ddp.py:DDP               DDP(module), and methods of what that makes
    me=adapters.py:get_ddp()    get_ddp(module), and functions of the same file that take what it returned: DOORS has
                                their names
"""
from __future__ import annotations

import contextlib
import importlib
import inspect
import typing
from typing import TYPE_CHECKING

from syslab_failures import Unsupported
from syslab_loading import load_class, load_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    import torch


class Fault(Exception):
    """What was handed in is not what the interface says."""


class Door(typing.NamedTuple):
    """A function of `adapters.py`: which training it is for, and the functions beside it that the hand-out's tests
    call."""

    way: str
    after_backward: str = ""  # (container, optimizer), behind each backward pass
    begin_batch: str = ""  # (container, optimizer), at the beginning of each step
    whole_weights: str = ""  # (container) -> {name in the module: whole weight}


DOORS = {
    "get_ddp": Door("data_parallel", "ddp_on_after_backward"),
    "get_ddp_individual_parameters": Door("data_parallel", "ddp_individual_parameters_on_after_backward"),
    "get_ddp_bucketed": Door("data_parallel", "ddp_bucketed_on_after_backward", "ddp_bucketed_on_train_batch_start"),
    "get_sharded_optimizer": Door("sharded_optimizer"),
    "get_fsdp": Door("fully_sharded", "fsdp_on_after_backward", whole_weights="fsdp_gather_full_params"),
}


def need(thing: object, name: str) -> None:
    if not callable(getattr(thing, name, None)):
        raise Fault(f"{type(thing).__name__} has no {name}()")


def demand_same_in_eval(container: torch.nn.Module, module: torch.nn.Module, batch: Any) -> None:
    """A container has nothing to add to an evaluation."""
    import torch

    container.eval()
    with torch.no_grad():
        found, expected = float(container(batch)), float(module(batch))
    if found != expected:
        raise Fault(f"in eval() mode {type(container).__name__} returns {found}, the module that it wraps {expected}; "
                    "expected the module's own outputs")


class Methods:
    """A class whose objects do all themselves."""

    finish, gather = "finish_gradient_synchronization()", "gather_full_params()"

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def demand_way(self, way: str) -> None:
        pass

    def container(self, *arguments: Any) -> Any:
        made = self.cls(*arguments)
        need(made, "finish_gradient_synchronization")
        return made

    def computing_in(self, dtype: torch.dtype, module: torch.nn.Module) -> Any:
        """Of full sharding: a container whose layers compute in it."""
        known = inspect.signature(self.cls).parameters.values()
        if not any(one.name == "compute_dtype" or one.kind is one.VAR_KEYWORD for one in known):
            raise Unsupported(f"{self.cls.__name__}() takes no compute_dtype")
        made = self.cls(module, compute_dtype=dtype)
        need(made, "finish_gradient_synchronization")
        return made

    def optimizer(self, parameters: Any, base: type[torch.optim.Optimizer], **options: Any) -> Any:
        return self.cls(parameters, base, **options)

    def begin_batch(self, container: Any, optimizer: Any) -> None:
        if callable(getattr(container, "on_train_batch_start", None)):
            container.on_train_batch_start(optimizer)

    def after_backward(self, container: Any, optimizer: Any) -> None:
        container.finish_gradient_synchronization()

    def whole_weights(self, container: Any) -> dict[str, torch.Tensor]:
        need(container, "gather_full_params")
        return container.gather_full_params()


class Functions:
    """Adapters, as the hand-out's tests call them."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.module, self.name, self.door = module, name, DOORS[name]
        self.finish, self.gather = f"{self.door.after_backward}()", f"{self.door.whole_weights}()"
        if self.door.way == "fully_sharded":
            # Its linear layers and embeddings are what these adapters shard; they may import them only when called.
            with contextlib.suppress(ImportError):
                importlib.import_module("cs336_basics.model")

    def demand_way(self, way: str) -> None:
        if way != self.door.way:
            raise Unsupported(f"{self.name}() is of another problem than this experiment")

    def function(self, name: str) -> Callable[..., Any]:
        found = getattr(self.module, name, None)
        if not callable(found):
            raise Fault(f"adapters.py has no {name}(), which belongs to {self.name}()")
        return found

    def container(self, *arguments: Any) -> Any:
        return self.function(self.name)(*arguments)

    def computing_in(self, dtype: torch.dtype, module: torch.nn.Module) -> Any:
        return self.function(self.name)(module, compute_dtype=dtype)

    def optimizer(self, parameters: Any, base: type[torch.optim.Optimizer], **options: Any) -> Any:
        return self.function(self.name)(parameters, base, **options)

    def begin_batch(self, container: Any, optimizer: Any) -> None:
        if self.door.begin_batch:
            self.function(self.door.begin_batch)(container, optimizer)

    def after_backward(self, container: Any, optimizer: Any) -> None:
        self.function(self.door.after_backward)(container, optimizer)

    def whole_weights(self, container: Any) -> dict[str, torch.Tensor]:
        return self.function(self.door.whole_weights)(container)


def load(path: str, name: str) -> Methods | Functions:
    """Of "DDP" its methods, of "get_ddp()" the functions beside it."""
    function = name.removesuffix("()")
    if name.endswith("()") and function in DOORS:
        return Functions(load_module(path), function)
    return Methods(load_class(path, name)[0])
