#!/usr/bin/env python3
"""Puts `syslab compare` on trial: how often it calls identical work different, how often it finds a real slowdown.

    compare_trial.py --binary ./syslab                          150 times the same, 100 times 3 % slower
    compare_trial.py --binary ./syslab --lanes 12 --minutes 9   twelve at a time, each on a core of its own; no new one
                                                                after nine minutes
    compare_trial.py --binary ./syslab --impl selftest_cuda --steps 100000 --launches 3      on a GPU, where a launch is
                                                                 expensive
    compare_trial.py … --results trial.jsonl --resume           keeps every trial as it ends, and goes on where a call
                                                                before this one stopped

Every trial is one run of `compare selftest_compare`, a case of exactly known length, with a seed and a database of its
own. A false alarm is a verdict `faster` or `slower` between identical sides; a slowdown is found when its verdict is
`slower`. Needs nothing but the binary and Python 3.

The bars: at most one false alarm in 150, and at least 95 % of the slowdowns. A trial smaller than that is too small to
hold against them, and fails when its counts would come up less often than --chance at exactly the bars' rates.
Exit code: 0 within the bars, 1 beyond them, 2 when a comparison could not be made, 3 when trials are missing (out of
minutes, interrupted) and those that were made are within.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SAME_BAR = (1, 150)    # false alarms of trials
SLOWER_BAR = (95, 100)  # found of trials
VERDICTS = ("faster", "slower", "same", "unclear")
TRIAL_LIMIT = 300      # seconds after which a comparison hangs; it takes some 5 s
MOST_BROKEN = 3        # comparisons that could not be made: the next could not be made either
# Results of others are another trial's.
CONDITIONS = ("work", "protocol", "delta", "launches", "two_builds", "impl", "steps")


def binomial_cdf(k, n, p):
    """P(at most k of n)."""
    if k < 0:
        return 0.0
    return min(1.0, math.fsum(math.comb(n, i) * p**i * (1 - p)**(n - i) for i in range(min(k, n) + 1)))


def binomial_tail(k, n, p):
    """P(at least k of n): summed as it is, for 1 − P(fewer) loses what is small."""
    return min(1.0, math.fsum(math.comb(n, i) * p**i * (1 - p)**(n - i) for i in range(max(k, 0), n + 1)))


def exact_interval(k, n, confidence=0.95):
    """Clopper and Pearson's interval of a rate: k of n seen."""
    def root(too_low):
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if too_low(middle) else (low, middle)
        return (low + high) / 2
    tail = (1 - confidence) / 2
    lower = 0.0 if k == 0 else root(lambda p: binomial_tail(k, n, p) < tail)
    upper = 1.0 if k == n else root(lambda p: binomial_cdf(k, n, p) > tail)
    return lower, upper


def within_same_bar(alarms, n, chance):
    allowed, of = SAME_BAR
    if n >= of:
        return alarms * of <= n * allowed
    return binomial_tail(alarms, n, allowed / of) >= chance


def within_slower_bar(found, n, chance):
    wanted, of = SLOWER_BAR
    if n >= of:
        return found * of >= n * wanted
    return binomial_cdf(found, n, wanted / of) >= chance


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


def cpus_for(options):
    """The CPU of each lane; None: wherever the system puts it."""
    if options.unpinned or (options.lanes == 1 and not options.pin):
        return [None] * options.lanes
    cpus = cores()
    if options.lanes > len(cpus):
        raise Broken(f"--lanes {options.lanes}: there are {len(cpus)} cores for this process (--unpinned takes no "
                     "notice)")
    return cpus[-options.lanes:]  # the first CPUs serve interrupts on many machines


