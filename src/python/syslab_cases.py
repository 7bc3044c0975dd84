"""The cases that a user's file gives to a function that is judged, each checked, and what the problem is called."""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import math
import numbers
import os
import pathlib
from typing import TYPE_CHECKING, Any

from syslab_autograd import BACKWARD
from syslab_failures import failed
from syslab_functions import load_callable, load_object
from syslab_library import BadCases, manifest_cases
from syslab_loading import load_module
from syslab_wire import json_bytes

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    Case = Any  # a dict, or an object with these attributes
    Axes = dict[str, type]  # of each the type of its values
    Place = tuple[str, str]  # a file, and a name in it

FIELDS = ("name", "axes", "arguments", "terms", "rtol", "atol", "flops", "bytes", "backward")
MOST_CASES = 10_000
MOST_TERMS = 2 ** 53  # up to here doubles hold every whole number, and no sum that can be run is longer


def field(case: Case, name: str, otherwise: Any = None) -> Any:
    return case.get(name, otherwise) if isinstance(case, dict) else getattr(case, name, otherwise)


def number_of(case: Case, key: str, name: str) -> int | float | None:
    """The number of 'rtol', 'atol', 'flops' or 'bytes' as a float and of 'terms' as an int; None: the case has none."""
    given = field(case, key)
    value: Any = given
    if value is None:
        return None
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # of NumPy or torch
    whole = key == "terms"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if is_number:
        with contextlib.suppress(OverflowError, ValueError):  # int() of NaN, float() of too large a number
            if whole and int(value) == value and 1 <= value <= MOST_TERMS:
                return int(value)
            if not whole and math.isfinite(value) and value >= 0:
                return float(value)
    expected = "a whole number from 1 to 2^53" if whole else "a finite number of at least 0"
    raise BadCases(f"case '{name}': '{key}' is {shown(given)}; expected {expected}")


