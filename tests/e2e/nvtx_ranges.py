"""What a profiler is told: a range around each case, and in it around check, measuring and verifying.

SYSLAB_NVTX_RECORDER names the library that takes a profiler's place (tests/device/nvtx_recorder.cpp).
"""
import os
import subprocess
import unittest

from lab import Lab

RECORDER = os.environ["SYSLAB_NVTX_RECORDER"]


class Ranges(Lab):
    def ranges(self, *arguments):
        """The ranges of a run, each as "outer > inner"."""
        record = self.folder / "ranges"
        environment = {**self.environment(), "NVTX_INJECTION64_PATH": RECORDER, "NVTX_RECORD": str(record)}
        subprocess.run(self.command(*arguments), cwd=self.folder, env=environment, check=True, capture_output=True, timeout=240)
        opened, seen = [], []
        for line in record.read_text(encoding="utf-8").splitlines():
            if line == "pop":
                opened.pop()  # raises where none was open
                continue
            opened.append(line.removeprefix("push "))
            seen.append(" > ".join(opened))
        self.assertEqual(opened, [], "ranges that never ended")
        return seen

    def test_a_case_is_a_range_and_what_happens_in_it_lies_within(self):
        seen = self.ranges("run", "weighted_sum", "--impl", "naive", "--device", "cpu", "-a", "rows=256", "-a", "dim=64", "-a",
                           "dtype=fp32", "-a", "pass=forward", "--laws", "none", "--protocol", "quick")
        case = "weighted_sum naive"
        self.assertEqual(seen[:3], [case, f"{case} > check", f"{case} > measure"])
        self.assertIn(f"{case} > measure > verify", seen)
        self.assertFalse([name for name in seen if "sample" in name], "the host's calls are timed with all they do")

    def test_a_law_is_named(self):
        seen = self.ranges("check", "weighted_sum", "--impl", "naive", "--cases", "1")
        self.assertIn("weighted_sum weighted_sum.linearity naive", seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
