"""No fact travels in prose: the program with a placeholder for each text of src/words says the same with --json."""
import csv
import json
import os
import unittest

from lab import SYSLAB, Lab
from submitted import BOTH_FLASHES, make, rubric

PLUGINS = os.environ["SYSLAB_PLUGINS"]
SCRAMBLED = os.environ["SYSLAB_SCRAMBLED"]
PLACEHOLDER = "§"
# What is decided; times, names of runs and sentences differ from run to run, or from one program to the other.
FACTS = {"type", "law", "contract", "outcome", "verdict", "cause", "reason_code", "status", "code", "failed_a", "failed_b",
         "chosen_by", "implementation", "points", "of", "decided", "state", "kind", "counts", "launches_a", "launches_b"}


def facts(value):
    """The same value with nothing but facts and what holds them."""
    if isinstance(value, list):
        return [facts(one) for one in value if isinstance(one, (list, dict))]
    if isinstance(value, dict):
        return {key: facts(one) for key, one in value.items() if key in FACTS or isinstance(one, (list, dict))}
    return value


class Scrambled(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def said(self, program, arguments):
        self.program = program
        self.db = self.folder / f"{os.path.basename(program)}.db"
        done = self.syslab(*arguments, "--json", expect=None)
        lines = done.stdout.splitlines() if arguments[0] in ("check", "compare") else [done.stdout]
        return done.returncode, [facts(json.loads(line)) for line in lines]

    def command(self, *arguments):
        return [self.program, *map(str, arguments)]

    def assert_same(self, *arguments, expect):
        plain, scrambled = (self.said(program, arguments) for program in (SYSLAB, SCRAMBLED))
        self.assertEqual(plain[0], expect)
        self.assertEqual(plain, scrambled)
        return scrambled[1]

    def test_a_check(self):
        for library, code in (("faulty_attention", 1), ("naive_attention", 0)):
            self.assert_same("check", "flash_forward", "--mine", f"me={PLUGINS}/{library}.so", "--cases", "2", "--seed", "7",
                             "--contract", "handout", expect=code)
        self.program = SCRAMBLED
        done = self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/naive_attention.so", "--cases", "1", "-k", "repeats")
        self.assertIn(PLACEHOLDER, done.stdout)
        self.assertNotIn("PASS", done.stdout)

    def test_a_comparison(self):
        compare = ("compare", "selftest_compare", "-a", "steps=100000", "--launches", "3")
        self.assertIn('"slower"', json.dumps(self.assert_same(*compare, "A:slowdown=0", "B:slowdown=400", expect=6)))
        self.assert_same(*compare, "A:fault=none", "B:fault=wrong", expect=1)

    def test_a_claim(self):
        claim = ("claim", "slowdown=0 >= 2 x slowdown=900", "selftest_compare", "-a", "steps=100000", "--protocol", "quick",
                 "--launches", "4", "-o", "x.claim")
        [said] = self.assert_same(*claim, expect=0)
        self.assertEqual((said["verdict"], said["cause"]), ("confirmed", "every_case"))
        self.assert_same("verify", "x.claim", "--launches", "4", expect=0)

    def test_grades(self):
        folder = self.folder / "submissions"
        make(folder / "wrong", "NoScale")
        make(folder / "right")
        (self.folder / "rubric.toml").write_text(rubric(BOTH_FLASHES), encoding="utf-8")
        graded = []
        for program in (SYSLAB, SCRAMBLED):
            self.program, pages = program, self.folder / os.path.basename(program)
            self.syslab("grade", folder, "--handout", "2026", "--rubric", "rubric.toml", "-o", pages, "--cases", "2", "--seed", "7")
            with open(pages / "grades.csv", newline="", encoding="utf-8") as file:
                graded.append([(row["student"], row["points"], row["flash_forward"]) for row in csv.DictReader(file)])
        self.assertEqual(*graded)
        self.assertGreater(len({points for _, points, _ in graded[0]}), 1)


if __name__ == "__main__":
    unittest.main()
