#!/usr/bin/env python3
"""All tests of a build folder, one share of the end-to-end tests or another, and a row about them in the ledger.

    tools/long/all_tests.py BUILD [--processes N] [option of meson test ...]
    tools/long/all_tests.py --last     the last row and how many commits there are since

On two processors they take most of an hour. Exit code 1: a test failed; 2: no table for the row.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGER = ROOT / "reports" / "ledger" / "tests.md"
HEADER = "| date | commit | passed | failed | skipped | minutes | failed ones |"
LIMITS = 6  # times as long as a test may take alone: others run beside it


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def rows(lines):
    """Where the table's rows begin and end."""
    begin = end = lines.index(HEADER) + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return begin, end


def last():
    lines = LEDGER.read_text(encoding="utf-8").splitlines()
    begin, end = rows(lines)
    if begin == end:
        return f"WARNING: {LEDGER.relative_to(ROOT)} has no row: tools/long/all_tests.py BUILD"
    date, commit, passed, failed, skipped = [cell.strip(" `") for cell in lines[end - 1].strip("|").split("|")][:5]
    said = f"all tests last ran on {date}: {passed} passed, {failed} failed, {skipped} skipped"
    try:
        return f"{said}; {git('rev-list', '--count', f'{commit}..HEAD')} commits since then"
    except subprocess.CalledProcessError:  # a clone without its history
        return f"{said}; commit {commit} is not in this clone"


def row_of(log, commit, minutes):
    tests = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    failed = [one["name"].rpartition(" / ")[2] for one in tests if one["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")]
    skipped = sum(one["result"] == "SKIP" for one in tests)
    cells = (datetime.date.today(), f"`{commit}`", len(tests) - len(failed) - skipped, len(failed), skipped,
             round(minutes), " ".join(failed))
    return "| " + " | ".join(map(str, cells)) + " |", not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--processes", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--last", action="store_true")
    asked, options = parser.parse_known_args()
    try:
        if asked.last:
            print(last())
            return 0
        if asked.build is None:
            parser.error("which build folder?")
        commit, began = git("rev-parse", "--short", "HEAD"), time.monotonic()
        subprocess.run(["meson", "test", "-C", asked.build, "--no-rebuild", "--print-errorlogs", "--num-processes",
                        str(asked.processes), "--timeout-multiplier", str(LIMITS), "--logbase", "all", *options],
                       env={**os.environ, "SYSLAB_SHARE": "all", "OMP_WAIT_POLICY": "passive"}, check=False)
        row, well = row_of(asked.build / "meson-logs" / "all.json", commit, (time.monotonic() - began) / 60)
        lines = LEDGER.read_text(encoding="utf-8").splitlines()
        lines.insert(rows(lines)[1], row)
        LEDGER.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(row)
        return 0 if well else 1
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"all_tests: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
