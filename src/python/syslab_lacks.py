"""What a submission asks of its Python that this one does not have: attributes, arguments and dtypes of torch, modules,
packages that work, a newer Python.

    python3 syslab_lacks.py FILE CLAIM

The judged process claims it of an exception (`claim`). Its word decides nothing: a process of its own, which runs
nothing of what was handed in, looks whether torch lacks what CLAIM (JSON) names, and prints a JSON object:

  lacks     whether it does
  torch     the version of torch here; "none" where there is none
  declared  of a package, and of Python: whether the project of FILE requires it; of a module of Python's own: whether
            it admits a newer Python

Needs the standard library alone, and torch where a claim is about torch.
"""
from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import keyword
import linecache
import pathlib
import re
import sys
import types
from typing import TYPE_CHECKING, Any

from syslab_limits import lift_memory_limit
from syslab_names import has_file_that_does_not_parse, names_made_in, names_of_instances
from syslab_packages import does_not_work, package_of, path_of
from syslab_project import admits_newer_python, excludes_this_python, locked_versions, normal, project_root, required

if TYPE_CHECKING:
    from collections.abc import Callable

    Claim = dict[str, str]  # kind, of and name of what is not there

LONGEST = 200  # of a name
# Types that later versions of torch compute in where earlier ones do not. No version takes the softmax of integers.
ADDED_TYPES = {"Half": "float16", "BFloat16": "bfloat16"}
# A method of the submission that earlier versions of torch never call: the project has the name, and so is not asked
# for it.
SETUP_CONTEXT = {"kind": "attribute", "of": "torch.autograd.function.Function", "name": "setup_context"}
AVERAGE = ("torch.distributed.ReduceOp.AVG", "Gloo")
NOT_COMPUTED = re.compile(r'"(\w+)" not implemented for \'(\w+)\'')


def is_of_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def is_of_python(name: str) -> bool:
    """Whether the name is that of a module of the standard library; not of one that does something when it is
    imported."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names and top not in ("antigravity", "idlelib", "this", "turtledemo")


def is_known(name: str) -> bool:
    return is_of_torch(name) or is_of_python(name)


# --- in both processes ---


def is_at_its_path(kind: type) -> bool:
    """Not one that a function has made: the context of an autograd.Function is of a class of its own."""
    return (functools.reduce(lambda at, name: getattr(at, name, None), kind.__qualname__.split("."),
                             sys.modules.get(kind.__module__)) is kind)


def owner_of(thing: Any) -> str:
    """The dotted path of torch's part of it: a module, or the nearest class of torch that it is or is made of. Of
    Python's own, a module. Empty: it has none."""
    if isinstance(thing, types.ModuleType):
        return thing.__name__ if is_known(thing.__name__) else ""
    kind = thing if isinstance(thing, type) else type(thing)
    return next((path_of(one) for one in kind.__mro__ if is_of_torch(one.__module__) and is_at_its_path(one)), "")


# --- in the judged process ---


def value_of(node: ast.expr, frame: types.FrameType) -> Any:
    """What a name, or an attribute of one, stands for in the frame."""
    if isinstance(node, ast.Name):
        return {**frame.f_globals, **frame.f_locals}[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value, frame), node.attr)
    raise LookupError


