"""How far `check --mine` goes in its time, and with a class whose calls are slow."""
import os
import pathlib
import subprocess
import unittest

from lab import Lab


class InItsTime(Lab):
    """A depth's time is shared among the laws, and what it left out is told."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def test_what_is_slow_is_tried_less_and_how_much_is_told(self):
        (self.folder / "flash.py").write_text(
            "import sys, time\n"
            f"sys.path.insert(0, {os.environ['SYSLAB_MINE']!r})\n"
            "from plain import Naive\n"
            "class Slow(Naive):\n"
            "  def forward(self, *arguments):\n"
            "    time.sleep(0.4)\n"
            "    return super().forward(*arguments)\n")
        mine = ("check", "flash_forward", "--mine", "me=flash.py:Slow", "--impl", "me", "-k", "refusal")
        done = self.syslab(*mine)
        (first,), (second,) = self.sql("SELECT cases_run FROM check_result ORDER BY id")
        # 10 s hold 25 calls of 0.4 s, one more may have begun, and the first of all counts in no share.
        self.assertTrue(all(5 <= cases <= 27 for cases in (first, second)), (first, second))
        self.assertIn("never tried: all 100 inputs, since the laws share the 20 s of this depth; tried: "
                      f"attention.refusal of the hand-out {first}, attention.refusal {second}; try: --cases 100, without a time limit",
                      done.stdout)
        verdict = self.lines(*mine, "--cases", "6")[-1]
        self.assertEqual(self.sql("SELECT cases_run FROM check_result WHERE id > 2"), [(6,), (6,)])
        self.assertEqual([reason for reason in verdict["never_tried"] if reason.startswith("all ")], [])


class InTiles(Lab):
    """A class as students write it, in loops over tiles of queries and of keys."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def setUp(self):
        super().setUp()
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")

    def test_it_is_right_and_one_line_less_is_named(self):
        right = pathlib.Path(os.environ["SYSLAB_MINE"], "tiled.py").read_text()
        for old, new, said in (("", "", ""),
                               ("shrink[..., None] * o + p @ v", "o + p @ v", "looks like an accumulator that is not rescaled"),
                               ("l = shrink * l", "l = l", "looks like a row sum that is not rescaled")):
            self.assertIn(old, right)
            (self.folder / "flash.py").write_text(right.replace(old, new))
            done = self.syslab("check", "flash_forward", "--mine", "me=flash.py:Flash", "--impl", "me", "-k", "equals_oracle", "--cases", "10",
                               expect=1 if said else 0)
            self.assertIn(said, done.stdout)


if __name__ == "__main__":
    unittest.main()
