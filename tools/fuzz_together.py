#!/usr/bin/env python3
"""Several processes of one fuzz target at once, and whether the target is through (tools/fuzz --jobs calls it).

    tools/fuzz_together.py --self-test
    tools/fuzz_together.py [--jobs N] [--seconds S] [--log FILE] PROGRAM [OPTION…] FOLDER [FOLDER…]

All processes write what they find into the first FOLDER and take over from it, once a second, what the others found.
What they say is stamped with the time, so that their inputs can be put into one order: those of all processes together,
without the ones that each reads at its beginning. An edge is new when a process reached it by an input of its own and
had not met it before, by itself or by an input of another's. So an edge that two of them reach within the same second
counts twice, the second time later: the mistake is on the strict side. A target is through with at least 200,000
inputs, none of whose last quarter reached a new edge. How long it runs is said before it begins.

Exit code 0: through. 1: not yet. 3: a process ended otherwise than by its time; its last lines are printed.
"""
import argparse
import io
import pathlib
import re
import selectors
import subprocess
import sys
import time

ENOUGH = 200_000
LINE = re.compile(rb"#(\d+)\s+(\w+)\s+cov: (\d+)")


class Fuzzer:
    """One process: how many inputs it had tried at which second, and when it reached new edges by itself."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.rest, self.last = b"", []
        self.read_first = None  # inputs that it read at its beginning
        self.edges, self.points, self.news = 0, [], []

    def hear(self, chunk, now, log):
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            log.write(line + b"\n")
            self.last = [*self.last[-60:], line.decode(errors="replace")]
            found = LINE.match(line)
            if found:
                self.tell(int(found[1]), found[2].decode(), int(found[3]), now)

    def tell(self, count, what, edges, now):
        if self.read_first is None:
            if what == "INITED":
                self.read_first, self.edges = count, edges
                self.points.append((now, 0))
            return
        self.points.append((now, count - self.read_first))
        if edges > self.edges:
            if what != "RELOAD":
                self.news.append((now, edges - self.edges))
            self.edges = edges

    def count(self):
        return self.points[-1][1] if self.points else 0

    def count_at(self, now):
        """Between two lines it went on evenly."""
        before = (0.0, 0)
        for point in self.points:
            if point[0] >= now:
                share = (now - before[0]) / (point[0] - before[0]) if point[0] > before[0] else 1
                return before[1] + share * (point[1] - before[1])
            before = point
        return before[1]


def run(command, jobs, log):
    fuzzers = [Fuzzer([*command, f"-seed={seed}", "-print_final_stats=1", "-reload=1"]) for seed in range(1, jobs + 1)]
    began = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for fuzzer in fuzzers:
            assert fuzzer.process.stderr is not None  # a pipe
            selector.register(fuzzer.process.stderr, selectors.EVENT_READ, fuzzer)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = key.data.process.stderr.read1(65536)
                if chunk:
                    key.data.hear(chunk, time.monotonic() - began, log)
                else:
                    selector.unregister(key.fileobj)
    for fuzzer in fuzzers:
        fuzzer.process.wait()
    return fuzzers


def verdict(fuzzers):
    """The inputs of all, the edges that one of them met at most, and the last new edge by the number of its input, and
    how many came behind three quarters of all."""
    total = sum(fuzzer.count() for fuzzer in fuzzers)
    news = sorted((sum(other.count_at(now) for other in fuzzers), edges) for fuzzer in fuzzers
                  for now, edges in fuzzer.news)
    late = sum(edges for at, edges in news if at > total * 3 / 4)
    return total, max(fuzzer.edges for fuzzer in fuzzers), int(news[-1][0]) if news else 0, late


def self_test():
    """Two processes of which one hears of an edge from the other, and one that finds an edge late."""
    def told(*lines):
        fuzzer = Fuzzer.__new__(Fuzzer)
        fuzzer.rest, fuzzer.last, fuzzer.read_first, fuzzer.edges, fuzzer.points, fuzzer.news = b"", [], None, 0, [], []
        for now, line in lines:
            fuzzer.hear(line[:5], now, io.BytesIO())  # in two pieces, as pipes give it
            fuzzer.hear(line[5:] + b"\n", now, io.BytesIO())
        return fuzzer
    first = told((1, b"#50\tINITED cov: 10 ft: 3"), (2, b"#100050\tNEW    cov: 12 ft: 4"),
                 (9, b"#160050\tDONE   cov: 12 ft: 4"))
    heard = told((1, b"#60\tINITED cov: 10 ft: 3"), (8, b"#70060\tRELOAD cov: 12 ft: 4"),
                 (9, b"#80060\tDONE   cov: 12 ft: 4"))
    late = told((1, b"#60\tINITED cov: 10 ft: 3"), (8, b"#70060\tREDUCE cov: 11 ft: 4"),
                (9, b"#80060\tDONE   cov: 12 ft: 4"))
    found = verdict([first, heard]), verdict([first, late])
    expected = (240_000, 12, 110_000, 0), (240_000, 12, 240_000, 2)
    if found != expected:
        sys.exit(f"found {found}, expected {expected}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--log", type=pathlib.Path, default=pathlib.Path("/dev/null"))
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if len(arguments.command) < 2 or arguments.jobs < 1 or arguments.seconds < 1:
        parser.error("name a program and a folder")
    began = time.monotonic()
    with arguments.log.open("wb") as log:
        fuzzers = run([*arguments.command, f"-max_total_time={arguments.seconds}"], arguments.jobs, log)
    name = pathlib.Path(arguments.command[0]).name.removeprefix("fuzz_")
    broken = [fuzzer for fuzzer in fuzzers if fuzzer.process.returncode != 0]
    total, edges, newest, late = verdict(fuzzers)
    through = total >= ENOUGH and late == 0
    print(f"{name:20} {total:9} inputs, {edges:6} edges, the last new one by input {newest}, {late} in the last "
          f"quarter, {time.monotonic() - began:.0f} s, {len(fuzzers)} processes: "
          f"{'through' if through else 'not through'}", flush=True)
    if broken:
        print("\n".join(broken[0].last))
        sys.exit(3)
    sys.exit(0 if through else 1)


if __name__ == "__main__":
    main()
