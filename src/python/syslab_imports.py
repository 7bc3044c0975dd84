"""Which files a Python file imports, found by reading: nothing of it runs.

    python3 -I syslab_imports.py FILE.py

Prints a JSON list of real paths: of what the file imports from its own folder and those above, up to its project's
root, and of what those files import. An import by a name that is computed is not found. syslab starts this by itself.

Needs the standard library alone.
"""
from __future__ import annotations

import ast
import json
import pathlib
import sys

TYPE_CHECKING = False  # typing has it as well, but its import would slow down each start
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MARKS = ("pyproject.toml", "setup.py", ".git")  # of a project's root
MOST_FILES, MOST_BYTES = 500, 1 << 23


def search_path(path: pathlib.Path) -> list[pathlib.Path]:
    """The folders in which its imports may be found."""
    above = list(path.parents)[:-1]
    roots = [n for n, folder in enumerate(above) if any((folder / mark).exists() for mark in MARKS)]
    packages = next((n for n, folder in enumerate(above) if not (folder / "__init__.py").exists()), 0)
    return [each for folder in above[:(roots[0] if roots else packages) + 1] for each in (folder, folder / "src")]


def is_run_elsewhere(node: ast.AST) -> bool:
    """`if __name__ == "__main__":` and `if TYPE_CHECKING:`"""
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id in ("__name__", "TYPE_CHECKING") or isinstance(each, ast.Attribute)
        and each.attr == "TYPE_CHECKING"
        for each in ast.walk(node.test))


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    left: list[Any] = [tree]
    while left:
        node = left.pop()
        yield node
        left += node.orelse if is_run_elsewhere(node) else ast.iter_child_nodes(node)


def imports_of(tree: ast.AST, path: pathlib.Path) -> Iterator[tuple[list[pathlib.Path], str]]:
    """(folders, dotted name) of each import."""
    above = search_path(path)
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from ((above, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folders = (above if not node.level else [path.parents[node.level - 1]] if node.level <= len(path.parents)
                       else [])
            yield from ((folders, ".".join(filter(None, (node.module, alias.name)))) for alias in node.names)
        elif (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
              and isinstance(node.args[0].value, str)):
            if getattr(node.func, "id", getattr(node.func, "attr", "")) in ("__import__", "import_module"):
                yield above, node.args[0].value.lstrip(".")


def files_named(folders: Iterable[pathlib.Path], name: str) -> Iterator[pathlib.Path]:
    """A package's own file comes with what is imported from it."""
    for folder in folders:
        for part in name.split("."):
            folder = folder / part
            yield from (file for file in (folder.with_name(part + ".py"), folder / "__init__.py") if part
                        and file.is_file())


def files_imported(path: str) -> set[pathlib.Path]:
    """Real paths, in no order, without the file itself."""
    first = pathlib.Path(path).resolve()
    found, left, size = {first}, [first], 0
    while left and len(found) < MOST_FILES:
        file = left.pop()
        try:
            text = file.read_bytes()
            size += len(text)
            if size > MOST_BYTES:
                break
            named = [one.resolve() for folders, name in imports_of(ast.parse(text), file)
                     for one in files_named(folders, name)]
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        left += set(named) - found
        found |= set(named)
    return found - {first}


if __name__ == "__main__":
    json.dump(sorted(map(str, files_imported(sys.argv[1]))), sys.stdout)
