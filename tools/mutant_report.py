"""What came of planted faults, and the page reports/ledger/mutants.md. Used by tools/mutants."""
import dataclasses
import pathlib
import re

PAGE = "reports/ledger/mutants.md"
ROW = re.compile(r"^\| `([a-z0-9_]+)` \|.*\| ([^|]*) \| ([^|]*) \| `([0-9a-f]{7})` \|$")
LAWS_ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([^|]*) \| ([^|]*) \| `([0-9a-f]{7})` \|$")
TWIN = re.compile(r'\{Fault::\w+, "(\w+)",\s*"([\w.]+)"\}')
KILLED = ("killed", "killed by another")


@dataclasses.dataclass
class Outcome:
    status: str  # killed, killed by another, survived, timed out, does not compile
    killers: str  # test: cases
    said: str = ""
    laws: list | None = None  # those that find it; None: not searched


def wrong(patch, outcome):
    """What is not as the patch's head says; empty where it is."""
    if outcome.status == "killed":
        return ", though its head says that it survives: take that out" if patch.survives else ""
    if outcome.status == "survived" and patch.survives:
        return ""
    if outcome.status == "killed by another":
        return f", not by {patch.test} {patch.cases}: name what kills it in its head".rstrip()
    if outcome.status == "survived":
        return ": write the test that finds it, or say in its head ('Survives:') why none can"
    return ": this says nothing about the tests; mend the patch"


def summary(patches, outcomes):
    count: dict[str, int] = {}
    for patch in patches:
        status = outcomes[patch.name].status
        count[status] = count.get(status, 0) + 1
    return f"{len(patches)} faults: " + ", ".join(f"{number} {status}" for status, number in sorted(count.items()))


def twins(root):
    """(file, fault, law) of those that are written as code in property_tests/mutants."""
    found = []
    for file in sorted((pathlib.Path(root) / "property_tests/mutants").glob("*.cpp")):
        for name, law in TWIN.findall(file.read_text(encoding="utf-8")):
            found.append((file.stem, name, law))
    return found


def read_rows(text):
    """Name → (result, killers, digest) of an earlier page."""
    rows = {}
    for line in text.splitlines():
        if found := ROW.match(line):
            rows[found[1]] = (found[2].strip(), found[3].strip(), found[4])
    return rows


def read_laws(text):
    """Name → (laws that find it, digest) of an earlier page."""
    rows = {}
    for line in text.splitlines():
        if (found := LAWS_ROW.match(line)) and not ROW.match(line):
            rows[found[1]] = (re.findall(r"`([^`]+)`", found[3]), found[4])
    return rows


def settled(patches, rows):
    """Those that were tried as they are now, and came out as their heads say."""
    return [patch for patch in patches if patch.name in rows and rows[patch.name][2] == patch.digest
            and not wrong(patch, Outcome(rows[patch.name][0], rows[patch.name][1]))]


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def laws_section(patches, outcomes, earlier):
    """Faults × laws, by fault and by law."""
    rows, searched = [], 0
    found_by: dict[str, list[str]] = {}
    for patch in patches:
        if not patch.laws_test:
            continue
        laws = outcomes[patch.name].laws if patch.name in outcomes else None
        if laws is None and patch.name in earlier and earlier[patch.name][1] == patch.digest:
            laws = earlier[patch.name][0]
        if laws is None:
            continue
        searched += 1
        for law in laws:
            found_by.setdefault(law, []).append(patch.name)
        rows.append(f"| `{patch.name}` | {patch.laws_test} | {', '.join(f'`{law}`' for law in laws) or 'none'} | "
                    f"`{patch.digest}` |")
    if not rows:
        return []
    most_first = sorted(found_by.items(), key=lambda one: (-len(one[1]), one[0]))
    return [
        "## Faults and laws",
        "",
        "The laws of `property_tests` and of the rooms, searched with CI's budget, beside the tests that the table "
        f"above names: {searched} faults",
        "whose code a law looks at. Where none finds it, that test alone does.",
        "",
        "| fault | searched by | laws that find it | patch |",
        "|---|---|---|---|",
        *rows,
        "",
        "| law | faults that it finds |",
        "|---|---:|",
        *(f"| `{law}` | {len(names)} |" for law, names in most_first),
        "",
    ]


def page(patches, outcomes, earlier, of_twins, earlier_laws=None):
    """Rows of faults that did not run now stay as they were, unless the patch has changed since."""
    rows, lived = [], []
    known: dict[str, int] = {}
    for patch in patches:
        if patch.name in outcomes:
            outcome = outcomes[patch.name]
            result, killers = outcome.status, outcome.killers
        elif patch.name in earlier and earlier[patch.name][2] == patch.digest:
            result, killers = earlier[patch.name][:2]
        else:
            result, killers = "not run yet" + (", wants a GPU" if patch.gpu else ""), ""
        known[result] = known.get(result, 0) + 1
        rows.append(f"| `{patch.name}` | {' '.join(f'`{file}`' for file in patch.files)} | {cell(patch.plants)} | "
                    f"{result} | {cell(killers)} | `{patch.digest}` |")
        if result == "survived":
            lived.append(f"- `{patch.name}`: {patch.survives or 'no reason given: a test is missing.'}")
    counted = ", ".join(f"{number} {status}" for status, number in sorted(known.items()))
    lines = [
        "# Planted faults",
        "",
        "What our tests find. Each fault is a patch in `tests/mutants`, planted alone in a copy of the sources by "
        "`tools/mutants`, which writes",
        "this page (`tools/mutants --all`; the rows of code for GPUs: `tools/mutants --gpu` on a machine with one). A "
        "fault is *killed* if the",
        "test that its head names fails with it and passes without; a time-out is no kill. The last column is a digest "
        "of the patch: a row of",
        "an older patch is not kept.",
        "",
        f"{len(patches)} faults: {counted}; and {len(of_twins)} in kernels of their own (below).",
        "",
        "| fault | where | what it plants | result | killed by | patch |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "## Survivors",
        "",
        *(lived or ["None."]),
        "",
        *laws_section(patches, outcomes, earlier_laws or {}),
        "## Faults in kernels of their own",
        "",
        "`property_tests/mutants` has plain kernels with one fault each, by which the laws' own tests (`laws_mutants`, "
        "on every change)",
        "prove that each law finds what it is for. They are code, not patches, since all of them run in one program: a "
        "fault costs no build.",
        "",
        "| operator | fault | law that finds it |",
        "|---|---|---|",
        *(f"| {operator} | `{name}` | `{law}` |" for operator, name, law in of_twins),
    ]
    return "\n".join(lines) + "\n"


def earlier_rows(root):
    path = pathlib.Path(root) / PAGE
    return read_rows(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(root, patches, outcomes):
    path = pathlib.Path(root) / PAGE
    laws = read_laws(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(page(patches, outcomes, earlier_rows(root), twins(root), laws), encoding="utf-8")
