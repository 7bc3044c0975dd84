#!/usr/bin/env python3
"""Patches of planted faults are read as written, planted where their lines stand exactly once, and refused in clear
words; what a test program prints is read right; and the page keeps no row of an older patch.

    mutants_test.py ROOT
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))
import mutant_patches as patches  # noqa: E402
import mutant_report as report  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("mutants", str(ROOT / "tools/mutants"))
SPEC = importlib.util.spec_from_loader("mutants", LOADER)
assert SPEC is not None
mutants: Any = importlib.util.module_from_spec(SPEC)
sys.dont_write_bytecode = True
LOADER.exec_module(mutants)

SOURCE = "int f(int n) {\n  if (n < 2) return 1;\n  return n;\n}\n\nint g(int n) {\n  return n;\n}\n"
HEAD = "Plants: f of two is wrong,\n  as of one\nKilled by: unit_f F.*:G.Two\n"
BODY = "--- a/src/f.cpp\n+++ b/src/f.cpp\n@@\n int f(int n) {\n-  if (n < 2) return 1;\n+  if (n <= 2) return 1;\n"


class Patches(unittest.TestCase):
    def refused(self, why, text, name="f_of_two"):
        with self.assertRaisesRegex(patches.BadPatch, why):
            patches.parse(name, text)

    def unfit(self, why, text, source=SOURCE):
        with self.assertRaisesRegex(patches.BadPatch, why):
            patches.apply(patches.parse("f_of_two", text), lambda file: source)

    def test_a_head_says_what_is_planted_and_what_kills_it(self):
        patch = patches.parse("f_of_two", HEAD + "Needs: gpu\nSurvives: nobody calls it\n" + BODY)
        self.assertEqual((patch.plants, patch.test, patch.cases),
                         ("f of two is wrong, as of one", "unit_f", "F.*:G.Two"))
        self.assertEqual((patch.gpu, patch.survives, patch.files), (True, "nobody calls it", ["src/f.cpp"]))
        self.assertFalse(patches.parse("f_of_two", HEAD + BODY).gpu)

    def test_a_head_says_which_laws_may_find_it(self):
        patch = patches.parse("f_of_two", HEAD + "Laws: laws_f *naive*\n" + BODY)
        self.assertEqual((patch.test, patch.laws_test, patch.laws_cases), ("unit_f", "laws_f", "*naive*"))
        self.assertEqual(patches.parse("f_of_two", HEAD + BODY).laws_test, "")

    def test_a_head_names_cases_that_there_are(self):
        tests = "TEST(F, One) {}\nTEST_P(G, Two) {}\nclass H:\n    def test_three(self):\n"
        for cases in ("F.One", "F.One:Both/G.Two/0", "H.test_three", "F.*", "*naive*:F*", ""):
            patches.require_cases([patches.parse("f", f"Plants: f\nKilled by: unit_f {cases}\n{BODY}")], tests)
        for cases in ("F.Two", "F.One:G.Tw", "Both/G.One/0", "H.test_thre"):
            with self.assertRaisesRegex(patches.BadPatch, "f: no test has the case '.*': 'Killed by' wants"):
                patches.require_cases([patches.parse("f", f"Plants: f\nKilled by: unit_f {cases}\n{BODY}")], tests)

    def test_a_hunk_is_planted_where_its_lines_stand(self):
        texts = patches.apply(patches.parse("f_of_two", HEAD + BODY), lambda file: SOURCE)
        self.assertEqual(texts, {"src/f.cpp": SOURCE.replace("n < 2", "n <= 2")})

    def test_hunks_of_one_file_are_planted_one_after_the_other(self):
        more = "@@\n int g(int n) {\n-  return n;\n+  return -n;\n"
        text = patches.apply(patches.parse("f_of_two", HEAD + BODY + more), lambda file: SOURCE)["src/f.cpp"]
        self.assertEqual(text,
                         SOURCE.replace("n < 2", "n <= 2").replace("g(int n) {\n  return n", "g(int n) {\n  return -n"))

    def test_blank_lines_may_have_lost_their_blank(self):
        body = "--- a/src/f.cpp\n+++ b/src/f.cpp\n@@\n }\n\n-int g(int n) {\n+int g(int m) {\n"
        self.assertIn("int g(int m)", patches.apply(patches.parse("f_of_two", HEAD + body),
                                                    lambda file: SOURCE)["src/f.cpp"])

    def test_lines_found_twice_or_never_are_refused(self):
        twice = "--- a/src/f.cpp\n+++ b/src/f.cpp\n@@\n-  return n;\n+  return -n;\n"
        self.unfit("begins with 'return n;' is found 2 times, exactly once is wanted; add lines", HEAD + twice)
        self.unfit("is not found, exactly once is wanted; the source has changed", HEAD + BODY,
                   SOURCE.replace("n < 2", "n < 3"))
        self.unfit("is not found", HEAD + BODY, SOURCE.replace("int f(", "  int f("))  # whole lines only
        self.unfit("there is no file src/f.cpp", HEAD + BODY, None)

    def test_wrong_heads_are_refused(self):
        self.refused("no 'Killed by:'", "Plants: it\n" + BODY)
        self.refused("no 'Plants:'", "Killed by: unit_f\n" + BODY)
        self.refused("the line 'Wants: gpu' in the head", HEAD + "Wants: gpu\n" + BODY)
        self.refused("'Plants' stands twice", HEAD + "Plants: more\n" + BODY)
        self.refused("'Needs: luck'", HEAD + "Needs: luck\n" + BODY)
        self.refused("a name of small letters", HEAD + BODY, "F-2")

    def test_wrong_bodies_are_refused(self):
        self.refused("no hunk", HEAD)
        self.refused("no hunk", HEAD + "--- a/src/f.cpp\n+++ b/src/f.cpp\n")
        self.refused("of the same file are wanted", HEAD + BODY.replace("b/src/f.cpp", "b/src/g.cpp"))
        self.refused("is in no hunk", HEAD + BODY.replace("@@\n", ""))
        self.refused("is in no hunk", HEAD + BODY + "what is this\n")
        self.refused("changes nothing", HEAD + BODY.replace("<=", "<"))
        self.refused("no line that stays or goes", HEAD + "--- a/src/f.cpp\n+++ b/src/f.cpp\n@@\n+int h;\n")

    def test_unknown_names_are_refused_and_what_is_near_is_named(self):
        both = [patches.parse(name, HEAD + BODY) for name in ("f_of_two", "g")]
        self.assertEqual([one.name for one in patches.choose(both, ["g", "f_of_two", "g"])], ["g", "f_of_two"])
        with self.assertRaisesRegex(patches.BadPatch, "no patch 'f_of' in tests/mutants; near it: f_of_two"):
            patches.choose(both, ["f_of"])

    def test_what_wants_the_whole_program_is_told_by_its_test(self):
        of_program = HEAD.replace("unit_f F.*:G.Two", "e2e_f F.test_two")
        self.assertTrue(mutants.end_to_end(patches.parse("f", of_program + BODY)))
        self.assertFalse(mutants.end_to_end(patches.parse("f", HEAD + BODY)))

    def test_ten_tenths_are_all_of_them(self):
        for count in (3, 10, 67):
            self.assertEqual(sum((patches.tenth(list(range(count)), n) for n in range(10)), []), list(range(count)))

    def test_another_fault_is_first_each_time_that_its_tenth_comes(self):
        three = [patches.parse(name, HEAD + BODY) for name in "bca"]
        orders = ["".join(one.name for one in mutants.order(three, day)) for day in (0, 9, 10, 20, 30)]
        self.assertEqual(orders, ["abc", "abc", "bca", "cab", "abc"])
        self.assertEqual(mutants.order([], 10), [])

    def test_no_fault_is_begun_once_the_time_is_over(self):
        three = [patches.parse(name, HEAD + BODY) for name in "abc"]
        with mock.patch.object(mutants, "baseline"), mock.patch.object(mutants.time, "monotonic",
                                                                       side_effect=range(0, 1000, 10)), \
                mock.patch.object(mutants, "try_one", return_value=report.Outcome("killed", "")):
            build = mock.Mock(tests={"unit_f"}, make=lambda tests: (True, ""))
            self.assertEqual(list(mutants.run_all(build, three, lambda some: None, seconds=27.5)), ["a", "b"],
                             "twice as many of the clock")
            self.assertEqual(list(mutants.run_all(build, three, lambda some: None)), ["a", "b", "c"])
            with mock.patch.object(mutants, "processor_seconds", side_effect=(100, 120, 155, 156)):
                self.assertEqual(list(mutants.run_all(build, three, lambda some: None, seconds=55)), ["a", "b"],
                                 "of a processor")


class Interrupts(unittest.TestCase):
    def test_what_is_started_in_the_background_heeds_them(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        kills_itself = ["sh", "-c", "kill -INT $$"]
        self.assertEqual(subprocess.run(kills_itself, check=False).returncode, 0)
        mutants.heed_interrupts()
        self.assertEqual(subprocess.run(kills_itself, check=False).returncode, -signal.SIGINT)

    def test_who_is_ended_while_it_builds_ends_ninja_in_good_order(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number), tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                # More than a pipe holds, so that it has begun only when what it says is read.
                (folder / "ninja").write_text("#!/bin/sh\ntrap 'echo >told; exit 1' TERM\nhead -c 200000 /dev/zero | "
                                              "tr '\\0' x\necho >begun\nfor _ in $(seq 400); do sleep 0.05; done\n")
                (folder / "ninja").chmod(0o755)
                builds = textwrap.dedent(f"""
                    import importlib.machinery, importlib.util, pathlib, sys
                    sys.dont_write_bytecode = True
                    loader = importlib.machinery.SourceFileLoader("mutants", {str(ROOT / "tools/mutants")!r})
                    mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
                    loader.exec_module(mutants)
                    mutants.heed_interrupts()
                    build = mutants.Build.__new__(mutants.Build)
                    build.folder, build.files_of = pathlib.Path({name!r}), lambda tests: []
                    build.make([])
                    """)
                process = subprocess.Popen([sys.executable, "-c", builds], cwd=folder, stderr=subprocess.DEVNULL,
                                           preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
                                           env={**os.environ, "PATH": f"{name}:{os.environ['PATH']}"})
                while not (folder / "begun").exists():
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                process.send_signal(number)
                self.assertNotEqual(process.wait(60), 0)
                self.assertTrue((folder / "told").exists())


class Outcomes(unittest.TestCase):
    RUN = "[==========] Running 2 tests\n[ RUN      ] F.One\n[       OK ] F.One (0 ms)\n[ RUN      ] F/G.Two/3\n"

    def test_what_googletest_prints(self):
        failed = self.RUN + "[  FAILED  ] F/G.Two/3, where GetParam() = 4 (1 ms)\n[  FAILED  ] 1 test, listed below:\n"
        self.assertEqual(mutants.outcome_of(0, self.RUN), ("passed", []))
        self.assertEqual(mutants.outcome_of(1, failed), ("failed", ["F/G.Two/3"]))
        self.assertEqual(mutants.outcome_of(-11, self.RUN), ("crashed", ["F/G.Two/3"]))
        self.assertEqual(mutants.outcome_of(77, "no GPU\n"), ("skipped", []))
        self.assertEqual(mutants.outcome_of(0, "[==========] Running 0 tests\n"), ("no case", []))

    def test_which_laws_found_it(self):
        said = "f.is_even: even of even\nfalsified after 3 cases: 1\ng.is_odd: odd\npassed after 9 cases: \n"
        self.assertEqual(mutants.laws_found(said, ["Ladder/Law.Holds/naive_is_even_full"]), ["f.is_even"])
        cases = ["All/Laws.Add/fp32", "Laws.Add", "Laws.Cut"]  # laws that are test cases
        self.assertEqual(mutants.laws_found("", cases), ["Laws.Add", "Laws.Cut"])
        self.assertEqual(mutants.laws_found("", []), [])

    def test_laws_are_searched_once_the_named_test_has_killed(self):
        patch = patches.parse("f", HEAD + "Laws: laws_f *naive*\n" + BODY)
        build = mock.Mock(output="f.is_even: even\nfalsified after 3 cases: 1\n", make=lambda tests: (True, ""),
                          run=mock.Mock(return_value=("failed", ["L.A"])))
        with mock.patch.object(mutants.mutant_patches, "apply", return_value={}):
            self.assertEqual(mutants.try_one(build, patch, laws=True).laws, ["f.is_even"])
            self.assertEqual([call.args[0] for call in build.run.call_args_list], ["unit_f", "laws_f"])
            self.assertIsNone(mutants.try_one(build, patch).laws)
            build.run.side_effect = [("failed", ["L.A"]), ("timed out", [])]
            self.assertIsNone(mutants.try_one(build, patch, laws=True).laws)
            build.run.reset_mock(side_effect=True)
            build.run.return_value = ("failed", ["L.A"])
            same = patches.parse("f", HEAD + "Laws: unit_f F.*:G.Two\n" + BODY)  # nothing is run twice
            self.assertEqual(mutants.try_one(build, same, laws=True).laws, ["f.is_even"])
            self.assertEqual(build.run.call_count, 1)

    def test_what_pythons_unittest_prints(self):
        said = ("FAIL: test_one (__main__.F.test_one)\n----\nERROR: test_two (__main__.F)\n----\nFAILED (failures=1, "
                "errors=1)\n")
        self.assertEqual(mutants.outcome_of(1, said), ("failed", ["F.test_one", "F.test_two"]))
        self.assertEqual(mutants.outcome_of(0, "Ran 2 tests in 0.1s\n\nOK\n"), ("passed", []))
        self.assertTrue(mutants.is_python(["/usr/bin/python3", "tests/e2e/test_f.py"]))
        self.assertFalse(mutants.is_python(["build/tests/f/unit_f", "--flag"]))

    def test_only_what_the_head_says_is_right(self):
        killed, survivor = patches.parse("f", HEAD + BODY), patches.parse("g", HEAD + "Survives: so\n" + BODY)
        wrong = lambda patch, status: bool(report.wrong(patch, report.Outcome(status, "unit_f")))  # noqa: E731
        self.assertEqual([wrong(killed, "killed"), wrong(survivor, "survived")], [False, False])
        for patch, status in ((killed, "survived"), (survivor, "killed"), (killed, "killed by another"),
                              (killed, "timed out"),
                              (survivor, "does not compile")):
            self.assertTrue(wrong(patch, status), status)

    def test_the_page_keeps_rows_until_their_patch_changes(self):
        patch, other = patches.parse("f", HEAD + BODY), patches.parse("g", HEAD + BODY)
        first = report.page([patch, other], {"f": report.Outcome("killed", "unit_f: F.One"),
                                             "g": report.Outcome("survived", "")}, {}, [])
        self.assertIn("| killed | unit_f: F.One |", first)
        self.assertIn("- `g`: no reason given", first)
        again = report.page([patch, other], {}, report.read_rows(first),
                            [("gemm", "dropped_tail", "gemm.equals_oracle")])
        self.assertIn("| killed | unit_f: F.One |", again)
        self.assertIn("| gemm | `dropped_tail` | `gemm.equals_oracle` |", again)
        self.assertEqual(patches.parse("f", HEAD.replace("F.*", "F.One") + BODY).digest, patch.digest)
        changed = patches.parse("f", HEAD + BODY.replace("<=", "<= 1 +"))
        self.assertIn("| not run yet |", report.page([changed], {}, report.read_rows(first), []))

    def test_the_page_of_results_is_where_the_tool_reads_it(self):
        all_of_them = patches.load_all(ROOT)
        self.assertGreater(len(report.settled(all_of_them, report.earlier_rows(ROOT))), len(all_of_them) // 2)

    def test_the_page_keeps_which_laws_found_a_fault_until_its_patch_changes(self):
        laws = lambda body: patches.parse("f", HEAD + "Laws: laws_f\n" + body)  # noqa: E731
        found = report.Outcome("killed", "unit_f: F.One", laws=["f.is_even", "f.is_odd"])
        first = report.page([laws(BODY)], {"f": found}, {}, [])
        row = "| `f` | laws_f | `f.is_even`, `f.is_odd` |"
        self.assertIn(row, first)
        self.assertIn("| `f.is_odd` | 1 |", first)
        # Also after a run that did not look for laws.
        again = report.page([laws(BODY)], {"f": report.Outcome("killed", "")}, report.read_rows(first), [],
                            report.read_laws(first))
        self.assertIn(row, again)
        changed = report.page([laws(BODY.replace("<=", "<= 1 +"))], {}, report.read_rows(first), [],
                              report.read_laws(first))
        self.assertNotIn("laws_f", changed)

    def test_settled_is_what_came_out_as_its_head_says_and_has_not_changed(self):
        names = ("killed", "lived", "hung", "new", "changed")
        all_of_them = [patches.parse(name, HEAD + BODY) for name in names]
        rows = {name: (result, "", all_of_them[0].digest) for name, result in
                (("killed", "killed"), ("lived", "survived"), ("hung", "timed out"), ("changed", "killed"))}
        rows["changed"] = ("killed", "", "0000000")
        self.assertEqual([patch.name for patch in report.settled(all_of_them, rows)], ["killed"])
        explained = patches.parse("lived", HEAD + "Survives: so\n" + BODY)
        self.assertEqual(report.settled([explained], rows), [explained])


class Ours(unittest.TestCase):
    def test_every_patch_fits_the_sources(self):
        all_of_them = patches.load_all(ROOT)
        self.assertGreaterEqual(len(all_of_them), 60)
        for patch in all_of_them:
            patches.apply(patch, mutants.read_source)

    def test_the_faults_in_code_are_found(self):
        self.assertIn(("gemm", "dropped_tail", "gemm.equals_oracle"), report.twins(ROOT))


if __name__ == "__main__":
    unittest.main()
