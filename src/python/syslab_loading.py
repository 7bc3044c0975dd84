"""Finds and imports the file that somebody handed in, with what it needs on Python's path.

Needs the standard library alone.
"""
from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import inspect
import os
import pathlib
import sys
import sysconfig
import types
from typing import TYPE_CHECKING, Any

from syslab_lacks import claim
from syslab_project import install_own_packages

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_mine(text: str) -> tuple[str, str]:
    """File and class of "name=path.py:Class"."""
    path, _, class_name = text.partition("=")[2].rpartition(":")
    return os.path.realpath(path), class_name


def roots(path: pathlib.Path) -> tuple[pathlib.Path, list[str]]:
    """The folder that holds the file's outermost package, and the project's root, where there are such."""
    package = path.parent
    while (package / "__init__.py").exists():
        package = package.parent
    projects = [folder for folder in path.parents
                if any((folder / mark).exists() for mark in ("pyproject.toml", "setup.py", ".git"))]
    return package, [str(folder) for folder in [package] + projects[:1] if folder != path.parent]


def project_folders(path: pathlib.Path) -> list[str]:
    """Of adapters as they are handed in: the project's root, and the folders of its packages that have one of their
    own."""
    if path.name != "adapters.py":
        return []
    root = path.parent.parent if path.parent.name == "tests" else path.parent
    members = sorted(mark.parent for mark in root.glob("*/pyproject.toml"))
    return [str(folder) for folder in (root, root / "src", *members) if folder.is_dir() and folder != path.parent]


LOADED = {}  # (file, when it was written, its bytes) → module


