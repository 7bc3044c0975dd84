#!/usr/bin/env python3
"""Writes a C++ file that holds the scripts of src/python (src/worker/judged/python_scripts.hpp):
embed_scripts.py OUTPUT FILE...

What each stands on is read from its imports, at its top and in its functions: nobody lists it. What it imports for its
type hints alone is none of that. A script stands behind those that it imports at its top. One that imports a syslab_
module which is not among the files is an error.
"""
import ast
import pathlib
import sys

CHUNK = 8000  # compilers limit one literal; adjacent literals are joined
OURS = "syslab_"


def modules_of(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def nodes_of(tree):
    """All that runs: without the bodies of `if TYPE_CHECKING:`."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        hints = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        left += node.orelse if hints else ast.iter_child_nodes(node)


def ours_in(nodes):
    return {name for node in nodes for name in modules_of(node) if name.startswith(OURS)}


def in_order(at_top):
    """Each name behind those that it imports at its top; `at_top`: name → these."""
    order = []

    def put(name, under):
        if name in under:
            sys.exit(f"embed_scripts.py: {name}.py imports itself: {' → '.join([*under[under.index(name):], name])}")
        if name not in order:
            for one in sorted(at_top[name]):
                put(one, [*under, name])
            order.append(name)

    for name in sorted(at_top):
        put(name, [])
    return order


def reached(name, imports):
    """It and what it imports, and what that does."""
    found, new = set(), {name}
    while new:
        found |= new
        new = {one for each in new for one in imports[each]} - found
    return found


def scripts_of(files):
    """[(name, text, positions of it and of what it stands on)]"""
    texts = {pathlib.Path(file).stem: pathlib.Path(file).read_text(encoding="utf-8") for file in files}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    anywhere = {name: ours_in(nodes_of(tree)) for name, tree in trees.items()}
    for name, imported in anywhere.items():
        if unknown := sorted(imported - set(texts)):
            sys.exit(f"embed_scripts.py: {name}.py imports {unknown[0]}, which src/python/meson.build does not list")
        if ')~~"' in texts[name]:
            sys.exit(f"embed_scripts.py: {name}.py contains the delimiter of its own literal")
    order = in_order({name: ours_in(tree.body) for name, tree in trees.items()})
    return [(name, texts[name], sorted(order.index(one) for one in reached(name, anywhere))) for name in order]


def literals(text):
    return "".join(f'\n    R"~~({text[i:i + CHUNK]})~~"' for i in range(0, max(len(text), 1), CHUNK))


def main():
    output, scripts = sys.argv[1], scripts_of(sys.argv[2:])
    parts = "".join(f"constexpr std::size_t kPartsOf{i}[] = {{{', '.join(map(str, needed))}}};\n"
                    for i, (_, _, needed) in enumerate(scripts))
    rows = "".join(f'    {{"{name}",{literals(text)},\n     kPartsOf{i}}},\n'
                   for i, (name, text, _) in enumerate(scripts))
    pathlib.Path(output).write_text(f"""// Written by tools/embed_scripts.py.
#include "worker/judged/python_scripts.hpp"

namespace syslab::worker {{
namespace {{

{parts}
constexpr PythonScript kPythonScripts[] = {{
{rows}}};

}}  // namespace

std::span<const PythonScript> python_scripts() {{ return kPythonScripts; }}

}}  // namespace syslab::worker
""", encoding="utf-8")


if __name__ == "__main__":
    main()
