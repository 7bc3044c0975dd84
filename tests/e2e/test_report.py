"""The write-up in every format, from one run: numbers, places for everything that is asked, files beside the report."""
import contextlib
import csv
import html.parser
import io
import json
import os
import pathlib
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

from lab import Lab

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/peers"))
import attention_log  # noqa: E402

# What means something to Markdown, TeX, HTML, CSV, JSON, SQL or a shell.
NASTY = r"""a_b & 50% # <b>x</b> | \tex{y} $z$ ~^ "q" 'r' `c` [l](m) *s* é中 ; {{body}}"""


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
        if self.open and self.open[-1] in ("td", "code", "strong"):
            self.cells.append(data)


class Report(Lab):
    def setUp(self):
        super().setUp()
        self.syslab("run", "flash_forward", "-a", "seq=32,64", "-a", "heads=1", "--impl", "naive,flash_tiled", "--protocol",
                    "quick", "--laws", "none")

    def test_a_hand_in_answers_first_and_is_short(self):
        self.syslab("run", "mixed_precision_accumulation", "--laws", "none")
        (self.folder / "answers").mkdir()
        (self.folder / "answers/leaderboard.md").write_text("We tried `split_k`.\n\nIt was slower.\n")
        self.syslab("report", "-o", "handin.md")
        text = (self.folder / "handin.md").read_text()
        self.assertLess(len(text.splitlines()), 200)
        self.assertIn("Reference solution, measured with syslab's own kernels.", text)
        self.assertRegex(text, r"(?m)^\d+ of \d+ parts have an answer\..* Measurements not made are worth \d+ of \d+ points[.:]")
        self.assertRegex(text, r" Open: .*fsdp.*\. .* `syslab run --handout 2026` makes those that a machine can\.\n")
        with_gpu = self.sql("SELECT count(*) FROM check_result WHERE name = 'gpu:bits'") != [(0,)]
        self.assertIn(f"equal {'on CPU and GPU' if with_gpu else 'in floats and in integers'} to the bit", text)
        sections = {part.split(" (")[0]: part for part in text.split("\n## ")[1:]}
        self.assertIn("We tried `split_k`.\n\nIt was slower.", sections["Leaderboard"])
        self.assertIn("*Open:* not measured: `syslab run fsdp`", sections["FSDP"])
        shown = sections["Mixed precision accumulation"]
        self.assertNotIn("Open", shown)
        self.assertEqual(len(re.findall(r"(?m)^\| (?!:|-)", shown)), 1 + 5, "a header and five rows, without the reference's")
        self.assertNotIn("appendix", text, "none was asked for")

    def test_words_that_are_no_file_are_told_and_nothing_is_written(self):
        answers = self.folder / "answers"
        place = answers / "leaderboard.md"
        for make, told in ((place.mkdir, "'answers/leaderboard.md': it is a folder, and only a plain file is read; remove it"),
                           (lambda: os.mkfifo(place), "it is a FIFO, and only a plain file is read; write what it gives")):
            answers.mkdir()
            make()
            self.assertIn(told, self.syslab("report", "-o", "handin.md", expect=2).stderr)
            shutil.rmtree(answers)
        answers.write_text("We tried `split_k`.\n")
        self.assertIn("'answers' is no folder", self.syslab("report", "-o", "handin.md", expect=2).stderr)
        self.assertEqual(list(self.folder.glob("handin*")), [])

    def test_markdown_with_pictures_beside_it(self):
        self.syslab("report", "--appendix", "-o", "out/report.md", expect=2)
        (self.folder / "out").mkdir()
        self.syslab("report", "--appendix", "-o", "out/report.md")
        short = (self.folder / "out/report.md").read_text()
        self.assertIn("[appendix](report-appendix.md)", short)
        self.assertIn("[All measurements](report-appendix.md#flash_forward)", short)
        text = (self.folder / "out/report-appendix.md").read_text()
        self.assertLess(5 * len(short.splitlines()), 3 * len(text.splitlines()))
        self.assertIn("`fsdp` · hand-out 2026: 15 points", text)
        self.assertIn("*Not measured: `syslab run fsdp`.*", text)
        linked = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
        if shutil.which("gnuplot"):
            self.assertTrue(linked, "flash_forward has a figure")
        for name in linked:
            self.assertTrue((self.folder / "out" / name).read_text().startswith("<svg"), name)
        self.assertEqual(list(self.folder.glob("out/**/*.tmp")), [])
        self.assertIn("No figures here", self.syslab("report").stdout)

    def test_page_is_whole_and_fetches_nothing(self):
        self.syslab("report", "--appendix", "-o", "report.html")
        short = Page()
        short.feed((self.folder / "report.html").read_text())
        self.assertEqual((short.open, short.faults), ([], []))
        self.assertEqual({name.split("#")[0] for name in short.fetched}, {"report-appendix.html"}, "a link to it")
        text = (self.folder / "report-appendix.html").read_text()
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
        self.syslab("report", "--appendix", "-o", "report.tex")
        self.assertIn(r"\href{run:report-appendix.tex}", (self.folder / "report.tex").read_text())
        text = (self.folder / "report-appendix.tex").read_text()
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
        self.tells_its_parts_on_a_terminal()
        self.assertIn("> *Your answer goes here.*", self.syslab("report", "--no-figures", "--no-answers").stdout)
        with_answers = self.syslab("report", "--appendix", "--no-figures").stdout
        without = self.syslab("report", "--appendix", "--no-figures", "--no-answers").stdout
        self.assertIn("times as fast as `naive`", with_answers)
        self.assertNotIn("times as fast as `naive`", without)
        self.assertNotIn("your answer goes here", with_answers)
        self.assertIn("your answer goes here", without)
        self.assertIn("| 64 | 64 | fp32 |", without)
        page = self.syslab("report", "--appendix", "--no-figures", "--no-answers", "--to", "html").stdout
        self.assertIn('<p class="answer">', page)

    def tells_its_parts_on_a_terminal(self):
        terminal, end = pty.openpty()
        process = subprocess.Popen(self.command("report", "--no-figures"), cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=end)
        os.close(end)
        said = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(terminal, 65536):
                said += chunk
        os.close(terminal)
        self.assertEqual(process.wait(timeout=60), 0)
        lines = said.decode().split("\r\x1b[2K")
        parts = [line for line in lines if line.startswith("report: ")]
        self.assertTrue(any(line.endswith(", flash_forward") for line in parts), lines)
        self.assertEqual(len({line.split(",")[0].split("/")[1] for line in parts}), 1)
        self.assertEqual(lines[-1].strip(), "", "nothing is left on the screen")

    def test_each_table_sentence_and_figure_names_its_query(self):
        tree = pathlib.Path(__file__).resolve().parents[2]
        sources = self.json("report", "--sources")["sources"]
        self.assertEqual([one["file"] for one in sources if not (tree / one["file"]).is_file()], [])
        self.assertEqual({one["kind"] for one in sources}, {"table", "sentence", "figure"})
        # Nothing that an experiment of a hand-out brings along is left out.
        named = {(one["experiment"], one["file"]) for one in sources}
        for file in tree.glob("experiments/*/flash_forward/*/*.sql"):
            self.assertIn(("flash_forward", str(file.relative_to(tree))), named)
        self.syslab("report", "flash_forward", "-o", "flash.md")
        self.syslab("report", "flash_forward", "-o", "flash.html")
        self.syslab("report", "flash_forward", "-o", "flash.tex")
        for name, comments in (("flash.md", True), ("flash.html", True), ("flash.tex", False)):
            found = re.findall(r"<!-- ((?:experiments|reports)/\S+\.sql) -->", (self.folder / name).read_text())
            self.assertEqual(bool(found), comments, name)
            self.assertLessEqual(set(found), {one["file"] for one in sources})
            if comments:
                self.assertIn("experiments/attention/flash_forward/tables/flash_forward.sql", found)

    def test_what_the_other_handout_alone_poses_is_named_unless_one_was_asked_for(self):
        self.syslab("run", "communication_accounting", "--preset", "smoke", "--protocol", "quick", "--laws", "none")
        said = "posed by the hand-out of 2025 alone: `communication_accounting`; `syslab report --handout 2025` shows them"
        self.assertIn(said, self.syslab("report", "--no-figures").stdout)
        self.assertNotIn(said, self.syslab("report", "--no-figures", "--handout", "2026").stdout)
        self.assertIn("`communication_accounting` · hand-out 2025",
                      self.syslab("report", "--appendix", "--no-figures", "--handout", "2025").stdout)

    def test_an_ending_that_is_no_format_and_places_that_cannot_be_written(self):
        for name, words in (("report.pdf", "pdflatex"), ("report.docx", ".docx"), ("nowhere/report.html", "nowhere")):
            with self.subTest(name):
                self.assertIn(words, self.syslab("report", "-o", name, expect=2).stderr)
        missing = self.syslab("report", "-o", "missing/dir/report.md", expect=2).stderr
        self.assertIn("there is no folder 'missing/dir'; make it first (mkdir -p 'missing/dir')", missing)
        self.assertFalse((self.folder / "missing").exists(), "a mistyped folder is not made")
        (self.folder / "file").write_text("no folder")
        self.assertIn("what is no folder, 'file'", self.syslab("query", "SELECT 1", "-o", "file/one.md", expect=2).stderr)
        (self.folder / "file").unlink()
        (self.folder / "taken").mkdir()
        self.syslab("report", "-o", "taken", expect=2)
        self.assertIn("xlsx", self.syslab("report", "--to", "xlsx", expect=2).stderr)
        self.assertIn("flash_foward", self.syslab("report", "flash_foward", expect=2).stderr)
        (self.folder / "figures").write_text("in the way of the folder for pictures")
        (self.folder / "report.md").write_text("the old one")
        if shutil.which("gnuplot"):
            self.syslab("report", "--appendix", "-o", "report.md", expect=2)
            self.assertEqual((self.folder / "report.md").read_text(), "the old one", "nothing half-written")
        left = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("lab.db"))
        self.assertEqual(left, ["figures", "report.md", "taken"], "nothing is left behind")

    def test_what_another_version_measured_stands_in_no_table_and_is_told(self):
        aged = self.folder / "aged.db"
        shutil.copy(self.db, aged)
        with contextlib.closing(sqlite3.connect(aged)) as store:  # as if its numbers meant something else since
            store.execute("DROP TRIGGER case_def_no_update")
            store.execute("UPDATE case_def SET version = '0' WHERE experiment = 'flash_forward' AND params ->> '$.seq' = 32")
            store.commit()
        sizes = {row["seq"] for table in self.json("report", "flash_forward") if table["id"] == "flash_forward"
                 for row in table["rows"]}
        left = {row["seq"] for table in self.json("report", "flash_forward", "--db", aged) if table["id"] == "flash_forward"
                for row in table["rows"]}
        self.assertEqual(left, sizes - {32})
        self.assertEqual(sizes, {32, 64})
        text = self.syslab("report", "flash_forward", "--to", "md", "--db", aged).stdout
        self.assertRegex(text, r"\d+ attempts of `flash_forward` in this database are of another version than 1")
        self.assertNotIn("another version", self.syslab("report", "flash_forward", "--to", "md").stdout)

    def test_published_numbers_are_no_part_of_what_a_cpu_did(self):
        for wanted in ("md", "tex", "html", "csv", "json"):
            self.assertNotIn("published", self.syslab("report", "--appendix", "--to", wanted, "--handout", "2026").stdout.lower(), wanted)

    def test_published_numbers_name_axes_that_their_experiments_have(self):
        published = json.loads((ROOT / "reports/published.json").read_text())["series"]
        axes = {}
        for experiment in self.json("list")["experiments"]:
            axes[experiment["id"]] = {axis["name"]: axis for axis in experiment["axes"]}
        for series in published:
            self.assertIn(series["experiment"], set(axes))
            known = axes[series["experiment"]]
            self.assertLessEqual({*series["axes"], *series.get("fixed", {})}, set(known), series["experiment"])
            for place, name in enumerate(series["axes"]):
                axis = known[name]
                # TF32 inside fp32 storage is no dtype of ours: those numbers meet nothing until it is.
                known_values = [*axis["values"], *axis["also"], "tf32"]
                for row in series["values"] if axis["closed"] else ():
                    self.assertIn(row[place], known_values, f"{series['experiment']}: {name}")


CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)")


class Words(Lab):
    """Text of users, as nasty as it comes, is shown as it is."""

    def setUp(self):
        super().setUp()
        params = {axis["name"]: axis["values"][0] for axis in self.json("describe", "weighted_sum")["axes"]}
        case = {"type": "case", "experiment": "weighted_sum", "implementation": NASTY, "language": NASTY, "params": params}
        lines = [
            {"type": "run", "author": NASTY, "label": NASTY, "protocol": {"name": "do_bench"},
             "environment": {"cpu": {"model": NASTY}, "host": {"name": "h"}}},
            case,
            {"type": "check", "name": "reference:y", "outcome": "passed", "worst_error": 1e-7, "tolerance": 3e-6},
            {"type": "metric", "name": "time", "unit": "s", "value": 1.02e-4, "low": 1.01e-4, "high": 1.03e-4, "n": 3},
            {"type": "metric", "name": "gbps", "unit": "GB/s", "value": 5.0},
            {"type": "end", "status": "ok"},
            {**case, "params": {**params, "dim": params["dim"] + 1}},
            {"type": "end", "status": "crashed", "detail": NASTY},
        ]
        (self.folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.syslab("import", "log.jsonl")

    def test_markdown(self):
        text = self.syslab("report", "--appendix", "--no-figures").stdout
        outside = CODE_SPAN.sub("", text)  # in code a reader sees each sign as it is
        for raw in ("<b>", " $z$", "[l](m)", " *s*"):
            self.assertNotIn(raw, outside)
        shown = re.sub(r"\\(.)", r"\1", outside).count(NASTY) + sum(NASTY in code for _, code in CODE_SPAN.findall(text))
        self.assertGreaterEqual(shown, 4, "implementation, author, message, device")
        for line in text.splitlines():
            if line.startswith("| ") and r"a\_b" in line:
                self.assertEqual(len(re.findall(r"(?<!\\)\|", line)), self.columns(text, line), line)

    @staticmethod
    def columns(text, line):
        """Bars of the rule that stands over the row."""
        above = text[:text.index(line)].splitlines()
        return next(rule.count("|") for rule in reversed(above) if rule.startswith(("| :---", "| ---")))

    def test_page(self):
        text = self.syslab("report", "--appendix", "--to", "html").stdout
        page = Page()
        page.feed(text)
        self.assertEqual((page.open, page.faults, page.fetched), ([], [], []))
        self.assertGreaterEqual(sum(NASTY in cell for cell in page.cells), 4, "implementation, author, message, label")
        self.assertNotIn("<b>x</b>", text)
        self.assertEqual(text.count("</html>"), 1)

    def test_data(self):
        tables = self.json("report", "weighted_sum")
        rows = next(table for table in tables if table["id"] == "weighted_sum")["rows"]
        imported = NASTY + " (self-reported)"
        self.assertEqual([row["implementation"] for row in rows], [imported, imported])
        self.assertEqual([row["message"] for row in rows], [None, NASTY])
        text = self.syslab("report", "weighted_sum", "--to", "csv").stdout
        block = next(part for part in text.split("# weighted_sum/") if part.startswith("weighted_sum\n"))
        table = list(csv.DictReader(io.StringIO(block.split("\n", 1)[1])))
        self.assertEqual([row["implementation"] for row in table[:2]], [imported, imported])

    def test_latex_compiles(self):
        self.syslab("report", "--appendix", "-o", "report.tex")
        text = (self.folder / "report-appendix.tex").read_text()
        self.assertIn(r"a\_b \& 50\% \# \textless{}b\textgreater{}x", text)
        latex = shutil.which("pdflatex")
        if latex is None:
            self.skipTest("no pdflatex here: the text alone was looked at")
        for name in ("report-appendix.tex", "report.tex"):
            done = subprocess.run([latex, "-interaction=nonstopmode", "-halt-on-error", name], cwd=self.folder,
                                  capture_output=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:])


