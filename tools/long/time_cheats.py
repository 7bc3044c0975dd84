#!/usr/bin/env python3
"""What each known cheat of a timed call gains, as a table: by hand, on a quiet machine.

    SYSLAB_PYTHON=/usr/bin/python3 python3 tools/long/time_cheats.py build [-k WORD]

Every implementation of KINDS is measured by `run`, protocol quick, on the case of tests/e2e/test_shortcuts.py. One that
ends otherwise than `ok` has no time. One that is right, only late, stands beside an honest class that waits as long in
every call (20 ms): its gain is how much shorter its median is. Exit code 1: one gains more than 5 %.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASE = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "-a", "dtype=fp32", "--impl", "me",
        "--laws", "none",
        "--device", "cpu", "--protocol", "quick")
MOST = 0.05  # of an honest time
SHARE = {"cheats:AnswersEarly": 0.5}  # of the honest class's wait; it waits 10 ms

# What is tried → by which class of hostile/shortcuts.py or hostile/cheats.py, or by which library stale_*.so.
KINDS = {
    "the first answer of a shape, kept": "CachesByShape stale_by_shape",
    "the first answer at an address, kept": "CachesByAddress stale_by_address",
    "every 2nd, 3rd or 7th call answered with the last result":
        "EverySecondCall EverySeventhCall stale_every_second stale_every_third stale_every_seventh",
    "right for some calls, its last result from then on": "StaleFromThen DriftsLater",
    "each call answered with the result of the one before": "OneCallLate stale_one_late",
    "half of the rows": "HalfOfTheRows stale_half_the_rows",
    "the last rows left out": "SkipsLateRows",
    "nothing written, where the last answer lay": "Uninitialised stale_already",
    "NaN, which no comparison finds different": "NanWildcard",
    "zeros, within an absolute bound of what is small": "Zeros",
    "inputs changed to a question that costs nothing": "ZeroesInputs",
    "the mask ignored": "IgnoresTheMask",
    "an input handed back as the output": "ReturnsItsInput",
    "the expected answer looked for in memory": "FindsTheAnswer",
    "the interpreter's comparisons replaced": "ReplacesModules",
    "inputs made again from the seed": "ExpectsTheSeed",
    "left with exit code 0": "LeavesWithZero",
    "returned at once, filled in by a thread": "WorksBehindItsBack cheats:Lazy",
    "said to be done before it is": "cheats:AnswersEarly",
    "records of a good end, forged": "cheats:ForgedRecords",
    "shared memory cut off": "cheats:CutsMemory",
    "clocks stopped or lying": "PatchesTheClock cheats:LyingClock",
    "a result that is computed when it is read": "AnswersLazily",
    "answers kept by all of the content": "RemembersContent",
    "answers kept by a few numbers of the content": "RemembersACorner",
    "slow at first, so that fewer samples are taken": "SlowWarmUp",
}


def measured(syslab, mine, folder):
    """(status, median seconds or None)."""
    environment = {**os.environ, "SYSLAB_DB": str(folder / "lab.db"), "XDG_STATE_HOME": str(folder / "state"),
                   "NO_COLOR": "1"}
    done = subprocess.run([syslab, "run", "flash_forward", *CASE, "--mine", f"me={mine}", "--json"], cwd=folder,
                          env=environment, text=True,
                          capture_output=True)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    [ended] = [line for line in map(json.loads, done.stdout.splitlines()) if line.get("type") == "attempt"]
    asked = subprocess.run([syslab, "query", "SELECT value FROM v_result WHERE metric = 'time' ORDER BY attempt_uid "
                            "DESC LIMIT 1", "--to", "csv"],
                           cwd=folder, env=environment, text=True, capture_output=True, check=True).stdout.split()
    return ended["status"], float(asked[-1]) if ended["status"] == "ok" else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-k", default="", metavar="WORD", help="only kinds whose text holds this")
    arguments = parser.parse_args()
    build = arguments.build.resolve()

    def mine_of(name):
        if name.startswith("stale_"):
            return build / "tests" / "fixtures" / "plugins" / f"{name}.so"
        file, _, cls = name.rpartition(":")
        return f"{ROOT}/tests/e2e/hostile/{file or 'shortcuts'}.py:{cls}"

    worst, most = [], 0
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        honest = [measured(build / "syslab", mine_of("WorksHonestly"), folder)[1]]
        print("| what is tried | by | what becomes of it | gain |\n| --- | --- | --- | --- |")
        for kind, names in KINDS.items():
            if arguments.k not in kind:
                continue
            ends, gains = [], []
            for name in names.split():
                status, seconds = measured(build / "syslab", mine_of(name), folder)
                ends.append(status)
                if seconds is not None:  # beside what an honest class takes at this moment
                    honest.append(measured(build / "syslab", mine_of("WorksHonestly"), folder)[1])
                    gains.append(1 - seconds / min(honest[-2:]) / SHARE.get(name, 1))
            told = "none: no time" if not gains else f"{100 * max(gains):+.1f} %"
            worst += [kind] if gains and max(gains) > MOST else []
            most = max([most, *gains])
            said = ", ".join(f"`{name.rpartition(':')[2]}`" for name in names.split())
            print(f"| {kind} | {said} | {', '.join(dict.fromkeys(ends))} | {told} |", flush=True)
    print(f"\n{len(KINDS)} kinds; the largest gain is {100 * most:.1f} %")
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
