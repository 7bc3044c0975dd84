"""Says what a handed-in `adapters.py` answers: a JSON object on standard output.

    python3 syslab_submission.py tests/adapters.py MEMORY_LIMIT_BYTES FUNCTION... -- GETTER...

The file is imported; a GETTER is a function without arguments and is called, too. Each is one of

  absent           the module has no such function
  not_implemented  it raises NotImplementedError
  implemented      neither: whether it is right is for the checks
  fails            the file cannot be imported, or the getter raises something else; `why` says what

If the import fails, the file's text decides what it can. What the submission prints goes nowhere. Needs the standard
library alone.
"""
from __future__ import annotations

import ast
import importlib.metadata
import inspect
import itertools
import os
import pathlib
import re
import resource
import sys
from collections import Counter
from typing import Any

import syslab_loading
from syslab_lacks import claim
from syslab_project import asked_of, locked_versions, normal
from syslab_wire import json_bytes

LONGEST = 300
FOR_LIBRARIES = 4 << 30


# Words by which a module can get names that its text does not show; "*" is what an import takes all by.
HIDES_NAMES = {"*", "__dict__", "__getattr__", "__setattr__", "eval", "exec", "globals", "locals", "setattr", "vars"}


def words_of(tree: ast.Module) -> Counter[str]:
    """How often each identifier or string is in the tree, whatever it does there."""
    values = [value for node in ast.walk(tree) for _, value in ast.iter_fields(node)]
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return Counter(one for one in flat if isinstance(one, str))


def by_text(tree: ast.Module, wanted: list[str]) -> dict[str, str]:
    """The states that the text alone decides: of a name that only functions at the top of the file can bind."""
    words, states = words_of(tree), {}
    if not HIDES_NAMES.isdisjoint(words):
        return {}
    for name in wanted:
        named = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        if words[name] > len(named) or any(node.decorator_list for node in named):
            continue
        if not named:
            states[name] = "absent"
        elif only_raises(named[-1]):
            states[name] = "not_implemented"
    return states


def node_of(function: Any) -> ast.FunctionDef | None:
    """A function's definition in its file; None where that cannot be read."""
    code = getattr(function, "__code__", None)
    if not inspect.isfunction(function) or code is None:
        return None
    try:
        tree = ast.parse(pathlib.Path(code.co_filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if min([node, *node.decorator_list], key=lambda part: part.lineno).lineno == code.co_firstlineno:
                return node
    return None


def only_raises(function: ast.FunctionDef) -> bool:
    """Whether the body, apart from its description and imports, is `raise NotImplementedError`."""
    body = [node for node in function.body if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))
            and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def version_here(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_note(package: str, locked: dict[str, str]) -> str:
    """Whether the package that an error is about differs from what the lock file names."""
    wanted, here = locked.get(normal(package)), version_here(package)
    if wanted is None:
        return f"this Python has {package} {here}" if here else ""
    return f"the lock file names {package} {wanted}, this Python has {here or 'none'}" if here != wanted else ""


def why_it_fails(error: BaseException, locked: dict[str, str], folder: pathlib.Path) -> str:
    """One line: the package that is missing or too old, else the error and where in the submission it was raised."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        wanted = locked.get(normal(package))
        if version_here(package) is None and not (pathlib.Path(folder) / package).exists():
            return f"package '{package}' is missing" + (f" (the lock file names {wanted})" if wanted else "")
    # str() of a SyntaxError ends with its file and line, which follow here.
    said = error.msg if isinstance(error, SyntaxError) and error.filename else str(error)
    text = f"{type(error).__name__}{': ' if said else ''}{said}".split("\n")[0][:LONGEST]
    trace, where = error.__traceback__, ""
    while trace is not None:
        name = os.path.realpath(trace.tb_frame.f_code.co_filename)
        if name.startswith(str(folder) + os.sep):
            where = f" ({os.path.relpath(name, folder)}:{trace.tb_lineno})"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({os.path.basename(error.filename)}:{error.lineno})"
    # The package that does not have what was asked of it: "module 'torch.nn' has no attribute …", "… from 'torch'".
    named = re.search(r"(?:module|from) '([A-Za-z0-9_]+)", text)
    note = version_note(named.group(1), locked) if named and isinstance(error, (AttributeError, ImportError)) else ""
    return text + where + (f"; {note}" if note else "")


def failing(error: BaseException, locked: dict[str, str], folder: pathlib.Path) -> dict[str, Any]:
    answer, lacks = {"state": "fails", "why": why_it_fails(error, locked, folder)}, claim(error)
    return {**answer, "lacks": lacks} if lacks else answer


def import_as(node: ast.FunctionDef, function: Any) -> None:
    """What the function imports before all else, as its call would: what is missing is found out before it is
    called. A later import is left to the call, which may not reach it or may have made the module findable."""
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    imports = list(itertools.takewhile(lambda part: isinstance(part, (ast.Import, ast.ImportFrom)), node.body[first:]))
    names = {name: function.__globals__.get(name) for name in ("__name__", "__package__")}
    exec(compile(ast.Module(imports, []), function.__code__.co_filename, "exec"), names)


def state_of(function: Any, name: str, is_getter: bool) -> dict[str, Any]:
    """What the module has by that name, which may come from another file."""
    if not callable(function):
        return {"state": "absent"}
    inner = inspect.unwrap(function)
    node = node_of(inner)
    if node is not None and inner is function and only_raises(node):
        return {"state": "not_implemented"}
    if node is not None:
        import_as(node, inner)
    if is_getter:
        made = function()
        if not inspect.isclass(syslab_loading.applied(made)):
            return {"state": "fails", "why": f"{name}() returned {type(made).__name__}, expected a class"}
    return {"state": "implemented"}


def survey(path: pathlib.Path, wanted: list[str], getters: set[str]) -> dict[str, Any]:
    folder = path.parent.parent if path.parent.name == "tests" else path.parent
    locked = locked_versions(folder)
    found = {"python": sys.version.split()[0], "torch": version_here("torch"), "triton": version_here("triton"),
             "asks": asked_of(folder)}
    decided: dict[str, str] = {}
    try:
        decided = by_text(ast.parse(path.read_bytes()), wanted)
        module = syslab_loading.load_module(path)
    except BaseException as error:  # a sys.exit() at the top of the file, too
        failed = failing(error, locked, folder)
        return {**found, "functions": {name: {"state": decided[name]} if name in decided else failed
                                       for name in wanted}}

    states = {}
    for name in wanted:
        try:
            states[name] = state_of(getattr(module, name, None), name, name in getters)
        except NotImplementedError:
            states[name] = {"state": "not_implemented"}
        except BaseException as error:
            states[name] = failing(error, locked, folder)
    return {**found, "functions": states}


def main() -> None:
    path, limit, *names = sys.argv[1:]
    split = names.index("--")
    answer = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    if int(limit):
        # Of what it writes to: libraries of a framework alone map more addresses than most machines have memory.
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit) + FOR_LIBRARIES, int(limit) + FOR_LIBRARIES))
    found = survey(pathlib.Path(os.path.realpath(path)), names[:split] + names[split + 1:], set(names[split + 1:]))
    answer.write(json_bytes(found))
    answer.flush()
    os._exit(0)  # threads and exit handlers of the submission have no say in it


if __name__ == "__main__":
    main()