def function_with(argument: str, trace: Any) -> str:
    """The path of torch's function that the innermost frame calls with that argument; empty: none."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    tree = ast.parse("".join(linecache.getlines(trace.tb_frame.f_code.co_filename)))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.lineno <= trace.tb_lineno <= node.end_lineno
                and any(one.arg == argument for one in node.keywords)):
            continue
        if isinstance(node.func, ast.Attribute):
            owner = owner_of(value_of(node.func.value, trace.tb_frame))
            return owner and f"{owner}.{node.func.attr}"
        called = value_of(node.func, trace.tb_frame)
        path = f"{called.__module__}.{called.__qualname__}"
        return path if is_of_torch(path) else ""
    return ""


def made(kind: Any, of: Any, name: Any) -> Claim | None:
    """The claim; None where it is none. What is handed in may have put anything in place of a text."""
    if not all(isinstance(text, str) and len(text) <= LONGEST for text in (kind, of, name)):
        return None
    return {"kind": kind, "of": of, "name": name} if name and (of or kind in ("module", "python")) else None


def named_by(error: BaseException) -> Claim | None:
    """What the exception itself names."""
    if isinstance(error, SyntaxError):
        return made("python", "", "syntax")
    if isinstance(error, ModuleNotFoundError):
        return made("module", "", error.name)
    if isinstance(error, ImportError):
        found = re.match(r"cannot import name '(\w+)'", str(error))
        return made("attribute", error.name if is_known(error.name or "") else "", found and found.group(1))
    if isinstance(error, AttributeError):
        return made("attribute", owner_of(getattr(error, "obj", None)), getattr(error, "name", None))
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error)) if isinstance(error, TypeError) else None
    if found:
        return made("argument", function_with(found.group(1), error.__traceback__), found.group(1))
    found = NOT_COMPUTED.search(str(error)) if isinstance(error, RuntimeError) else None
    return made("dtype", found.group(1), found.group(2)) if found else None


def named(error: BaseException) -> Claim | None:
    lacks = getattr(error, "lacks", None)
    if isinstance(lacks, dict):  # of what stands in place of torch's collectives
        return made(lacks["kind"], lacks["of"], lacks["name"])
    package = made("package", path_of(type(error)), package_of(error))
    if package and isinstance(error, ModuleNotFoundError) and not is_of_torch(error.name or ""):
        return package  # what it needs is not what the submission asked for
    return named_by(error) or package


def claim(error: BaseException) -> Claim | None:
    """What an exception says is not there, as the JSON object of docs/worker-wire.md; None: it says nothing of the
    kind."""
    try:
        return named(error)
    except Exception:  # what is handed in may have overridden anything
        return None


# --- in a process of ours ---


def part_of(path: str) -> Any:
    """What the path names: the longest module that can be imported, and attributes of it. LookupError: it is not all
    there."""
    names = path.split(".")
    for split in range(len(names), 0, -1):
        try:
            found = importlib.import_module(".".join(names[:split]))
        except ImportError:
            continue
        for name in names[split:]:
            if not hasattr(found, name):
                raise LookupError(path)
            found = getattr(found, name)
        return found
    raise LookupError(path)


def arguments_in_stubs(function: Callable[..., Any]) -> set[str]:
    """Of a function of torch in C++: its arguments, and those of others of its name, as the stubs for type checkers
    have them."""
    import torch

    found: set[str] = set()
    for stub in pathlib.Path(torch.__file__).parent.glob("_C/*.pyi"):
        for node in ast.walk(ast.parse(stub.read_bytes())):
            if isinstance(node, ast.FunctionDef) and node.name == getattr(function, "__name__", ""):
                found.update(one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg))
    return found


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function has that argument; it may, where nobody says."""
    try:
        known = inspect.signature(function).parameters.values()
        return any(one.name == argument or one.kind is one.VAR_KEYWORD for one in known)
    except (TypeError, ValueError):  # of those in C++ there are only texts
        text = f"{function.__doc__ or ''} {' '.join(arguments_in_stubs(function))}"
        return not text.strip() or re.search(rf"\b{argument}\b", text) is not None


def kernels_without(word: str) -> set[str]:
    """Names of kernels that say of common operations on the CPU that they do not compute in that type ("Half")."""
    import torch

    if word not in ADDED_TYPES:
        return set()
    dtype = getattr(torch, ADDED_TYPES[word])
    x = torch.ones(2, 2).to(dtype)
    functional = torch.nn.functional
    calls = [lambda: x @ x, lambda: x @ x[0], lambda: x[0] @ x[0], lambda: torch.bmm(x[None], x[None]),
             lambda: torch.addmm(x, x, x),
             lambda: torch.baddbmm(x[None], x[None], x[None]), lambda: functional.linear(x, x),
             lambda: functional.linear(x, x, x[0]),
             lambda: torch.einsum("ij,jk->ik", x, x), lambda: functional.embedding(torch.tensor([0]), x),
             lambda: torch.softmax(x, -1),
             lambda: torch.log_softmax(x, -1), lambda: torch.logsumexp(x, -1), lambda: functional.layer_norm(x, (2,)),
             lambda: functional.cross_entropy(x, torch.tensor([0, 0])), lambda: functional.silu(x),
             lambda: functional.gelu(x),
             lambda: torch.exp(x), lambda: torch.log(x), lambda: torch.sqrt(x), lambda: torch.rsqrt(x),
             lambda: torch.tanh(x),
             lambda: torch.sigmoid(x), lambda: x.sum(), lambda: x.mean(), lambda: x.amax(-1), lambda: x.max(),
             lambda: x.norm(),
             lambda: x.cumsum(0), lambda: torch.triu(x), lambda: torch.tril(x), lambda: x.masked_fill(x > 0, 0.0),
             lambda: x.clamp(0, 1),
             lambda: torch.where(x > 0, x, x), lambda: x + x, lambda: x * x, lambda: x / x, lambda: x ** 2,
             lambda: torch.lerp(x, x, 0.5),
             lambda: torch.addcmul(x, x, x), lambda: torch.addcdiv(x, x, x), lambda: torch.randn(2, dtype=dtype),
             lambda: torch.arange(2, dtype=dtype)]
    found: set[str] = set()
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            found.update(kernel for kernel, said in NOT_COMPUTED.findall(str(error)) if said == word)
    return found


