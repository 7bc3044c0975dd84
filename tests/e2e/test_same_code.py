"""The same machine code on both sides of a comparison: of libraries, of files, and of the kernels that ran on a GPU."""
import json
import shutil
import subprocess
import unittest

from comparing import Comparing
from lab import SYSLAB, asked_again
from revisions import WORK
from worker_conformance import Worker

# In place of a worker of OTHER_BUILD: says of which code its kernels were.
# The library takes its time from a note, which the digest of code leaves out. This simulates a noisy machine.
LIBRARY = """\
#include <time.h>

__attribute__((section(".note.time"), used)) static const volatile int milliseconds = MILLISECONDS;

int twice(const float* x, float* y, long n) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  nanosleep(&time, NULL);
  for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
"""
MANIFEST = {"axes": {"n": [16384]}, "reference": "twice.py:reference", "reference_takes": ["x"], "returns": "status",
            "arguments": [{"name": "x", "dtype": "float32", "shape": ["n"]},
                          {"name": "y", "dtype": "float32", "shape": ["n"], "output": True},
                          {"name": "n", "type": "int64", "value": "n"}]}


class SameCode(Comparing):
    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    @asked_again
    def test_a_difference_of_the_same_code_is_noise(self):
        """Two libraries that differ in a note alone."""
        for name, text in (("twice.c", LIBRARY), ("twice.py", "def reference(x):\n    return 2 * x\n"), ("twice.json", json.dumps(MANIFEST))):
            (self.folder / name).write_text(text)
        for name, milliseconds in (("fast.so", 30), ("slow.so", 90)):
            subprocess.run(["cc", "-O1", f"-DMILLISECONDS={milliseconds * self.longer}", "-shared", "-fPIC", "-o", name, "twice.c"],
                           cwd=self.folder, check=True)
        function = ("--mine", "a=fast.so:twice", "--mine", "b=slow.so:twice", "--inputs", "twice.json", "--launches", "3", "--protocol", "quick")
        one, = self.comparisons("A:impl=a", "B:impl=b", *function, expect=5)
        self.assertEqual(one["verdict"], "unclear")
        self.assertIn("same machine code", one["reason"])
        self.assertGreater(one["low"], 0.5)
        asked, = self.comparisons("A:impl=a", "B:impl=b", *function, "--same-on-purpose", expect=6)
        self.assertEqual(asked["verdict"], "slower", "who asks what the machine makes of them is told")

    @asked_again
    def test_equal_files_beside_unequal_ones_are_not_the_same_code(self):
        """Two folders with an equal work.py; what it imports is another file in each."""
        text = "from tenths import TENTHS\n" + WORK.format(tenths="TENTHS", longer=self.longer)
        for name, tenths in (("a", 400), ("b", 1200)):
            (self.folder / name).mkdir()
            (self.folder / name / "work.py").write_text(text)
            (self.folder / name / "tenths.py").write_text(f"TENTHS = {tenths}\n")
        one, = self.comparisons("A:impl=a", "B:impl=b", "--mine", "a=a/work.py:fn", "--mine", "b=b/work.py:fn", "--reference",
                                "a/work.py:reference", "--inputs", "a/work.py:cases", "--launches", "3", "--protocol", "quick", expect=6)
        self.assertEqual(one["verdict"], "slower")

    @asked_again
    def test_the_same_kernels_are_told_and_decide_nothing(self):
        a, b, other = (self.other_build(name, {"slowdown": slowdown}, code=code)
                       for name, code, slowdown in (("a", "c0de", 0.0), ("b", "c0de", 40.0), ("other", "d1ff", 40.0)))
        work = ("selftest_compare", "--launches", "3", "--protocol", "quick", "-a", "steps=100000")
        one, = self.comparisons(*work, f"A:build={a}", f"B:build={b}", expect=6)
        self.assertEqual(one["verdict"], "slower", "arguments, copies and waits are in no kernel's code")
        self.assertIn("Both sides ran the same kernels on the GPU (c0de)", one["note"])
        self.assertEqual(self.sql("SELECT side_a ->> '$.kernel_code', side_b ->> '$.kernel_code' FROM comparison"), [("c0de", "c0de")])
        one, = self.comparisons(*work, f"A:build={a}", f"B:build={other}", expect=6)
        self.assertEqual((one["verdict"], one["note"]), ("slower", ""))

    def test_a_process_that_is_asked_for_its_kernels_takes_no_time_and_says_why_it_has_none(self):
        with Worker([SYSLAB, "worker"]) as worker:
            worker.hello()
            worker.send({"type": "case", "experiment": "selftest_compare", "implementation": "selftest", "seed": "7", "task": "code",
                         "params": {"steps": 1000, "slowdown": 0.0, "work": "chain", "fault": "none"}})
            said = []
            while not said or said[-1]["type"] != "end":
                said.append(worker.receive())
        self.assertEqual(said[-1]["status"], "ok", said)
        self.assertFalse([each for each in said if each["type"] in ("sample", "metric")])
        code, = [each["facts"]["code"] for each in said if "code" in each.get("facts", {})]
        self.assertEqual(list(code), ["why"])
        self.assertTrue(code["why"])


if __name__ == "__main__":
    unittest.main()
