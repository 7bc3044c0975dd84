"""A symbol of somebody's library against its reference, by a manifest: right, wrong, and what it may not do."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from lab import RIGHT, Lab, attempts

FILES = pathlib.Path(os.environ["SYSLAB_FUNCTIONS"])


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class Symbols(Lab):
    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp(prefix="syslab_symbols_"))
        cls.addClassCleanup(shutil.rmtree, cls.built, ignore_errors=True)
        cls.plugin = cls.built / "symbols.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", cls.plugin, FILES / "symbols.c", "-lm"], check=True)
        for name in ("symbols.json", "symbols.py"):
            shutil.copy(FILES / name, cls.built)
        cls.manifest = cls.built / "symbols.json"

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def of_each(self, names, *arguments, expect, manifest=None):
        mine = [word for name in names for word in ("--mine", f"{name}={self.plugin}:{name}")]
        ended = attempts(self.lines("check", *mine, "--inputs", manifest or self.manifest, "--impl", ",".join(names), *arguments, expect=expect))
        return {(one["impl"], one["params"]["n"]): one for one in ended}

    def manifest_with(self, name="other.json", **changes):
        path = self.built / name
        path.write_text(json.dumps({**json.loads(self.manifest.read_text()), **changes}))
        return path

    def test_one_flag_beside_mine_is_enough_and_the_run_is_stored_as_any_other(self):
        ended = attempts(self.lines("run", "--mine", f"me={self.plugin}:softmax", "--inputs", self.manifest, "--protocol", "quick", expect=RIGHT))
        self.assertEqual([one["status"] for one in ended], 4 * ["ok"])
        found = self.sql("SELECT implementation, params ->> '$.n' FROM v_latest WHERE experiment = 'function' AND metric = 'time' ORDER BY 1, 2")
        self.assertEqual(found, [("me", 24), ("me", 40), ("reference", 24), ("reference", 40)])
        self.assertEqual(self.sql("SELECT DISTINCT language FROM implementation ORDER BY 1"), [("C",), ("Python",)])
        self.assertEqual(self.sql("SELECT DISTINCT facts ->> '$.reference_in' FROM v_attempt"), [("float64",)])
        # Its own files are found again by the run alone. Where handing over takes long, its calls are too short to time.
        self.syslab("pin", "base", "latest")
        self.assertRegex(self.refused("gate", "--against", "base"), "fewer than 3 launches|holds no time of 4 cases")

    def test_wrong_ones_are_told_with_the_case_and_the_others_go_on(self):
        ended = self.of_each(("softmax", "half_done", "too_far", "too_far_once", "too_early", "in_place", "small_only", "dies"), expect=1)
        for name, cases, said in (("too_far_once", (24,), "wrote behind the end of its output 'y'"), ("too_early", (24, 40), "wrote before the beginning of its output 'y'")):
            for n in cases:
                self.assertEqual(ended[name, n]["status"], "check_failed")
                self.assertIn(said, ended.pop((name, n))["detail"])
        ended.pop(("too_far_once", 40))  # the process lives on, and knows that it was called
        statuses = {key: one["status"] for key, one in ended.items()}
        self.assertEqual(statuses, {("softmax", 24): "ok", ("softmax", 40): "ok", ("half_done", 24): "check_failed",
                                    ("half_done", 40): "check_failed", ("too_far", 24): "check_failed", ("too_far", 40): "check_failed",
                                    ("in_place", 24): "check_failed", ("in_place", 40): "check_failed", ("small_only", 24): "ok",
                                    ("small_only", 40): "error", ("dies", 24): "ok", ("dies", 40): "error"})
        self.assertIn("wrote behind the end of its output 'y'", ended["too_far", 24]["detail"])
        self.assertIn("changed its input 'x'", ended["in_place", 24]["detail"])
        self.assertIn("small_only returned 7", ended["small_only", 40]["detail"])

    def test_without_a_gpu_its_cases_there_say_so(self):
        if self.json("env")["environment"]["gpu"]:
            self.skipTest("there is a GPU")
        ended = self.of_each(("softmax",), "--device", "cuda", expect=3)
        self.assertEqual([one["status"] for one in ended.values()], 2 * ["skipped"])
        mine = ("--mine", f"me={self.plugin}:softmax", "--inputs", self.manifest, "--impl", "me", "--device", "cuda")
        self.assertIn("me: nothing was checked: all its 2 cases were skipped or unsupported", self.syslab("check", *mine, expect=3).stderr)
        self.assertIn("me: nothing was checked: its only case was skipped or unsupported", self.syslab("check", *mine, "-a", "n=24", expect=3).stderr)
        self.assertIn("softmax needs a GPU", ended["softmax", 24]["detail"])
        said = self.syslab("compare", "--mine", f"me={self.plugin}:softmax", "--inputs", self.manifest, "--device", "cuda", "-a", "n=24", expect=5)
        self.assertIn("me is skipped: me needs a GPU", said.stdout)

    def test_a_symbol_is_a_reference_in_its_own_dtype(self):
        manifest = self.manifest_with(reference=f"{self.plugin}:backwards")
        ended = self.of_each(("softmax", "half_done"), "-a", "n=24", expect=1, manifest=manifest)
        self.assertEqual([one["status"] for one in ended.values()], ["ok", "check_failed"])
        self.assertEqual(self.sql("SELECT DISTINCT facts ->> '$.reference_in' FROM v_attempt WHERE status = 'ok'"), [("its own",)])

    def test_what_is_wrong_with_a_manifest_is_said_before_anything_runs(self):
        whole = json.loads(self.manifest.read_text())["arguments"]
        for changes, said in (({"arguments": whole[:1]}, "no argument is an output"),
                              ({"arguments": [{**whole[0], "shape": ["m"]}, *whole[1:]]}, "'m' is no expression of numbers and axes (n)"),
                              ({"arguments": [{**whole[0], "shape": ["n.__class__"]}, *whole[1:]]}, "is no expression"),
                              ({"arguments": [{**whole[0], "dtype": "float33"}, *whole[1:]]}, "a pointer has a dtype"),
                              ({"returns": "double"}, "'returns' is void or status"),
                              ({"argument": []}, "has 'argument'"),
                              ({"reference": 1}, 'names no "reference"')):
            with self.subTest(said):
                manifest = self.manifest_with("wrong.json", **changes)
                refused = self.syslab("run", "--mine", f"me={self.plugin}:softmax", "--inputs", manifest, expect=2).stderr
                self.assertIn(said, refused)
        refused = self.syslab("run", "--mine", f"me={self.plugin}:sofmax", "--inputs", self.manifest, expect=2).stderr
        self.assertIn("exports no 'sofmax'", refused)
        self.assertIn("--inputs manifest.json", self.syslab("run", "--mine", f"me={self.plugin}:softmax", expect=2).stderr)
        self.assertFalse(self.db.exists())

    def test_a_manifest_that_is_no_object_is_refused_with_the_place_of_its_fault(self):
        whole = self.manifest.read_bytes()
        line = whole.count(b"\n", 0, whole.index(b'"n"')) + 1
        for content, said in ((whole.replace(b"24", b"NaN", 1), "invalid literal"), (whole[:40], "no JSON from line "), (b"", "empty; expected a JSON object"),
                              (b"[]", "a list; expected a JSON object"), (whole.replace(b"[", 100_000 * b"[", 1), "nested 1000"),
                              (whole.replace(b"symbols", b"symb\xe4ls", 1), "not UTF-8 (byte 0xe4 in line "),
                              (whole.replace(b'"n"', b'"n": [7], "n"', 1), "has the key 'n' twice; expected each key once"),
                              (whole.replace(b"24", b"1e999", 1), f"the number 1e999 (line {line}, column ")):
            path = self.folder / "broken.json"
            path.write_bytes(content)
            for more in ((), ("--reference", f"{self.built}/symbols.py:reference")):
                with self.subTest(said, more=more):
                    refused = self.syslab("run", "--mine", f"me={self.plugin}:softmax", "--inputs", path, *more, expect=2).stderr
                    self.assertIn("broken.json: the manifest is ", refused)
                    self.assertIn(said, refused)
        missing = self.syslab("run", "--mine", f"me={self.plugin}:softmax", "--inputs", "missing.json", expect=2).stderr
        self.assertIn("No such file", missing)

    def test_axes_and_expressions_that_cannot_be_are_named(self):
        whole = json.loads(self.manifest.read_text())["arguments"]
        for changes, said in (({"axes": {"n": [True]}}, "sizes are whole numbers from 0 on, and an axis that is a size has such values"),
                              ({"axes": {"n": [[24]]}}, "axis 'n' has the value [24]; expected finite numbers, texts, true or false"),
                              ({"axes": {"n": [None]}}, "axis 'n' has the value null; expected"),
                              ({"axes": [True]}, "'axes' is an object of lists"),
                              ({"rtol": -1}, "'rtol' is -1; expected a finite number of at least 0"),
                              ({"rtol": True}, "'rtol' is True; expected"),
                              ({"terms": "n - 100"}, "; expected a whole number from 1 to 2^53"),
                              ({"terms": "n" + "+n" * 20_000}, "is an expression of 40001 characters; expected at most 1000"),
                              ({"terms": "(" * 300 + "n" + ")" * 300}, "wrong.json, 'terms': '((("),
                              ({"terms": "9999999999*" * 90 + "9"}, "is a number of 2993 bits; expected at most 1024")):
            with self.subTest(said):
                manifest = self.manifest_with("wrong.json", arguments=whole, **changes)
                refused = self.syslab("run", "--mine", f"me={self.plugin}:softmax", "--inputs", manifest, expect=2).stderr
                self.assertIn(said, refused)
                self.assertNotIn("Error", refused)

    def test_a_number_that_c_would_not_take_as_it_is_is_refused(self):
        whole = json.loads(self.manifest.read_text())["arguments"]
        axes = {"n": [24], "mode": ["fast"]}
        for kind, value, said in (("int64", "n / 16", "is 1.5, which is no int64"), ("int32", "n * 200000000", "is 4800000000, which is no int32"),
                                  ("size_t", "n - 25", "is -1, which is no size_t"), ("uint32", -1, "is -1, which is no uint32"),
                                  ("bool", 2, "is 2, which is no bool"), ("float32", "n * 1e300", "which is no float32"),
                                  ("int32", "mode", "is 'fast', which is no int32"), ("float64", "mode", "is 'fast', which is no float64"),
                                  ("int32", "mode * mode", "argument 'n': 'mode * mode'")):
            with self.subTest(kind=kind, value=value):
                changed = [*whole[:3], {"name": "n", "type": kind, "value": value}, whole[4]]
                manifest = self.manifest_with("numbers.json", axes=axes, arguments=changed)
                refused = self.syslab("run", "--mine", f"me={self.plugin}:softmax", "--inputs", manifest, expect=2).stderr
                self.assertIn(said, refused)
                self.assertIn("argument 'n'", refused)
        changed = [*whole[:3], {"name": "n", "type": "int64", "value": "n / 2 * 2"}, whole[4]]
        ended = self.of_each(("softmax",), expect=0, manifest=self.manifest_with("halves.json", arguments=changed))
        self.assertEqual({one["status"] for one in ended.values()}, {"ok"})


if __name__ == "__main__":
    unittest.main()
