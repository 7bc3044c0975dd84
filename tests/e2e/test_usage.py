"""What is asked wrongly is answered with what was meant, exit code 2, and nothing is made."""
import json
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from lab import Lab


class Usage(Lab):
    def wrong(self, *arguments, names):
        done = self.syslab(*arguments, expect=2)
        self.assertIn(names, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [], "a refused command left something behind")
        as_json = self.syslab(*arguments, "--json", expect=2)
        error = json.loads(as_json.stdout)["error"]
        self.assertEqual(error["kind"], "usage")
        self.assertIn(names, error["message"])

    def test_what_cannot_be_said_is_an_error(self):
        for arguments in (("--version",), ("--help",), ("run", "--help"), ("list",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run(self.command(*arguments), cwd=self.folder, env=self.environment(), text=True,
                                      stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 4, arguments)
            self.assertIn("cannot write to standard output", done.stderr)

    def test_bytes_that_are_not_utf8_are_replaced_where_they_are_printed(self):
        self.wrong("run", "no\udcffthing", names="unknown experiment 'no\ufffdthing'")  # as Python writes the byte ff
        self.wrong("run", "weighted_sum", "--mine", "me=no\udcff.so", names="there is no file 'no\ufffd.so'")
        self.syslab("run", "selftest_empty", "--label", "a\udcff")
        self.assertIn(" a\ufffd ", self.syslab("log").stdout)
        self.assertIn("| b\ufffd |", self.syslab("query", "SELECT CAST(x'62ff' AS TEXT) AS text").stdout)

    def test_a_database_without_a_name_is_refused_by_all(self):
        for words in (("run", "selftest_empty"), ("log",), ("doctor",), ("merge", "other.db")):
            self.assertIn("--db names no file", self.syslab(*words, "--db", "", expect=2).stderr)

    def test_unknown_verb(self):
        self.wrong("rnu", "flash_forward", names="'run'")

    def test_unknown_option(self):
        self.wrong("run", "flash_forward", "--presets", "smoke", names="'--preset'")

    def test_unknown_experiment(self):
        for verb in ("run", "check", "plan", "describe", "list", "report"):
            self.wrong(verb, "flash_foward", names="'flash_forward'")

    def test_unknown_axis_value_preset_implementation(self):
        self.wrong("run", "flash_forward", "-a", "sek=128", names="unknown axis 'sek' of flash_forward; did you mean 'seq'")
        self.wrong("run", "flash_forward", "-a", "dtype=bf61", names="'bf16'")
        self.wrong("plan", "flash_forward", "-a", "seq=many", names="whole numbers")
        self.wrong("plan", "flash_forward", "-a", "seq=9:1", names="lo:hi:step")
        self.wrong("run", "flash_forward", "--preset", "smoek", names="'smoke'")
        self.wrong("run", "flash_forward", "--impl", "niave", names="'naive'")

    def test_unknown_protocol_hand_out_contract(self):
        self.wrong("run", "flash_forward", "--protocol", "kernle", names="kernel")
        self.wrong("run", "flash_forward", "--handout", "2024", names="2026")
        self.wrong("check", "flash_forward", "--contract", "some", names="handout")
        self.wrong("run", "flash_forward", "--timeout", "soon", names="30s")
        self.wrong("run", "flash_forward", "--memory-limit", "much", names="2Gi")

    def test_wrong_mine(self):
        self.wrong("check", "flash_forward", "--mine", "kernel.so", names="write --mine me=kernel.so")
        self.wrong("check", "flash_forward", "--mine", "me=none.so", names="none.so")
        self.wrong("run", "mixed_precision_accumulation", "--mine", f"me={__file__}:Class", names="--mine")

    def test_a_file_that_cannot_be_served_is_told_of_once_and_begins_no_run(self):
        held = tempfile.TemporaryDirectory(prefix="syslab_e2e_")
        self.addCleanup(held.cleanup)
        files = pathlib.Path(held.name)
        (files / "mine.c").write_text("int nothing;\n")
        (files / "flash.py").write_text("class Flash:\n    pass\n")
        (files / "torn.py").write_text("class Flash\n")
        (files / "made.py").write_text("from nowhere import Base as Here\nThere = type('There', (), {})\n")
        for verb in (("check", "flash_forward"), ("run", "flash_forward", "--laws", "none"),
                     ("compare", "flash_forward", "A:impl=naive", "--launches", "3")):
            self.wrong(*verb, "--mine", f"me={files}/mine.c", names="no shared library")
            self.wrong(*verb, "--mine", f"me={files}/flash.py:Flosh", names="flash.py has no class 'Flosh' (it has: Flash)")
            self.wrong(*verb, "--mine", f"me={files}/torn.py:Flash", names="SyntaxError")
        self.assertFalse(self.db.exists())
        # What running the file alone can tell is left to its cases.
        for known in ("Here", "There"):
            self.syslab("check", "flash_forward", "--impl", "me", "--cases", "1", "--mine", f"me={files}/made.py:{known}", expect=2)

    def test_reading_makes_no_database(self):
        for arguments in (("report",), ("query", "SELECT 1"), ("resume",), ("replay", "0123")):
            self.wrong(*arguments, names="no database")

    def test_a_link_that_plan_buckets_cannot_take(self):
        self.wrong("plan-buckets", "--trace", "none.csv", "--alpha", "1us", "--beta", "1GB/s", names="there is no file 'none.csv'")
        held = tempfile.TemporaryDirectory(prefix="syslab_e2e_")
        self.addCleanup(held.cleanup)
        trace = pathlib.Path(held.name) / "trace.csv"
        trace.write_text("name,bytes,ready_us\nb,4000000,100\na,4000000,300\n")
        for link, says in ((("--alpha", "34", "--beta", "313GB/s"), "--alpha '34' has no unit; write 34us"),
                           (("--alpha", "34us", "--beta", "313"), "--beta '313' has no unit; write 313GB/s"),
                           (("--alpha", "34us", "--beta", "313/s"), "--beta '313/s' has no unit"),
                           (("--curve", "none.db"), "there is no database 'none.db'")):
            self.wrong("plan-buckets", "--trace", trace, *link, names=says)
        for alpha, beta in (("34us", "313GB/s"), ("0", "2Gi/s"), ("34 us", "313B")):
            self.syslab("plan-buckets", "--trace", trace, "--alpha", alpha, "--beta", beta)

    def test_unknown_run_and_check(self):
        self.syslab("run", "selftest_empty")
        self.assertIn("no run", self.refused("resume", "ffff"))
        self.assertIn("no check", self.refused("replay", "ffff"))

    def test_a_query_that_is_wrong_or_writes(self):
        self.syslab("run", "selftest_empty")
        self.assertIn("no such column", self.refused("query", "SELECT nosuch"))
        self.syslab("query", "DELETE FROM run", expect=2)
        self.syslab("query", "SELECT 1; SELECT 2", expect=2)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])

    def test_a_query_whose_time_is_spent_in_one_function_ends(self):
        self.syslab("run", "selftest_empty")
        before = {path.name for path in self.folder.iterdir()}
        began = time.monotonic()
        told = self.syslab("query", "SELECT instr(zeroblob(40000000), zeroblob(20000000) || x'01')", "-o", "out.csv",
                           expect=2)
        self.assertLess(time.monotonic() - began, 40)  # it would take minutes
        self.assertIn("longer than 20 s", told.stderr)
        left = {path.name for path in self.folder.iterdir()} - before
        self.assertLessEqual(left, {f"{self.db.name}-wal", f"{self.db.name}-shm"}, "as of a reader that was killed")
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])

    def test_a_query_of_more_than_formats_can_write_ends(self):
        self.syslab("run", "selftest_empty")
        texts = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT hex(zeroblob(2000000)) FROM n"
        for form in ("html", "tex", "md", "json", "csv"):
            told = self.syslab("query", texts.format(9), "--to", form, "-o", "out", expect=2)
            self.assertIn("more than 32.00 MiB", told.stderr)
            self.assertFalse((self.folder / "out").exists())
        self.assertGreater(len(self.syslab("query", texts.format(8), "--to", "csv").stdout), 32_000_000)
        self.assertGreaterEqual(len(self.syslab("query", "SELECT hex(zeroblob(20000000))", "--to", "raw").stdout), 40_000_000)
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000) SELECT i, i, i, i, i, i, i, i FROM n"
        self.assertIn("more than 32.00 MiB", self.syslab("query", numbers, "--to", "csv", expect=2).stderr)

    def test_help_and_version(self):
        help_text = self.syslab("--help").stdout
        self.assertEqual(self.syslab().stdout, help_text)
        verbs = re.search(r"'[)] words=\"([^\"]+)\"", self.syslab("completion", "bash").stdout)[1].split()
        self.assertGreater(len(verbs), 20)
        for verb in verbs:
            self.assertIn(f"  {verb} ", help_text)
            self.assertIn(f"syslab {verb}", self.syslab(verb, "--help").stdout)
        self.assertRegex(self.syslab("--version").stdout, r"^syslab \d+\.\d+\.\d+ \(")


if __name__ == "__main__":
    unittest.main()
