"""tools/nvcc_strict.py: what it lets pass and what it refuses, with a compiler that only says what ptxas would."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "nvcc_strict.py"
GOOD = """ptxas info    : Function properties for kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 16 barriers"""
SPILLS = GOOD.replace("0 bytes spill stores", "8 bytes spill stores")
STACK = GOOD.replace("0 bytes stack", "16 bytes stack")
SERIAL = GOOD + "\nptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized"
WARNING = GOOD + "\nkernel.cu(3): warning #177-D: variable was declared but never referenced"


class NvccStrict(unittest.TestCase):
    def call(self, says, code=0, **variables):
        """(exit code, what was printed, whether the object is there) of a compiler that writes an object and says so."""
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "kernel.o"
            compiler = f"import sys; open(sys.argv[2], 'w'); print({says!r}, file=sys.stderr); sys.exit({code})"
            done = subprocess.run([sys.executable, TOOL, sys.executable, "-c", compiler, "-o", made], capture_output=True, text=True,
                                  env={**os.environ, "NVCC_APPEND_FLAGS": "", **variables})
            return done.returncode, done.stdout, made.exists()

    def test_lets_a_good_kernel_pass_and_says_nothing(self):
        self.assertEqual(self.call(GOOD), (0, "", True))

    def test_refuses_spills_stack_frames_products_in_line_and_warnings(self):
        for says, found in ((SPILLS, "8 bytes spill stores"), (STACK, "16 bytes stack"), (SERIAL, "C7511"), (WARNING, "#177-D")):
            code, printed, there = self.call(says)
            self.assertEqual(code, 1, says)
            self.assertIn(found, printed)
            self.assertIn("use a smaller tile", printed)
            self.assertFalse(there)

    def test_lets_kernels_pass_that_are_delayed_on_purpose_and_no_others(self):
        self.assertEqual(self.call(SPILLS, NVCC_APPEND_FLAGS="-DSYSLAB_DELAYS"), (0, "", True))
        self.assertEqual(self.call(SPILLS, NVCC_APPEND_FLAGS="-O3")[0], 1)

    def test_refuses_what_reports_on_no_kernel(self):
        code, printed, _ = self.call("")
        self.assertEqual(code, 1)
        self.assertIn("-Xptxas=-v", printed)

    def test_passes_the_compilers_own_errors_on(self):
        code, printed, _ = self.call("kernel.cu(3): error: expected a ;", code=2)
        self.assertEqual(code, 2)
        self.assertIn("expected a ;", printed)


if __name__ == "__main__":
    unittest.main()