class Results:
    """What the trials came to, in memory and, a line a trial as it ends, in the file."""

    def __init__(self, options):
        self.conditions = {name: getattr(options, name) for name in CONDITIONS}
        self.lines, self.file = [], None
        if options.results:
            path = pathlib.Path(options.results)
            if path.exists() and path.stat().st_size > 0:
                if not options.resume:
                    raise Broken(f"{path} holds results already: --resume goes on with them, or name another file")
                self.lines = [self.own(line, path) for line in self.whole_lines(path)]
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = open(path, "w", encoding="utf-8")  # without a line that a kill cut in two
            for line in self.lines:
                self.write(line)

    @staticmethod
    def whole_lines(path):
        for text in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(text)

    def own(self, line, path):
        if line.get("conditions") != self.conditions:
            raise Broken(f"{path} was measured under {line.get('conditions')}, this trial is {self.conditions}: "
                         "give both the same options, or another file")
        return line

    def write(self, line):
        if self.file:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def add(self, slowdown, seed, seconds, comparison):
        line = {"slowdown": slowdown, "seed": seed, "seconds": seconds, "conditions": self.conditions, **comparison}
        self.lines.append(line)
        self.write(line)
        return line

    def has(self, slowdown, seed):
        return any(line["slowdown"] == slowdown and line["seed"] == seed for line in self.lines)


