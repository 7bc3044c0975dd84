"""claim and verify of programs that print their own times, so that no other test disturbs them."""
import json
import stat
import unittest

from comparing import Comparing, judged_by_time


@judged_by_time
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
        self.assertEqual([one.split(":")[0] for one in held["differing"]], ["new command and its files"])


if __name__ == "__main__":
    unittest.main()
