"""Any function against its reference: right, wrong, and everything that it may not do, one line each."""
import os
import re
import unittest

from lab import Lab, asked_again, attempts

FILES = os.environ["SYSLAB_FUNCTIONS"]
SOFTMAX, SUMS, CANCELS, TIES, UNJUDGED, CONTAINERS, DECLARED, LENGTHS = (
    f"{FILES}/{name}.py" for name in ("softmax", "sums", "cancels", "ties", "unjudged", "containers", "declared", "lengths"))


class Functions(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def files(self, name, file=SOFTMAX, inputs="cases"):
        file = self.with_longer_calls(file) if name in ("lasting", "tires") else file
        mine = ("--mine", f"me={file}:{name}") if name else ()
        reference = "lasting_reference" if name in ("lasting", "tires") else "reference"
        return (*mine, "--reference", f"{file}:{reference}", "--inputs", f"{file}:{inputs}")

    def of_me(self, name, *arguments, expect, file=SOFTMAX):
        """The attempts of `me`, which the check runs."""
        lines = self.lines("check", "function", "--impl", "me", *self.files(name, file), *arguments, expect=expect)
        return attempts(lines)

    @asked_again
    def test_a_right_function_and_its_reference_are_checked_timed_and_stored(self):
        ended = attempts(self.lines("run", *self.files("lasting"), "--protocol", "quick", expect=0))
        self.assertEqual([one["status"] for one in ended], 4 * ["ok"])
        found = self.sql("SELECT implementation, params ->> '$.n', params ->> '$.dtype', value FROM v_latest"
                         " WHERE experiment = 'function' AND metric = 'time' ORDER BY 1, 2")
        self.assertEqual([row[:3] for row in found], [("me", 24, "float32"), ("me", 40, "bfloat16"), ("reference", 24, "float32"),
                                                      ("reference", 40, "bfloat16")])
        self.assertTrue(all(row[3] > 0 for row in found))
        table = self.table("function", "function")
        self.assertEqual(len(table["rows"]), 4)

    def test_two_flags_are_enough_where_the_references_file_has_cases(self):
        ended = attempts(self.lines("check", "--mine", f"me={SOFTMAX}:fast", "--reference", f"{SOFTMAX}:reference", expect=0))
        self.assertEqual(len(ended), 4)

    def test_axes_of_the_file_choose_cases(self):
        ended = self.of_me("mine", "-a", "n=33", file=SUMS, expect=0)
        self.assertEqual([one["params"]["n"] for one in ended], [33])
        refused = self.refused("run", *self.files("mine", SUMS), "-a", "n=25")
        self.assertIn("unknown value '25' of axis 'n' of function", refused)

    def test_numpy_several_outputs_integers_and_declared_bounds(self):
        self.assertEqual([one["status"] for one in self.of_me("mine", file=SUMS, expect=0)], ["ok", "ok"])
        bounds = self.sql("SELECT DISTINCT facts ->> '$.bound', facts ->> '$.reference_in' FROM v_attempt"
                          " WHERE experiment = 'function' ORDER BY 1")
        self.assertEqual(bounds, [("declared", "float64"), ("derived", "float64")])
        wrong = self.of_me("off_by_one", file=SUMS, expect=1)
        self.assertEqual([one["status"] for one in wrong], ["check_failed", "check_failed"])
        self.assertIn("largest", wrong[0]["detail"])

    def test_of_integers_that_tie_any_is_right_and_no_other(self):
        for reference, inputs, functions in (("first", "cases", {"last": "ok", "beside": "check_failed"}),
                                             ("stable", "cases", {"from_the_end": "ok", "one_twice": "check_failed"}),
                                             ("of_scores", "cases_of_scores", {"of_scores_in_parts": "ok", "of_shifted_scores": "check_failed"})):
            with self.subTest(reference):
                mine = [word for name in functions for word in ("--mine", f"{name}={TIES}:{name}")]
                lines = self.lines("check", *mine, "--reference", f"{TIES}:{reference}", "--inputs", f"{TIES}:{inputs}", "--impl",
                                   ",".join(functions), expect=1)
                self.assertEqual({one["impl"]: one["status"] for one in attempts(lines)}, functions)
                for one in attempts(lines):  # the reader is told that a right one has other integers
                    if one["status"] == "ok":
                        (told,) = one["warnings"]
                        self.assertEqual(told["code"], "ties_differ")
                        self.assertTrue(0 < told["number"] <= 1, told)

    def test_results_whose_length_depends_on_content_are_compared(self):
        wrong = {"one_counted_elsewhere": r"counts\[0\]: found \d+, expected \d+ ± 0", "one_value_off": r"values\[2\]: found 2\.0002.*, expected 2 ±",
                 "one_kind_left_out": r"'counts' has shape \(2,\), expected \(3,\)"}
        names = ["kinds_by_sorting", *wrong]
        mine = [word for name in names for word in ("--mine", f"{name}={LENGTHS}:{name}")]
        lines = self.lines("check", *mine, "--reference", f"{LENGTHS}:kinds", "--inputs", f"{LENGTHS}:cases", "--impl", ",".join(names), expect=1)
        ended = {one["impl"]: one for one in attempts(lines)}
        self.assertEqual({name: one["status"] for name, one in ended.items()}, {"kinds_by_sorting": "ok", **dict.fromkeys(wrong, "check_failed")})
        for name, said in wrong.items():
            self.assertRegex(ended[name]["detail"], said)
            self.assertEqual("integers must then match exactly" in ended[name]["detail"], name != "one_kind_left_out")
        bounds = self.sql("SELECT DISTINCT facts ->> '$.bound' FROM v_attempt WHERE implementation = 'kinds_by_sorting'")
        self.assertEqual(bounds, [("rounding",)])

    def test_a_reference_whose_shapes_change_with_the_seed_is_told_and_not_the_function(self):
        (one,) = attempts(self.lines("check", "--mine", f"me={LENGTHS}:kinds_by_sorting", "--reference", f"{LENGTHS}:kinds", "--inputs",
                                     f"{LENGTHS}:cases_of_any_length", "--impl", "me", expect=3))
        self.assertEqual(one["status"], "error")
        self.assertRegex(one["detail"], r"case 'some': the reference returns '(values|counts)' of shape \(\d+,\) for these arguments and of shape "
                                        r"\(\d+,\) for the first ones; .* \(while syslab works out what is expected\)")

    def test_the_references_own_choice_of_integers_that_tie_is_told_of_nothing(self):
        (same,) = attempts(self.lines("check", "--mine", f"me={TIES}:first", "--reference", f"{TIES}:first", "--impl", "me", expect=0))
        self.assertNotIn("warnings", same)

    def of_each(self, names, *arguments, expect, inputs="cases"):
        """The attempts of many functions, each under its own name, in one run."""
        mine = [word for name in names for word in ("--mine", f"{name}={SOFTMAX}:{name}")]
        ended = attempts(self.lines("check", *mine, *self.files("", inputs=inputs), "--impl", ",".join(names), *arguments, expect=expect))
        return {(one["impl"], one["params"]["n"]): one for one in ended}

    def test_a_function_and_its_reference_are_imported_once_a_run(self):
        ended = self.of_each(("tells", "mutates"), inputs="cases_that_tell", expect=1)
        processes = {key: re.search("(made_by|input 'x_of)_([0-9]+)", one["detail"])[2] for key, one in ended.items()}
        self.assertEqual(len(processes), 4)
        for name in ("tells", "mutates"):  # the former tells of itself, the latter of the reference's process
            self.assertEqual(processes[name, 24], processes[name, 40])

    def of_unjudged(self, reference, name, *arguments, inputs="cases", verb="check", expect):
        return self.lines(verb, "--mine", f"me={UNJUDGED}:{name}", "--reference", f"{UNJUDGED}:{reference}", "--inputs", f"{UNJUDGED}:{inputs}",
                          *arguments, expect=expect)

    def test_what_only_jumps_and_large_neighbours_let_pass_is_not_ok(self):
        for reference, name, inputs in (("rounded", "a_hundred_more", "cases"), ("power", "half_a_power", "wide_cases")):
            with self.subTest(name):
                lines = self.of_unjudged(reference, name, "--impl", "me", inputs=inputs, expect=5)
                one, = attempts(lines)
                self.assertEqual(one["status"], "unsupported")
                self.assertRegex(one["detail"], "^not judged: (49|50|51) % of the elements of 'out' .* as large as [0-9]")
                warning, = one["warnings"]
                self.assertEqual((warning["code"], warning["about"]), ("elements_unjudged", "out"))
                self.assertAlmostEqual(warning["number"], 0.5, delta=0.02)
                self.assertEqual([each["status"] for each in lines[-1]["concerns"]], ["unsupported"])
        self.assertEqual(self.sql("SELECT count(*) FROM v_latest WHERE metric = 'time' AND implementation = 'me'"), [(0,)])
        told = {(row["problem"].partition("@")[0], row["implementation"]): row["checked_percent"] for row in self.table("function", "function")["rows"]}
        self.assertEqual(sorted(problem for problem, name in told if name == "me"), ["power", "rounded"])
        for (_, name), judged in told.items():
            self.assertAlmostEqual(judged, 50 if name == "me" else 100, delta=2)
        compared, = [line for line in self.of_unjudged("rounded", "a_hundred_more", "--launches", "3", verb="compare", expect=5)
                     if line.get("type") == "comparison"]
        self.assertIn("not judged", compared["reason"])

    @asked_again
    def test_a_gate_has_no_verdict_on_what_is_not_judged(self):
        mine = self.folder / "mine.py"
        asked = ("--mine", f"me={mine}:power", "--reference", f"{UNJUDGED}:power", "--inputs", f"{UNJUDGED}:wide_cases", "--impl", "me")
        works = f"import time\nimport numpy as np\ndef power(x):\n    time.sleep({0.06 * self.longer})\n    y = np.exp(5 * x)\n"
        mine.write_text(f"{works}    return y\n", encoding="utf-8")
        self.lines("run", *asked, "--launches", "3", "--protocol", "quick", expect=0)
        mine.write_text(f"{works}    return np.where(x < 0, np.zeros_like(x), y)\n", encoding="utf-8")
        found = self.lines("gate", "--against", "latest", "--launches", "3", expect=5)
        self.assertTrue([one for one in found if "not judged" in one.get("reason", "")], found)

    @asked_again
    def test_a_gate_against_a_run_that_did_not_judge_says_what_is_missing(self):
        mine = self.folder / "mine.py"
        sleep = f"    time.sleep({0.06 * self.longer})\n"
        mine.write_text(f"import time\nimport numpy as np\ndef rounded(x):\n{sleep}    return np.round(x) + 100 * np.mod(x * 2, 2)\n"
                        f"def steady(x):\n{sleep}    return np.round(x)\n", encoding="utf-8")
        asked = (*(f"--mine={name}={mine}:{name}" for name in ("rounded", "steady")), "--reference", f"{UNJUDGED}:rounded", "--inputs",
                 f"{UNJUDGED}:cases", "--launches", "3", "--protocol", "quick", "--impl", "rounded")
        for more, expect in (((), 3), (("--impl", "steady"), 3)):
            with self.subTest(more):
                self.lines("run", *asked, *more, expect=5)
                found = self.lines("gate", "--against", "latest", "--launches", "3", "--delta", "900%", expect=expect)
                missing, = [one["case"] for one in found if one["type"] == "missing"]
                self.assertRegex(missing, "^function rounded .*: the pinned run has no time of it: launch 1 of 3: not judged: 50 % of the elements of 'out'")
                self.assertEqual([one["verdict"] for one in found if one["type"] == "comparison"], ["same"] if more else [])

    def test_a_few_unjudged_elements_are_a_warning_and_right_functions_have_none(self):
        lines = self.of_unjudged("is_three", "never_three", expect=0)
        me, reference = attempts(lines)
        self.assertEqual([me["status"], reference["status"]], ["ok", "ok"])
        self.assertEqual([each["code"] for each in me["warnings"]], ["elements_unjudged"])
        self.assertNotIn("warnings", reference)
        self.assertEqual([(each["code"], each["side"]) for each in lines[-1]["warnings"]], [("elements_unjudged", "me")])
        judged, = self.sql("SELECT min(fraction_checked) FROM v_properties WHERE implementation = 'me' AND property LIKE 'reference:%'")
        self.assertAlmostEqual(judged[0], 0.975, delta=0.005)
        told = {name: self.syslab("check", "--mine", f"me={UNJUDGED}:{name}", "--reference", f"{UNJUDGED}:is_three", "--impl", "me", expect=0).stderr
                for name in ("never_three", "is_three")}
        self.assertNotIn("not judged", told["is_three"])
        self.assertAlmostEqual(float(re.search("calls? compared, ([0-9.]+) % of the elements of 'out' not judged", told["never_three"]).group(1)), 2.5, delta=1)
        for reference, name, inputs in (("rounded", "rounded", "cases"), ("power", "by_doubling", "wide_cases")):
            lines = self.of_unjudged(reference, name, inputs=inputs, expect=0)
            self.assertEqual([(one["status"], one.get("warnings")) for one in attempts(lines)], 2 * [("ok", None)])

    def test_wrong_results_get_no_time(self):
        ended = self.of_each(("zeros", "nearly", "cached"), expect=1)
        statuses = {key: one["status"] for key, one in ended.items()}
        self.assertEqual(statuses, {("zeros", 24): "check_failed", ("zeros", 40): "check_failed", ("nearly", 24): "check_failed",
                                    ("nearly", 40): "ok", ("cached", 24): "check_failed", ("cached", 40): "check_failed"})
        self.assertEqual(self.sql("SELECT implementation FROM v_latest WHERE metric = 'time'"), [("nearly",)])

    def test_what_a_function_may_not_do_is_said_in_a_line_with_the_case(self):
        said = {"mutates": "the call changed its input 'x'",
                "view": "'out' is a view of an argument",
                "lazy": "'out' is a Lazy, expected a torch.Tensor or numpy.ndarray",
                "subclass": "'out' is a Late, expected",
                "flat": "'out' has shape (576,), expected (24, 24)",
                "double": "'out' is float64, expected float32",
                "noisy": "it draws random numbers of its own (the state of torch has moved)",
                "own_noise": "two calls with equal arguments differ: 'out'",
                "flags": "it changes torch.backends.cuda.matmul.allow_tf32 from False to True",
                "deterministic": "it changes torch.use_deterministic_algorithms from False to True",
                "flushes": "it changes torch.set_flush_denormal from False to True",
                "gradients": "it changes torch.set_grad_enabled from False to True",
                "inference": "it changes torch.inference_mode from False to True",
                "cudnn": "it changes torch.backends.cudnn.enabled from True to False",
                "sums_of_fp16": "it changes torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction from True to False",
                "autocast": "it changes torch.set_autocast_",
                "onednn": "it changes torch._C._set_mkldnn_enabled from True to False",
                "errors": "it changes numpy.seterrcall from None to",
                "rounds": "it changes fesetround from to nearest to upward",
                "traces": "it compiles at each call: with equal arguments it has TorchScript build another graph",
                "compiles": "it compiles at each call: with equal arguments it starts true again"}
        for (name, _), ended in self.of_each(said, "-a", "n=24", expect=1).items():
            with self.subTest(name):
                self.assertEqual(ended["status"], "check_failed")
                self.assertIn(said[name], ended["detail"])
                self.assertNotIn("\n", ended["detail"])
                self.assertEqual(ended["params"]["case"], "n=24 dtype=float32")

    def test_an_argument_is_the_same_after_the_call_in_all_that_its_caller_finds(self):
        said = {"swaps": "'xs.0': another object than before", "appends_late": "'xs': length from 2 to 3",
                "pops": "'d': keys from ['k', 'of'] to ['k']", "sets": "'d.k': from 3.0 to 5.0", "deep": "'d.of.2.more': length from 2 to 3",
                "unsqueezes": "'xs.0': shape from (16, 64) to (1, 16, 64)", "shapes": "'a': shape from (16, 64) to (64, 16)",
                "locks": "'a': writeable from True to False", "requires": "'xs.1': requires_grad from False to True"}
        mine = [word for name in ("right", *said) for word in ("--mine", f"{name}={CONTAINERS}:{name}")]
        lines = self.lines("check", *mine, "--reference", f"{CONTAINERS}:reference", "--inputs", f"{CONTAINERS}:cases", "--impl",
                           ",".join(("right", *said)), expect=1)
        ended = {one["impl"]: one for one in attempts(lines)}
        self.assertEqual({name: one["status"] for name, one in ended.items()}, {"right": "ok", **dict.fromkeys(said, "check_failed")})
        for name, what in said.items():
            self.assertIn(f"the call changed its argument {what}; whoever calls", ended[name]["detail"])

    def test_a_setting_that_one_case_changes_is_told_of_that_case_alone(self):
        for (name, n), ended in self.of_each(("flags_for_one", "flags_late"), expect=1).items():
            with self.subTest(f"{name} n={n}"):
                self.assertEqual(ended["status"], "check_failed" if n == 24 else "ok", ended["detail"])
                self.assertIn("it changes torch.backends.cudnn.benchmark from False to True" if n == 24 else "", ended["detail"])

    def test_a_setting_that_is_put_back_is_no_fault_nor_one_of_a_case_that_raised(self):
        ended = self.of_each(("keeps_settings", "flags_and_raises"), expect=3)
        self.assertEqual({key: one["status"] for key, one in ended.items()},
                         {("keeps_settings", 24): "ok", ("keeps_settings", 40): "ok", ("flags_and_raises", 24): "error",
                          ("flags_and_raises", 40): "ok"})

    def test_gradients_that_a_forward_call_turns_off_are_told_where_gradients_are_asked_for(self):
        ended = self.of_each(("gradients", "keeps_settings"), "--backward", "-a", "pass=backward", "-a", "n=24", expect=1)
        self.assertEqual(ended["keeps_settings", 24]["status"], "ok", ended["keeps_settings", 24]["detail"])
        self.assertIn("it changes torch.set_grad_enabled from True to False", ended["gradients", 24]["detail"])

    def test_modules_and_slow_first_calls_are_right_and_one_case_that_fails_leaves_the_others(self):
        ended = self.of_each(("Module", "compiles_once", "small_only"), expect=3)
        self.assertEqual({key: one["status"] for key, one in ended.items()},
                         {("Module", 24): "ok", ("Module", 40): "ok", ("compiles_once", 24): "ok", ("compiles_once", 40): "ok",
                          ("small_only", 24): "ok", ("small_only", 40): "error"})
        self.assertIn("no kernel for 40 rows (softmax.py", ended["small_only", 40]["detail"])

    def test_a_process_that_ends_in_a_call_is_told_as_that_and_stored_cases_are_called_as_everywhere(self):
        (self.folder / "f.py").write_text("import os, signal, time, numpy as np\n"
                                          "def reference(x):\n    time.sleep(0.06)\n    return x * 2\n"
                                          "def exits(x): return reference(x) if len(x) == 16 else os._exit(7)\n"
                                          "def killed(x): return reference(x) if len(x) == 16 else os.kill(os.getpid(), signal.SIGSEGV)\n"
                                          "def cases():\n    for n in (16, 32):\n"
                                          "        yield {'axes': {'n': n}, 'arguments': lambda seed, n=n: {'x': np.random.default_rng(seed).random(n)}}\n")
        told = self.syslab("run", "--mine", "exits=f.py:exits", "--mine", "killed=f.py:killed", "--reference", "f.py:reference",
                           "--protocol", "quick", expect=3).stdout
        for name, how in (("exits", "exit code 7"), ("killed", "killed by signal 11 (Segmentation fault)")):
            self.assertRegex(told, rf"error +function {name} n=32: the process of '[^']*f.py:{name}' ended in a call \({re.escape(how)}\)")
        shown = self.syslab("show", "latest").stdout
        self.assertRegex(shown, r"function +exits +n=32 +error")
        self.assertRegex(self.syslab("log", "function").stdout, r"(?m)^n=16 +exits ")
        self.assertNotIn("problem=", shown.split("\n\n")[-1])

    def test_inputs_that_are_no_cases_are_refused_before_anything_runs(self):
        for inputs, said in (("Shape.no_function", "'arguments' must be a function of a seed"),
                             ("Shape.misspelt", "has a field 'tolerence'"),
                             ("Shape.none", "gives no case"),
                             ("Shape.other_axes", "case 'm=1' has other axes than the first"),
                             ("missing", "sums.py has no 'missing'"),
                             ("missing", "def missing(): yield {'arguments': lambda seed:")):
            self.assertIn(said, self.refused("run", *self.files("mine", SUMS, inputs)))
        self.assertFalse(self.db.exists())

    def of_declared(self, name, inputs, *, expect):
        return self.lines("check", "function", "--impl", "me", *self.files(name, DECLARED, inputs), expect=expect)

    def test_numbers_of_a_case_that_no_bound_can_be_made_of_are_refused_before_anything_runs(self):
        for inputs, found in (("rtol_inf", "'rtol' is inf"), ("rtol_nan", "'rtol' is nan"), ("rtol_negative", "'rtol' is -1"),
                              ("rtol_true", "'rtol' is True"), ("rtol_text", "'rtol' is the str '0.1'"), ("atol_nan", "'atol' is nan"),
                              ("atol_huge", "'atol' is a whole number of 1329 bits"), ("terms_negative", "'terms' is -5"),
                              ("terms_nan", "'terms' is nan"), ("terms_half", "'terms' is 1.5"), ("terms_zero", "'terms' is 0"),
                              ("terms_huge", f"'terms' is {10 ** 30}"), ("terms_true", "'terms' is True"), ("flops_nan", "'flops' is nan")):
            with self.subTest(inputs):
                expected = "a whole number from 1 to 2^53" if "terms" in inputs else "a finite number of at least 0"
                said = self.refused("check", *self.files("mine", DECLARED, f"Refused.{inputs}"))
                self.assertIn(f"case 'drawn': {found}; expected {expected}", said)
                self.assertIn(f"declared.py:Refused.{inputs}", said)
        self.assertFalse(self.db.exists())
        for inputs in ("numbers", "whole"):
            with self.subTest(inputs):
                one, = attempts(self.of_declared("mine", f"Taken.{inputs}", expect=0))
                self.assertEqual((one["status"], one.get("warnings")), ("ok", None))

    def test_a_bound_as_large_as_what_it_judges_is_a_warning(self):
        for name in ("mine", "zeros"):  # of which the second is wrong, and cannot be told
            for inputs, part in (("rtol_one", 1), ("atol_one", 1), ("terms", 1)):
                with self.subTest(inputs, name=name):
                    lines = self.of_declared(name, f"Wide.{inputs}", expect=0)
                    one, = attempts(lines)
                    told = [each for each in one["warnings"] if each["code"] == "bound_exceeds_values"]
                    self.assertEqual([(each["about"], each["number"]) for each in told], [("out", part)])
                    self.assertIn(told[0], lines[-1]["warnings"])
        ran = self.lines("run", *self.files("mine", DECLARED, "Wide.rtol_one"), "--protocol", "quick", expect=None)
        self.assertIn("bound_exceeds_values", [each["code"] for each in ran[-1]["warnings"]])
        text = self.syslab("check", "function", "--impl", "me", *self.files("mine", DECLARED, "Wide.rtol_one"))
        self.assertIn("100 % of the elements of 'out' that are not zero have a bound at least as large as their value", text.stdout)
        self.assertIn("100 % of the elements of 'out' with a bound as large as they are", text.stderr)
        one, = attempts(self.of_declared("mine", "Wide.narrow", expect=0))
        self.assertNotIn("warnings", one)
        self.assertEqual(attempts(self.of_declared("zeros", "Wide.narrow", expect=1))[0]["status"], "check_failed")

    def test_sums_longer_than_all_arguments_are_a_warning(self):
        one, = attempts(self.of_declared("mine", "Wide.long_terms", expect=0))
        self.assertEqual(one["warnings"], [{"code": "terms_exceed_inputs", "about": "4096", "number": 5000}])

    def test_arguments_that_are_none_and_arguments_without_content(self):
        for inputs, found in (("none", "the NoneType None"), ("number", "7")):
            one, = attempts(self.of_declared("mine", f"Forms.{inputs}", expect=3))
            self.assertIn(f"case '{inputs}': arguments(1) returned {found}; expected a dict, list or tuple", one["detail"])
        one, = attempts(self.of_declared("mine", "Forms.empty", expect=0))
        self.assertEqual(one["status"], "ok")

    def test_torch_prints_nothing_about_the_walls(self):
        done = self.syslab("check", "--mine", f"me={SOFTMAX}:fast", "--reference", f"{SOFTMAX}:reference", expect=0)
        self.assertNotIn("insecure memory", done.stderr)

    def test_arguments_of_which_no_time_can_be_said_end_their_case(self):
        for inputs, said in (("Shape.same_with_every_seed", "the same with every seed"),
                             ("Shape.other_shape", "another seed makes arguments of another form")):
            ended = attempts(self.lines("check", "function", "--impl", "me", *self.files("mine", SUMS, inputs), expect=3))
            self.assertIn(said, ended[0]["detail"])

    def test_the_options_belong_together(self):
        self.assertIn("write both", self.refused("run", "--inputs", f"{SOFTMAX}:cases"))
        self.assertIn("--mine NAME=file.py:function", self.refused("run", "--reference", f"{SOFTMAX}:reference"))
        self.assertIn("--reference", self.refused("run", "function"))
        self.assertIn("leave the other names out",
                      self.refused("run", "flash_forward", *self.files("fast")))
        self.assertRegex(self.refused("run", "--mine", f"me={SOFTMAX}:fast", "--reference", f"{SOFTMAX}:slaw"),
                         "--reference .*:slaw: .* has no 'slaw'")
        self.assertIn(f"write --mine me={SOFTMAX}:fast",
                      self.refused("run", "--mine", f"{SOFTMAX}:fast", "--reference", f"{SOFTMAX}:reference"))
        self.assertIn("has no 'fats'", self.refused("run", *self.files("fats")))
        self.assertIn("a function is in a Python file",
                      self.refused("run", "--mine", f"me={os.environ['SYSLAB_BINARY']}", *self.files("")))

    @asked_again
    def test_each_launch_has_a_process_of_its_own_beside_one_reference(self):
        sides = (*self.files("tires", file=SUMS), "-a", "n=33", "--protocol", "quick", "--launches", "3")
        one, = [line for line in self.lines("compare", *sides, expect=None) if line.get("type") == "comparison"]
        self.assertEqual(one["launches"], 3, one["reason"])
        before = self.sql("SELECT implementation, facts ->> '$.worker_cases_before' FROM v_attempt WHERE status = 'ok' ORDER BY 1, 2")
        self.assertEqual(before, [(name, launch) for name in ("me", "reference") for launch in (0, 1, 2)])

    @asked_again
    def test_what_a_bound_needs_is_found_out_once_a_comparison(self):
        one, = [line for line in self.lines("compare", *self.files("lasting", file=CANCELS), "--protocol", "quick", "--launches", "3", expect=None)
                if line.get("type") == "comparison"]
        self.assertEqual(one["launches"], 3, one["reason"])
        narrow = self.sql("SELECT implementation, sum(facts ->> '$.bounds_too_narrow'), max(facts ->> '$.worker_cases_before') FROM v_attempt"
                          " WHERE status = 'ok' GROUP BY facts ->> '$.worker_cases_before' > 0, 1 ORDER BY 3, 1")
        self.assertEqual([row[1] > 0 for row in narrow], [True, True, False, False], narrow)

    @asked_again
    def test_compare_and_gate_know_functions(self):
        # Each launch imports anew what it needs: of NumPy, a tenth of what it takes for torch.
        mine = (*self.files("lasting", file=SUMS), "-a", "n=33")
        done = self.lines("compare", *mine, "--protocol", "quick", "--launches", "3", expect=None)
        compared = [line for line in done if line.get("type") == "comparison"]
        self.assertEqual(len(compared), 1)
        self.assertIn(compared[0]["verdict"], ("faster", "slower", "same", "unclear"), compared)
        self.lines("run", *mine, "--impl", "me", "--protocol", "quick", "--launches", "3", expect=0)
        self.syslab("pin", "before", "latest")
        gated = self.lines("gate", "--against", "before", "--launches", "3", "--delta", "900%", expect=None)
        self.assertNotIn("missing", [line.get("type") for line in gated])
        self.assertTrue([one for one in attempts(gated) if one["status"] == "ok"] or
                        [line for line in gated if line.get("type") == "comparison"], gated)


if __name__ == "__main__":
    unittest.main()
