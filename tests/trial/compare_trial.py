#!/usr/bin/env python3
"""Puts `syslab compare` on trial: how often it calls identical work different, how often it finds a real slowdown.

    compare_trial.py --binary ./syslab                          150 times the same, 100 times 3 % slower
    compare_trial.py --binary ./syslab --lanes 8                eight trials at a time, each on a CPU of its own

Every trial is one run of `compare selftest_compare`, a case of exactly known length, with a seed and a database of its
own. A false alarm is a verdict `faster` or `slower` between identical sides; a slowdown is found when its verdict is
`slower`. Needs nothing but the binary and Python 3.

The bars: at most one false alarm in 150, and at least 95 % of the slowdowns. A trial smaller than that is too small to hold
against them, and fails when its counts would come up less than once in a hundred at exactly the bars' rates.
Exit code: 0 within the bars, 1 beyond them, 2 when a comparison could not be made.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SAME_BAR = (1, 150)       # false alarms of trials
SLOWER_BAR = (95, 100)    # found of trials
CHANCE = 0.01             # below which a smaller trial is held against its counts
VERDICTS = ("faster", "slower", "same", "unclear")


def binomial_cdf(k, n, p):
    """P(at most k of n)."""
    if k < 0:
        return 0.0
    return min(1.0, math.fsum(math.comb(n, i) * p**i * (1 - p)**(n - i) for i in range(min(k, n) + 1)))


def exact_interval(k, n, confidence=0.95):
    """Clopper and Pearson's interval of a rate: k of n seen."""
    def root(too_low):
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if too_low(middle) else (low, middle)
        return (low + high) / 2
    tail = (1 - confidence) / 2
    lower = 0.0 if k == 0 else root(lambda p: 1 - binomial_cdf(k - 1, n, p) < tail)
    upper = 1.0 if k == n else root(lambda p: binomial_cdf(k, n, p) > tail)
    return lower, upper


def within_same_bar(alarms, n):
    allowed, of = SAME_BAR
    if n >= of:
        return alarms <= n * allowed // of
    return 1 - binomial_cdf(alarms - 1, n, allowed / of) >= CHANCE


def within_slower_bar(found, n):
    wanted, of = SLOWER_BAR
    if n >= of:
        return found * of >= n * wanted
    return binomial_cdf(found, n, wanted / of) >= CHANCE


def cores():
    """One CPU of each core that this process may use: two threads of one core would disturb each other."""
    taken, chosen = set(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        try:
            path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            core = path.read_text(encoding="ascii").strip()
        except OSError:
            core = str(cpu)
        if core not in taken:
            taken.add(core)
            chosen.append(cpu)
    return chosen


class Broken(Exception):
    pass


def trial(options, slowdown, seed, cpu):
    """One comparison; its JSON line and the seconds it took. `cpu` None: wherever the system puts it."""
    with tempfile.TemporaryDirectory(prefix="syslab_trial_") as folder:
        command = [options.binary, "compare", "selftest_compare", "A:slowdown=0", f"B:slowdown={slowdown:g}",
                   "--same-on-purpose", "-a", f"work={options.work}", "--protocol", options.protocol, "--delta",
                   f"{options.delta:g}%", "--seed", str(seed), "--json", "--quiet", "--db", f"{folder}/trial.db"]
        if options.launches:
            command += ["--launches", str(options.launches)]
        pin = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        began = time.monotonic()
        done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False, preexec_fn=pin)
        took = time.monotonic() - began
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [line for line in lines if line.get("type") == "comparison"]
    if len(found) != 1 or found[0]["verdict"] not in VERDICTS:
        why = found[0].get("reason") if found else done.stderr[-2000:] or done.stdout[-2000:]
        raise Broken(f"{' '.join(command)}\nexit code {done.returncode}: {why}")
    return found[0], took


