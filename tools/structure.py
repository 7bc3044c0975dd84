#!/usr/bin/env python3
"""Measures the shape of the sources against bars that only tighten.

    tools/structure.py [ROOT]            exit 1 and a line for each place above its bar that tools/structure.txt does
                                         not list
    tools/structure.py --shrink [ROOT]   lowers the listed numbers to today's and takes out the rows that nothing needs
    tools/structure.py --today [ROOT]    prints all places above their bars as rows of that table
    tools/structure.py --self-test

A row of the table is a debt: a rule, a place and today's number. It fails if the place is worse than its row, and also
if it is better, so that the table shrinks with the debt. Rules and bars:

    function   60   lines of a function in src and experiments; __global__ and __device__ functions are free
    file      500   lines of a file of code
    folder     50   files in a folder of src, without those of its subfolders
    sql_line    0   lines of SQL text over 120 columns
    sql_rung    0   names of rungs in SQL text: a ladder's rows have them
    sql_tile    0   sizes of tiles in SQL text: likewise
    sql_passes  0   the word "passes" in SQL text: only a stored run of a test says so
    word        0   comparisons with a word of Task, Outcome or Contract in C++: the enums are compared instead
"""
import pathlib
import re
import subprocess
import sys
from typing import Iterator

TABLE = "tools/structure.txt"
BARS = {"function": 60, "file": 500, "folder": 50, "sql_line": 0, "sql_rung": 0, "sql_tile": 0,
        "sql_passes": 0, "word": 0}
CODE = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".py", ".sh", ".sql"}
CPP = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
TOPS = ("src", "experiments", "property_tests", "tests", "tools", "db", "reports")
COLUMNS = 120

COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
NO_FUNCTION = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
NAME = re.compile(r"([\w:~]+|operator\s*\S{1,3})\s*\($")
NO_NAMES = ("alignas", "decltype", "noexcept", "requires", "__launch_bounds__", "if", "for", "while", "switch", "catch")
ACCESS = re.compile(r"\b(?:public|private|protected):$")
KERNEL = re.compile(r"\b__(?:global|device)__\b")
RUNG = re.compile(r'\bname = "(\w+)"|\brung\w*\("(\w+)"')
TILE = re.compile(r"\btiles? of \d+|\b\d+ ?× ?\d+\b|\b\d+ x \d+\b|\b\d+ (?:rows|queries|keys|columns) (?:a|per) tile",
                  re.I)
WORD_OF_ENUM = re.compile(r'return "(\w+)"|\? "(\w+)" : "(\w+)"')
ENUMS = ("src/contract/task.cpp", "src/contract/outcome.cpp")

Places = dict[tuple[str, str], int]


def without_text(text: str) -> str:
    """C++ with comments blank and literals of no content; lines stay where they are."""
    def blank(found: re.Match) -> str:
        kept = re.sub(r"[^\n]", " ", found.group())
        return kept if found.group().startswith("/") else f'"{kept[1:-1]}"'
    return COMMENT_OR_TEXT.sub(blank, text)


def without_preprocessor(text: str) -> str:
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda found: re.sub(r"[^\n]", " ", found.group()),
                  text, flags=re.M)


def without_template(head: str) -> str:
    """A head without `template <…>` and `extern "C"`, and with operators that have a name."""
    head = re.sub(r'\bextern\s*"\s*"', "", head)
    while (found := re.search(r"\btemplate\s*<", head)) is not None:
        at, depth = found.end(), 1
        while at < len(head) and depth > 0:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[:found.start()] + head[at:]
    return re.sub(r"\boperator\s*(?:\(\s*\)|\[\s*\]|[^\w\s(]+)", "operator_", head)


def name_before_arguments(head: str) -> str:
    """Of a function's head, `Type Class::name(int a) const`: "Class::name"; "" if it is not one."""
    head = without_template(head)
    if NO_FUNCTION.search(head.split("(")[0]) or "(" not in head or head.rstrip().endswith(("=", ",", "(", "return")):
        return ""
    depth = 0
    for at, sign in enumerate(head):
        if sign in "(<[" and not head[at:].startswith("<<"):
            if depth == 0 and sign == "(":
                found = NAME.search(head[:at + 1])
                if found and found.group(1) not in NO_NAMES:
                    return re.sub(r"\s", "", found.group(1))
            depth += 1
        elif sign in ")>]" and not head[:at + 1].endswith("->"):
            depth = max(0, depth - 1)
    return ""


