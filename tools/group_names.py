#!/usr/bin/env python3
"""Names in the anonymous namespaces of a room's files must differ: compiled in groups (-Dunity=on), files see each
other's, and which files meet in a group changes with every file that is added.

    group_names.py ROOT         exit 1 and a line for each name that two files of src/<room> give to different things
    group_names.py --self-test

It reads formatted files: what begins in the first column of `namespace {` is a definition. Aliases of the same type may
be repeated, and functions of one name whose parameters differ.
"""
import collections
import pathlib
import re
import sys

DEFINITIONS = [
    re.compile(
        r"^(?:static |inline )?(?:constexpr|const|constinit)\s[^=({;]*?\b(?P<name>\w+)\s*(?:\[[^\]]*\])?\s*[={;]"),
    re.compile(r"^(?:struct|class|union|enum class|enum)\s+(?P<name>\w+)\b(?!.*;\s*$)"),
    re.compile(r"^using\s+(?P<name>\w+)\s*=\s*(?P<same_if>.*)"),
    re.compile(r"^(?:\[\[\w+\]\] )?[\w:<>,&*\s]+?[\s&*](?P<name>\w+)\((?P<parameters>[^;{]*)"),
]
BUILT_IN = {"int", "long", "float", "double", "bool", "char", "auto"}


def types_of(parameters):
    """"const Problem&, int" of "const Problem& p, int n) {": the first line's, which is enough to tell functions
    apart."""
    types = []
    for one in parameters.split(")")[0].split(","):
        named = re.match(r"(.*[\s&*>])(\w+)\s*(?:=.*)?$", one.strip())
        types.append((named[1] if named and named[2] not in BUILT_IN else one).strip())
    return ", ".join(types)


def definitions(text):
    """(namespace, name with the types of parameters) → (line, what makes a repetition harmless) of one file."""
    inside: list[str] = []
    found: dict[tuple, tuple] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"^namespace\b.*\{$", line):
            inside.append(line)
        elif line.startswith("}  // namespace") and inside:
            inside.pop()
        if not inside or inside[-1] != "namespace {" or not re.match(r"[\[\w]", line):
            continue
        match = next(filter(None, (pattern.match(line) for pattern in DEFINITIONS)), None)
        if match is None or line.startswith(("namespace", "template", "return", "extern")):
            continue
        groups = match.groupdict()
        types = types_of(groups["parameters"]) if "parameters" in groups else ""
        found.setdefault((tuple(inside[:-1]), groups["name"], types), (number, groups.get("same_if")))
    return found


def clashes(files):
    """Lines that tell of names which two of `files` (name → text) of one room share."""
    places = collections.defaultdict(list)
    for file, text in files.items():
        for (namespaces, name, types), (line, same_if) in definitions(text).items():
            places[namespaces, name, types].append((f"{file}:{line}", same_if))
    for (_, name, _), found in sorted(places.items(), key=lambda one: one[1]):
        if len(found) > 1 and (found[0][1] is None or len({same_if for _, same_if in found}) > 1):
            yield f"{name}: {', '.join(place for place, _ in found)}"


def self_test():
    def file(body):
        return "namespace syslab::x {\nnamespace {\n\n" + body + "\n}  // namespace\n}  // namespace syslab::x\n"
    for one, other, clash in [
        ("constexpr int kA = 1;", "constexpr double kA = 2;", True),
        ("struct Sum {\n  int kA = 1;\n};", "constexpr int kA = 1;", False),
        ("struct Sum {\n};", "class Sum {\n};", True),
        ("struct Sum;", "struct Sum;", False),
        ("using Clock = std::chrono::steady_clock;", "using Clock = std::chrono::steady_clock;", False),
        ("using Clock = int;", "using Clock = long;", True),
        ("void step(const Problem& p, int n) {\n}", "void step(const Problem& problem, int) {\n}", True),
        ("void step(const Problem& p) {\n}", "void step(int p) {\n}", False),
    ]:
        told = list(clashes({"a.cpp": file(one), "b.cpp": file(other)}))
        assert bool(told) == clash, (one, other, told)
    assert not list(clashes({"a.cpp": "namespace syslab {\nint f(int a) {\n}\n}  // namespace syslab\n"}
                            | {"b.cpp": file("int f(int a) {\n}")}))


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1])
    rooms: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for path in sorted((root / "src").rglob("*.cpp")):
        name = path.relative_to(root)
        rooms[name.parts[1]][name.as_posix()] = path.read_text(encoding="utf-8")
    told = [line for files in rooms.values() for line in clashes(files)]
    for line in told:
        print(f"{line}\n  these files can meet in a group: give one of them another name")
    print(f"names: {sum(map(len, rooms.values()))} files of {len(rooms)} rooms, {len(told)} clashes")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
