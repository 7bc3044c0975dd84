"""Somebody's Python class from the command line: right, wrong, and in every way broken."""
import os
import unittest

from lab import Lab, attempts

MINE = os.environ["SYSLAB_MINE"]
SMALL = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "--impl", "me", "--laws", "none",
         "--protocol", "quick")


class Mine(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def case(self, spec, *arguments, expect, experiment="flash_forward"):
        lines = self.lines("run", experiment, *SMALL, "--mine", f"me={MINE}/{spec}", *arguments, expect=expect)
        ended = attempts(lines)
        self.assertEqual(len(ended), 1)
        return ended[0]

    def test_a_numpy_class_is_checked_timed_and_stored(self):
        self.assertEqual(self.case("plain.py:Naive", expect=0)["status"], "ok")
        rows = self.sql("SELECT value FROM v_latest WHERE implementation = 'me' AND metric = 'time'")
        self.assertEqual(len(rows), 1)
        self.assertGreater(rows[0][0], 0)
        language, digest = self.sql("SELECT language, digest FROM implementation WHERE name = 'me'")[0]
        self.assertEqual(language, "Python")
        self.assertRegex(digest, "^[0-9a-f]{64}$")

    def test_a_torch_function_is_checked_in_both_directions(self):
        self.assertEqual(self.case("function.py:Flash", expect=0)["status"], "ok")
        self.assertEqual(self.case("function.py:Flash", expect=0, experiment="flash_backward")["status"], "ok")

    def test_a_mask_off_by_one_gets_no_time(self):
        self.assertEqual(self.case("plain.py:MaskOffByOne", expect=1)["status"], "check_failed")
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_a_class_without_a_backward_keeps_no_law_of_the_backward_pass(self):
        for spec in ("plain.py:ForwardOnly", "function.py:ForwardOnly"):
            laws = attempts(self.lines("check", "flash_backward", "--mine", f"me={MINE}/{spec}", "--cases", "3"))
            self.assertEqual({law["status"] for law in laws}, {"unsupported"}, laws)
            reasons = {law["law"]: law["detail"] for law in laws}
            self.assertEqual(reasons["attention.writes_nothing_outside"], "not searched: ForwardOnly has no backward")

    def test_what_raises_is_quoted_with_its_line(self):
        ended = self.case("plain.py:Raises", expect=None)
        self.assertIn(ended["status"], ("error", "check_failed"))
        self.assertIn("tile 7 does not divide 12", ended["detail"])
        self.assertIn("plain.py", ended["detail"])

    def test_a_class_that_is_not_there_is_told_once_before_anything_runs(self):
        refused = self.syslab("run", "flash_forward", *SMALL, "--mine", f"me={MINE}/plain.py:Nowhere", expect=2)
        self.assertEqual(refused.stderr.count("no class 'Nowhere'"), 1)
        self.assertFalse((self.folder / "syslab.db").exists())

    def test_a_class_that_only_running_shows_to_be_missing_is_told_without_our_own_frames(self):
        (self.folder / "late.py").write_text("globals()['Somebody'] = object\n")
        lines = self.lines("run", "flash_forward", *SMALL, "--mine", "me=late.py:Nowhere", expect=None)
        [ended] = attempts(lines)
        self.assertIn("no class 'Nowhere'", ended["detail"])
        self.assertNotIn("<string>", ended["detail"])

    def test_what_hangs_is_ended_in_time(self):
        self.assertEqual(self.case("plain.py:Sleeps", "--timeout", "8", expect=3)["status"], "timeout")

    def test_what_dies_is_told_by_its_last_words(self):
        ended = self.case("plain.py:Dies", expect=None)
        self.assertIn(ended["status"], ("error", "crashed"))
        self.assertIn("about to die", ended["detail"])

    def test_what_takes_all_memory_is_oom(self):
        self.assertEqual(self.case("plain.py:Greedy", expect=3)["status"], "oom")


if __name__ == "__main__":
    unittest.main()