def shown(value: object) -> str:
    """In a few words, with its type where that is not plain."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:60]}…"
    return text if isinstance(value, (int, float)) else f"the {type(value).__name__} {text}"


def check_case(case: Case, number: int, axes: list[Axes], names: Container[str]) -> str:
    where = f"case {number}"
    if not isinstance(case, dict) and not hasattr(case, "arguments"):
        raise BadCases(
            f"{where} is a {type(case).__name__}; expected a dict or dataclass with name, axes and arguments")
    if isinstance(case, dict) or dataclasses.is_dataclass(case):
        given = case if isinstance(case, dict) else [each.name for each in dataclasses.fields(case)]
        unknown = [key for key in given if key not in FIELDS]
        if unknown:
            raise BadCases(f"{where} has a field '{unknown[0]}'; there are {', '.join(FIELDS)}")
    name = field(case, "name")
    own = field(case, "axes") or {}
    if name is None:
        name = " ".join(f"{key}={value}" for key, value in own.items()) or "all"
    if not isinstance(name, str) or not name or "," in name or "\n" in name:
        raise BadCases(f"{where}: a name is a text without commas, found {name!r}")
    if name in names:
        raise BadCases(f"two cases are called '{name}'")
    if not callable(field(case, "arguments")):
        raise BadCases(f"case '{name}': 'arguments' must be a function of a seed that makes them, so that each timed "
                       f"call meets new content; found {type(field(case, 'arguments')).__name__}")
    for key in ("rtol", "atol", "terms", "flops", "bytes"):
        number_of(case, key, name)
    for key, value in own.items():
        if not isinstance(key, str) or not key.isidentifier() or key in ("impl", "device", "world_size",
                                                                         "case", "problem"):
            raise BadCases(f"case '{name}': an axis cannot be called {key!r}")
        if not isinstance(value, (bool, int, float, str)):
            raise BadCases(f"case '{name}': axis '{key}' is a {type(value).__name__}; axes are numbers, texts, True "
                           "and False")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadCases(f"case '{name}': axis '{key}' is {value}; axes are finite numbers")
    if axes and {key: type(value) for key, value in own.items()} != axes[0]:
        first = ", ".join(f"{key} ({kind.__name__})" for key, kind in axes[0].items()) or "none"
        raise BadCases(f"case '{name}' has other axes than the first, or of other types: all cases have {first}")
    axes.append({key: type(value) for key, value in own.items()})
    return name


def cases_object(path: str, name: str) -> Any:
    """What gives the cases. Whoever has a function and a reference has none yet: the message says how one looks."""
    try:
        return load_object(path, name)
    except AttributeError as error:
        if "." in name or hasattr(load_module(path), name):
            raise  # out of the user's own code
        raise BadCases(f"{error}. What gives the cases makes the arguments to call both sides with, new ones for each "
                       f"seed: def {name}(): yield {{'arguments': lambda seed: "
                       "[numpy.random.default_rng(seed).standard_normal((512, 512))]}. It may stand in another file: "
                       "--inputs FILE.py:NAME (docs/any-function.md)") from None


def read_cases(path: str, name: str) -> dict[str, Case]:
    """The cases by name, in order."""
    made: Any = manifest_cases(path) if pathlib.Path(path).suffix == ".json" else cases_object(path, name)
    made = made() if callable(made) else made
    cases: dict[str, Case] = {}
    axes: list[Axes] = []
    for number, case in enumerate(made, 1):
        if number > MOST_CASES:
            raise BadCases(f"'{name}' gives more than {MOST_CASES} cases; does it end?")
        cases[check_case(case, number, axes, cases)] = case
    if not cases:
        raise BadCases(f"'{name}' gives no case")
    return cases


def passes_of(cases: dict[str, Case], backward: bool) -> Iterator[dict[str, Any]]:
    """Names and axes of all that can be asked: with gradients, each case that has them twice."""
    def has(case: Case) -> bool:
        return backward or bool(field(case, "backward"))

    passes = any(map(has, cases.values()))
    for name, case in cases.items():
        axes = dict(field(case, "axes") or {})
        if passes and "pass" in axes:
            raise BadCases(f"case '{name}': with gradients 'pass' is an axis already; call yours otherwise")
        yield {"name": name, "axes": {**axes, "pass": "forward"} if passes else axes}
        if has(case):
            yield {"name": name + BACKWARD, "axes": {**axes, "pass": "backward"}}


def is_made(found: Any) -> bool:
    """Whether a function or class is more than its own source says: another made it, or it is an object's method."""
    return ("<locals>" in getattr(found, "__qualname__", "") or bool(getattr(found, "__closure__", None))
            or hasattr(found, "__wrapped__") or inspect.ismethod(found) and not inspect.isclass(found.__self__))


def source_of(path: str, name: str) -> str:
    """What the object of that name is, for a digest: its own source; of what has none, a list say, or is_made(), the
    file that makes it."""
    if pathlib.Path(path).suffix != ".py":
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    found, own = load_object(path, name), ""
    if inspect.isroutine(found) or inspect.isclass(found):
        with contextlib.suppress(OSError, TypeError):
            own = inspect.getsource(found)
    if own and not is_made(found):
        return own
    return own + pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def problem_of(reference: Place, inputs: Place) -> str:
    """"softmax@1f2e3d4c": the reference's name and a digest of its source and that of the cases."""
    digest = hashlib.sha256("\0".join((source_of(*reference), source_of(*inputs))).encode()).hexdigest()
    return f"{reference[1]}@{digest[:8]}"


def parse_place(text: str) -> Place:
    path, _, name = text.rpartition(":")
    return os.path.realpath(path), name


def of_case(error: BaseException, name: str, path: str) -> dict[str, Any]:
    """The failure, with the case in front."""
    message = failed(error, path)
    if isinstance(error, BadCases):
        message.update({"message": str(error), "traceback": ""})
    elif name:
        message["message"] = f"case '{name}': {message['message']}"
    return message


def list_cases(reference: Place, inputs: Place, backward: bool, descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as out:
        of = "reference"
        try:
            load_callable(*reference)
            of = "inputs"
            cases = read_cases(*inputs)
            out.write(json_bytes({"problem": problem_of(reference, inputs), "cases": list(passes_of(cases, backward))}))
        except BaseException as error:  # noqa: BLE001, a sys.exit() in the user's file, too
            told = of_case(error, "", inputs[0])
            out.write(json_bytes({"failed": told["message"], "lacks": told.get("lacks"), "of": of}))
