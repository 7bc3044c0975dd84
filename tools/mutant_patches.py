"""Planted faults as patches (tests/mutants/*.patch): what their heads say, and how they are applied. Used by
tools/mutants.

    Plants: a sentence: what a careless author would have got wrong
    Killed by: TEST [CASES]          a test of Meson's and, of GoogleTest, a filter of its cases; of Python,
                                     Class.test_name, several with ':' between them
    Laws: TEST [CASES]               a test of Meson's that searches laws which may find it, too; for the page alone
    Needs: gpu                       only of patches to what only a GPU runs
    Survives: why                    only of a fault that no test can be expected to find
    --- a/src/…/file.cpp
    +++ b/src/…/file.cpp
    @@
     a line that stays
    -a line that goes
    +a line that comes

Hunks have no line numbers: the lines that stay and go, together, must be found exactly once in the file, wherever that
is.
"""
import dataclasses
import hashlib
import pathlib
import re

FOLDER = "tests/mutants"
FIELDS = ("Plants", "Killed by", "Laws", "Needs", "Survives")
NAME = re.compile(r"[a-z0-9_]+")


class BadPatch(Exception):
    """Says which patch is wrong, what was found and what is wanted."""


@dataclasses.dataclass
class Hunk:
    file: str
    before: str  # whole lines
    after: str


@dataclasses.dataclass
class Patch:
    name: str
    plants: str
    test: str
    cases: str  # a filter of GoogleTest, or names of Python's unittest; empty: all
    gpu: bool
    survives: str  # why; empty: it is to be killed
    hunks: list
    digest: str  # of the hunks
    laws_test: str = ""  # where laws are searched that may find it; empty: nowhere
    laws_cases: str = ""

    @property
    def files(self):
        return sorted({hunk.file for hunk in self.hunks})


def read_head(name, lines):
    """Field → text. A line that begins with blanks goes on with the field before it."""
    fields = {}
    last = None
    for line in lines:
        if line.startswith(" ") and last:
            fields[last] += " " + line.strip()
            continue
        last, colon, text = line.partition(":")
        if not colon or last not in FIELDS:
            raise BadPatch(f"{name}: the line '{line}' in the head; a head has the fields {', '.join(FIELDS)}")
        if last in fields:
            raise BadPatch(f"{name}: the field '{last}' stands twice in the head")
        fields[last] = text.strip()
    for field in FIELDS[:2]:
        if not fields.get(field):
            raise BadPatch(f"{name}: the head has no '{field}:'; what is planted and the test that is to kill it are "
                           "wanted")
    if fields.get("Needs", "gpu") != "gpu":
        raise BadPatch(f"{name}: 'Needs: {fields['Needs']}'; all that a patch can need is 'gpu'")
    return fields


def read_hunks(name, lines):
    hunks: list[tuple[str, list[str]]] = []
    file = None
    body: list[str] | None = None
    for number, line in enumerate(lines):
        if line.startswith("--- "):
            if not line.startswith("--- a/") or number + 1 == len(lines) or lines[number + 1] != "+++ b/" + line[6:]:
                raise BadPatch(
                    f"{name}: '{line}'; '--- a/FILE' and, below it, '+++ b/FILE' of the same file are wanted")
            file, body = line[6:], None
        elif line.startswith("+++ ") and lines[number - 1].startswith("--- "):
            continue
        elif line.startswith("@@"):
            if file is None:
                raise BadPatch(f"{name}: a hunk before any '--- a/FILE'")
            body = []
            hunks.append((file, body))
        elif body is None or line[:1] not in (" ", "-", "+", ""):
            raise BadPatch(f"{name}: the line '{line}' is in no hunk; hunks begin with '@@', their lines with ' ', '-' "
                           "or '+'")
        else:
            body.append(line or " ")
    made = []
    for file, body in hunks:
        before = "".join(line[1:] + "\n" for line in body if line[0] in " -")
        after = "".join(line[1:] + "\n" for line in body if line[0] in " +")
        if before == after:
            raise BadPatch(f"{name}: a hunk of {file} changes nothing")
        if not before.strip():
            raise BadPatch(f"{name}: a hunk of {file} has no line that stays or goes, so nothing says where it belongs")
        made.append(Hunk(file, before, after))
    if not made:
        raise BadPatch(f"{name}: no hunk; '--- a/FILE', '+++ b/FILE' and '@@' are wanted below the head")
    return made


