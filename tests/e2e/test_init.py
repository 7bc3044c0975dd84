"""`init`: a folder in which plain `check` needs no options."""
import os
import subprocess
import unittest

from lab import RIGHT, Lab
from submitted import PYTORCH, make


class Init(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def files(self, folder):
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

    def test_a_hand_outs_repository_gets_one_file_and_is_then_checked_without_options(self):
        ada = make(self.folder / "ada")
        before = self.files(ada)
        said = self.syslab("init", cwd=ada).stdout
        self.assertRegex(said, f"{PYTORCH} +implemented")
        self.assertRegex(said, "get_sharded_optimizer +not implemented")
        self.assertIn("next: syslab check", said)
        self.assertEqual(self.files(ada), sorted([*before, "syslab.toml"]))
        checked = self.syslab("check", "--cases", "5", cwd=ada, expect=None)
        self.assertIn("syslab.toml: --handout 2026 --mine ada=.", checked.stderr)
        self.assertIn("ada: tests/adapters.py", checked.stdout)
        self.assertRegex(checked.stdout, r"all together: FAIL: \d+ of \d+ of the hand-out's laws hold; 2 functions not implemented, 4 not there; 2 warnings: 2 wrong values\n")
        # An experiment that a hand-in answers is checked of what is in the folder.
        named = self.syslab("check", "flash_forward", "naive_ddp", "--cases", "1", "-k", "refusal", cwd=ada, expect=3)
        self.assertIn("syslab.toml: --handout 2026 --mine ada=.", named.stderr)
        self.assertRegex(named.stdout, "get_ddp +implemented .* -k refusal names none of its laws")
        self.assertIn("-k nonsense: no law's name holds it", self.syslab("check", "flash_forward", "-k", "nonsense", cwd=ada, expect=2).stderr)
        # What no function answers is not left out without a word: the command means the lab's own.
        for names in (("flash_forward", "weighted_sum"), ("flash_*",)):
            theirs = self.syslab("check", *names, "-k", "nonsense", cwd=ada, expect=2).stderr
            self.assertNotIn("syslab.toml", theirs)
        # What is said on the command line comes first.
        self.assertNotIn("syslab.toml", self.syslab("check", "weighted_sum", "--cases", "1", "--impl", "naive", cwd=ada).stderr)

    def test_a_python_without_torch_is_named_with_what_to_do(self):
        bare = self.folder / "bare"
        bare.write_text(f'#!/bin/sh\nexec "{os.environ["SYSLAB_PYTHON"]}" -S -E "$@"\n')
        bare.chmod(0o755)
        ada = make(self.folder / "batch/ada")
        self.assertIn("has no torch, which the hand-out's functions need: --python FILE names another",
                      self.syslab("init", "--python", bare, cwd=ada).stdout)
        refused = self.syslab("grade", "batch", "--handout", "2026", "-o", "grades", "--python", bare, expect=2)
        self.assertIn("has no torch", refused.stderr)

    def test_a_folder_is_run_by_the_function_that_answers_the_experiment(self):
        ada = make(self.folder / "ada")
        small = ("--mine", f"me={ada}", "--laws", "none", "--protocol", "quick", "--impl", "me")
        done = self.syslab("run", "flash_forward", "-a", "seq=16", "-a", "head_dim=16", "-a", "heads=1", "-a", "causal=false", *small, expect=RIGHT)
        self.assertIn(f"me: tests/adapters.py:{PYTORCH}()", done.stderr)
        self.assertEqual(self.sql("SELECT status, count(*) FROM v_attempt"), [("ok", 1)])
        refused = self.syslab("run", "weighted_sum", *small, expect=2)
        self.assertIn("no function of a hand-out's adapters.py answers weighted_sum", refused.stderr)

    def test_folders_with_interpreters_of_their_own_are_not_mixed(self):
        ada, bob = make(self.folder / "ada"), make(self.folder / "bob")
        (bob / ".venv/bin").mkdir(parents=True)
        (bob / ".venv/bin/python").symlink_to(os.environ["SYSLAB_PYTHON"])
        for other in (ada, ada / "cs336_systems/flash.py:IgnoresCausal"):
            refused = self.syslab("run", "flash_forward", "--mine", f"ada={other}", "--mine", f"bob={bob}", expect=2)
            self.assertIn("one interpreter serves all of --mine", refused.stderr)
            self.assertIn("bob/.venv/bin/python is of one of them", refused.stderr)

    def test_a_folder_goes_on_with_its_interpreter_where_a_scheduler_starts_it_again(self):
        ada = make(self.folder / "ada")
        command = self.command("run", "flash_forward", "-a", "seq=16,32", "-a", "head_dim=16", "-a", "heads=1", "--mine", f"me={ada}",
                               "--python", os.environ["SYSLAB_PYTHON"], "--laws", "none", "--impl", "me", "--budget", "1ms")
        for restarts in (0, 1):
            job = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts), "SYSLAB_PYTHON": "/no/python"}
            done = subprocess.run(command, env={**self.environment(), **job}, cwd=self.folder, text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 3, done.stderr)  # the budget leaves no time
            self.assertEqual("goes on with run" in done.stderr, restarts == 1, done.stderr)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])

    def test_mine_is_a_name_and_no_file(self):
        ada = make(self.folder / "ada")
        self.assertIn("--mine me=flash.py: write the name alone", self.syslab("init", "--mine", "me=flash.py", cwd=ada, expect=2).stderr)
        self.assertFalse((ada / "syslab.toml").exists())

    def test_the_hand_out_is_that_whose_functions_are_there(self):
        for year, function in (("2025", "get_ddp_bucketed"), ("2026", "get_fsdp")):
            folder = self.folder / year
            folder.mkdir()
            (folder / "adapters.py").write_text(f"def {function}(module, size):\n    raise NotImplementedError\n")
            self.assertEqual(self.json("init", "--mine", "me", cwd=folder)["handout"], year)
            self.assertIn('mine = "me=."', (folder / "syslab.toml").read_text())

    def test_an_empty_folder_gets_stubs_of_the_hand_outs_functions(self):
        for year, function in (("2025", "get_ddp_bucketed"), ("2026", "get_fsdp")):
            folder = self.folder / year
            (folder / ".git").mkdir(parents=True)
            record = self.json("init", "--handout", year, cwd=folder)
            self.assertTrue(record["stubs"])
            self.assertEqual({row["state"] for row in record["functions"]}, {"not implemented"})
            self.assertIn(function, [row["function"] for row in record["functions"]])
            self.assertEqual(self.files(folder), ["syslab.toml", "tests/adapters.py"])

    def test_what_is_there_is_not_replaced(self):
        (self.folder / "thesis").mkdir()
        (self.folder / "thesis/chapter.txt").write_text("mine\n")
        refused = self.syslab("init", cwd=self.folder / "thesis", expect=2)
        self.assertIn("in an empty folder, into which it writes a tests/adapters.py", refused.stderr)
        self.assertEqual(self.files(self.folder / "thesis"), ["chapter.txt"])
        ada = make(self.folder / "ada")
        (ada / "syslab.toml").write_text('handout = "2025"\nmine = "me=."\n')
        self.assertIn("syslab.toml is there already", self.syslab("init", cwd=ada, expect=2).stderr)
        self.assertIn("2025", (ada / "syslab.toml").read_text())


if __name__ == "__main__":
    unittest.main()
