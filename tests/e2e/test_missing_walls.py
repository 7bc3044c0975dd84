"""What judges says which walls are missing, and without Landlock no folder chooses the interpreter."""
import os
import pathlib
import stat
import unittest
import zipfile

from lab import Lab
from without_landlock import take_landlock_away

ADAPTERS = "from flash import Flash\n\n\ndef get_flashattention_autograd_function_pytorch():\n    return Flash\n"
QUICK = ("--cases", "2", "--device", "cpu")


class MissingWalls(Lab):
    def setUp(self):
        super().setUp()
        self.mine = self.folder / "plain.py"
        self.mine.write_text(pathlib.Path(os.environ["SYSLAB_MINE"], "plain.py").read_text(encoding="utf-8"), encoding="utf-8")
        self.landlock = False

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def judged(self, *arguments, **options):
        before = None if self.landlock else take_landlock_away
        return self.syslab(*arguments, expect=None, preexec_fn=before, **options)

    def verbs(self):
        mine = ("--mine", f"me={self.mine}:Naive")
        case = ("flash_forward", *mine, "--impl", "me", "-a", "seq=16", "-a", "head_dim=8", "-a", "heads=1", "-a", "causal=true",
                "-a", "dtype=fp32", "--device", "cpu")
        return {"check": ("check", "flash_forward", *mine, "--impl", "me", "-k", "repeat", *QUICK),
                "run": ("run", *case, "--laws", "none", "--protocol", "quick"),
                "compare": ("compare", *case[:3], "A:impl=naive", "B:impl=me", *case[5:], "--launches", "3", "--protocol", "quick")}

    def test_every_verb_that_judges_says_so_in_one_line_also_when_quiet_and_in_json(self):
        for verb, words in self.verbs().items():
            with self.subTest(verb):
                said = self.judged(*words, "--quiet").stderr
                self.assertEqual(sum("Landlock" in line for line in said.splitlines()), 1, said)
                lines = [line for line in self.judged(*words, "--json").stdout.splitlines() if '"walls"' in line]
                self.assertEqual(len(lines), 1, lines)
                self.assertIn("Landlock", lines[0])

    def test_replay_says_so_in_its_document(self):
        self.judged(*self.verbs()["check"])
        [(check,)] = self.sql("SELECT min(uid) FROM check_result")
        self.assertIn('"walls_missing"', self.judged("replay", check, "--json").stdout)

    def test_walls_that_were_switched_off_are_told_as_well(self):
        self.landlock = True
        environment = self.environment
        self.environment = lambda: {**environment(), "SYSLAB_WALLS": "none"}
        self.assertIn("SYSLAB_WALLS=none", self.judged(*self.verbs()["check"], "--quiet").stderr)

    # --- interpreters of folders ---

    def hand_in(self):
        """A hand-out's folder whose two interpreters try to leave a mark, and say that they ran; its settings are `syslab.toml`."""
        root = self.folder / "hers"
        mark = self.folder / "mark"
        (root / "tests").mkdir(parents=True)
        (root / "tests" / "adapters.py").write_text(ADAPTERS.replace("flash", "plain", 1).replace("Flash", "Naive"), encoding="utf-8")
        (root / "plain.py").write_text(self.mine.read_text(encoding="utf-8"), encoding="utf-8")
        for name in (".venv/bin/python", "chosen"):
            program = root / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\ntouch '{mark}'\necho 'hers ran' | tee /dev/stderr\nexit 7\n", encoding="utf-8")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return root, mark

    def test_without_landlock_no_folder_chooses_the_interpreter(self):
        root, mark = self.hand_in()
        said = self.judged("check", "--mine", f"me={root}", "--handout", "2026", "-k", "repeat", *QUICK, "--quiet").stderr
        self.assertIn("without Landlock a folder does not choose its interpreter", said)
        (root / "syslab.toml").write_text('handout = "2026"\nmine = "me=."\npython = "./chosen"\n', encoding="utf-8")
        said = self.judged("check", "-k", "repeat", *QUICK, cwd=root).stderr
        self.assertIn("'./chosen' is not used", said)
        self.judged("run", "flash_forward", "--mine", f"me={root}", "--impl", "me", "--preset", "smoke", "--device", "cpu",
                    "--protocol", "quick")
        self.judged("init", cwd=root)
        self.assertFalse(mark.exists())

    def test_behind_landlock_it_may_and_writes_nothing(self):
        self.landlock = True
        root, mark = self.hand_in()
        said = self.judged("check", "--mine", f"me={root}", "--handout", "2026", "-k", "repeat", *QUICK)
        self.assertIn("hers ran", said.stdout + said.stderr)
        self.assertFalse(mark.exists())

    def test_a_zip_is_unpacked_behind_walls(self):
        self.landlock = True
        root, mark = self.hand_in()
        with zipfile.ZipFile(self.folder / "hers.zip", "w") as archive:
            for path in ("tests/adapters.py", "plain.py"):
                archive.write(root / path, path)
        said = self.judged("check", "--mine", "me=hers.zip", "--handout", "2026", "-k", "repeat", *QUICK, "--python", root / "chosen")
        self.assertIn("hers ran", said.stdout + said.stderr)
        self.assertFalse(mark.exists(), said.stderr)
        environment = self.environment
        self.environment = lambda: {**environment(), "SYSLAB_PYTHON": str(root / "chosen")}
        said = self.judged("check", "--mine", "me=hers.zip", "--handout", "2026", "-k", "repeat", *QUICK)
        self.assertIn("'hers.zip' is refused: hers ran", said.stdout + said.stderr)
        self.assertFalse(mark.exists(), "an interpreter that unpacks is behind walls, too")


if __name__ == "__main__":
    unittest.main()