def functions(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines from the first of its head to the closing brace) of the functions of a C++ file, without kernels."""
    text = without_preprocessor(without_text(text))
    # Begin: of the head that is being read; open_at: (name, depth, line) of a function.
    depth, begin, open_at, parens = 0, 0, None, 0
    for at, sign in enumerate(text):
        if open_at is None and sign in "()":
            parens = max(0, parens + (1 if sign == "(" else -1))
        if parens > 0:  # a brace there is of a default argument
            continue
        if sign == "{":
            if open_at is None:
                head = text[begin:at]
                name = name_before_arguments(head)
                if name:
                    first = begin + len(head) - len(head.lstrip())
                    open_at = ("" if KERNEL.search(head) else name, depth, text.count("\n", 0, first))
            depth += 1
        elif sign == "}":
            depth -= 1
            if open_at is not None and open_at[1] == depth:
                if text[at + 1:at + 200].lstrip()[:1] in (",", "{"):  # of a member's initializer
                    continue
                if open_at[0]:
                    yield open_at[0], text.count("\n", 0, at) - open_at[2] + 1
                open_at = None
        if open_at is None and sign in "{};" or sign == ":" and ACCESS.search(text[max(0, at - 11):at + 1]):
            begin = at + 1


def rung_names(root: pathlib.Path) -> set[str]:
    texts = (file.read_text(encoding="utf-8") for file in sorted((root / "src/ops").rglob("*.?pp")))
    return {name for text in texts for found in RUNG.findall(text) for name in found if name}


def rungs_in(sql: str, names: set[str]) -> int:
    """A name of two words, such as flash_mma, anywhere; one of a single word, such as naive, next to
    `implementation`."""
    found = sum(len(re.findall(rf"\b{name}\b", sql)) for name in names if "_" in name)
    for compared in re.findall(r"\b(?:implementation|impl)\b\s*(?:=|<>|!=|(?:NOT )?IN\b)\s*(\([^)]*\)|'\w*')", sql):
        found += sum(f"'{name}'" in compared for name in names if "_" not in name)
    return found


def enum_words(root: pathlib.Path) -> set[str]:
    texts = ((root / file).read_text(encoding="utf-8") for file in ENUMS if (root / file).is_file())
    return {word for text in texts for found in WORD_OF_ENUM.findall(text) for word in found if word}


def comparisons(cpp: str, words: set[str]) -> int:
    text = re.sub(r"//[^\n]*", "", cpp)
    found = re.findall(r'[!=]=\s*"(\w+)"|"(\w+)"s?v?\s*[!=]=', text)
    return sum(word in words for pair in found for word in pair)


def files_of(root: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Of what git tracks or would add; of all that lie there if this is no checkout."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard", "--", *TOPS],
                            text=True, capture_output=True)
    names = [name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else []
    if not names:
        names = [file.relative_to(root).as_posix() for top in TOPS for file in (root / top).rglob("*")]
    for name in sorted(names):
        if (root / name).is_file() and "__pycache__" not in name:
            yield name, root / name


def of_sql(name: str, text: str, rungs: set[str]) -> Places:
    return {("sql_line", name): sum(len(line) > COLUMNS for line in text.splitlines()),
            ("sql_rung", name): rungs_in(text, rungs),
            ("sql_tile", name): len(TILE.findall(text)),
            ("sql_passes", name): len(re.findall(r"\bpasses\b", text, re.I))}


def measured(root: pathlib.Path) -> Places:
    """All places above their bars."""
    found: Places = {}
    rungs, words = rung_names(root), enum_words(root)
    for name, file in files_of(root):
        folder = file.parent.relative_to(root).as_posix()
        if name.startswith("src/"):
            found["folder", folder] = found.get(("folder", folder), 0) + 1
        script = name.startswith("tools/") and not file.suffix
        if file.suffix not in CODE and not script or name.startswith("tests/fuzz/corpus/"):
            continue
        text = file.read_text(encoding="utf-8")
        found["file", name] = text.count("\n")
        if file.suffix == ".sql":
            found.update(of_sql(name, text, rungs))
        if file.suffix in CPP and name.startswith(("src/", "experiments/")):
            for function, lines in functions(text):
                place = "function", f"{name}:{function}"
                found[place] = max(lines, found.get(place, 0))
            if not name.startswith("src/contract/"):
                found["word", name] = comparisons(text, words)
    return {place: value for place, value in found.items() if value > BARS[place[0]]}


def rows_of(text: str) -> Places:
    rows: Places = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            rule, place, value = line.split()
            rows[rule, place] = int(value)
    return rows


def faults_of(found: Places, rows: Places) -> Iterator[str]:
    for (rule, place), value in sorted(found.items()):
        if (rule, place) not in rows:
            yield f"{place}: {rule} {value}, the bar is {BARS[rule]}"
        elif value > rows[rule, place]:
            yield f"{place}: {rule} {value}, the ceiling in {TABLE} is {rows[rule, place]}"
    for (rule, place), value in sorted(rows.items()):
        today = found.get((rule, place))
        if today is None:
            yield f"{TABLE}: nothing needs '{rule} {place}'; take it out (tools/structure.py --shrink)"
        elif today < value:
            yield f"{TABLE}: '{rule} {place}' needs {today}, not {value} (tools/structure.py --shrink)"


def lines_of(rows: Places) -> str:
    return "".join(f"{rule} {place} {value}\n" for (rule, place), value in sorted(rows.items()))


def shrunk(found: Places, rows: Places) -> Places:
    return {place: min(value, found[place]) for place, value in rows.items() if place in found}


def self_test() -> None:
    body = "  if (a) {\n    f();\n  }\n" * 3
    text = ("namespace a {\nnamespace {\nstruct S {\n  int x = 1;\n  int f(int b) const {\n" + body + "  }\n};\n"
            "const std::map<int, int> kM{{1, 2}};\nauto text = R\"({ ( )\";  // {\n"
            "template <typename T>\nstd::vector<std::pair<int, T>> S::g(const T& t,\n  int u) {\n" + body + "}\n"
            "__global__ void kernel(int n) {\n" + body + "}\n}  // namespace\nS::S(int y) : x{y} { f(1); }\n}\n")
    assert list(functions(text)) == [("f", 11), ("S::g", 13), ("S::S", 1)], list(functions(text))
    text = ("S::S(int y)\n  : x{y},\n z{1} {\n" + body + "}\nint g(int a, std::vector<int> b = {}) {\n" + body + "}\n"
            "template <class T, class U = std::vector<T>>\nvoid h(T t) {\n" + body + "}\n"
            "extern \"C\" int k(void) {\n" + body + "}\nbool operator<(const S& a, const S& b) {\n" + body + "}\n")
    assert list(functions(text)) == [("S::S", 13), ("g", 11), ("h", 12), ("k", 11), ("operator_", 11)], \
        list(functions(text))
    rungs = {"flash_mma", "naive"}
    assert rungs_in("-- `flash_mma`\nWHERE strategy = 'naive' AND implementation IN ('x', 'naive')", rungs) == 2
    assert comparisons('a == "passed"; b != "x"; "law" == c;  // d == "law"', {"passed", "law"}) == 2
    assert TILE.findall("tiles of 64, 128 × 64, 3 x y, at 0x10") == ["tiles of 64", "128 × 64"]
    found = {("file", "a"): 510, ("file", "b"): 600, ("word", "c"): 1}
    rows = {("file", "a"): 510, ("file", "b"): 590, ("word", "d"): 2}
    said = list(faults_of(found, rows))
    assert [line.split(":")[0] for line in said] == ["b", "c", TABLE], said
    assert "needs 510, not 511" in next(faults_of({("file", "a"): 510}, {("file", "a"): 511}))
    assert list(faults_of(found, rows_of("# debts\n" + lines_of(found)))) == []
    assert shrunk(found, rows) == {("file", "a"): 510, ("file", "b"): 590}


def main() -> int:
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    if "--self-test" in options:
        self_test()
        return 0
    root = pathlib.Path(next((word for word in sys.argv[1:] if not word.startswith("--")), ".")).resolve()
    found = measured(root)
    if "--today" in options:
        print(lines_of(found), end="")
        return 0
    text = (root / TABLE).read_text(encoding="utf-8")
    rows = rows_of(text)
    if "--shrink" in options:
        head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        (root / TABLE).write_text(head + lines_of(shrunk(found, rows)), encoding="utf-8")
        return 0
    faults = list(faults_of(found, rows))
    print("\n".join([*faults, f"structure: {len(found)} places above their bars, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
