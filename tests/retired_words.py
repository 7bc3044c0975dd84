#!/usr/bin/env python3
"""The glossary in CONTRIBUTING.md retires words: none may come back in a file's name under src/ or in an identifier of
a header there.

    retired_words.py ROOT         exit 1 and a line for each that did
    retired_words.py --self-test

The column "replaces" has them in backticks. `CamelCase` is one identifier; `words_apart` is a run of words inside any
identifier or path, camel or snake; a `room/file` is a path. "`store` (comm, agents)" retires it in those rooms only.
Comments, strings and #include lines are not read.
"""
import pathlib
import re
import sys

HEADING = "## Words"
ENTRY = re.compile(r"`([\w/]+)`(?:\s*\(([a-z_, ]+)\))?")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|^[ \t]*#[ \t]*include[^\n]*',
                      re.S | re.M)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def retired_of(page):
    """(word, rooms) of the table under HEADING; no rooms: everywhere."""
    section = page.split(f"\n{HEADING}\n", 1)[1].split("\n## ", 1)[0]
    found = []
    for row in section.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")] if row.startswith("|") else []
        if len(cells) == 3:
            found += [(word, set(rooms.replace(" ", "").split(",")) - {""}) for word, rooms in ENTRY.findall(cells[2])]
    return found


def has(name, word):
    if word[0].isupper():
        return name == word
    return f"_{word}_" in "_" + "_".join(part.lower() for part in WORD.findall(name)) + "_"


def faults_of(path, text, retired):
    """`path` from src/ on; `text` is empty for what is no header."""
    room, faults = path.parts[0], []
    here = [word for word, rooms in retired if not rooms or room in rooms]
    for word in here:
        stem = path.with_suffix("")
        if stem.as_posix() == word or any(has(part, word) for part in stem.parts[1:]):
            faults.append(f"src/{path}: its name has the retired word '{word}'")
    code = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        for name in sorted(set(IDENTIFIER.findall(line))):
            faults += [f"src/{path}:{number}: '{name}' has the retired word '{word}'" for word in here
                       if has(name, word)]
    return faults


def self_test():
    retired = retired_of("\n## Words\n\n| term | is | replaces |\n|---|---|---|\n| a | b | `store` (comm), "
                         "`Direction`, `bucket_plan`, `worker/protocol` |\n\n## Next\n")
    assert retired == [("store", {"comm"}), ("Direction", set()), ("bucket_plan", set()),
                       ("worker/protocol", set())], retired

    def count(path, text):
        return len(faults_of(pathlib.PurePosixPath(path), text, retired))

    assert count("comm/tcp_store.hpp", "") == 1
    assert count("worker/protocol.cpp", "") == 1 and count("measure/protocol.cpp", "") == 0
    assert count("comm/a.hpp", "struct StoreHello {};\nint store_;\n") == 2
    assert count("report/a.hpp", "struct Store {};") == 0
    assert count("ops/a.hpp", "enum class Direction {};\nint direction;\nmake_bucket_plan(BucketPlan{});") == 3
    assert count("comm/a.hpp", '#include "store/store.hpp"\n// a store\nconst char* kName = "store";  /* store */') == 0
    assert count("comm/a.hpp", "int restore, stored;") == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1])
    retired = retired_of((root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    files = [file for file in sorted((root / "src").rglob("*")) if file.is_file()]
    faults = []
    for file in files:
        text = file.read_text(encoding="utf-8") if file.suffix == ".hpp" else ""
        faults += faults_of(file.relative_to(root / "src"), text, retired)
    print("\n".join(faults + [f"retired words: {len(retired)} words, {len(files)} files, {len(faults)} found again"]))
    return 1 if faults or not retired or not files else 0


if __name__ == "__main__":
    sys.exit(main())
