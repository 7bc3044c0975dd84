"""Settings of a process that change what others compute: of torch, of NumPy and of the processor. Whatever this torch
or NumPy does not have is left out. And the random numbers that everybody in a process shares: what a call has drawn.

Needs the standard library and whichever of NumPy and torch is loaded.
"""
from __future__ import annotations

import contextlib
import ctypes
import random
import sys
from typing import TYPE_CHECKING, Any

from syslab_failures import WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ask = Callable[[], Any]
    Put = Callable[[Any], Any]

# Modules in torch, and their attributes that are settings.
ATTRIBUTES = {
    "backends": ("fp32_precision",),
    "backends.cuda.matmul": ("allow_tf32", "allow_fp16_reduced_precision_reduction",
                             "allow_bf16_reduced_precision_reduction", "allow_fp16_accumulation", "fp32_precision"),
    "backends.cudnn": ("enabled", "allow_tf32", "benchmark", "benchmark_limit", "deterministic", "fp32_precision"),
    "backends.cudnn.conv": ("fp32_precision",),
    "backends.cudnn.rnn": ("fp32_precision",),
    "backends.mkldnn": ("deterministic", "fp32_precision"),
    "backends.mkldnn.matmul": ("fp32_precision",),
    "backends.mkldnn.conv": ("fp32_precision",),
    "backends.mkldnn.rnn": ("fp32_precision",),
    "utils.deterministic": ("fill_uninitialized_memory",),
}

# Functions of torch that set, and those that ask.
FUNCTIONS = {
    "set_float32_matmul_precision": "get_float32_matmul_precision",
    "set_default_dtype": "get_default_dtype",
    "set_num_threads": "get_num_threads",
    "set_num_interop_threads": "get_num_interop_threads",
    "set_anomaly_enabled": "is_anomaly_enabled",
    "set_autocast_cache_enabled": "is_autocast_cache_enabled",
    "_C._set_mkldnn_enabled": "_C._get_mkldnn_enabled",
    "_C._set_cpu_allow_fp16_reduced_precision_reduction": "_C._get_cpu_allow_fp16_reduced_precision_reduction",
    "_C._set_multithreading_enabled": "_C._is_multithreading_enabled",
    "backends.cuda.enable_flash_sdp": "backends.cuda.flash_sdp_enabled",
    "backends.cuda.enable_mem_efficient_sdp": "backends.cuda.mem_efficient_sdp_enabled",
    "backends.cuda.enable_math_sdp": "backends.cuda.math_sdp_enabled",
    "backends.cuda.enable_cudnn_sdp": "backends.cuda.cudnn_sdp_enabled",
    "backends.cuda.allow_fp16_bf16_reduction_math_sdp": "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
    "backends.cuda.preferred_linalg_library": "backends.cuda.preferred_linalg_library",
    "backends.cuda.preferred_blas_library": "backends.cuda.preferred_blas_library",
}

# Before torch 2.4 autocast has functions of its own for each device.
OLD_AUTOCAST = {
    "set_autocast_enabled": "is_autocast_enabled",
    "set_autocast_cpu_enabled": "is_autocast_cpu_enabled",
    "set_autocast_gpu_dtype": "get_autocast_gpu_dtype",
    "set_autocast_cpu_dtype": "get_autocast_cpu_dtype",
}

TINIEST = 2.0 ** -1022  # that is normal
DENORMAL = 2.0 ** -1060
ONE, EIGHTH_ULP, MOST_OF_ULP = 1.0, 2.0 ** -55, 1.75 * 2.0 ** -53
TO_NEAREST = 0  # FE_TONEAREST of all processors that torch runs on

guards: list = []  # of inference mode, which ends with them


def loaded(library: str) -> Any:
    """The module, which is there if a file of the user has imported it; otherwise None."""
    return sys.modules.get(library)


def flushes() -> bool:
    return TINIEST * 0.75 == 0.0 or DENORMAL * 1024.0 == 0.0


def rounding() -> str:
    """How the processor rounds doubles."""
    if ONE + EIGHTH_ULP > ONE:
        return "upward"
    if -ONE - EIGHTH_ULP < -ONE:
        return "downward"
    return "to nearest" if ONE + MOST_OF_ULP > ONE else "toward zero"


def set_rounding(_nearest: Any) -> None:
    ctypes.CDLL(None).fesetround(TO_NEAREST)


def set_inference_mode(torch: Any, value: bool) -> None:
    """There is no function that sets it: a guard that is never released does."""
    guards.append(torch.inference_mode(value))
    guards[-1].__enter__()


def only_warns(torch: Any) -> bool:
    return torch.is_deterministic_algorithms_warn_only_enabled()


