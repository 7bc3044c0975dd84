"""Workers that die, hang, lie or run out of memory: each ends in its status, and the rest of the plan completes."""
import unittest

from lab import Lab, attempts, summary


class Faults(Lab):
    def test_every_fault_is_a_row_and_the_sweep_goes_on(self):
        expected = {"kill": "crashed", "segv": "crashed", "half_record": "crashed", "hang": "timeout", "throw": "error",
                    "oom": "oom", "bad_alloc": "oom", "garbage": "error", "bad_record": "error", "unchecked": "error",
                    "unsupported": "unsupported", "nan": "ok", "none": "ok"}
        lines = self.lines("run", "selftest_faults", "-a", "fault=" + ",".join(expected), "--timeout", "2s", expect=3)
        found = {line["params"]["fault"]: line["status"] for line in attempts(lines)}
        self.assertEqual(found, expected)
        self.assertEqual(summary(lines)["missing"], 0)
        run = lines[0]["run"]
        self.assertEqual(len(self.ended_attempts(run)), len(expected))
        for line in attempts(lines):
            if line["status"] not in ("ok",):
                self.assertTrue(line["detail"], f"{line['params']} ends without a reason")
        # A NaN is kept as what it is: no value, and a note that says so.
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'answer' AND value IS NULL AND note LIKE 'not a number%'"),
                         [(1,)])
        self.assertIn("hang", self.syslab("query", "SELECT * FROM v_failures", "--to", "csv").stdout)

    def test_facts_that_nest_too_deep_to_be_stored_with_others_end_their_case_alone(self):
        lines = self.lines("run", "selftest_faults", "-a", "fault=deep_facts,none", "--launches", "2", expect=3)
        self.assertEqual([line["status"] for line in attempts(lines)], ["error", "ok"])
        self.assertIn("the worker of 'selftest', record 'fact': field 'facts' is nested 99 levels deep; expected at most 90",
                      attempts(lines)[0]["detail"])

    def test_memory_beyond_the_limit(self):
        lines = self.lines("run", "selftest_faults", "-a", "fault=eat_memory,none", "--memory-limit", "256Mi", expect=3)
        self.assertEqual([line["status"] for line in attempts(lines)], ["oom", "ok"])

    def test_a_wrong_result_outweighs_a_crash(self):
        done = self.syslab("run", "selftest_faults", "-a", "fault=kill,check_failed", expect=1)
        self.assertIn("out[3] is 7, expected 8", done.stdout)
        self.assertIn("syslab replay", done.stdout)

    def test_nothing_wrong_with_what_is_unsupported(self):
        self.syslab("run", "selftest_faults", "-a", "fault=unsupported", expect=0)

    def test_resume_tries_failed_cases_again_only_when_asked(self):
        run = self.lines("run", "selftest_faults", "-a", "fault=none,throw", expect=3)[0]["run"]
        again = self.lines("resume", expect=3)
        self.assertEqual(attempts(again), [])
        again = self.lines("resume", "--failed", expect=3)
        self.assertEqual([line["params"]["fault"] for line in attempts(again)], ["throw"])
        self.assertEqual(sorted(seq for seq, _, _ in self.ended_attempts(run)), [0, 1, 1])


if __name__ == "__main__":
    unittest.main()
