"""`check --mine FOLDER`: what a submission implements, what it does not, why it fails, and which zips are refused."""
import os
import unittest

from lab import Lab
from submitted import PYTORCH, hostile_zips, make, make_parallel, zip_of


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
        self.assertRegex(table, "get_ddp +implemented +0 of 8 ")  # it wraps nothing, and has no function for after the backward pass
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
                self.assertEqual({outcome for outcome, _ in laws.values()}, {"passed"}, laws)
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
        hook = "    next(module.parameters()).register_post_accumulate_grad_hook(print)\n    return module\n"
        for name, tail, outcome, told in (
                ("none", "\n\ndel ddp_on_after_backward\n", "falsified", "adapters.py has no ddp_on_after_backward()"),
                ("later", "\n\ndef ddp_on_after_backward(ddp_model, optimizer):\n    raise NotImplementedError\n", "falsified",
                 "NotImplementedError"),
                ("newer", "\n\ndef get_ddp(module):\n" + hook, None, "needs torch >= 2.1")):
            with self.subTest(name):
                make_parallel(self.folder / name, tail=tail)
                _, rows = self.check(name, "naive_ddp", "-k", "ddp.equals_one_process", "--handout", "2026", "--contract", "handout", expect=None)
                ((found, message),) = self.outcomes(rows["get_ddp"]).values()
                if outcome is None and found != "not_run":
                    continue  # a torch that has it
                self.assertEqual(found, outcome or "not_run")
                self.assertIn(told, message)

    def test_what_does_not_import_says_which_package_and_version(self):
        make(self.folder / "ada", head="import einops_of_another_time\n")
        (self.folder / "ada/uv.lock").write_text('[[package]]\nname = "einops-of-another-time"\nversion = "0.8.1"\n')
        _, rows = self.check("ada", expect=1)
        self.assertEqual((rows[PYTORCH]["state"], rows[PYTORCH]["why"]),
                         ("fails", "package 'einops_of_another_time' is missing (the lock file names 0.8.1)"))
        self.assertEqual(rows["get_sharded_optimizer"]["state"], "not implemented")
        make(self.folder / "bob", head="import torch\ntorch.nothing_of_that_name\n")
        (self.folder / "bob/requirements.txt").write_text("torch==99.1\n")
        _, rows = self.check("bob", expect=1)
        self.assertIn("nothing_of_that_name", rows[PYTORCH]["why"])
        self.assertIn("(tests/adapters.py:2)", rows[PYTORCH]["why"])
        self.assertIn("the lock file names torch 99.1, this Python has", rows[PYTORCH]["why"])

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