class Trial:
    """All comparisons, in lanes; a lane is a thread that keeps to one core, and with it the processes that it
    starts."""

    def __init__(self, options, cpus, results):
        self.options, self.cpus, self.results = options, cpus, results
        self.jobs: queue.SimpleQueue = queue.SimpleQueue()
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.running, self.broken = set(), []
        self.began = self.told = time.monotonic()
        self.planned = self.done = 0

    def run(self, jobs):
        """True when all were run. An interruption ends those that run, and keeps those that ended."""
        wanted = [job for job in jobs if not self.results.has(*job)]
        self.planned = len(wanted)
        for job in wanted:
            self.jobs.put(job)
        lanes = [threading.Thread(target=self.lane, args=(cpu,)) for cpu in self.cpus]
        try:
            for lane in lanes:
                lane.start()
            for lane in lanes:
                while lane.is_alive():
                    lane.join(0.5)
                    self.progress()
        except KeyboardInterrupt:
            print("interrupted: what ended before counts", file=sys.stderr, flush=True)
            self.end_running()
            for lane in lanes:
                lane.join()
        return self.done == self.planned

    def end_running(self):
        self.stop.set()
        with self.lock:
            for process in self.running:
                process.send_signal(signal.SIGINT)

    def out_of_time(self):
        return self.options.minutes and time.monotonic() - self.began > 60 * self.options.minutes

    def lane(self, cpu):
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})  # of this thread
        while not self.stop.is_set() and not self.out_of_time():
            try:
                slowdown, seed = self.jobs.get_nowait()
            except queue.Empty:
                return
            try:
                began = time.monotonic()
                comparison = self.compare(slowdown, seed)
                with self.lock:
                    line = self.results.add(slowdown, seed, time.monotonic() - began, comparison)
                    self.done += 1
                    if self.options.verbose:
                        print(told(line, self.done, self.planned), flush=True)
            except Broken as broken:
                with self.lock:
                    if not self.stop.is_set():
                        self.broken.append(str(broken))
                        print(f"a comparison could not be made: {broken}", file=sys.stderr, flush=True)
                    if len(self.broken) >= MOST_BROKEN:
                        self.stop.set()

    def compare(self, slowdown, seed):
        """The JSON line of one comparison."""
        options = self.options
        with tempfile.TemporaryDirectory(prefix="syslab_trial_") as folder:
            side_a = "A:slowdown=0"
            if options.two_builds:
                other = shutil.copy(options.binary, pathlib.Path(folder) / "other_build")
                side_a += f",build={other}"
            command = [options.binary, "compare", "selftest_compare", side_a, f"B:slowdown={slowdown:g}",
                       "--same-on-purpose", "-a", f"work={options.work}", "--protocol", options.protocol, "--delta",
                       f"{options.delta:g}%", "--seed", str(seed), "--json", "--quiet", "--db", f"{folder}/trial.db"]
            if options.impl:
                command += ["--impl", options.impl]
            if options.steps:
                command += ["-a", f"steps={options.steps}"]
            if options.launches:
                command += ["--launches", str(options.launches)]
            # A session of its own: Ctrl-C on a terminal is for this program, which passes it on.
            process = subprocess.Popen(command, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True)
            with self.lock:
                self.running.add(process)
                if self.stop.is_set():
                    process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=TRIAL_LIMIT)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # which also ends its workers
                try:
                    process.communicate(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                raise Broken(f"{' '.join(command)}\nno end after {TRIAL_LIMIT} s") from None
            finally:
                with self.lock:
                    self.running.discard(process)
        if self.stop.is_set():
            raise Broken("interrupted")
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        found = [line for line in lines if line.get("type") == "comparison"]
        if len(found) != 1 or found[0]["verdict"] not in VERDICTS or found[0]["low"] is None:
            why = found[0].get("reason") if found else err[-2000:] or out[-2000:]
            raise Broken(f"{' '.join(command)}\nexit code {process.returncode}: {why}")
        return found[0]

    def progress(self):
        """A line now and then, so that a long trial is seen to live, and leaves its counts behind if it is cut off."""
        now = time.monotonic()
        if now - self.told < self.options.every or self.done == 0:
            return
        self.told = now
        with self.lock:
            done, lines = self.done, list(self.results.lines)
        same = [line["verdict"] for line in lines if line["slowdown"] == 0]
        slower = [line["verdict"] for line in lines if line["slowdown"] != 0]
        alarms = sum(verdict in ("faster", "slower") for verdict in same)
        left = (now - self.began) / done * (self.planned - done)
        print(f"{done}/{self.planned} trials in {now - self.began:.0f} s, about {left:.0f} s left: {alarms} of "
              f"{len(same)} false alarms, {slower.count('slower')} of {len(slower)} slowdowns found",
              file=sys.stderr, flush=True)


def percent(log_ratio):
    return f"{100 * math.expm1(log_ratio):+7.3f} %"


def told(line, number, planned):
    return (f"{number}/{planned}  +{line['slowdown']:g} %  {line['verdict']:8}{percent(line['log_ratio'])} in "
            f"[{percent(line['low'])},{percent(line['high'])}]  {line['launches']} launches  {line['seconds']:.1f} s")


def tell(name, lines, count_as, bar, chance):
    """Prints what a group of trials came to; whether it is within its bar."""
    n = len(lines)
    counts = {verdict: sum(line["verdict"] == verdict for line in lines) for verdict in VERDICTS}
    hits = sum(counts[verdict] for verdict in count_as)
    low, high = exact_interval(hits, n)
    ratios = [line["log_ratio"] for line in lines]
    half_widths = [(line["high"] - line["low"]) / 2 for line in lines]
    seconds = [line["seconds"] for line in lines]
    good = bar(hits, n, chance)
    print(f"{name}: {hits} of {n} called {' or '.join(count_as)}, 95 % interval of the rate {100 * low:.2f} % to "
          f"{100 * high:.2f} %: {'within' if good else 'BEYOND'} the bar")
    print("    verdicts: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    spread = f", spread {100 * statistics.stdev(ratios):.3f} %" if n > 1 else ""
    print(f"    B/A - 1: mean{percent(statistics.fmean(ratios))}{spread}, median half-width of its interval "
          f"{100 * statistics.median(half_widths):.3f} %")
    print(f"    {statistics.median(seconds):.1f} s a trial (median; longest {max(seconds):.1f} s), "
          f"{statistics.fmean(line['launches'] for line in lines):.1f} launches (mean)")
    return good


def mixed(same, slower, slowdown):
    """The slowdowns of all trials, the two kinds spread evenly, so that a bad hour of the machine meets both."""
    total = same + slower
    return [slowdown if (i + 1) * slower // total > i * slower // total else 0.0 for i in range(total)]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.environ.get("SYSLAB_BINARY", "syslab"))
    parser.add_argument("--same", type=int, default=150, metavar="N", help="trials of identical sides (150)")
    parser.add_argument("--slower", type=int, default=100, metavar="N", help="trials of a slower side (100)")
    parser.add_argument("--slowdown", type=float, default=3, metavar="PERCENT", help="of the slower side (3)")
    parser.add_argument("--delta", type=float, default=1, metavar="PERCENT", help="what counts as a difference (1)")
    parser.add_argument("--work", default="chain", choices=("chain", "walk"), help="registers (chain) or memory (walk)")
    parser.add_argument("--impl", help="selftest or selftest_cuda (whichever runs here by default)")
    parser.add_argument("--steps", type=int, help="of a call (500,000: about 1 ms)")
    parser.add_argument("--protocol", default="quick", help="as of compare (quick)")
    parser.add_argument("--two-builds", action="store_true",
                        help="side A is a copy of the program, as another build is")
    parser.add_argument("--launches", type=int, help="as of compare (as many as it takes)")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="trials at a time, each on its own core (1)")
    parser.add_argument("--pin", action="store_true", help="keep to one core with a single lane, too")
    parser.add_argument("--unpinned", action="store_true", help="lanes go wherever the system puts them")
    parser.add_argument("--minutes", type=float, metavar="M", help="start no trial after so many")
    parser.add_argument("--every", type=float, default=20, metavar="SECONDS", help="between lines of progress (20)")
    parser.add_argument("--chance", type=float, default=0.01, metavar="P",
                        help="how improbable the counts of a small trial must be before it fails (0.01)")
    parser.add_argument("--seed", type=int, default=1, help="of the first trial; each takes the next (1)")
    parser.add_argument("--results", metavar="FILE", help="write every comparison's JSON line there as it ends")
    parser.add_argument("--resume", action="store_true", help="what --results holds counts, and is not measured again")
    parser.add_argument("--verbose", action="store_true", help="a line a trial")
    options = parser.parse_args()
    if options.same < 0 or options.slower < 0 or options.same + options.slower == 0:
        parser.error("there is no trial: --same and --slower are counts, one of them above 0")
    if options.slowdown == 0:
        parser.error("--slowdown 0 is no slowdown; identical sides are --same")
    if options.lanes < 1:
        parser.error("--lanes is 1 or more")
    if options.resume and not options.results:
        parser.error("--resume goes on with the file of --results; name one")
    program = shutil.which(options.binary)
    if not program:
        parser.error(f"no program '{options.binary}'; name it by --binary or SYSLAB_BINARY")
    options.binary = os.path.abspath(program)
    return options


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    options = parsed()
    signal.signal(signal.SIGTERM, interrupt)  # of timeout(1)
    jobs = [(slowdown, options.seed + i)
            for i, slowdown in enumerate(mixed(options.same, options.slower, options.slowdown))]
    try:
        trial = Trial(options, cpus_for(options), Results(options))
        complete = trial.run(jobs)
    except Broken as broken:
        print(broken, file=sys.stderr)
        return 2
    lines = trial.results.lines
    same = [line for line in lines if line["slowdown"] == 0]
    slower = [line for line in lines if line["slowdown"] != 0]
    print(f"{len(lines)} trials, {trial.done} of them now in {time.monotonic() - trial.began:.0f} s, {options.lanes} "
          f"at a time; a difference is one beyond {options.delta:g} %")
    if not complete:
        print(f"CUT SHORT: {trial.planned - trial.done} of {trial.planned} trials were not made")
    good = True
    if same:
        good &= tell("identical work", same, ("faster", "slower"), within_same_bar, options.chance)
    if slower:
        slowdowns = "/".join(f"{slowdown:g}" for slowdown in sorted({line["slowdown"] for line in slower}))
        good &= tell(f"{slowdowns} % slower", slower, ("slower",), within_slower_bar, options.chance)
    if trial.broken:
        print(f"{len(trial.broken)} comparisons could not be made")
        return 2
    return 1 if not good else 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