class Peers(Lab):
    """What tools/peers/attention.py writes of PyTorch's attention, beside ours."""

    def test_a_figure_a_pass_has_rungs_peers_and_the_measured_ceiling(self):
        case = attention_log.Case(batch=1, heads=2, seq=64, head_dim=32, causal=True)
        right = {name: (1e-3, 8e-3) for name in ("out", "dq", "dk", "dv")}
        wrong = {**right, "dk": (9e-3, 8e-3)}
        (self.folder / "env.json").write_text(self.syslab("env", "--json").stdout)
        lines = [attention_log.log_head("few", self.folder / "env.json")]
        for which in ("forward", "backward"):
            for seq in (64, 128):
                longer = case._replace(seq=seq)
                lines += attention_log.log_of("cudnn", "2.11.0", longer, "fp32", which, [1.0, 1.1, 1.3], right)
                lines += attention_log.log_of("efficient", "2.11.0", longer, "fp32", which, [1.0, 1.1, 1.3], wrong)
        (self.folder / "peers.jsonl").write_text(attention_log.written(lines))
        few = ("--protocol", "few", "--laws", "none", "--device", "cpu")
        self.syslab("run", "ceiling_gemm", "-a", "size=1024", "-a", "dtype=fp32", "--impl", "openblas", *few)
        self.syslab("run", "flash_forward", "flash_backward", "-a", "batch=1", "-a", "heads=2", "-a", "seq=64,128", "-a", "head_dim=32",
                    "-a", "causal=true", "--impl", "flash_tiled", *few)
        self.syslab("import", "peers.jsonl")
        self.syslab("report", "flash_forward", "flash_backward", "-o", "report.md")
        for which, peers in (("forward", {"cudnn", "efficient"}), ("backward", {"cudnn"})):
            drawn = (self.folder / "figures" / f"flash_{which}-rate.svg").read_text()
            words = set(re.findall(r"<text[^>]*>([^<]+)</text>", drawn))
            self.assertLessEqual({"flash_tiled", "measured GEMM", *(f"{peer} (pytorch, self-reported)" for peer in peers)}, words)
            self.assertEqual([word for word in words if "(mine)" in word], [], "a peer is nobody's own")
            self.assertEqual(any("efficient" in word for word in words), "efficient" in peers, "a wrong gradient has no time")


class Large(Lab):
    """A store of fifty thousand metric rows. How long a report takes is told, and bounded only against running away."""

    ROWS = 50_000

    def test_report_of_a_large_store(self):
        self.syslab("run", "weighted_sum", "flash_forward", "mixed_precision_accumulation", "--preset", "smoke",
                    "--laws", "none")
        grow = ROOT / "tests/report/grow_store.py"
        subprocess.run([sys.executable, grow, self.db, str(self.ROWS)], check=True)
        self.assertGreaterEqual(self.sql("SELECT count(*) FROM metric")[0][0], self.ROWS)
        for name in ("report.md", "report.html", "report.tex"):
            begin = time.monotonic()
            self.syslab("report", "--appendix", "-o", name)
            taken = time.monotonic() - begin
            print(f"{name}: {taken:.2f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
            self.assertLess(taken, 60)
        self.assertIn("flash_forward", (self.folder / "report.md").read_text())
        self.assertEqual(self.sql("PRAGMA integrity_check"), [("ok",)])


if __name__ == "__main__":
    unittest.main()
