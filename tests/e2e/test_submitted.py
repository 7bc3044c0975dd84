"""`check --mine FOLDER`: what a submission implements, what it does not, why it fails, and which zips are refused."""
import json
import os
import unittest

from lab import Lab, multiplies_in_fp16, torch_is_older
from submitted import PYTORCH, hostile_zips, make, make_parallel, zip_of

KEEPS_ITS_OUTPUT = f"""def {PYTORCH}():
    import torch
    theirs, kept = of_class(), {{}}

    class Keeps(theirs):
        @staticmethod
        def forward(ctx, *inputs):
            out = theirs.forward(ctx, *inputs)
            return kept.setdefault(out.shape, torch.empty_like(out)).copy_(out)

    return Keeps
"""


class Submitted(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "TMPDIR": str(self.temporary)}

    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def check(self, what, *arguments, expect, timeout="3m"):
        lines = self.lines("check", "--mine", what, "--cases", "5", "--timeout", timeout, *arguments, expect=expect)
        record = lines[-1]
        self.assertEqual(record["type"], "submission")
        return record, {row["function"]: row for row in record["adapters"]}

    def test_all_of_a_hand_out_is_checked_in_one_go_with_a_table(self):
        make(self.folder / "ada")
        done = self.syslab("check", "--handout", "2026", "--mine", "me=ada", "--cases", "5", expect=None)
        table = done.stdout[done.stdout.index("me: tests/adapters.py"):]
        self.assertRegex(table, f"{PYTORCH} +implemented +5 of 5 ")
        self.assertRegex(table, "get_flashattention_autograd_function_triton +not implemented ")
        self.assertRegex(table, "get_ddp +implemented +0 of 10 ")  # it wraps nothing, and has no function for after the backward pass
        self.assertRegex(table, "get_sharded_optimizer +not implemented ")
        self.assertRegex(table, "get_fsdp +not there ")
        self.assertNotIn("bucketed", table)  # of 2025
        self.assertEqual(done.stdout.count("next: "), 1, done.stdout)  # of all functions together

    def test_an_object_of_an_autograd_function_is_applied_as_its_class_is(self):
        make(self.folder / "ada")
        adapters = self.folder / "ada/tests/adapters.py"
        adapters.write_text(adapters.read_text() + f"\n\nof_class = {PYTORCH}\n\n\ndef {PYTORCH}():\n    return of_class()()\n")
        record, rows = self.check("ada", "flash_forward", "--contract", "handout", expect=None)
        self.assertEqual((rows[PYTORCH]["state"], rows[PYTORCH].get("why", "")), ("implemented", ""))
        self.assertEqual({law["outcome"] for law in rows[PYTORCH]["laws"]}, {"passed"})

    def test_the_last_line_names_what_keeps_a_pass_away(self):
        make(self.folder / "ada")
        adapters = self.folder / "ada/tests/adapters.py"
        adapters.write_text(adapters.read_text() + f"\n\nof_class = {PYTORCH}\n\n\n" + KEEPS_ITS_OUTPUT)
        done = self.syslab("check", "--mine", "me=ada", "flash_forward", "--cases", "5", "--beyond", "attention.keeps_no_state", expect=1)
        self.assertRegex(done.stdout, "all together: FAIL: 3 of 3 of the hand-out's laws hold; attention.keeps_no_state fails on what "
                                      "is promised; 1 function not implemented; 0 warnings\n$")

    def test_its_adapters_stand_for_the_project(self):
        make(self.folder / "ada")
        record, rows = self.check("ada/tests/adapters.py", "flash_forward", "--contract", "handout", expect=None)
        self.assertEqual((record["name"], rows[PYTORCH]["state"], len(rows[PYTORCH]["laws"])), ("ada", "implemented", 3))

    def test_a_zip_is_named_by_its_file_and_leaves_nothing(self):
        make(self.folder / "src", "NoScale")
        zip_of(self.folder / "src", self.folder / "grace hopper.zip")
        record, rows = self.check("grace hopper.zip", "flash_forward", "--beyond", "attention.causal*", expect=1)
        beyond = {law["law"] for law in rows[PYTORCH]["laws"] if law["contract"] == "full"}
        self.assertEqual({law.startswith("attention.causal") for law in beyond}, {True}, beyond)
        self.assertEqual(record["name"], "grace_hopper")
        outcomes = {law["law"]: law["outcome"] for law in rows[PYTORCH]["laws"] if law["contract"] == "handout"}
        self.assertEqual(outcomes["attention.equals_oracle"], "falsified")
        self.assertNotIn("attention.gradients_equal_oracle", outcomes)  # of flash_backward, which was not named
        self.assertEqual(list(self.temporary.iterdir()), [])

    def outcomes(self, row):
        """Of the hand-out's laws: outcomes and messages by experiment and law."""
        return {(law["experiment"], law["law"]): (law["outcome"], law["message"]) for law in row["laws"] if law["contract"] == "handout"}

    def test_right_parallel_adapters_of_both_years_hold_all_laws_of_the_hand_out(self):
        # A line left from looking for a fault names a layer of the tests' model.
        prints = ("\n\nand_then = ddp_on_after_backward\n\n\ndef ddp_on_after_backward(ddp_model, optimizer):\n"
                  "    print(ddp_model.module.fc1.weight.shape)\n    and_then(ddp_model, optimizer)\n")
        make_parallel(self.folder / "ada", tail=prints)
        experiments = {"get_ddp": {"naive_ddp", "ddp_overlap_individual_parameters"},
                       "get_ddp_individual_parameters": {"naive_ddp", "ddp_overlap_individual_parameters"},
                       "get_ddp_bucketed": {"ddp_overlap_bucketed"}, "get_sharded_optimizer": {"optimizer_state_sharding"},
                       "get_fsdp": {"fsdp"}}
        _, rows = self.check("ada", "--contract", "handout", expect=None)  # attention is not there
        for function, answered in experiments.items():
            with self.subTest(function):
                laws = self.outcomes(rows[function])
                self.assertEqual({experiment for experiment, _ in laws}, answered)
                wanted = dict.fromkeys(laws, "passed")
                if function == "get_fsdp" and not multiplies_in_fp16():
                    wanted["fsdp", "fsdp.fp16"] = "not_run"
                self.assertEqual({law: outcome for law, (outcome, _) in laws.items()}, wanted, laws)
        self.assertEqual(rows["fsdp_gather_full_params"]["not_checked"], "called by the checks of its problem")

    def test_ranks_that_are_wanted_on_gpus_need_one(self):
        make_parallel(self.folder / "ada")
        _, rows = self.check("ada", "naive_ddp", "fsdp", "--handout", "2026", "--device", "cuda", expect=None)
        if rows["get_ddp"]["not_checked"]:  # else there is one, and tests/e2e/gpu_lab.py looks at that
            self.assertEqual({rows[name]["not_checked"] for name in ("get_ddp", "get_fsdp")}, {"needs a GPU"})
            self.assertEqual(rows["get_ddp"]["laws"], [])

    def test_wrong_parallel_adapters_are_found_out(self):
        faults = {"naive_ddp": ("ddp", "AverageForgotten", "ddp.equals_one_process", "not divided by 2"),
                  "ddp_overlap_individual_parameters": ("ddp", "NoWait", "ddp.waits", "no wait() was called"),
                  "ddp_overlap_bucketed": ("bucketed", "LastBucketLost", "ddp.equals_one_process", "this rank's own"),
                  "optimizer_state_sharding": ("sharded", "StaleAfterStep", "sharded.equals_one_process", "as it was before the step"),
                  "fsdp": ("fsdp", "ShardsNotAveraged", "fsdp.equals_one_process", "moved by the sum over ranks")}
        for experiment, (part, name, law, told) in faults.items():
            with self.subTest(name):
                make_parallel(self.folder / name, **{part: name})
                _, rows = self.check(name, experiment, "--handout", "2025" if part == "bucketed" else "2026", "--contract", "handout", expect=1)
                (row,) = (row for row in rows.values() if row["laws"])
                outcome, message = self.outcomes(row)[experiment, law]
                self.assertEqual(outcome, "falsified")
                self.assertIn(told, message)

    def test_state_that_is_not_sharded_is_a_finding_beyond_the_hand_out(self):
        make_parallel(self.folder / "ada", sharded="NotSharded")
        _, rows = self.check("ada", "optimizer_state_sharding", "-k", "sharded.state_once", "--handout", "2026", expect=None)
        laws = {law["law"]: law["outcome"] for law in rows["get_sharded_optimizer"]["laws"] if law["contract"] == "full"}
        self.assertEqual(laws["sharded.state_once"], "falsified")

    def test_what_parallel_adapters_lack_is_told(self):
        for name, tail, told in (
                ("none", "\n\ndel ddp_on_after_backward\n", "adapters.py has no ddp_on_after_backward()"),
                ("later", "\n\ndef ddp_on_after_backward(ddp_model, optimizer):\n    raise NotImplementedError\n", "NotImplementedError")):
            with self.subTest(name):
                make_parallel(self.folder / name, tail=tail)
                _, rows = self.check(name, "naive_ddp", "-k", "ddp.equals_one_process", "--handout", "2026", "--contract", "handout", expect=1)
                ((found, message),) = self.outcomes(rows["get_ddp"]).values()
                self.assertEqual(found, "falsified")
                self.assertIn(told, message)

    def lacking(self, name, ddp):
        """Of a get_ddp with that body: the exit code and the law's record."""
        make_parallel(self.folder / name, tail=f"\n\nimport torch\n\n\ndef get_ddp(module):\n{ddp}\n    return made('Individual', module)\n")
        done = self.syslab("check", *self.of_ddp(name), "--json", expect=None)
        row = next(row for row in json.loads(done.stdout.splitlines()[-1])["adapters"] if row["function"] == "get_ddp")
        return done.returncode, row["laws"][0] if row["laws"] else row

    @staticmethod
    def of_ddp(name):
        return ("naive_ddp", "-k", "ddp.equals_one_process", "--handout", "2026", "--contract", "handout", "--mine", f"me={name}", "--cases", "5")

    def test_what_an_older_torch_lacks_leaves_it_open(self):
        older = torch_is_older()
        for name, body, kind in (("attribute", "    next(module.parameters()).register_hook_of_a_later_torch(print)", "attribute"),
                                 ("own", "    module.fc1.of_a_later_torch", "attribute"),
                                 ("argument", "    torch.autograd.grad(torch.ones(1), [],\n        of_a_later_torch=True)", "argument"),
                                 ("module", "    import torch.of_a_later_version", "module"),
                                 ("assigned", "    for of_a_later_torch in ():\n        pass\n    torch.of_a_later_torch", "attribute"),
                                 ("average", "    torch.distributed.all_reduce(torch.ones(1), op=torch.distributed.ReduceOp.AVG)", "dtype"),
                                 ("dtype", "    half = torch.ones(2, 2, dtype=torch.float16)\n    half @ half", "dtype")):
            if kind == "dtype" and multiplies_in_fp16():  # and Gloo may average
                continue
            with self.subTest(name):
                exit_code, law = self.lacking(name, body)
                self.assertEqual(exit_code, 3 if older else 1, law)
                self.assertEqual((law["open"], law["lacks"]["kind"]), (older, kind), law)
                self.assertIn({"dtype": "addmm", "average": "ReduceOp.AVG"}.get(name, "of_a_later"), json.dumps(law["lacks"]))
                if older and name in ("own", "module"):
                    said = self.syslab("check", *self.of_ddp(name), expect=3).stdout
                    self.assertIn("all together: OPEN" if kind == "module" else "hand-out 2026: OPEN (0 of 1;", said)

    def test_no_word_of_the_judged_process_leaves_it_open(self):
        says = "    raise AttributeError('needs torch >= 2.1', name={!r}, obj={})"
        for name, body in (("has", says.format("ones", "torch")),
                           ("instance", says.format("weight", "torch.nn.Linear(2, 2)")),
                           ("path", says.format("nn.Linear", "torch")),
                           ("integers", "    torch.softmax(torch.ones(2, 2, dtype=torch.int64), -1)"),
                           ("odd", "    raise AttributeError('x', name=object(), obj=torch)"),
                           ("private", says.format("_ones_of_later", "torch")),
                           ("itself", "    class Own(torch.nn.Module):\n        def helper(self):\n            pass\n\n    torch.nn.Module().helper()"),
                           ("text", "    raise RuntimeError(\"needs torch >= 2.1, whose CPU multiplies in fp16; \\\"mul\\\" not implemented for 'Half'\")"),
                           ("package", "    import a_package_of_nobody")):
            with self.subTest(name):
                exit_code, law = self.lacking(name, body)
                self.assertEqual((exit_code, law["open"]), (1, False), law)

    def test_what_does_not_import_says_which_package_and_version(self):
        make(self.folder / "ada", head="import einops_of_another_time\n")
        (self.folder / "ada/uv.lock").write_text('[[package]]\nname = "einops-of-another-time"\nversion = "0.8.1"\n')
        _, rows = self.check("ada", expect=3)
        self.assertEqual((rows[PYTORCH]["state"], rows[PYTORCH]["open"], rows[PYTORCH]["why"]),
                         ("fails", True, "package 'einops_of_another_time' is missing (the lock file names 0.8.1)"))
        (self.folder / "ada/uv.lock").unlink()
        _, rows = self.check("ada", expect=1)  # nobody said that it needs one
        self.assertFalse(rows[PYTORCH]["open"])
        (self.folder / "ada/uv.lock").write_text('[[package]]\nname = "einops-of-another-time"\nversion = "0.8.1"\n')
        (self.folder / "ada/einops_of_another_time.py").write_text("import a_package_of_nobody\n")
        _, rows = self.check("ada", expect=1)
        self.assertFalse(rows[PYTORCH]["open"])
        self.assertEqual(rows["get_sharded_optimizer"]["state"], "not implemented")
        make(self.folder / "bob", head="import torch\ntorch.nothing_of_that_name\n")
        (self.folder / "bob/requirements.txt").write_text("torch==99.1\n")
        _, rows = self.check("bob", expect=3 if torch_is_older() else 1)
        self.assertEqual(rows[PYTORCH]["open"], torch_is_older())
        self.assertIn("nothing_of_that_name", rows[PYTORCH]["why"])
        self.assertIn("(tests/adapters.py:2)", rows[PYTORCH]["why"])
        self.assertIn("the lock file names torch 99.1, this Python has", rows[PYTORCH]["why"])

    def test_files_that_require_a_newer_python_leave_it_open_where_they_do_not_parse(self):
        make(self.folder / "ada", head="def later[of a later Python]: pass\n")
        _, rows = self.check("ada", expect=1)
        self.assertFalse(rows[PYTORCH]["open"])
        (self.folder / "ada/pyproject.toml").write_text('[project]\nname = "ada"\nversion = "1"\nrequires-python = ">=3.99"\n')
        _, rows = self.check("ada", expect=3)
        self.assertTrue(rows[PYTORCH]["open"])

    def test_imports_alone_search_no_law(self):
        make_parallel(self.folder / "ada", tail="\n\ndef get_ddp(module):\n    import a_package_of_nobody\n")
        record, rows = self.check("ada", "--handout", "2026", "--imports-alone", expect=1)
        self.assertEqual(rows["get_ddp"]["why"], "package 'a_package_of_nobody' is missing")
        self.assertEqual(rows["get_fsdp"]["state"], "implemented")
        self.assertEqual([law for row in rows.values() for law in row["laws"]], [])
        self.assertIn("--mine FOLDER", self.syslab("check", "naive_ddp", "--imports-alone", expect=2).stderr)

    def test_what_hangs_or_exits_at_import_is_told(self):
        make(self.folder / "ada", head="import time\ntime.sleep(1000)\n")
        _, rows = self.check("ada", expect=1, timeout="8s")
        self.assertIn("took longer than 8 s", rows[PYTORCH]["why"])
        make(self.folder / "bob", head="import sys\nsys.exit(0)\n")
        _, rows = self.check("bob", expect=1)
        self.assertIn("SystemExit", rows[PYTORCH]["why"])
        make(self.folder / "eve", head="import os\nos._exit(0)\n")
        _, rows = self.check("eve", expect=1)
        self.assertIn("ended the process", rows[PYTORCH]["why"])

    def test_its_own_environment_is_used_and_python_names_another(self):
        make(self.folder / "ada")
        python = self.folder / "ada/.venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\nTHEIRS=1 exec {os.environ['SYSLAB_PYTHON']} \"$@\"\n")
        python.chmod(0o755)
        adapters = self.folder / "ada/tests/adapters.py"
        adapters.write_text("import os\nassert os.environ.get('THEIRS') == '1', 'not theirs'\n" + adapters.read_text())
        _, rows = self.check("ada", "flash_forward", expect=None)
        self.assertEqual(rows[PYTORCH]["state"], "implemented")
        _, rows = self.check("ada", "flash_forward", "--python", os.environ["SYSLAB_PYTHON"], expect=1)
        self.assertIn("not theirs", rows[PYTORCH]["why"])
        refused = self.syslab("check", "--mine", "ada", "--python", "/no/such/python", expect=2)
        self.assertIn("/no/such/python", refused.stderr)

    def test_zips_that_would_harm_are_refused_with_one_line(self):
        for name, reason in hostile_zips(self.folder).items():
            with self.subTest(name):
                refused = self.syslab("check", "--mine", f"me={name}.zip", expect=2)
                self.assertIn(f"'{name}.zip' is refused", refused.stderr)
                self.assertIn(reason, refused.stderr)
                self.assertEqual(refused.stderr.count("\n"), 1)
                self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertFalse((self.folder / "outside.py").exists())
        self.assertFalse(os.path.exists("/tmp/syslab_absolute.py"))

    def test_what_is_looked_at_before_it_is_checked_does_not_read_the_database(self):
        self.syslab("run", "selftest_empty", "--laws", "none")
        hand = self.folder / "curious"
        hand.mkdir()
        (hand / "adapters.py").write_text(f"def {PYTORCH}():\n    from other import Flash\n    return Flash\n")
        (hand / "other.py").write_text(f"open({str(self.db)!r}, 'rb').read(1)\nraise ImportError('it read the database')\n")
        said = self.syslab("check", "--mine", "me=curious", "--handout", "2026", expect=None).stdout
        self.assertIn("PermissionError", said)
        self.assertNotIn("it read the database", said)

    def test_a_folder_without_adapters_is_no_submission(self):
        (self.folder / "empty").mkdir()
        self.assertIn("neither tests/adapters.py nor adapters.py",
                      self.syslab("check", "--mine", "empty", expect=2).stderr)
        make(self.folder / "two/a")
        make(self.folder / "two/b")
        self.assertIn("2 projects", self.syslab("check", "--mine", "two", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
