"""What a project says of itself in its files: its packages, the versions that it was locked to, the Pythons that it
runs under.

Its files are read, never run, and nothing is installed from them. Needs the standard library alone.
"""
from __future__ import annotations

import importlib.metadata
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    Context = importlib.metadata.DistributionFinder.Context

LARGEST_LOCK, LARGEST_SETTINGS = 16 << 20, 1 << 20


def normal(name: str) -> str:
    """A package's name as an index compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def project_root(path: str | pathlib.Path) -> pathlib.Path:
    """The folder of the project that a file belongs to; of an adapters.py the one above its `tests`."""
    path = pathlib.Path(path)
    if path.name == "adapters.py":
        return path.parent.parent if path.parent.name == "tests" else path.parent
    marks = ("pyproject.toml", "setup.py", ".git")
    return next((folder for folder in path.parents if any((folder / mark).exists() for mark in marks)), path.parent)


def text_of(path: pathlib.Path, largest: int) -> str:
    """The file's text; empty when it is not there, too large, or not readable."""
    try:
        if path.is_file() and path.stat().st_size < largest:
            return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    return ""


def settings_of(folder: pathlib.Path) -> dict[str, Any]:
    """The table [project] of a pyproject.toml; empty when there is none, or it cannot be read."""
    text = text_of(folder / "pyproject.toml", LARGEST_SETTINGS)
    try:
        import tomllib  # since Python 3.11

        project = tomllib.loads(text).get("project", {})
        return project if isinstance(project, dict) else {}
    except ModuleNotFoundError:
        section = re.search(r"^\[project\]\s*$(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
        body = section.group(1) if section else ""
        project = dict(re.findall(r"^(name|version|requires-python)\s*=\s*[\"']([^\"'\n]+)[\"']", body, re.MULTILINE))
        listed = re.search(r"^dependencies\s*=\s*\[(.*?)^\s*\]", body, re.MULTILINE | re.DOTALL)
        return {**project, "dependencies": re.findall(r"[\"']([^\"'\n]+)[\"']", listed.group(1) if listed else "")}
    except (ValueError, RecursionError):
        return {}


def texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def member_settings(root: pathlib.Path) -> list[dict[str, Any]]:
    """[project] of the root and of its packages that have a pyproject.toml of their own."""
    return [settings_of(folder) for folder in (root, *(mark.parent for mark in sorted(root.glob("*/pyproject.toml"))))]


def own_packages(root: pathlib.Path) -> dict[str, str]:
    """Name → version of the packages that the project itself consists of."""
    named = [one for one in member_settings(root) if isinstance(one.get("name"), str)]
    return {one["name"]: one["version"] if isinstance(one.get("version"), str) else "0" for one in named}


def locked_versions(root: pathlib.Path) -> dict[str, str]:
    """Package → version of the lock file in the root, by normal names."""
    locked: dict[str, str] = {}
    for name in ("uv.lock", "poetry.lock", "pdm.lock"):
        found = re.findall(r'^name = "([^"\n]+)"\nversion = "([^"\n]+)"', text_of(root / name, LARGEST_LOCK),
                           re.MULTILINE)
        locked.update((normal(package), version) for package, version in found)
    requirements = text_of(root / "requirements.txt", LARGEST_SETTINGS)
    locked.update((normal(package), version)
                  for package, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;#]+)", requirements, re.MULTILINE))
    return locked


def requirements_in(lines: Iterable[str]) -> dict[str, str]:
    """Package → what is asked of its version ("~=2.11.0", or nothing)."""
    found = [re.match(r"\s*([A-Za-z0-9][A-Za-z0-9_.-]*)\s*(?:\[[^\]]*\])?\s*([^;#]*)", line) for line in lines]
    return {normal(one.group(1)): one.group(2).strip() for one in found if one}


def required(root: pathlib.Path) -> dict[str, str]:
    """As above, of pyproject.toml and requirements.txt."""
    lines = [line for one in member_settings(root) for line in texts(one.get("dependencies"))]
    return requirements_in(lines + text_of(root / "requirements.txt", LARGEST_SETTINGS).splitlines())


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: (2, 11, 0) of "2.11.0+cu128"."""
    numbers = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    return tuple(int(number) for number in numbers.group(1).split(".")) if numbers else ()


def lowest(requirement: str) -> tuple[int, ...]:
    """The lowest version that a requirement names; empty: it names none."""
    found = [release(version) for version in re.findall(r"(?:>=|==|~=|>)\s*([\d.]+)", requirement)]
    return max(found, default=())


def excludes_this_python(root: pathlib.Path) -> str:
    """What the project requires of Python, if this one is older; else an empty text."""
    for one in member_settings(root):
        asked = one.get("requires-python")
        if isinstance(asked, str) and lowest(asked) > sys.version_info[:len(lowest(asked))]:
            return asked
    return ""


def admits_newer_python(root: pathlib.Path) -> bool:
    """Whether what the project requires of Python admits a minor version that is newer than this one: ">=3.11", and
    ">=3.11,<3.13" of 3.11."""
    for one in member_settings(root):
        asked = one.get("requires-python")
        if not isinstance(asked, str):
            continue
        below = [release(version) for version in re.findall(r"<\s*([\d.]+)", asked)]
        most = [release(version) for version in re.findall(r"(?:<=|==)\s*([\d.]+)", asked)]
        next_minor = (sys.version_info[0], sys.version_info[1] + 1)
        if all(next_minor < version for version in below) and all(next_minor <= version for version in most):
            return True
    return False


def asked_of(root: pathlib.Path) -> str:
    """What the project requires of Python and of torch, in words; empty: nothing."""
    torch = locked_versions(root).get("torch")
    python = next((one["requires-python"] for one in member_settings(root)
                   if isinstance(one.get("requires-python"), str)), "")
    wanted = f"=={torch}" if torch else required(root).get("torch", "")
    return ", ".join([f"Python {python}"] * bool(python) + [f"torch {wanted}"] * bool(wanted))


class OwnDistribution(importlib.metadata.Distribution):
    """A package that needs no installation, since it is the project itself."""

    def __init__(self, name: str, version: str) -> None:
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self.text if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: str | os.PathLike[str]) -> pathlib.Path:
        return pathlib.Path(path)


class OwnPackages(importlib.metadata.DistributionFinder):
    """Answers importlib.metadata for packages of a project, where none of that name is installed."""

    def __init__(self, packages: dict[str, str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(self, context: Context = importlib.metadata.DistributionFinder.Context()
                           ) -> Iterator[OwnDistribution]:
        for name, version in self.packages.items():
            if context.name is None or normal(context.name) == normal(name):
                yield OwnDistribution(name, version)


def install_own_packages(path: str | pathlib.Path) -> None:
    """The packages of the project that the file belongs to count as installed from now on."""
    packages = own_packages(project_root(path))
    known = [finder.packages for finder in sys.meta_path if isinstance(finder, OwnPackages)]
    if packages and packages not in known:
        sys.meta_path.append(OwnPackages(packages))
