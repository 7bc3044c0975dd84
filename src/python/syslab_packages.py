"""Installed packages that do not work here: they cannot be imported, or need a newer torch than this.

Some refuse an old torch by exceptions of their own. The judged process claims which package's code raised
(`package_of`). A process of ours, which runs nothing of what was handed in, finds out whether it is so
(`does_not_work`).

Needs the standard library alone.
"""
from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import os
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from syslab_project import lowest, release, requirements_in

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

INSTALLED = "-packages" + os.sep  # site-packages, Debian's dist-packages


def path_of(kind: type) -> str:
    """Of an exception's class, with which it is compared."""
    return f"{kind.__module__}.{kind.__qualname__}"


# --- in the judged process ---


def files_and_modules(trace: types.TracebackType | None) -> Iterator[tuple[str, str]]:
    """Of the frames whose code may be a package's: not the import system, Python's own library or torch."""
    library = sysconfig.get_path("stdlib") + os.sep
    while trace is not None:
        file, module = trace.tb_frame.f_code.co_filename, trace.tb_frame.f_globals.get("__name__", "")
        is_library = file.startswith(library) and INSTALLED not in file
        if not file.startswith("<") and not is_library and module.partition(".")[0] != "torch":
            yield file, module
        trace = trace.tb_next


def package_of(error: Any) -> str:
    """The installed package whose own code raised it, or whose machine code could not be loaded; empty: none."""
    raised_in = list(files_and_modules(error.__traceback__))
    if raised_in and INSTALLED in raised_in[-1][0]:
        return raised_in[-1][1].partition(".")[0]
    is_of_import = isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError)
    return (error.name or "").partition(".")[0] if is_of_import else ""


# --- in a process of ours ---


def cannot_be_imported(package: str, raised: str) -> bool:
    """Whether its import ends with an exception of that class here, too."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(package)
    except BaseException as error:  # it may call sys.exit()
        return path_of(type(error)) == raised
    return False


def distributions_of(package: str) -> list[str]:
    listed: dict[str, list[str]] = getattr(importlib.metadata, "packages_distributions", dict)()  # since Python 3.10
    return listed.get(package, [package])


def needs_a_newer_torch(package: str) -> bool:
    """Whether it says so in its metadata: "torch>=2", if only for those of its users who have torch."""
    try:
        torch = release(importlib.metadata.version("torch"))
        lines = [line for one in distributions_of(package) for line in importlib.metadata.requires(one) or []]
    except importlib.metadata.PackageNotFoundError:
        return False
    least = [lowest(requirements_in([line]).get("torch", "")) for line in lines]
    return any(one > torch[:len(one)] for one in least)


def does_not_work(package: str, raised: str) -> bool:
    """Of an installed package, neither torch nor of Python: another version of it would."""
    is_no_package = not package.isidentifier() or package in ("torch", *sys.stdlib_module_names)
    if is_no_package or importlib.util.find_spec(package) is None:
        return False
    return cannot_be_imported(package, raised) or needs_a_newer_torch(package)
