#!/usr/bin/env python3
"""Whether `syslab compare` tells one percent from none: identical sides, and sides that take 1 % and 0.5 % more, by a
knob of known length.

    planted_trial.py --binary ./syslab --impl selftest_cuda --steps 100000 --launches 20      on a GPU
    planted_trial.py --binary ./syslab --launches 20                                          on the CPU

One `compare selftest_compare` each, of many launches; then comparisons of --draw launches are drawn from those
launches, without replacement, 100 of each kind. Between identical sides each launch's sign is drawn, too, since nothing
may depend on which is A. Redrawn comparisons share launches: they show the rule at work on this machine's noise, not
100 independent afternoons.

The bars: of 100 identical at most 1 called at 0.5 %; of 100 with +1 % at least 95 `slower` at 0.5 %; of 100 with +0.5 %
none `same` at 0.25 %. Exit code: 0 within the bars, 1 beyond them.
"""
import argparse
import json
import math
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

# Student's 97.5 % quantile by degrees of freedom.
T = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


def verdict(values, delta):
    mean = statistics.fmean(values)
    half = T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    margin = math.log1p(delta)
    if mean - half > margin:
        return "slower"
    if mean + half < -margin:
        return "faster"
    return "same" if mean - half >= -margin and mean + half <= margin else "unclear"


def midmean(values):
    """The mean of the middle half, as src/stats/midmean.hpp has it where a quarter is a whole number."""
    values = sorted(values)
    cut = len(values) // 4
    return statistics.fmean(values[cut:len(values) - cut])


def launches_of(options, slowdown, folder):
    database = folder / f"{slowdown:g}.db"
    command = [options.binary, "--db", database, "compare", "selftest_compare", "A:slowdown=0",
               f"B:slowdown={slowdown:g}",
               "--launches", options.launches, "--budget", options.budget, "--delta", "0.5%", "-a",
               f"steps={options.steps}", "--protocol",
               options.protocol, "--quiet"]
    if options.impl:
        command += ["--impl", options.impl]
    if slowdown == 0:
        command.append("--same-on-purpose")
    began = time.monotonic()
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if done.returncode not in (0, 5, 6):
        sys.exit(f"{done.args} ended with {done.returncode}: {done.stderr[-500:]}")
    connection = sqlite3.connect(database)
    blocks = connection.execute("SELECT launch, log_ratio FROM comparison_block ORDER BY launch, block").fetchall()
    settled = connection.execute("SELECT count(*), sum(facts ->> '$.clock_settled') FROM attempt_facts"
                                 " WHERE facts ->> '$.clock_settled' IS NOT NULL").fetchone()
    took = (time.monotonic() - began) / len({launch for launch, _ in blocks})
    values = [midmean([ratio for at, ratio in blocks if at == launch])
              for launch in sorted({launch for launch, _ in blocks})]
    return values, done.stdout.strip().splitlines(), took, settled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--impl", default="")
    parser.add_argument("--steps", default="100000")
    parser.add_argument("--launches", default="20")
    parser.add_argument("--protocol", default="quick", help="as of compare (quick)")
    parser.add_argument("--budget", default="10m", help="of each of the three comparisons")
    parser.add_argument("--draw", type=int, default=6, choices=range(3, 13), metavar="3…12")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    options.binary = str(pathlib.Path(options.binary).resolve())
    dice, found, within = random.Random(23), [], True
    with tempfile.TemporaryDirectory() as folder:
        for slowdown, delta, what in ((0, 0.005, "called"), (1, 0.005, "slower"), (0.5, 0.0025, "same")):
            values, said, took, settled = launches_of(options, slowdown, pathlib.Path(folder))
            words = []
            for _ in range(100):
                drawn = dice.sample(values, min(options.draw, len(values)))
                if slowdown == 0:
                    drawn = [dice.choice((-1, 1)) * value for value in drawn]
                words.append(verdict(drawn, delta))
            count = sum(word in ("faster", "slower") for word in words) if what == "called" else words.count(what)
            held = count >= 95 if what == "slower" else count <= (1 if what == "called" else 0)
            within = within and held
            row = {"slowdown_percent": slowdown, "delta": delta, "launches": len(values),
                   "seconds_a_launch": round(took, 3),
                   "mean_percent": round(100 * (math.exp(statistics.fmean(values)) - 1), 4),
                   "launch_deviation_percent": round(100 * statistics.stdev(values), 4), what: count, "of": 100,
                   "unclear": words.count("unclear"), "within": held, "clocks_told_and_settled": settled,
                   "said": said[-3:]}
            found.append(row)
            print(json.dumps(row), flush=True)
            if options.output:
                pathlib.Path(options.output).write_text(json.dumps(found, indent=1))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
