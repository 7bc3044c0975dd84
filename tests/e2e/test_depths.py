"""How far `check --mine` goes with a class whose calls are slow."""
import os
import pathlib
import subprocess
import unittest

from lab import Lab


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
