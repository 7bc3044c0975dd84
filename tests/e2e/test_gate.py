"""gate where it decides by times that it measures: nothing else runs beside these. What needs no quiet: test_pins.py."""
import shlex
import sqlite3
import unittest

from comparing import Gating, OnGithub
from lab import SYSLAB, asked_again, make_views


class Gate(Gating):
    @asked_again
    def test_slower_twice_is_slower(self):
        self.pinned()
        one, = self.gated("--build", self.other_build(change={"slowdown": -30.0}), expect=6)
        self.assertEqual(one["verdict"], "slower")
        rows = self.sql("SELECT verdict, confirms IS NOT NULL, is_last FROM v_comparison ORDER BY comparison_id")
        self.assertEqual(rows, [("slower", 0, 0), ("slower", 1, 1)], "measured again, and both are kept")

    @asked_again
    def test_slower_once_is_not_slower(self):
        self.pinned()
        one, = self.gated("--build", self.other_build(change={"slowdown": -30.0}, launches=3), expect=5)
        self.assertEqual(one["verdict"], "unclear")
        self.assertIn("slower at first", one["reason"])

    @asked_again
    def test_faster_and_same_pass(self):
        self.pinned()
        one, = self.gated("--build", self.other_build(change={"slowdown": 40.0}), expect=0)
        self.assertEqual(one["verdict"], "faster")
        one, = self.gated("--build", SYSLAB, "--delta", "30%", expect=0)
        self.assertEqual(one["verdict"], "same")

    @asked_again
    def test_against_stored_values_the_verdict_says_that_they_are(self):
        self.pinned("--launches", "3")
        one, = self.gated("--delta", "900%", expect=0)
        self.assertEqual((one["verdict"], one["mode"]), ("same", "stored"))
        self.assertEqual(self.sql("SELECT count(*), max(a.facts ->> '$.launches' IS NOT NULL) FROM v_attempt a"
                                  " JOIN run r ON r.id = a.run_id WHERE r.verb = 'gate'"), [(3, 0)], "as many as were asked for")

    @asked_again
    def test_a_pin_of_too_few_launches_is_refused_before_anything_is_measured(self):
        self.pinned("--launches", "2", "--label", "two of them")
        refused = self.refused(*self.GATE)
        self.assertIn("fewer than 3 launches of every case", refused)
        remedy = refused[refused.index("`syslab run") + 1:].split("`")[0]
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])
        self.syslab(*shlex.split(remedy)[1:])
        self.syslab("pin", "base", "latest")
        self.gated("--delta", "900%", expect=0)

    @asked_again
    def test_a_case_of_too_few_launches_is_not_measured_beside_others_that_have_enough(self):
        self.pinned("-a", "slowdown=0,1", "--launches", "3")
        connection = sqlite3.connect(self.db)
        connection.execute("DROP TRIGGER IF EXISTS sample_no_delete")
        make_views(connection)
        connection.execute("DELETE FROM sample WHERE launch > 0 AND series_id IN (SELECT s.id FROM series s JOIN v_attempt t"
                           " ON t.attempt_id = s.attempt_id WHERE t.params ->> '$.slowdown' = 1)")
        connection.commit()
        connection.close()
        few, enough = sorted(self.gated("--delta", "900%", expect=5), key=lambda it: it["verdict"], reverse=True)
        self.assertEqual((few["verdict"], enough["verdict"]), ("unclear", "same"))
        self.assertIn("holds 1 launch of it", few["reason"])
        self.assertEqual(self.sql("SELECT count(*) FROM v_attempt t JOIN run r ON r.id = t.run_id WHERE r.verb = 'gate'"), [(3,)])


class Github(Gating, OnGithub):
    @asked_again
    def test_a_build_in_turns_and_a_case_that_is_missing(self):
        self.pinned()
        gate = ("gate", "--against", "base", "--launches", "3", "--github")
        told = self.syslab(*gate, "--build", self.other_build(change={"slowdown": -30.0}), expect=6).stdout
        self.assertIn("::error title=selftest_compare", told)
        self.change_stored_version()
        told = self.syslab(*gate, expect=3).stdout
        self.assertIn("::error title=missing::selftest_compare", told)
        self.assertIn("| missing |", (self.folder / "summary.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