def averages_over_gloo() -> bool:
    """Whether torch's Gloo reduces by AVG, asked in a group of one rank: torch 2.8's does, 2.7's does not."""
    import datetime

    import torch
    import torch.distributed as dist

    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.AVG
    try:
        dist.ProcessGroupGloo(dist.HashStore(), 0, 1,
                              datetime.timedelta(seconds=10)).allreduce([torch.ones(1)], options).wait()
    except RuntimeError:
        return False
    return True


def has_of_its_own(root: pathlib.Path, package: str) -> bool:
    """Whether a package of that name lies in the project."""
    places = [root, root / "src", *(mark.parent for mark in root.glob("*/pyproject.toml"))]
    return any((place / package).is_dir() or (place / f"{package}.py").is_file() for place in places)


def is_module_lacking(name: str, root: pathlib.Path) -> bool:
    package, _, inner = name.partition(".")
    if importlib.util.find_spec(package) is None:
        return not has_of_its_own(root, package)
    if package != "torch" or not inner:
        return False  # another version of it is not the hand-out's matter
    part_of(name.rpartition(".")[0])
    return importlib.util.find_spec(name) is None


def is_attribute_lacking(owner: Any, name: str, root: pathlib.Path) -> bool:
    """A module is torch's or Python's alone. An attribute of a class may be one of its instances, or of what the
    project derives from it."""
    if hasattr(owner, name) or isinstance(owner, types.ModuleType):
        return not hasattr(owner, name)
    return isinstance(owner, type) and name not in names_of_instances(owner) and name not in names_made_in(root)


def is_lacking(kind: str, of: str, name: str, root: pathlib.Path) -> bool:
    if kind == "python":
        return excludes_this_python(root) != "" and has_file_that_does_not_parse(root)
    if kind == "module":
        return is_module_lacking(name, root)
    if kind == "package":
        return not has_of_its_own(root, name) and does_not_work(name, of)
    if kind == "dtype":
        return not averages_over_gloo() if (of, name) == AVERAGE else of in kernels_without(name)
    if not is_known(of) or name.startswith("_") or not name.isidentifier() or keyword.iskeyword(name):
        return False
    owner = part_of(of)
    if {"kind": kind, "of": of, "name": name} == SETUP_CONTEXT:
        return not hasattr(owner, name)
    if kind == "argument":
        return is_of_torch(of) and not takes(owner, name)
    # Not "torch.sys", and not "torch.nn.Linear", which exceptions call torch.nn.modules.linear.Linear.
    return kind == "attribute" and owner_of(owner) == of and is_attribute_lacking(owner, name, root)


def looked_at(path: pathlib.Path, kind: str, of: str, name: str) -> dict[str, Any]:
    root = project_root(path)
    try:
        lacks = is_lacking(kind, of, name, root)
    except Exception:  # torch does not have what the claim rests on, or there is no torch
        lacks = False
    try:
        version = importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    package = normal(name.partition(".")[0])
    declared = (kind == "python"
                or (kind in ("module", "package") and (package in required(root) or package in locked_versions(root)))
                or (kind == "attribute" and is_of_python(of) and admits_newer_python(root)))
    return {"lacks": lacks, "torch": version, "declared": declared}


def main() -> None:
    lift_memory_limit()  # of the case that asks: torch may not fit into it
    file, said = sys.argv[1:]
    asked = json.loads(said)
    print(json.dumps(looked_at(pathlib.Path(file).resolve(), asked["kind"], asked["of"], asked["name"])))


if __name__ == "__main__":
    main()
