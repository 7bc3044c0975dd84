"""reports/examples: the write-ups are what this program makes of the database beside them.

After a wanted change: tools/examples DATABASE, then read the difference. It makes the PDF and the picture of its first page, too.
"""
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "reports/examples"
YEARS = ("2025", "2026")
MOST_BYTES = 1 << 20
MOST_PROSE = 24 << 10
MOST_ROWS = 12
MOST_PAGES = 16
MOST_LINES = 150
UPDATE = "SYSLAB_UPDATE_GOLDEN" in os.environ


def without_figures(text):
    """Pictures are gnuplot's, and versions of it differ."""
    return re.sub(r"<svg.*?</svg>", "<svg/>", text, flags=re.DOTALL)


def is_contents(line):
    """A section's name and links within the page to its problems and their letters: nothing that one reads through."""
    return re.fullmatch(r"- [^\[]+:(?: (?:· )?\[[^]]+\]\(#[\w-]+\))+", line) is not None


def prose_of(page):
    """What is read as sentences: no heading, table, caption, picture, contents, hidden comment or invisible anchor."""
    page = re.sub(r'<!--.*?-->|<a id="[\w-]+"></a>', "", page, flags=re.DOTALL).replace("<br>", "\n")
    return "\n".join(line for line in page.splitlines()
                     if line and not line.startswith(("#", "|", "<sub>", "![", "**")) and not is_contents(line))


