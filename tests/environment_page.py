#!/usr/bin/env python3
"""docs/environment.md has every variable SYSLAB_… that the program and its tools read, and none that nothing reads.

    environment_page.py ROOT         exit 1 and a line for each that is missing or idle
    environment_page.py --self-test

The program names them in quotes (C++, Python), a script behind a $. Variables that Meson gives to single tests are not
asked for, but may stand on the page.
"""
import pathlib
import re
import sys
import tempfile

PAGE = "docs/environment.md"
QUOTED, SHELL = re.compile(r'"(SYSLAB_[A-Z_]+)"'), re.compile(r"\$\{?(SYSLAB_[A-Z_]+)")
ANY = re.compile(r"SYSLAB_[A-Z_]+")
SHELL_SCRIPTS = ("tools/test", "tools/quickstart", "tools/bundle", "tools/release", ".ci/run")


def read_by(root):
    found = set()
    for folder, kinds in (("src", (".cpp", ".hpp", ".py")), ("src/python", (".py",))):
        for file in (root / folder).rglob("*"):
            if file.suffix in kinds:
                found |= set(QUOTED.findall(file.read_text(encoding="utf-8")))
    for name in SHELL_SCRIPTS:
        if (root / name).exists():
            found |= set(SHELL.findall((root / name).read_text(encoding="utf-8")))
    return found


def known_anywhere(root):
    found = set()
    for folder in ("src", "tests", "tools"):
        for file in (root / folder).rglob("*"):
            if file.is_file():
                found |= set(ANY.findall(file.read_text(encoding="utf-8", errors="replace")))
    return found


def faults_of(root):
    rows = [line.split("|")[1] for line in (root / PAGE).read_text(encoding="utf-8").splitlines()
            if line.startswith("| `")]
    told = {name for row in rows for name in ANY.findall(row)}
    return ([f"{PAGE}: no row for {name}" for name in sorted(read_by(root) - told)]
            + [f"{PAGE}: nothing reads {name}" for name in sorted(told - known_anywhere(root))])


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in (("src/a/b.cpp", 'getenv("SYSLAB_READ"); getenv("SYSLAB_LOST");'),
                           ("tools/test", "build=${SYSLAB_SAID:-build}\n"),
                           ("tests/t.py", "SYSLAB_TESTED"),
                           (PAGE, "| variable | what |\n| `SYSLAB_READ`, `SYSLAB_TESTED` | SYSLAB_LOST |\n| "
                            "`SYSLAB_IDLE` | |\n")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        expected = [f"{PAGE}: no row for SYSLAB_LOST", f"{PAGE}: no row for SYSLAB_SAID",
                    f"{PAGE}: nothing reads SYSLAB_IDLE"]
        assert faults_of(root) == expected, faults_of(root)


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1])
    faults, read = faults_of(root), read_by(root)
    print("\n".join(faults + [f"environment page: {len(read)} variables are read, {len(faults)} faults"]))
    return 1 if faults or not read else 0


if __name__ == "__main__":
    sys.exit(main())
