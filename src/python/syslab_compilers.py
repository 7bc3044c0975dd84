"""Notices that a call compiles. What it builds at its first call is its own affair; what it still builds, starts or
loads at every call on equal arguments is in each of its times.

Needs the standard library alone.
"""
from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR",
          "CUPY_CACHE_DIR")
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.system", "os.fork", "os.forkpty", "os.exec")


# What builds graphs and modules of TorchScript: names in torch._C. Of source that it is given as text it asks what the
# names there mean, by a function that looks at the frames of its caller.
TORCHSCRIPT = ("_create_function_from_trace", "_create_function_from_trace_with_dict", "_create_module_with_type",
               "_jit_script_class_compile", "_jit_script_compile", "_jit_script_compile_overload",
               "_jit_script_interface_compile")
MEANINGS = "createResolutionCallbackFromFrame"  # of torch._jit_internal


def graphs() -> int:
    """How many graphs torch.compile has built in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["stats"]["unique_graphs"] + dynamo.counters["frames"]["total"] if dynamo is not None else 0


class Watch:
    """What a call does that compilers do, by the interpreter's audit events."""

    def __init__(self) -> None:
        self.said: list[str] | None = None  # while a call is watched, what it did
        self.caches: list[tuple[str, str]] = []
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.said is None:
            return
        if event in STARTS:
            program = arguments[0] if arguments and isinstance(arguments[0], (str, bytes, os.PathLike)) else "a process"
            self.said.append(f"starts {os.path.basename(os.fsdecode(program))}")
        elif event == "ctypes.dlopen" and arguments[0]:
            self.said.append(f"loads {os.path.basename(os.fsdecode(arguments[0]))}")
        elif event == "open" and isinstance(arguments[0], str):
            cache = next((name for name, folder in self.caches if arguments[0].startswith(folder)), None)
            if cache:
                self.said.append(f"looks for compiled code in {cache}")

    @contextlib.contextmanager
    def hearing_torchscript(self) -> Iterator[None]:
        """Which tells nobody that it builds a graph."""
        modules = {"torch._C": TORCHSCRIPT, "torch._jit_internal": (MEANINGS,)}
        builders = [(module, name, getattr(module, name)) for module, names in
                    ((sys.modules.get(module), names) for module, names in modules.items())
                    for name in names if hasattr(module, name)]

        def heard(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
            def built(*arguments: Any, **options: Any) -> Any:
                if self.said is not None:
                    self.said.append("has TorchScript build another graph")
                return build(*arguments, **options)

            def meanings(frames_up: int = 0) -> Any:
                return built(frames_up + 2)  # behind this frame and built()'s

            if name == MEANINGS:
                return meanings
            return built

        try:
            for module, name, build in builders:
                setattr(module, name, heard(name, build))
            yield
        finally:
            for module, name, build in builders:
                setattr(module, name, build)

    def during(self, body: Callable[[], Any]) -> tuple[Any, str | None]:
        """What body() returns, and the first thing that it did; None: nothing."""
        self.caches = [(name, os.path.join(os.environ[name], "")) for name in CACHES if os.environ.get(name)]
        built, self.said = graphs(), []
        try:
            with self.hearing_torchscript():
                value = body()
        finally:
            said, self.said = self.said, None
        if graphs() > built:
            said.insert(0, "has torch.compile build another graph")
        return value, said[0] if said else None
