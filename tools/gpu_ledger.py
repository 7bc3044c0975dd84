#!/usr/bin/env python3
"""When the lab last ran whole on a GPU, and of which sources: the last row of a table in docs/performance.md.

    tools/gpu_ledger.py              says whether that was of today's sources of worker, check and ops; else a warning.
                                     Exit code 0
    tools/gpu_ledger.py --digest     their digest

tests/e2e/gpu_lab.py --ledger writes the row. Exit code 2 where there is no such table or no such folder.
"""
import argparse
import dataclasses
import hashlib
import pathlib
import re
import sys

LEDGER = "docs/performance.md"
ROOMS = ("src/worker", "src/check", "src/ops")
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
HEADER = "| date | GPU | result | clean | sources |"

STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
INCLUDE = re.compile(r'^#\s*include\s*"(?:[^"]*/)?([^"/]+)"$', re.MULTILINE)


def code_of(text):
    """What the compiler sees but for where headers lie: without comments and layout, includes by name and in order of
    names."""
    text = STRING_OR_COMMENT.sub(lambda found: found.group() if found.group()[0] in "\"'" else " ", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    text = "\n".join(line for line in lines if line)
    included = sorted(INCLUDE.findall(text))
    return "\n".join([*included, INCLUDE.sub("", text)])


def digest(root):
    """Of the code in ROOMS, whatever the files are called and in whichever folders of a room they lie."""
    of_files = []
    for room in ROOMS:
        folder = pathlib.Path(root) / room
        if not folder.is_dir():
            raise ValueError(f"there is no folder {folder}: run this in a checkout")
        for file in folder.rglob("*"):
            if file.suffix in SUFFIXES:
                of_files.append(
                    hashlib.sha256(f"{room}\n{code_of(file.read_text(encoding='utf-8'))}".encode()).hexdigest())
    return hashlib.sha256("\n".join(sorted(of_files)).encode()).hexdigest()[:16]


@dataclasses.dataclass
class Row:
    date: str
    gpu: str
    result: str
    clean: bool
    digest: str

    def line(self):
        return f"| {self.date} | {self.gpu} | {self.result} | {'yes' if self.clean else 'no'} | `{self.digest}` |"

    @staticmethod
    def read(line):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 5 or cells[3] not in ("yes", "no"):
            raise ValueError(f"in {LEDGER}, under '{HEADER}', a row of five cells with yes or no in the fourth is "
                             f"wanted, not {line!r}")
        return Row(cells[0], cells[1], cells[2], cells[3] == "yes", cells[4].strip("`"))


def rows_at(lines):
    """Where the table's rows begin and end."""
    if HEADER not in lines:
        raise ValueError(f"there is no table with the header '{HEADER}' in the ledger")
    begin = end = lines.index(HEADER) + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return begin, end


def append(path, row):
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.insert(rows_at(lines)[1], row.line())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def verdict(lines, today):
    """One line: when it ran last, or a warning."""
    begin, end = rows_at(lines)
    if begin == end:
        return ("WARNING: the whole lab has never run on a GPU (python3 tests/e2e/gpu_lab.py --ledger "
                "docs/performance.md)")
    last = Row.read(lines[end - 1])
    if last.digest != today:
        return (f"WARNING: the lab last ran whole on a GPU on {last.date}, of other sources: worker, check or ops were "
                f"{last.digest} and are {today}; python3 tests/e2e/gpu_lab.py --ledger {LEDGER} on a machine with one")
    if not last.clean:
        return f"WARNING: on a GPU these sources of worker, check and ops failed on {last.date}: {last.result}"
    return f"the lab ran clean on a GPU on {last.date} ({last.gpu}), of these sources of worker, check and ops"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digest", action="store_true", help="print the digest of today's sources and do nothing else")
    asked = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[1]
    try:
        today = digest(root)
        print(today if asked.digest else verdict((root / LEDGER).read_text(encoding="utf-8").splitlines(), today))
    except (OSError, ValueError) as error:
        print(f"gpu_ledger: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
