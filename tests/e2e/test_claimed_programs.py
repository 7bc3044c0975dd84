"""claim and verify of programs that print their own times, so that no other test disturbs them."""
import json
import pathlib
import re
import shlex
import stat
import sys
import unittest
from html import escape

from comparing import Comparing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from claim_seal import sealed  # noqa: E402


class ClaimedPrograms(Comparing):
    def test_a_program_is_claimed_and_a_claim_starts_none(self):
        script = self.folder / "bench.sh"
        script.write_text("#!/bin/sh\necho took: $1 ms\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        commands = ("--command", "old=./bench.sh 0.6{n}", "--command", "new=./bench.sh 0.5{n}")
        rest = ("-a", "n=1", "--protocol", "quick", "--launches", "3", "--reads", "took: {} ms", "-o", "x.claim")
        self.syslab("claim", "new >= 1.15 x old", *commands, *rest)
        held = json.loads((self.folder / "x.claim").read_text())
        self.assertEqual((held["faster"]["name"], held["faster"]["command"], held["question"]["reads"]),
                         ("new", "./bench.sh 0.5{n}", "took: {} ms"))
        self.assertEqual([case["params"] for case in held["cases"]], [{"n": 1, "reads": "took: {} ms"}])
        page = self.syslab("report", "x.claim").stdout
        self.assertIn("--command new='./bench.sh 0.5{n}'", page)
        refused = self.syslab("verify", "x.claim", "--launches", "3", *commands[:2], expect=2).stderr
        self.assertIn("starts nothing; if you mean to: --command new='./bench.sh 0.5{n}'", refused)
        changed = (*commands[:3], "new=./bench.sh 0.5{n} again")
        held = json.loads(self.syslab("verify", "x.claim", "--launches", "3", "--json", *changed).stdout)
        self.assertEqual(held["verdict"], "confirmed")
        self.assertEqual([one.split(":")[0] for one in held["differing"]], ["new command"])

    def test_a_command_line_is_copied_as_it_was_written(self):
        script = self.folder / "bench.sh"
        script.write_text("#!/bin/sh\necho took: $1 ms\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        odd = "./bench.sh 0.5 '`touch a` \\ | $(touch b) ``' \"it's\""
        self.syslab("claim", "new >= 1.1 x old", "--command", "old=./bench.sh 0.6", "--command", f"new={odd}", "--protocol", "quick", "--launches", "3",
                    "--reads", "took: {} ms", "-o", "x.claim")
        page = self.syslab("report", "x.claim").stdout
        line = next(line for line in page.splitlines() if line.startswith("syslab verify x.claim"))
        self.assertEqual(shlex.split(line), ["syslab", "verify", "x.claim", "--command", f"new={odd}", "--command", "old=./bench.sh 0.6"])
        self.assertEqual(page.splitlines()[page.splitlines().index(line) - 1], "```sh")
        self.syslab("report", "x.claim", "-o", "x.html")
        html = (self.folder / "x.html").read_text()
        self.assertEqual(re.search("<pre><code>(.*?)</code></pre>", html)[1], escape(line, quote=True).replace("&#x27;", "&#39;"))
        said = self.syslab("verify", "x.claim", expect=2).stderr
        self.assertIn("if you mean to: " + line.split(" --command old")[0].removeprefix("syslab verify x.claim "), said)
        refused = self.syslab("claim", "new >= 1.1 x old", "--command", "old=./bench.sh 0.6", "--command", "new=./bench.sh 0.5 '\u202e'", "--reads",
                              "took: {} ms", "-o", "y.claim", expect=2).stderr
        self.assertIn("expected text without signs that cannot be printed", refused)

    def test_values_of_a_file_neither_forge_a_line_nor_invent_inputs(self):
        script = self.folder / "bench.sh"
        script.write_text("#!/bin/sh\necho took: $1 ms\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        commands = ("--command", "old=./bench.sh 60", "--command", "new=./bench.sh 50")
        self.syslab("claim", "new >= 1.1 x old", *commands, "--data", "zeros", "--seed", "7", "--protocol", "quick", "--launches", "3", "--reads",
                    "took: {} ms", "-o", "x.claim")
        file = self.folder / "x.claim"
        held = json.loads(file.read_text())
        self.assertEqual((held["question"]["data"], held["question"]["seed"]), ("normal", 0))
        self.assertNotIn("Inputs", self.syslab("report", file).stdout)
        glibc = "2.36" + " " * 80 + "confirmed: it is 1.320 times as fast” (95 %: 1.320 … 1.320)."
        libraries = {**held["environment"]["libraries"], "glibc": glibc}
        file.write_text(json.dumps(sealed({**held, "environment": {**held["environment"], "libraries": libraries}})))
        said = self.syslab("verify", file, *commands, "--launches", "3").stdout
        self.assertIn("\ndiffers  libraries.glibc: claim “2.36 confirmed: it is 1.320 times as fast' (95 %: 1.320 … 1.…”, here “", said)
        for field, value in (("data", "zeros, as MLPerf wants them"), ("seed", 424242)):
            file.write_text(json.dumps(sealed({**held, "question": {**held["question"], field: value}})))
            said = self.syslab("verify", file, *commands, "--launches", "3", expect=1).stdout
            self.assertEqual(said.split(": found")[0], f"question/{field}")
        file.write_text(json.dumps(sealed({**held, "question": {**held["question"], "protocol": "kernel, of MLPerf"}})))
        for words in (("verify", file, *commands), ("report", file)):
            self.assertIn("its protocol is “kernel, of MLPerf”; expected one of kernel, ", self.syslab(*words, expect=2).stderr)
        file.write_text(json.dumps(sealed({**held, "question": {**held["question"], "assignments": ["n" + " " * 80 + "confirmed"]}})))
        refused = self.syslab("verify", file, *commands, expect=2).stderr
        self.assertIn("n confirmed", refused)

    def test_words_of_a_file_do_not_end_the_quotes_of_a_message(self):
        script = self.folder / "bench.sh"
        script.write_text("#!/bin/sh\necho took: $1 ms\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        commands = ("--command", "old=./bench.sh 60", "--command", "new=./bench.sh 50")
        file = self.folder / "x.claim"
        self.syslab("claim", "new >= 1.1 x old", *commands, "--protocol", "quick", "--launches", "3", "--reads", "took: {} ms", "-o", file)
        held = json.loads(file.read_text())
        forged = "no'. Measured anew, it is confirmed: “1.320 times” as fast: {} ms"
        file.write_text(json.dumps(sealed({**held, "question": {**held["question"], "reads": forged}, "cases": [
            {**case, "title": "command", "params": {**case["params"], "reads": forged}} for case in held["cases"]]})))
        done = self.syslab("verify", file, *commands, "--launches", "3", expect=3)
        self.assertRegex(done.stdout, r"(?m)^unclear: command: “[^“”]*no'\. Measured anew[^“”]*”\.$")
        self.assertRegex(done.stderr, r"(?m)^command launch 1 of 3: “[^“”]*no'\. Measured anew[^“”]*”")
        file.write_text(json.dumps(sealed({**held, "question": {**held["question"], "assignments": ["m', confirmed: it is”"]}})))
        refused = self.syslab("verify", file, *commands, expect=2).stderr
        self.assertRegex(refused, "^error: the claim cannot be measured here: “[^“”]*m', confirmed: it is'[^“”]*”\n")


if __name__ == "__main__":
    unittest.main()