def load_module(path: str | pathlib.Path) -> types.ModuleType:
    """The file as a module, with its project on the path. It is run once, however often it is asked for: what it
    registers, an operator of torch's say, may be there once."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no Python file {path}")
    state = path.stat()
    key = (os.path.realpath(path), state.st_mtime_ns, state.st_size)
    if key not in LOADED:
        LOADED[key] = run_module(path)
    return LOADED[key]


def files_loaded() -> set[str]:
    """Real paths of all that is loaded."""
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {os.path.realpath(file) for file in loaded if isinstance(file, str)}


LOADED_BEFORE = files_loaded()  # the interpreter's own, a site's customisation too


def own_files(files: Iterable[str] | None = None) -> list[str]:
    """Real paths of those files, or of what is loaded here, that are the user's: neither of the interpreter nor of an
    installed package, nor one of ours.
    """
    installed = tuple(os.path.realpath(folder) + os.sep for folder in
                      {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()} - {os.sep, ""})
    files = files_loaded() if files is None else files
    ours = os.path.dirname(os.path.realpath(globals().get("__file__") or os.devnull)) + os.sep
    return sorted({file for file in files if file not in LOADED_BEFORE and not file.startswith((*installed, ours))
                   and f"{os.sep}site-packages{os.sep}" not in file and f"{os.sep}dist-packages{os.sep}" not in file})


# What references compute by; elsewhere replaced names change no result.
COMPUTES = {"builtins", "cmath", "functools", "itertools", "math", "numpy", "operator", "random", "scipy", "statistics",
            "time", "torch"}


def replaced_names(files: Iterable[str]) -> list[str]:
    """Names of libraries that results are computed by, behind which stands code of these files: ["numpy.exp"]."""
    own = set(files)
    known: dict[str, bool] = {}
    modules = {name for name, module in list(sys.modules.items()) if getattr(module, "__file__", None)
               and is_own(module.__file__, own, known)}

    def replaced(value: Any) -> bool:
        value = value.func if isinstance(value, functools.partial) else value
        if isinstance(value, types.FunctionType):
            return is_own(value.__code__.co_filename, own, known)
        kind = value if isinstance(value, type) else type(value)
        return getattr(kind, "__module__", None) in modules and callable(value)

    found = set()
    for name, module in list(sys.modules.items()):
        deep = name.count(".") > 1 and not name.startswith(("numpy.", "torch.nn."))
        if deep or name.partition(".")[0] not in COMPUTES or name in modules or not inspect.ismodule(module):
            continue
        for attribute, value in list(vars(module).items()):
            if replaced(value):
                found.add(f"{name}.{attribute}")
            elif isinstance(value, type) and value.__module__ == name:
                found.update(f"{name}.{value.__name__}.{part}" for part, inner in list(vars(value).items())
                             if isinstance(inner, types.FunctionType) and replaced(inner))
    return sorted(found)


def is_own(file: Any, own: set[str], known: dict[Any, bool]) -> bool:
    """`known`: answers so far."""
    if file not in known:
        known[file] = os.path.realpath(file) in own
    return known[file]


def run_module(path: pathlib.Path) -> types.ModuleType:
    install_own_packages(path)
    package, further = roots(path)
    further += [folder for folder in project_folders(path) if folder not in further]
    # Imports beside the file work, as in `python3 flash.py`. A file may be run many times: each folder once.
    sys.path[0:1] = [str(path.parent), *(folder for folder in further if folder not in sys.path[1:])]
    # Inside a package by its dotted name, so that relative imports work. A dot of a file's own name is none of that.
    parts = path.relative_to(package).with_suffix("").parts
    if len(parts) > 1 and not any("." in part for part in parts):
        return importlib.import_module(".".join(parts))
    name = ".".join(part.replace(".", "_") for part in parts)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class FailedImports:
    """While it is entered: imports that fail in files below a folder, also those whose error a file catches."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = str(folder)
        self.errors: list[str] = []
        self.lacks: dict[str, str] | None = None

    def __enter__(self) -> FailedImports:
        self.honest = builtins.__import__
        builtins.__import__ = self.watched
        return self

    def __exit__(self, *_: Any) -> None:
        builtins.__import__ = self.honest

    def watched(self, name: str, *arguments: Any, **named: Any) -> types.ModuleType:
        try:
            return self.honest(name, *arguments, **named)
        except Exception as error:
            importer = ((named.get("globals") or (arguments[0] if arguments else None)) or {}).get("__file__") or ""
            if os.path.realpath(importer).startswith(self.folder + os.sep):
                self.lacks = self.lacks or claim(error)
                self.errors.append(f"{type(error).__name__}: {error} ({pathlib.Path(importer).name})")
            raise

    def told(self) -> str:
        # The same error passes through every file on its way up; the first is where it began.
        return f"; an import failed: {self.errors[0]}" if self.errors else ""


def applied(made: Any) -> Any:
    """What a getter returned; of an object of a torch.autograd.Function its class, which has the same `apply`, all that
    the hand-out's tests call."""
    torch = sys.modules.get("torch")
    return type(made) if torch is not None and isinstance(made, torch.autograd.Function) else made


def load_class(path: str | pathlib.Path, class_name: str) -> tuple[type[Any], types.ModuleType]:
    """The class, and the module it lives in; of "get_flash()" what that function returns, and where that lives."""
    path = pathlib.Path(path)
    with FailedImports(path.parent.resolve()) as imports:
        module = load_module(path)
    cls = getattr(module, class_name.removesuffix("()"), None)
    if class_name.endswith("()") and callable(cls):
        cls = applied(cls())
        if not inspect.isclass(cls):
            raise TypeError(f"{path.name}: {class_name} returned {type(cls).__name__}, expected a class with forward, "
                            "or a torch.autograd.Function")
        return cls, sys.modules.get(cls.__module__, module)
    if callable(cls) and not inspect.isclass(cls):
        raise TypeError(f"{path.name}: '{class_name}' is a function, expected a class with forward, or a "
                        "torch.autograd.Function")
    if not inspect.isclass(cls):
        classes = [n for n, o in vars(module).items() if inspect.isclass(o) and o.__module__ == module.__name__]
        error = AttributeError(f"{path.name} has no class '{class_name}' (it has: {', '.join(classes) or 'none'})"
                               f"{imports.told()}")
        setattr(error, "lacks", imports.lacks)
        raise error
    return cls, module
