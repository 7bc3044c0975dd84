#!/usr/bin/env python3
"""Links between pages: each names a file that is there, and a heading or an anchor that it has. So does a path in
backticks that begins in a folder of ours.

    page_links.py ROOT          exit 1 and a line for each that does not
    page_links.py --self-test

Pages are all *.md of the checkout but examples of reports. Addresses with a scheme are not asked.
"""
import pathlib
import re
import sys
import tempfile

LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.S | re.M)
PATH = re.compile(r"`((?:src|tests|docs|db|reports|experiments|property_tests|tools|\.ci)/[\w./-]+)`")
# What a page tells its reader to make, or where others have theirs (the hand-out's adapters); a name in capitals stands
# for any.
TO_BE_MADE = re.compile(r"harmonic_sum|sum_chains|^tests/adapters\.py$|(?:^|/)[A-Z]{2,}(?:/|\.|$)")
LEFT_OUT = ("reports/examples", "build", "subprojects", ".git/", "out/", ".venv", "venv", "node_modules")


def anchors_of(text):
    """What GitHub calls the headings: lower case, without marks, a hyphen for a space, a number behind one that
    repeats. And <a id="…">."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
    found = set(re.findall(r'<a id="([^"]+)">', text))
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.M):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        found.add(name if seen[name] == 0 else f"{name}-{seen[name]}")
    return found


def faults_of(root):
    faults = []
    pages = [page for page in sorted(root.rglob("*.md")) if not page.relative_to(root).as_posix().startswith(LEFT_OUT)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for target in LINK.findall(CODE.sub("``", text)):
            if "://" in target or target.startswith("mailto:"):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            where = f"{page.relative_to(root)}: {target}"
            if not file.exists():
                faults.append(f"{where}: no such file")
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file.read_text(encoding="utf-8")):
                faults.append(f"{where}: no such heading")
        prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
        faults += [f"{page.relative_to(root)}: `{path}`: no such file" for path in PATH.findall(prose)
                   if not TO_BE_MADE.search(path) and not (root / path).exists()]
    return faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "other.md").write_text("# A `b`, it's\n\n```sh\n# no heading\n```\n\n## A b its\n", encoding="utf-8")
        (root / "page.md").write_text("[a](other.md#a-b-its) [b](other.md#a-b-its-1) [c](lost.md) "
                                      "[d](other.md#no-heading) [h](#here) [i](#nowhere) <a "
                                      "id=\"here\"></a>\n`[e](lost.md)` "
                                      "[f](https://x/lost.md)\n[![g](lost.png)](other.md) `src/lost` `src/here.cpp` "
                                      "`src/NAME.cpp` `elsewhere/lost`\n```\n`src/shown`\n```\n", encoding="utf-8")
        (root / "docs/decisions").mkdir(parents=True)
        (root / "docs/decisions/why.md").write_text("[a](../../other.md) [b](lost.md) `docs/lost`\n", encoding="utf-8")
        (root / "src").mkdir()
        (root / "src/here.cpp").write_text("", encoding="utf-8")
        expected = ["docs/decisions/why.md: lost.md: no such file", "docs/decisions/why.md: `docs/lost`: no such file",
                    "page.md: lost.md: no such file", "page.md: other.md#no-heading: no such heading",
                    "page.md: #nowhere: no such heading",
                    "page.md: `src/lost`: no such file"]
        assert faults_of(root) == expected, faults_of(root)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    faults = faults_of(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
