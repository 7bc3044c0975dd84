"""How many units include each header: what a change in it compiles again, and what a slow one costs (layering.py
--cost)."""
import collections
import pathlib
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.M)
UNITS = {".cpp", ".cu"}
TOPS = ("src", "experiments", "property_tests", "tests")


def reached(root):
    """Of each unit, all headers that it includes, directly or through others of the project: "core/error.hpp",
    "<vector>"."""
    named: dict[pathlib.Path, set] = {}  # file: what it names itself, files of the project and others in <>

    def names_of(file):
        if file not in named:
            named[file] = set()
            for kind, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
                places = (root / "src" / name, root / name, file.parent / name) if kind == '"' else ()
                named[file].add(next((place.resolve() for place in places if place.is_file()), f"<{name}>"))
        return named[file]

    for unit in sorted(file for top in TOPS for file in (root / top).rglob("*") if file.suffix in UNITS):
        seen: set[pathlib.Path | str] = set()
        left = [unit]
        while left:
            for found in names_of(left.pop()) - seen:
                seen.add(found)
                if isinstance(found, pathlib.Path):
                    left.append(found)
        yield unit.relative_to(root), seen


def count_units(root):
    """Of each header, how many units include it: [all of them, those that are no tests]."""
    counts: dict[pathlib.Path | str, list[int]] = collections.defaultdict(lambda: [0, 0])
    units = [0, 0]
    for unit, headers in reached(root.resolve()):
        of_program = unit.parts[0] != "tests" and not unit.stem.endswith("_test")
        for count in [units, *(counts[header] for header in headers)]:
            count[0] += 1
            count[1] += of_program
    return units, counts


def table(root):
    """Lines of a table, what most units include first."""
    units, counts = count_units(root)

    def name(header):
        return header if isinstance(header, str) else header.relative_to(root.resolve()).as_posix()

    rows = sorted(((all_, program, name(header)) for header, (all_, program) in counts.items()),
                  key=lambda row: (-row[0], row[2]))
    yield "units  of the program  header"
    for all_, program, header in [(*units, "(all units)"), *rows]:
        yield f"{all_:5}  {program:14}  {header}"