def run_all(options, jobs):
    """[(slowdown, comparison, seconds)] of all jobs, in the order in which they ended."""
    cpus = cores() if options.lanes > 1 or options.pin else [None]
    if options.lanes > len(cpus):
        raise Broken(f"--lanes {options.lanes}: there are {len(cpus)} cores for this process")
    free = queue.Queue()
    for cpu in cpus[-options.lanes:]:  # the first CPUs serve interrupts on many machines
        free.put(cpu)

    def one(job):
        slowdown, seed = job
        cpu = free.get()
        try:
            return (slowdown, *trial(options, slowdown, seed, cpu))
        finally:
            free.put(cpu)

    results = []
    with concurrent.futures.ThreadPoolExecutor(options.lanes) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        try:
            for future in concurrent.futures.as_completed(futures):
                results.append(future.result())
                slowdown, comparison, took = results[-1]
                if options.verbose:
                    print(f"{len(results)}/{len(jobs)}  +{slowdown:g} %  {comparison['verdict']:8}"
                          f"{percent(comparison['log_ratio'])} in [{percent(comparison['low'])},"
                          f"{percent(comparison['high'])}]  {comparison['launches']} launches  {took:.1f} s", flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


def percent(log_ratio):
    return f"{100 * math.expm1(log_ratio):+7.3f} %"


def tell(name, results, count_as, bar):
    """Prints what a group of trials came to; whether it is within its bar."""
    n = len(results)
    counts = {verdict: sum(c["verdict"] == verdict for _, c, _ in results) for verdict in VERDICTS}
    hits = sum(counts[verdict] for verdict in count_as)
    low, high = exact_interval(hits, n)
    ratios = [c["log_ratio"] for _, c, _ in results]
    half_widths = [(c["high"] - c["low"]) / 2 for _, c, _ in results]
    seconds = [took for *_, took in results]
    good = bar(hits, n)
    print(f"{name}: {hits} of {n} called {' or '.join(count_as)}, 95 % interval of the rate {100 * low:.2f} % to "
          f"{100 * high:.2f} %: {'within' if good else 'BEYOND'} the bar")
    print("    verdicts: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    spread = f", spread {100 * statistics.stdev(ratios):.3f} %" if n > 1 else ""
    print(f"    B/A - 1: mean{percent(statistics.fmean(ratios))}{spread}, median half-width of its interval "
          f"{100 * statistics.median(half_widths):.3f} %")
    print(f"    {statistics.median(seconds):.1f} s a trial (median; longest {max(seconds):.1f} s), "
          f"{statistics.fmean(c['launches'] for _, c, _ in results):.1f} launches (mean)")
    return good


def mixed(same, slower, slowdown):
    """The slowdowns of all trials, the two kinds spread evenly, so that a bad hour of the machine meets both."""
    total = same + slower
    return [slowdown if (i + 1) * slower // total > i * slower // total else 0.0 for i in range(total)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.environ.get("SYSLAB_BINARY", "syslab"))
    parser.add_argument("--same", type=int, default=150, metavar="N", help="trials of identical sides (150)")
    parser.add_argument("--slower", type=int, default=100, metavar="N", help="trials of a slower side (100)")
    parser.add_argument("--slowdown", type=float, default=3, metavar="PERCENT", help="of the slower side (3)")
    parser.add_argument("--delta", type=float, default=1, metavar="PERCENT", help="what counts as a difference (1)")
    parser.add_argument("--work", default="chain", choices=("chain", "walk"), help="registers (chain) or memory (walk)")
    parser.add_argument("--protocol", default="quick", help="as of compare (quick)")
    parser.add_argument("--launches", type=int, help="as of compare (as many as it takes)")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="trials at a time, each on its own core (1)")
    parser.add_argument("--pin", action="store_true", help="pin to one core with a single lane, too")
    parser.add_argument("--seed", type=int, default=1, help="of the first trial; each takes the next (1)")
    parser.add_argument("--results", metavar="FILE", help="write every comparison's JSON line there")
    parser.add_argument("--verbose", action="store_true", help="a line a trial")
    options = parser.parse_args()
    program = shutil.which(options.binary)
    if not program:
        parser.error(f"no program '{options.binary}'; name it by --binary or SYSLAB_BINARY")
    options.binary = os.path.abspath(program)

    jobs = mixed(options.same, options.slower, options.slowdown)
    began = time.monotonic()
    try:
        results = run_all(options, [(slowdown, options.seed + i) for i, slowdown in enumerate(jobs)])
    except Broken as broken:
        print(f"a comparison could not be made: {broken}", file=sys.stderr)
        return 2
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"slowdown": s, "seconds": t, **c}) + "\n" for s, c, t in results)
    same = [result for result in results if result[0] == 0]
    slower = [result for result in results if result[0] != 0]
    print(f"{len(results)} trials in {time.monotonic() - began:.0f} s, {options.lanes} at a time; "
          f"a difference is one beyond {options.delta:g} %")
    good = True
    if same:
        good &= tell("identical work", same, ("faster", "slower"), within_same_bar)
    if slower:
        good &= tell(f"{options.slowdown:g} % slower", slower, ("slower",), within_slower_bar)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
