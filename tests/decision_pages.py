#!/usr/bin/env python3
"""Each page of docs/decisions has the three headings and 150 to 300 words, and the index has a row for each.

    decision_pages.py ROOT        exit 1 and a line for each fault
    decision_pages.py --self-test
"""
import pathlib
import re
import sys
import tempfile

FOLDER = pathlib.PurePosixPath("docs/decisions")
INDEX = "README.md"
HEADINGS = ["## Context", "## Decision", "## Consequences"]
FEWEST, MOST = 150, 300
ROW = re.compile(r"^\| \[(.+)\]\(([\w-]+\.md)\) \| \S.* \|$", re.M)
# Pages describe what the code does now: history belongs in the ledger.
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def faults_of_page(name, text):
    words = len(text.split())
    if re.findall(r"^## .*$", text, re.M) != HEADINGS:
        yield f"{name}: its headings are not {', '.join(HEADINGS)}"
    if not FEWEST <= words <= MOST:
        yield f"{name}: {words} words, not {FEWEST} to {MOST}"
    if DATE.search(text):
        yield f"{name}: has a date"


def faults_of(root):
    folder = root / FOLDER
    pages = {page.name: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md")) if page.name != INDEX}
    listed = {name: title for title, name in ROW.findall((folder / INDEX).read_text(encoding="utf-8"))}
    faults = [f"{INDEX}: lists {name}, which is not there" for name in listed if name not in pages]
    for name, text in pages.items():
        faults += faults_of_page(name, text)
        if listed.get(name) != text.splitlines()[0].removeprefix("# "):
            faults.append(f"{INDEX}: has no row with the title of {name}")
    return faults if pages else [f"{FOLDER}: has no pages"]


def self_test():
    def page(title, words=FEWEST):
        return "\n\n".join([f"# {title}", *HEADINGS, "word " * words])

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / FOLDER).mkdir(parents=True)

        def found(index, **pages):
            for old in (root / FOLDER).glob("*.md"):
                old.unlink()
            for name, text in {"README": index, **pages}.items():
                (root / FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
            return len(faults_of(root))

        row = "| [A](a.md) | because |\n"
        assert found(row, a=page("A")) == 0
        assert found(row) == 1
        assert found(row + "| [B](b.md) | because |\n", a=page("A")) == 1
        assert found(row, a=page("A"), b=page("B")) == 1
        assert found(row, a=page("Another")) == 1
        assert found("| [A](a.md) |  |\n", a=page("A")) == 1
        assert found(row, a=page("A", 20)) == 1 and found(row, a=page("A", 400)) == 1
        assert found(row, a=page("A").replace("## Decision\n", "")) == 1
        assert found(row, a=page("A") + "2026-05-01") == 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    faults = faults_of(pathlib.Path(sys.argv[1]))
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
