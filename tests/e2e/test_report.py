"""The write-up in every format, from one run: numbers, places for everything that is asked, files beside the report."""
import html.parser
import json
import re
import shutil
import unittest

from lab import Lab


class Page(html.parser.HTMLParser):
    """Tags that are closed as they were opened, and whatever the page would fetch."""

    EMPTY = {"meta", "link", "br", "input", "hr", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.fetched, self.cells, self.ids, self.links = [], [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name)
            if value is None:
                continue
            if value.startswith("#"):
                self.links.append(value[1:])
            elif not value.startswith("data:"):
                self.fetched.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing, line {self.getpos()[0]}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


class Report(Lab):
    def setUp(self):
        super().setUp()
        self.syslab("run", "flash_forward", "-a", "seq=32,64", "-a", "heads=1", "--impl", "naive,flash_tiled", "--protocol",
                    "quick", "--laws", "none")

    def test_markdown_with_pictures_beside_it(self):
        self.syslab("report", "-o", "out/report.md", expect=2)
        (self.folder / "out").mkdir()
        self.syslab("report", "-o", "out/report.md")
        text = (self.folder / "out/report.md").read_text()
        self.assertIn("`fsdp` · hand-out 2026: 15 points", text)
        self.assertIn("no experiment yet", text)
        linked = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
        if shutil.which("gnuplot"):
            self.assertTrue(linked, "flash_forward has a figure")
        for name in linked:
            self.assertTrue((self.folder / "out" / name).read_text().startswith("<svg"), name)
        self.assertEqual(list(self.folder.glob("out/**/*.tmp")), [])
        self.assertIn("No figures here", self.syslab("report").stdout)

    def test_page_is_whole_and_fetches_nothing(self):
        self.syslab("report", "-o", "report.html")
        text = (self.folder / "report.html").read_text()
        page = Page()
        page.feed(text)
        self.assertEqual((page.open, page.faults, page.fetched), ([], [], []))
        self.assertIn("flash_forward", page.ids)
        self.assertEqual(set(page.links) - set(page.ids), set(), "links within the page lead somewhere")
        self.assertEqual(len([cell for cell in page.cells if cell == "ok"]), 8)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("figures")], [], "they are inside")
        self.assertEqual("<svg" in text, shutil.which("gnuplot") is not None)
        self.assertNotIn("No figures here", self.syslab("report", "--to", "html").stdout)

    def test_latex_document_and_tabular(self):
        self.syslab("report", "-o", "report.tex")
        text = (self.folder / "report.tex").read_text()
        self.assertTrue(text.rstrip().endswith(r"\end{document}"))
        self.assertEqual(text.count(r"\begin{longtable}"), text.count(r"\end{longtable}"))
        self.assertIn(r"S[table-format=", text)
        for name in re.findall(r"\\includegraphics\[[^]]*\]\{([^}]+)\}", text):
            self.assertTrue((self.folder / (name + ".pdf")).read_bytes().startswith(b"%PDF"), name)
        table = self.syslab("query", "SELECT implementation, value FROM v_latest WHERE metric = 'time'", "--to", "tex").stdout
        self.assertTrue(table.startswith(r"\begin{tabular}{l"), table)
        self.assertIn(r"\texttt{" if "texttt" in table else r"flash\_tiled", table)

    def test_data_formats_carry_every_value(self):
        tables = self.json("report", "flash_forward")
        speed = next(table for table in tables if table["id"] == "flash_forward")
        self.assertEqual(len(speed["rows"]), 8)
        self.assertEqual({row["status"] for row in speed["rows"]}, {"ok"})
        self.assertIn("# flash_forward/flash_forward\n", self.syslab("report", "flash_forward", "--to", "csv").stdout)
        self.syslab("query", "SELECT 1 AS one", "-o", "one.json")
        self.assertEqual(json.loads((self.folder / "one.json").read_text()), [{"one": 1}])

    def test_no_answers_leaves_places(self):
        with_answers = self.syslab("report", "--no-figures").stdout
        without = self.syslab("report", "--no-figures", "--no-answers").stdout
        self.assertIn("times as fast as `naive`", with_answers)
        self.assertNotIn("times as fast as `naive`", without)
        self.assertNotIn("your answer goes here", with_answers)
        self.assertIn("your answer goes here", without)
        self.assertIn("| 64 | 64 | fp32 |", without)
        page = self.syslab("report", "--no-figures", "--no-answers", "--to", "html").stdout
        self.assertIn('<p class="answer">', page)


if __name__ == "__main__":
    unittest.main()