def parse(name, text):
    if not NAME.fullmatch(name):
        raise BadPatch(f"{name}.patch: a name of small letters, digits and underscores is wanted")
    lines = text.splitlines()
    head_end = next((i for i, line in enumerate(lines) if line.startswith("--- ")), len(lines))
    fields = read_head(name, lines[:head_end])
    test, _, cases = fields["Killed by"].partition(" ")
    laws_test, _, laws_cases = fields.get("Laws", "").partition(" ")
    return Patch(name, fields["Plants"], test, cases.strip(), "Needs" in fields, fields.get("Survives", ""),
                 read_hunks(name, lines[head_end:]),
                 hashlib.sha256("\n".join(lines[head_end:]).encode()).hexdigest()[:7],
                 laws_test, laws_cases.strip())


def load_all(root):
    files = sorted((pathlib.Path(root) / FOLDER).glob("*.patch"))
    if not files:
        raise BadPatch(f"no patch in {FOLDER}: run this in a checkout")
    return [parse(file.stem, file.read_text(encoding="utf-8")) for file in files]


def places(text, lines):
    """Where whole lines occur in a text, overlapping or not."""
    found = []
    at = text.find(lines)
    while at >= 0:
        if at == 0 or text[at - 1] == "\n":
            found.append(at)
        at = text.find(lines, at + 1)
    return found


def apply(patch, read):
    """File → its text with the fault; read(file) gives the sound text, or None where there is no such file."""
    texts: dict[str, str] = {}
    for hunk in patch.hunks:
        text = texts.get(hunk.file) or read(hunk.file)
        if text is None:
            raise BadPatch(f"{patch.name}: there is no file {hunk.file}: write the patch for where its lines are now")
        found = places(text, hunk.before)
        if len(found) != 1:
            what = "not found" if not found else f"found {len(found)} times"
            advice = ("the source has changed: write it anew" if not found
                      else "add lines that stay until only one place is left")
            first = hunk.before.splitlines()[0].strip()
            raise BadPatch(f"{patch.name}: the hunk of {hunk.file} that begins with '{first}' is {what}, exactly once "
                           f"is wanted; {advice}")
        texts[hunk.file] = text[: found[0]] + hunk.after + text[found[0] + len(hunk.before):]
    return texts


def require_cases(patches, sources):
    """BadPatch where a head names a case that no test has. `sources` is the text of all tests, one after the other;
    a filter with '*' in it is left to GoogleTest."""
    for patch in patches:
        for case in patch.cases.split(":") if "*" not in patch.cases else []:
            suite, _, name = next((part for part in case.split("/") if "." in part), case).partition(".")
            defined = rf"    def {name}\(" if name.startswith("test_") else rf"\({suite},\s*{name}\b"
            if case and not re.search(defined, sources):
                raise BadPatch(f"{patch.name}: no test has the case '{case}': 'Killed by' wants the name it has now")


def choose(patches, names):
    by_name = {patch.name: patch for patch in patches}
    for name in names:
        if name not in by_name:
            near = [one for one in by_name if name in one or one in name]
            raise BadPatch(f"there is no patch '{name}' in {FOLDER}"
                           + (f"; near it: {', '.join(near)}" if near else "; --list names all"))
    return [by_name[name] for name in dict.fromkeys(names)]


def tenth(patches, number):
    """The number-th of ten parts in order of names, so that a part is of few rooms and builds few programs."""
    return patches[len(patches) * number // 10: len(patches) * (number + 1) // 10]
