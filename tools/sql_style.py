#!/usr/bin/env python3
"""The style of SQL text: keywords in capitals, no tabs, no blanks at a line's end. That it runs is tested elsewhere.

    tools/sql_style.py FILE…       exit 1 and a line for each fault
    tools/sql_style.py --self-test

tools/structure.py measures the length of its lines, and what it may not say.
"""
import pathlib
import re
import sys
from typing import Iterator

KEYWORDS = frozenset("""
    select from where join left inner outer cross natural on using group by order having limit union all except
    intersect and or not in is null as case when then else end create table view index trigger insert update delete
    into values set with recursive distinct between like glob exists desc asc over partition materialized primary
    references unique check default strict cast collate returning
    """.split())
# Not code: comments, texts, and names in quotes.
NO_CODE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`", re.S)
# Not a keyword: a part of a name (a.end), a JSON operator's operand, a parameter (:limit).
WORD = re.compile(r"(?<![\w.:@$?])[A-Za-z_]\w*")


def faults(text: str) -> Iterator[tuple[int, str]]:
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for number, (line, of_code) in enumerate(zip(text.split("\n"), code.split("\n")), 1):
        if "\t" in line:
            yield number, "a tab; expected blanks"
        if line != line.rstrip():
            yield number, "blanks at the end"
        for word in WORD.findall(of_code):
            if word.lower() in KEYWORDS and not word.isupper():
                yield number, f"'{word}' is a keyword; expected {word.upper()}"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield text.count("\n") + 1, "the file ends otherwise than in one line feed"


def self_test() -> None:
    assert list(faults("SELECT 'select' AS \"from\" -- from\nFROM a.end;\n")) == []
    told = [fault for _, fault in faults("select 1\tFROM t \n")]
    assert told == ["a tab; expected blanks", "blanks at the end", "'select' is a keyword; expected SELECT"], told
    assert len(list(faults("SELECT 1"))) == 1


def main() -> int:
    if "--self-test" in sys.argv:
        self_test()
        return 0
    found = [f"{name}:{number}: {fault}" for name in sys.argv[1:]
             for number, fault in faults(pathlib.Path(name).read_text(encoding="utf-8"))]
    print("\n".join([*found, f"sql_style: {len(sys.argv) - 1} files, {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
