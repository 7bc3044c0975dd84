"""`syslab grade` of a list of repositories with a timed item: one batch, whose later gradings know most of it already."""
import csv
import json
import os
import pathlib
import shlex
import shutil
import tempfile
import unittest

from lab import Lab
from submitted import flash_item, make, rubric

LAWS = ("flash_forward", 6, [flash_item("a", 6)])
TIMED = ("race", 4, [flash_item("speed", 4, reference="naive", at=["seq=1024", "head_dim=64", "heads=1", "causal=false", "dtype=fp32"],
                                within=[100000, 0.0001], launches=3)])
# Of others that do not count any more, too; ':' separates the paths that walls hide.
READER = """import os, pathlib
for file in [] if "REPLAYED" in os.environ else pathlib.Path({folder!r}).rglob("*.py"):
    try:
        file.read_bytes()
    except OSError:
        continue
    raise SystemExit(f"it could read {{file}}")
"""


class Timed(Lab):
    """The batch: ada, who handed in twice, and wrong, who also reads what is not theirs. Tests are numbered: each grades it again."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="syslab_e2e_"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        (cls.shared / "rubric.toml").write_text(rubric(LAWS, TIMED))
        (cls.shared / "untimed.toml").write_text(rubric(LAWS))
        make(cls.shared / "old: 1" / "ada", "NoScale")
        make(cls.shared / "repositories" / "ada")
        make(cls.shared / "repositories" / "wrong", "NoScale", head=READER.format(folder=str(cls.shared)))
        cls.rows = [("ada", "old: 1/ada", "2026-05-01"), ("ada", "repositories/ada", "2026-05-03T12:00"),
                    ("wrong", "repositories/wrong", "2026-05-02")]

    def setUp(self):
        self.folder = self.shared
        self.db = self.folder / "lab.db"
        self.grades = self.folder / "grades"

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], **self.replayed}

    replayed: dict = {}

    def grade(self, *arguments, rubric="rubric.toml"):
        with open(self.folder / "list.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("student", "path", "when"), *self.rows])
        return self.syslab("grade", "list.csv", "--handout", "2026", "--rubric", rubric, "-o", "grades", "--cases", "3",
                           *arguments, timeout=500).stderr

    def rows_of(self, name):
        with open(self.grades / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def page(self, student):
        return (self.grades / f"students/{student}/evidence.md").read_text(encoding="utf-8")

    def results(self, student):
        return json.loads((self.grades / f"students/{student}/results.json").read_text(encoding="utf-8"))

    def test_1_repositories_of_a_list_are_checked_and_what_is_right_is_timed(self):
        said = self.grade("--jobs", "2")
        self.assertIn("ada of 2 hand-ins: the newest counts", said)
        self.assertRegex(said, r"ada: [0-9.]+ times the time of naive \(")
        points = {row["student"]: (row["points"], row["note"]) for row in self.rows_of("grades")}
        self.assertEqual(points["ada"], ("8", ""))  # the laws, and one of two ratios
        self.assertEqual(points["wrong"], ("2", ""), self.page("wrong"))  # none for its import, had it read anything
        self.assertIn("it is wrong where it was to be timed: out", self.page("wrong"))
        # Who is wrong is not ranked.
        self.assertEqual(len(self.rows_of("leaderboard")), 1)
        self.assertNotIn("leaderboard", self.results("wrong"))
        text = (self.grades / "leaderboard.md").read_text(encoding="utf-8") + self.page("ada")
        self.assertNotIn("ada", text.replace("# ada", "").replace("Handed in: ada", ""))  # her own page names her, the board does not
        self.assertRegex(text, r"[a-z]+-[a-z]+-[0-9]{3} \(you\)")
        self.assertEqual(self.results("ada")["leaderboard"][0]["order"], "asc")

    def test_2_a_stored_law_is_tried_again_by_the_command_beside_it(self):
        checks = self.rows_of("checks")
        self.assertEqual({row["student"] for row in checks}, {"ada", "wrong"})
        lost = next(row for row in checks if row["student"] == "wrong" and row["holds"] == "no")
        words = shlex.split(lost["replay"])
        self.assertEqual(words[:2], ["syslab", "replay"])
        self.replayed = {"REPLAYED": "1"}  # the instructor's own command hides nothing
        again = self.syslab(*words[1:], expect=1)
        self.assertIn("now      falsified", again.stdout)

    def test_3_places_are_shared_where_intervals_overlap_and_a_student_sees_three_above(self):
        """Five more with ada's code, as if they had been timed so."""
        work = self.grades / ".work"
        known = json.loads((work / "ada.times.json").read_text())
        (name,) = known["record"]
        times = {"p1": (1, 0.99, 1.01), "p2": (1.005, 0.995, 1.02), "p3": (2, 1.9, 2.1), "p4": (3, 2.9, 3.1), "p5": (0.5, 0.02, 20)}
        for student, (ratio, low, high) in times.items():
            self.rows.append((student, "repositories/ada", "2026-05-02"))
            shutil.copy(work / "ada.json", work / f"{student}.json")
            known["record"][name] = {"ratio": ratio, "low": low, "high": high, "seconds": ratio, "reference_seconds": 1}
            (work / f"{student}.times.json").write_text(json.dumps(known))
        known["record"][name] = {"ratio": 50, "low": 49, "high": 51, "seconds": 50, "reference_seconds": 1}
        (work / "ada.times.json").write_text(json.dumps(known))
        said = self.grade("--names")
        self.assertEqual(said.count("(as before)"), 7, said)
        board = {row["who"]: row["place"] for row in self.rows_of("leaderboard")}
        self.assertEqual(board, {"p5": "1 (shared)", "p1": "1 (shared)", "p2": "1 (shared)", "p3": "3", "p4": "4", "ada": "6"})
        numbers = {student: self.results(student)["leaderboard"][0]["value"] for student in board}
        self.assertEqual(numbers, {"p5": 0.5, "p1": 0.5, "p2": 0.5, "p3": 2, "p4": 3, "ada": 50})
        self.grade()
        lines = self.page("ada").split("## Leaderboard")[1].splitlines()
        table = [line for line in lines if line.startswith("| ") and not line.startswith("| place")]
        self.assertEqual(len(table), 4)
        self.assertIn("(you)", table[-1])
        aliases = {row["who"] for row in self.rows_of("leaderboard")}
        self.assertFalse(aliases & set(board))
        self.assertEqual(len(aliases), len(board))

    def test_4_another_seed_grades_again_and_since_spares_what_was_handed_in_before_and_has_not_changed(self):
        before = {row["student"]: row["flash_forward"] for row in self.rows_of("grades")}
        wrong = self.folder / "repositories/wrong/cs336_systems/flash.py"
        wrong.write_text(wrong.read_text() + "\n# changed\n")
        said = self.grade("--seed", "4711", "--since", "2026-05-03", "--jobs", "2", rubric="untimed.toml")
        again = {line.split("] ")[1].split(":")[0] for line in said.splitlines() if line.startswith("[") and "(as before)" not in line}
        self.assertEqual(again, {"ada", "wrong"})  # later, and changed
        self.assertEqual({row["student"]: row["flash_forward"] for row in self.rows_of("grades")}, before)
        self.assertNotIn("4711", self.page("wrong"))


if __name__ == "__main__":
    unittest.main()
