#!/usr/bin/env python3
"""The rubric grades what the hand-outs ask: the same problems and points as reports/deliverables.json, every part of
them, and parts that add up. And the scorer refuses sheets that a total would be wrong of.

    rubric_test.py ROOT
"""
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools/rubric"))
import rubric  # noqa: E402

DELIVERABLES = {problem["id"]: problem
                for problem in json.loads((ROOT / "reports/deliverables.json").read_text(encoding="utf-8"))}
HANDOUTS = {"2025": 107, "2026": 137}


class Rubric(unittest.TestCase):
    def setUp(self):
        self.rubric = rubric.load()

    def test_problems_and_points_are_the_handouts(self):
        self.assertEqual({p["id"]: p["points"] for p in self.rubric["problems"]},
                         {p["id"]: p["points"] for p in DELIVERABLES.values()})

    def test_parts_add_up_to_their_problem_and_problems_to_the_whole(self):
        for handout, whole in HANDOUTS.items():
            sums: dict[str, int] = {}
            for problem, _, points, _, _ in rubric.parts(self.rubric, handout):
                sums[problem] = sums.get(problem, 0) + points
            for problem, points in sums.items():
                self.assertEqual(points, DELIVERABLES[problem]["points"][handout], problem)
            self.assertEqual(sum(sums.values()), whole)

    def test_every_part_that_is_asked_for_is_graded(self):
        for handout in HANDOUTS:
            graded = {(problem, part) for problem, part, _, _, _ in rubric.parts(self.rubric, handout)}
            for problem in DELIVERABLES.values():
                if not problem["points"].get(handout):
                    continue
                for one in problem["deliverables"]:
                    if one.get("handout", handout) == handout:
                        self.assertIn((problem["id"], one["part"]), graded)

    def test_no_ground_costs_more_than_its_part(self):
        for handout in HANDOUTS:
            for problem, part, points, _, less in rubric.parts(self.rubric, handout):
                for ground in less:
                    self.assertTrue(0 < ground["points"] <= points, f"{problem} {part}: {ground}")


class Sheets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "sheet.csv"
        out = io.StringIO()
        rubric.sheet(rubric.load(), "2026", out)
        self.rows = out.getvalue().splitlines()

    def filled(self, points=None, rows=None):
        """A sheet on which every part has full marks, or `points`."""
        lines = [self.rows[0]]
        for row in (self.rows[1:] if rows is None else rows):
            problem, part, of, _, rest = row.split(",", 4)
            lines.append(",".join([problem, part, of, of if points is None else points, rest]))
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.path

    def score(self, *paths):
        out = io.StringIO()
        rubric.score(rubric.load(), "2026", paths, out)
        return out.getvalue()

    def test_full_marks_are_the_whole(self):
        self.assertEqual(self.score(self.filled()), "Sums: 137 of 137; 137 counts\n")

    def test_the_lower_of_two_counts_and_what_differs_is_shown(self):
        other = self.path.with_name("other.csv")
        other.write_text(self.filled().read_text().replace("fsdp,,15,15,", "fsdp,,15,12,"))
        self.assertEqual(self.score(self.path, other), "fsdp: 15, 12 of 15\nSums: 137, 134 of 137; 134 counts\n")

    def refused(self, why):
        with self.assertRaisesRegex(ValueError, why):
            self.score(self.path)

    def test_wrong_sheets_are_refused(self):
        self.filled(points="")
        self.refused("is no number of points")
        self.filled(points="99")
        self.refused("points where 0 to")
        self.filled(points="nan")
        self.refused("points where 0 to")
        self.filled(rows=self.rows[1:-1])
        self.refused("no row for fsdp_tp_calcs d")
        self.filled(rows=self.rows[1:] + self.rows[-1:])
        self.refused("stands there twice")
        self.path.write_text("a,b\n")
        self.refused("its first line is")


if __name__ == "__main__":
    unittest.main()