@unittest.skipUnless((EXAMPLES / "handout.db.xz").exists(), "no example is stored: tools/examples DATABASE makes them")
class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syslab-examples-"))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(EXAMPLES / "answers", self.folder / "answers")
        (self.folder / "handout.db").write_bytes(lzma.open(EXAMPLES / "handout.db.xz").read())

    def made(self, year, extension):
        name = f"handin-{year}.{extension}"
        subprocess.run([os.environ["SYSLAB_BINARY"], "report", "--handout", year, "--db", "handout.db", "--quiet", "-o", name],
                       cwd=self.folder, check=True, timeout=300)
        return self.folder / name

    @unittest.skipUnless(shutil.which("gnuplot"), "without gnuplot the pages have no pictures, and say so")
    def test_are_what_the_program_makes(self):
        for year in YEARS:
            for extension in ("md", "tex", "html"):
                made = self.made(year, extension)
                kept = EXAMPLES / made.name
                if UPDATE:
                    shutil.copy(made, kept)
                    continue
                with self.subTest(name=made.name):
                    self.assertEqual(without_figures(made.read_text(encoding="utf-8")),
                                     without_figures(kept.read_text(encoding="utf-8")))
            if UPDATE:
                self.print_pages(year)

    def print_pages(self, year):
        shutil.copytree(self.folder / "figures", EXAMPLES / "figures", dirs_exist_ok=True)
        if not shutil.which("pdflatex"):
            return
        for _ in range(2):
            self.compiled(year)
        shutil.copy(self.folder / f"handin-{year}.pdf", EXAMPLES)
        if year == YEARS[-1] and shutil.which("pdftoppm"):
            subprocess.run(["pdftoppm", "-r", "70", "-gray", "-f", "1", "-l", "1", "-singlefile", "-png", f"handin-{year}.pdf",
                            EXAMPLES / "page-1"], cwd=self.folder, check=True)

    def compiled(self, year):
        subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"handin-{year}.tex"], cwd=self.folder,
                       check=True, stdout=subprocess.DEVNULL, timeout=240, env={**os.environ, "SOURCE_DATE_EPOCH": "0"})

    @unittest.skipIf(UPDATE, "pages are being made")
    @unittest.skipUnless(shutil.which("pdflatex"), "no LaTeX here")
    def test_compile_as_they_lie(self):
        shutil.copytree(EXAMPLES / "figures", self.folder / "figures")
        for year in YEARS:
            shutil.copy(EXAMPLES / f"handin-{year}.tex", self.folder)
            with self.subTest(year=year):
                self.compiled(year)
                log = (self.folder / f"handin-{year}.log").read_text(encoding="utf-8", errors="replace")
                figures = re.findall(r"includegraphics[^{]*{(figures/[^}]+)}", (self.folder / f"handin-{year}.tex").read_text(encoding="utf-8"))
                self.assertGreater(len(figures), 2)
                for figure in figures:
                    self.assertIn(f"{figure}.pdf", log.replace("\n", ""))

    def test_are_read_in_minutes(self):
        for year in YEARS:
            page = (EXAMPLES / f"handin-{year}.md").read_text(encoding="utf-8")
            with self.subTest(year=year):
                self.assertLessEqual(len(prose_of(page).encode()), MOST_PROSE)
                rows = [len(table.splitlines()) - 2 for table in re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE)]
                self.assertGreater(len(rows), 10)
                self.assertGreater(page.count("<br>"), 10, "what is of another matter begins a line")
                self.assertLessEqual(max(rows), MOST_ROWS)
                self.assertNotRegex(prose_of(page), r"\de\+\d", "the exponent of a number too large for its format")
                for problem in page.split("\n## ")[1:]:
                    shown = len(re.findall(r"(?:^\|.*\n)+", problem, flags=re.MULTILINE)) + problem.count("\n![")
                    self.assertLessEqual(shown, 1, problem[:60])
            if shutil.which("pdfinfo"):
                told = subprocess.run(["pdfinfo", EXAMPLES / f"handin-{year}.pdf"], check=True, capture_output=True, text=True).stdout
                self.assertLessEqual(int(re.search(r"Pages:\s*(\d+)", told)[1]), MOST_PAGES)

    @unittest.skipUnless(shutil.which("pdftotext"), "nothing here reads a PDF")
    def test_contents_and_heads_lead_to_each_answer(self):
        for year in YEARS:
            told = subprocess.run(["pdftotext", EXAMPLES / f"handin-{year}.pdf", "-"], check=True, capture_output=True, text=True).stdout
            pages = told.rstrip("\f").split("\f")
            titles = re.findall(r"^## (.*) \(\d+ points?\)", (EXAMPLES / f"handin-{year}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
            self.assertGreater(len(titles), 20)
            last = ""  # the problem that the page before ends with
            for number, page in enumerate(pages, start=1):
                begun = re.findall(r"^(.*) \(\d+ points?\)$", page, flags=re.MULTILINE)
                with self.subTest(year=year, page=number):
                    for title in begun:
                        self.assertRegex(pages[0], rf"(?m)^{number} {re.escape(title)}(?: [a-z]| · \d+)*$", "its line of the contents")
                    # Its head: where it begins, which is a new problem or one that goes on, and where it ends.
                    if number > 1:
                        first, end = [re.sub(r" \(\w\)$", "", line) for line in [one for one in page.splitlines() if one][:2]]
                        self.assertIn(first, [last, *begun[:1]])
                        self.assertEqual(end, (begun or [last])[-1])
                    # The table or figure that an answer names stands on its page.
                    named, shown = re.findall(r"\b(?:Table|Figure) \d+(?=\. )", page), re.findall(r"^(?:Table|Figure) \d+(?=: )", page, flags=re.MULTILINE)
                    self.assertEqual(named, shown)
                last = (begun or [last])[-1]
                titles = [title for title in titles if title not in begun]
            self.assertEqual(titles, [], "on no page")

    def test_fit_a_terminal_without_tables(self):
        printed = subprocess.run([os.environ["SYSLAB_BINARY"], "report", "--db", "handout.db", "--quiet"], cwd=self.folder, check=True,
                                 timeout=300, capture_output=True, text=True).stdout
        self.assertIn("## Leaderboard", printed)
        self.assertFalse(re.search(r"<br>|\)\*\*<a id=|\]\(#", printed), "lines and links are a page's")
        self.assertLessEqual(len(printed.splitlines()), MOST_LINES)

    @unittest.skipIf(UPDATE, "pages are being made")
    def test_no_sentence_of_all_results_stands_twice(self):
        report = subprocess.run([os.environ["SYSLAB_BINARY"], "report", "--db", "handout.db", "--quiet", "--no-figures", "--to", "md", "--appendix"],
                                cwd=self.folder, check=True, timeout=300, capture_output=True, text=True).stdout
        said = [line for line in re.sub(r"<!--.*?-->", "", report).splitlines() if line.startswith("- ") and " → " not in line]
        self.assertGreater(len(said), 100)
        self.assertEqual(sorted({line for line in said if said.count(line) > 1}), [])
        self.assertEqual([line for line in said if re.search(r"\de\+\d", line)], [])

    def test_are_small(self):
        large = [path.name for path in EXAMPLES.rglob("*") if path.is_file() and path.stat().st_size > MOST_BYTES]
        self.assertLessEqual(set(large), {"handout.db.xz"})
        self.assertLess((EXAMPLES / "handout.db.xz").stat().st_size, 4 * MOST_BYTES)
        self.assertLess((EXAMPLES / "page-1.png").stat().st_size, MOST_BYTES // 5)


if __name__ == "__main__":
    unittest.main()
