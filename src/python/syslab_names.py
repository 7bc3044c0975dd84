"""Names that Python code makes, found by reading: what a project defines, and what instances of a class have.

Needs the standard library alone.
"""
from __future__ import annotations

import ast
import inspect
import os
import pathlib
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FILES, MOST_BYTES = 20_000, 8 << 20  # of a project, whose own files take a second a mebibyte
NOT_OWN = ("venv", "node_modules", "site-packages", "__pycache__")
SETTERS = ("setattr", "__setattr__", "register_buffer", "register_parameter", "register_module", "add_module")
SHORTEST_BEGINNING = 4  # of a computed name; a shorter one would match names that nobody has computed


def text_of(node: ast.AST) -> str:
    """Of an expression that is a text, with {} for its gaps; empty: it is another."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


class Names:
    """A set of names, and of computed ones, "weight_ih_l{}", by how they begin."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.beginnings: set[str] = set()

    def add_text(self, text: str) -> None:
        if text.isidentifier():
            self.known.add(text)
        else:
            self.add_computed(text)

    def add_computed(self, text: str) -> None:
        beginning, gap, _ = text.partition("{")
        if gap and len(beginning) >= SHORTEST_BEGINNING and re.fullmatch(r"(\w|\{\w*\})+", text):
            self.beginnings.add(beginning)

    def __contains__(self, name: str) -> bool:
        return name in self.known or name.startswith(tuple(self.beginnings))


def called(call: ast.Call) -> str:
    return (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name)
            else "")


def add_attributes(names: Names, node: ast.AST) -> None:
    """What a node of code assigns to: an attribute, a parameter or buffer by its name, an entry of __dict__."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        names.known.add(node.attr)
    elif isinstance(node, ast.Call) and called(node) in SETTERS:
        for argument in node.args[:2]:
            names.add_text(text_of(argument))
    elif (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Attribute)
          and node.value.attr == "__dict__"):
        names.add_text(text_of(node.slice))


# --- of a project ---


def own_files(root: pathlib.Path) -> Iterator[bytes]:
    """Texts of the project's Python files, as far as they are read: the rest may define names, which are then open."""
    files, left = 0, MOST_BYTES
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in NOT_OWN]
        for path in (pathlib.Path(folder, name) for name in names):
            files += 1
            if files > MOST_FILES:
                return
            if path.suffix != ".py" or not path.is_file():
                continue
            left -= path.stat().st_size
            if left < 0:
                return
            yield path.read_bytes()


def parsed(text: bytes) -> ast.Module | None:
    """The tree of a file; None: this Python does not parse it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def has_file_that_does_not_parse(root: pathlib.Path) -> bool:
    return any(parsed(text) is None for text in own_files(root))


def names_made_in(root: pathlib.Path) -> Names:
    """What the project's own files define or assign to: an attribute of that name is its own, and none of torch."""
    names = Names()
    for tree in map(parsed, own_files(root)):
        for node in ast.walk(tree) if tree is not None else ():
            add_attributes(names, node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.known.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.known.add(node.id)
    return names


# --- of a class ---


def declared_in(kind: type) -> set[str]:
    """Names that a class itself declares of its instances."""
    slots, annotated = kind.__dict__.get("__slots__", ()), kind.__dict__.get("__annotations__")
    # Of `type` it is none.
    return {*([slots] if isinstance(slots, str) else slots), *(annotated if isinstance(annotated, dict) else ())}


def names_of_instances(kind: type) -> Names:
    """What instances of a class may have that the class itself does not: what it and its bases declare, or assign to in
    their methods; what a text of its code may compute counts as well. Instances of a class in C have no more than the
    class."""
    names = Names()
    for one in kind.__mro__:
        names.known |= declared_in(one)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        except (OSError, TypeError, SyntaxError):  # one in C, or without its source
            continue
        for node in ast.walk(tree):
            add_attributes(names, node)
            names.add_computed(text_of(node))
    return names