def default_device(torch: Any) -> Any:
    """Torch 2.0 to 2.2 can set it, and tell it by what they make."""
    if hasattr(torch, "get_default_device") or not hasattr(torch, "set_default_device"):
        return torch.get_default_device()
    return torch.empty(0).device


def found_in(torch: Any, path: str) -> Any:
    for part in path.split("."):
        torch = getattr(torch, part)
    return torch


def read(module: Any, name: str) -> Any:
    """A setting. From torch 2.9 on, a function that changes allow_tf32 and puts it back leaves an fp32_precision of
    "ieee" where "none" was, which computes the same."""
    value = getattr(module, name)
    return "ieee" if name == "fp32_precision" and value == "none" else value


def of_attribute(torch: Any, path: str, name: str) -> tuple[Ask, Put]:
    return (lambda: read(found_in(torch, path), name)), lambda value: setattr(found_in(torch, path), name, value)


def of_functions(torch: Any, put: str, ask: str) -> tuple[Ask, Put]:
    return (lambda: found_in(torch, ask)()), lambda value: found_in(torch, put)(value)


def of_autocast(torch: Any, device: str) -> Iterator[tuple[str, Ask, Put]]:
    """From torch 2.4 on."""
    yield (f"torch.set_autocast_enabled('{device}')", (lambda: torch.is_autocast_enabled(device)),
           lambda value: torch.set_autocast_enabled(device, value))
    yield (f"torch.set_autocast_dtype('{device}')", (lambda: torch.get_autocast_dtype(device)),
           lambda value: torch.set_autocast_dtype(device, value))


def of_torch(torch: Any) -> Iterator[tuple[str, Ask, Put]]:
    # First: it may set others with it, which would be named in its place.
    yield ("torch.inference_mode", lambda: torch.is_inference_mode_enabled(),
           lambda value: set_inference_mode(torch, value))
    for path, names in ATTRIBUTES.items():
        for name in names:
            yield f"torch.{path}.{name}", *of_attribute(torch, path, name)
    for put, ask in (FUNCTIONS if hasattr(torch, "set_autocast_dtype") else {**FUNCTIONS, **OLD_AUTOCAST}).items():
        yield f"torch.{put}", *of_functions(torch, put, ask)
    if hasattr(torch, "set_autocast_dtype"):
        for device in ("cpu", "cuda"):
            yield from of_autocast(torch, device)
    yield ("torch.use_deterministic_algorithms", torch.are_deterministic_algorithms_enabled,
           lambda value: torch.use_deterministic_algorithms(value, warn_only=only_warns(torch)))
    yield ("torch.use_deterministic_algorithms(warn_only)", lambda: only_warns(torch),
           lambda value: torch.use_deterministic_algorithms(torch.are_deterministic_algorithms_enabled(),
                                                            warn_only=value))
    # With the CPU as its default device, torch would go through a mode of Python in each call.
    yield ("torch.set_default_device", lambda: default_device(torch),
           lambda value: torch.set_default_device(None if value.type == "cpu" else value))
    yield "torch.set_flush_denormal", flushes, torch.set_flush_denormal
    yield "torch.set_grad_enabled", torch.is_grad_enabled, torch.set_grad_enabled


def of_numpy(numpy: Any) -> Iterator[tuple[str, Ask, Put]]:
    yield "numpy.seterr", numpy.geterr, lambda value: numpy.seterr(**value)
    yield "numpy.seterrcall", numpy.geterrcall, numpy.seterrcall
    yield "numpy.setbufsize", numpy.getbufsize, numpy.setbufsize


def settings() -> dict[str, tuple[Ask, Put]]:
    """For each name how to ask for it and how to set it."""
    found: dict[str, tuple[Ask, Put]] = {"fesetround": (rounding, set_rounding)}
    for library, of in (("torch", of_torch), ("numpy", of_numpy)):
        module = loaded(library)
        if module is not None:
            found.update({name: (ask, put) for name, ask, put in of(module)})
    return found


KNOWN: dict = {}  # by which libraries are loaded


def known() -> dict[str, tuple[Ask, Put]]:
    """The settings() that this torch and this NumPy have."""
    key = loaded("torch") is not None, loaded("numpy") is not None
    if key not in KNOWN:
        KNOWN[key] = {name: each for name, each in settings().items() if can_be_asked(each[0])}
    return KNOWN[key]


def can_be_asked(ask: Ask) -> bool:
    try:
        ask()
    except Exception:  # noqa: BLE001, whatever it is, this torch does not have that
        return False
    return True


def global_flags() -> dict[str, Any]:
    """What they are, by name. One that torch refuses to tell is left out."""
    found = {}
    for name, (ask, _) in known().items():
        with contextlib.suppress(Exception):
            found[name] = ask()
    return found


def put_back(name: str, value: Any) -> None:
    """Some can be set only once in a process."""
    with contextlib.suppress(Exception):
        known()[name][1](value)


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
