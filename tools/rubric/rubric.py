#!/usr/bin/env python3
"""Grades a write-up as a strict teaching assistant would, from the PDF alone.

    tools/rubric/rubric.py sheet --handout 2026 > first.csv     # a sheet to fill in: one row a part
    tools/rubric/rubric.py score --handout 2026 first.csv second.csv

Two people fill in a sheet each without seeing the other's; the lower sum counts. What a part asks for, and what costs
how much, is in rubric.json beside this file.
"""

import argparse
import csv
import json
import pathlib
import sys

COLUMNS = ["problem", "part", "of", "given", "because"]


def load(path=pathlib.Path(__file__).with_name("rubric.json")):
    return json.loads(path.read_text(encoding="utf-8"))


def parts(rubric, handout):
    """(problem, part's letter or "", points, what full marks need, what costs how much) of one hand-out, in order."""
    for problem in rubric["problems"]:
        if handout not in problem["points"]:
            continue
        for part in problem["parts"]:
            if part.get("handout", handout) == handout:
                yield problem["id"], part["part"], part["points"], part["full"], part["less"]


def sheet(rubric, handout, out):
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for problem, letter, points, full, less in parts(rubric, handout):
        grounds = "; ".join(f"-{row['points']:g} {row['when']}" for row in less)
        writer.writerow([problem, letter, f"{points:g}", "", f"full: {full}" + (f" | {grounds}" if grounds else "")])


def read_sheet(path, rubric, handout):
    """Points given a part. ValueError names the file and row of what is missing, unknown or out of range."""
    wanted = {(problem, letter): points for problem, letter, points, _, _ in parts(rubric, handout)}
    given = {}
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            raise ValueError(f"{path}: its first line is {reader.fieldnames}, not {COLUMNS}: write it with `sheet`")
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            key = (row["problem"], row["part"])
            if key not in wanted:
                raise ValueError(f"{where}: hand-out {handout} has no part '{key[1]}' of {key[0]}")
            if key in given:
                raise ValueError(f"{where}: {key[0]} {key[1]} stands there twice")
            try:
                points = float(row["given"])
            except ValueError:
                raise ValueError(f"{where}: '{row['given']}' is no number of points; every part wants one") from None
            if not 0 <= points <= wanted[key]:
                raise ValueError(f"{where}: {points:g} points where 0 to {wanted[key]:g} can be given")
            given[key] = points
    missing = [f"{problem} {letter}".strip() for problem, letter in wanted if (problem, letter) not in given]
    if missing:
        raise ValueError(f"{path}: no row for {', '.join(missing)}")
    return given


def score(rubric, handout, paths, out):
    sheets = [read_sheet(path, rubric, handout) for path in paths]
    total = sum(points for _, _, points, _, _ in parts(rubric, handout))
    for problem, letter, points, _, _ in parts(rubric, handout):
        row = [given[problem, letter] for given in sheets]
        if min(row) < points or len(set(row)) > 1:
            print(f"{problem} {letter}".strip() + ": " + ", ".join(f"{value:g}" for value in row) + f" of {points:g}",
                  file=out)
    sums = [sum(given.values()) for given in sheets]
    print("Sums: " + ", ".join(f"{value:g}" for value in sums) + f" of {total:g}; {min(sums):g} counts", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("sheet", "score"):
        of_verb = verbs.add_parser(verb)
        of_verb.add_argument("--handout", required=True, choices=("2025", "2026"))
        if verb == "score":
            of_verb.add_argument("sheets", nargs="+")
    options = parser.parse_args()
    rubric = load()
    if options.verb == "sheet":
        sheet(rubric, options.handout, sys.stdout)
        return 0
    try:
        score(rubric, options.handout, options.sheets, sys.stdout)
    except (OSError, ValueError) as error:
        print(f"rubric: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
