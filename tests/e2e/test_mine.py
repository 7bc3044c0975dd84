"""Somebody's Python class from the command line: right, wrong, and in every way broken."""
import json
import os
import shutil
import struct
import subprocess
import unittest

from lab import RIGHT, Lab, attempts

MINE = os.environ["SYSLAB_MINE"]
SMALL = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "--impl", "me", "--laws", "none",
         "--protocol", "quick")


class Mine(Lab):
    checked: dict = {}  # verdicts, by what was asked

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def case(self, spec, *arguments, expect, experiment="flash_forward"):
        lines = self.lines("run", experiment, *SMALL, "--mine", f"me={MINE}/{spec}", *arguments, expect=expect)
        ended = attempts(lines)
        self.assertEqual(len(ended), 1)
        return ended[0]

    def test_what_exits_while_it_is_loaded_fails_and_the_others_are_checked(self):
        exits = {"quits.so": ("exit(0)", 0), "leaves.so": ("_exit(3)", 3), "leaves.py:Naive": ("", 4)}
        (self.folder / "leaves.py").write_text("import os\nos._exit(4)\nclass Naive:\n    pass\n")
        for file, (call, code) in exits.items():
            with self.subTest(file):
                if call:
                    self.library(file, call)
                lines = self.lines("check", "flash_forward", "--cases", "2", "--mine", f"x={file}", "--mine", f"me={MINE}/plain.py:Naive", expect=1)
                ended = {name: [one for one in attempts(lines) if one["impl"] == name] for name in ("x", "me")}
                self.assertEqual({one["status"] for one in ended["x"]}, {"error"}, ended)
                self.assertIn("ok", {one["status"] for one in ended["me"]}, ended)
                self.assertLessEqual({one["status"] for one in ended["me"]}, {"ok", "unsupported"}, ended)
                self.assertEqual(len(ended["x"]), len(ended["me"]))
                self.assertRegex(ended["x"][0]["detail"], rf"loading '.*{file}' ended its process \(exit code {code}\); expected a file that loads without that")
                findings = self.sql("SELECT DISTINCT finding, promised FROM check_result WHERE outcome = 'error'")
                self.assertEqual(findings, [("crash", 1)])
                self.assertEqual(lines[-1]["verdict"], "FAIL")

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_a_library_that_needs_one_that_is_nowhere_is_told_what_to_do(self):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", "libneeded.so", "-"], input="int needed;", text=True, cwd=self.folder, check=True)
        self.library("mine.so", "", "-L.", "-Wl,--no-as-needed", "-lneeded")
        (self.folder / "libneeded.so").unlink()
        refused = self.syslab("check", "flash_forward", "--mine", f"me={self.folder / 'mine.so'}", "--cases", "1", expect=2)
        self.assertRegex(refused.stderr, "the loader refused '.*mine.so': libneeded.so: cannot open shared object file: No such file or "
                                         "directory; it needs libneeded.so, which cannot be loaded; name the folder in LD_LIBRARY_PATH, or build with -Wl,-rpath")

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_a_library_that_is_refused_for_another_reason_is_not_told_to_name_a_folder(self):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", "libneeded.so", "-"], input="int needed;", text=True, cwd=self.folder, check=True)
        self.library("mine.so", "extern int nowhere(void); nowhere()", "-L.", "-Wl,--no-as-needed", "-lneeded", "-Wl,-rpath,$ORIGIN")
        refused = self.syslab("check", "flash_forward", "--mine", f"me={self.folder / 'mine.so'}", "--cases", "1", expect=2)
        self.assertRegex(refused.stderr, "the loader refused '.*mine.so': .*undefined symbol: nowhere")
        self.assertNotIn("LD_LIBRARY_PATH", refused.stderr)

    def library(self, file, call, *options):
        """Exports all that is wanted; the call is made while it is loaded."""
        names = ("syslab_attention_forward", "syslab_attention_backward", "syslab_attention_workspace", "syslab_last_error", "syslab_plugin_abi")
        source = "\n".join(["#include <stdlib.h>", "#include <unistd.h>", f"__attribute__((constructor)) static void start(void) {{ {call}; }}",
                            *(f"int {name}(void) {{ return 1; }}" for name in names)])
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", file, "-", *options], input=source, text=True, cwd=self.folder, check=True)

    def test_a_numpy_class_is_checked_timed_and_stored(self):
        ended = self.case("plain.py:Naive", expect=RIGHT)
        self.assertEqual(ended["status"], "ok")
        rows = self.sql("SELECT value FROM v_latest WHERE implementation = 'me' AND metric = 'time'")
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0][0] is None, "no_time" in ended, ended)
        language, digest = self.sql("SELECT language, digest FROM implementation WHERE name = 'me'")[0]
        self.assertEqual(language, "Python")
        self.assertRegex(digest, "^[0-9a-f]{64}$")

    def test_a_torch_function_is_checked_in_both_directions(self):
        self.assertEqual(self.case("function.py:Flash", expect=RIGHT)["status"], "ok")
        self.assertEqual(self.case("function.py:Flash", expect=RIGHT, experiment="flash_backward")["status"], "ok")

    def test_a_mask_off_by_one_gets_no_time(self):
        self.assertEqual(self.case("plain.py:MaskOffByOne", expect=1)["status"], "check_failed")
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_a_class_without_a_backward_keeps_no_law_of_the_backward_pass(self):
        for spec in ("plain.py:ForwardOnly", "function.py:ForwardOnly"):
            lines = self.lines("check", "flash_backward", "--mine", f"me={MINE}/{spec}", "--cases", "3", expect=1)
            laws = {(law["params"]["contract"], law["law"]): law for law in attempts(lines)}
            refusal = laws.pop(("handout", "attention.refusal"))
            self.assertEqual(refusal["status"], "check_failed")
            self.assertIn("ForwardOnly has no backward", refusal["detail"])
            self.assertNotIn("ok", {law["status"] for law in laws.values()}, laws)
            self.assertEqual(lines[-1]["verdict"], "FAIL")
            self.assertEqual(lines[-1]["findings"], [])  # the same refusal is told once

    def check(self, spec, *arguments, experiments=("flash_forward", "flash_backward"), **options):
        """The verdict. A check of the full contract takes ten seconds, and is the same for all who ask for it."""
        asked = (spec, arguments, experiments)
        if asked not in self.checked:
            lines = self.lines("check", *experiments, "--mine", f"me={MINE}/{spec}", "--cases", "12", *arguments, **options)
            self.checked[asked] = lines[-1]
        return self.checked[asked]

    OF_THE_HANDOUT = ("--contract", "handout")

    def test_what_passes_the_official_tests_passes_check(self):
        for name, contract in (("Fp32Only", self.OF_THE_HANDOUT), ("NoDtypeHandling", self.OF_THE_HANDOUT), ("IgnoresCausal", ()),
                               ("RefusesCausal", ())):
            verdict = self.check(f"students.py:{name}", *contract, expect=0)
            self.assertEqual((verdict["verdict"], verdict["held"], verdict["of"]), ("PASS", 5, 5), name)

    def test_what_fails_the_official_tests_fails_check(self):
        for name in ("SavesTwo", "NoScale", "GradientUnscaled", "NoBackward"):
            verdict = self.check(f"students.py:{name}", *self.OF_THE_HANDOUT, expect=1)
            self.assertEqual(verdict["verdict"], "FAIL", name)

    def test_right_variants_are_accused_by_neither_contract(self):
        for name in ("HalfRoundedP", "SplitKeys", "FastExp"):
            verdict = self.check(f"students.py:{name}", expect=0)
            self.assertEqual((verdict["verdict"], verdict["findings"]), ("PASS", []), name)

    def test_what_ignores_the_mask_is_found_beyond_the_handout_unless_that_is_declared(self):
        verdict = self.check("students.py:IgnoresCausal", expect=0)
        self.assertTrue(any("top_left" in finding for finding in verdict["findings"]), verdict)
        verdict = self.check("students.py:IgnoresCausal", "-a", "causal=false", "-a", "dtype=fp32", expect=0)
        self.assertEqual(verdict["findings"], [])

    def test_a_declared_domain_is_not_left_and_its_refusals_are_one_finding(self):
        verdict = self.check("students.py:RefusesCausal", expect=0)
        self.assertEqual(verdict["findings"], [])
        verdict = self.check("students.py:RefusesCausal", "-a", "causal=true", expect=0)
        self.assertEqual([finding.split(":")[0] for finding in verdict["findings"]], ["attention.refusal"] * 1)

    def test_what_is_declared_wrongly_is_told_before_any_search(self):
        for axis, told in (("dtype=fp8", "-a dtype takes fp32, fp16 and bf16, not 'fp8'"), ("multipleof=3", "multiple_of")):
            refused = self.syslab("check", "flash_forward", "--mine", f"me={MINE}/students.py:Fp32Only", "-a", axis, expect=2)
            self.assertIn(told, refused.stderr)
        refused = self.syslab("check", "flash_forward", "--mine", f"me={MINE}/plain.py:probabilities", expect=2)
        self.assertIn("is a function", refused.stderr)
        self.assertFalse((self.folder / "syslab.db").exists())

    def test_what_could_not_be_tried_is_called_not_checked(self):
        if self.json("env")["environment"]["gpu"]:
            self.skipTest("this machine has what is to be missing")
        done = self.syslab("check", "flash_forward", "--mine", f"me={MINE}/plain.py:Naive", "--impl", "me", "--device", "cuda",
                           "--cases", "3", expect=3)
        self.assertTrue(done.stdout.endswith("hand-out 2026: NOT CHECKED (0 of 3), nothing tried beyond it\n"), done.stdout)
        self.assertRegex(done.stdout, "never tried: .* and [0-9]+ more laws: me needs a GPU")

    def test_a_library_for_a_gpu_is_opened_by_a_process_of_its_own_that_says_whether_there_is_one(self):
        if self.json("env")["environment"]["gpu"]:
            self.skipTest("this machine has what is to be missing")
        hello = json.dumps({"type": "hello", "protocol": 1, "host": "a test", "memory_fd": -1, "device": "cuda"}).encode()
        done = subprocess.run(self.command("judged", f"me={os.environ['SYSLAB_PLUGINS']}/hostile_crash.so", "cuda"),
                              input=struct.pack("<I", len(hello)) + hello, capture_output=True, timeout=60)
        said = json.loads(done.stdout[4:])
        self.assertEqual((done.returncode, said["kind"]), (1, "unsupported"))
        self.assertIn("needs a GPU", said["message"])

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
