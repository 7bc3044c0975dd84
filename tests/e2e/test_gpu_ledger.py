"""The row of the ledger about the lab on a GPU, and what is wanted of every rung, without a GPU."""
import pathlib
import sys
import tempfile
import unittest

from ladders import Ladder, Outcomes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import gpu_ledger  # noqa: E402

CODE = '#include "ops/one/a.hpp"\n#include "ops/b.hpp"\nint x = 1;  // why\n'


class Digest(unittest.TestCase):
    def of(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for room in gpu_ledger.ROOMS:
                (pathlib.Path(folder) / room).mkdir(parents=True)
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return gpu_ledger.digest(folder)

    def test_is_of_the_code_and_not_of_where_it_lies(self):
        digest = self.of({"src/ops/x.cpp": CODE})
        moved = '#include "ops/b.hpp"\n#include "ops/two/a.hpp"\nint x =  1; /* another */\n'
        self.assertEqual(self.of({"src/ops/deep/y.cpp": moved}), digest)
        for other in (CODE.replace("1", "2"), CODE.replace("a.hpp", "c.hpp"), CODE + 'auto s = "// no comment";\n'):
            self.assertNotEqual(self.of({"src/ops/x.cpp": other}), digest, other)
        self.assertNotEqual(self.of({"src/check/x.cpp": CODE}), digest)
        self.assertNotEqual(self.of({"src/ops/x.cpp": CODE, "src/ops/z.cpp": CODE}), digest)


class Ledger(unittest.TestCase):
    def test_the_last_row_is_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.md"
            path.write_text(f"# L\n\n{gpu_ledger.HEADER}\n| --- | --- | --- | --- | --- |\n\nend\n", encoding="utf-8")
            says = lambda digest: gpu_ledger.verdict(path.read_text(encoding="utf-8").splitlines(), digest)  # noqa: E731
            self.assertIn("WARNING", says("aa"))
            gpu_ledger.append(path, gpu_ledger.Row("2026-01-01", "G", "all", True, "aa"))
            self.assertNotIn("WARNING", says("aa"))
            self.assertIn("aa and are bb", says("bb"))
            gpu_ledger.append(path, gpu_ledger.Row("2026-01-02", "G", "1 failed", False, "bb"))
            self.assertIn("1 failed", says("bb"))
            self.assertIn("WARNING", says("aa"))
            self.assertTrue(path.read_text(encoding="utf-8").endswith("\n\nend\n"))


class Wanted(unittest.TestCase):
    def missing(self, *told):
        ladder = Ladder("e", {"r": ["fp32", "bf16"]}, ("dtype", ["fp32", "bf16"]), ("pass", ["forward", "backward"]), [])
        attempts = [{"impl": "r", "params": {"dtype": dtype, "pass": one}, "status": status, "detail": why, "experiment": "e"}
                    for dtype, one, status, why in told]
        return Outcomes(ladder, attempts).missing()

    def test_every_dtype_of_every_pass(self):
        forward = [("fp32", "forward", "ok", ""), ("bf16", "forward", "ok", "")]
        self.assertEqual(self.missing(*forward, ("fp32", "backward", "ok", ""), ("bf16", "backward", "skipped", "no")),
                         ["r backward: bf16"])
        self.assertEqual(self.missing(*forward), ["r backward: bf16, fp32"])
        refused = [("fp32", "backward", "unsupported", "none"), ("bf16", "backward", "unsupported", "none")]
        self.assertEqual(self.missing(*forward, *refused), [])
        self.assertEqual(self.missing(*forward, refused[0], ("bf16", "backward", "crashed", "none")), ["r backward: bf16, fp32"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
