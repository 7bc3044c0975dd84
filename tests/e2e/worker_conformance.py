#!/usr/bin/env python3
"""Drives a worker through its protocol and says what it got wrong.

    worker_conformance.py --protocol docs/worker-wire.md [--case EXPERIMENT] [--call] -- COMMAND...

Works on any worker of any language: the command is started as syslab would start it. The transcripts of the
protocol's page are replayed message by message; what a worker says it serves is then tried further. --case names an
experiment that a worker serving "case" can pass (parameters by --param NAME=JSON); --call says that the worker's
"attention_forward" is to be tried. Prints one line a demand and exits 1 if any was not met (with --must-fail: if all
were, to show that this program sees a planted fault).
"""
import argparse
import json
import math
import mmap
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
import time

VERSION = 1
RECORDS = {"metric", "sample", "check", "artifact", "memory", "kernel", "span", "progress", "fact", "end"}
STATUSES = {"ok", "check_failed", "unsupported", "oom", "error"}  # those a worker itself may end in
GUARD, PATIENCE_S = 0xA5, 120.0


class Worker:
    """One started worker, from the host's side."""

    def __init__(self, command):
        self.memory_fd = os.memfd_create("conformance")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        pass_fds=[self.memory_fd], start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        os.close(self.memory_fd)

    def send(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(struct.pack("<I", len(body)) + body)
        self.process.stdin.flush()

    def receive(self):
        """The next message, or None at the end of the pipe. Everything read must be frames."""
        header = self.process.stdout.read(4)
        if not header:
            return None
        assert len(header) == 4, f"half a frame: {header!r}"
        (length,) = struct.unpack("<I", header)
        assert 2 <= length <= 64 << 20, f"a frame of {length} bytes; the first are {header!r}"
        body = self.process.stdout.read(length)
        assert len(body) == length, f"half a frame: {body!r}"
        assert body[:1] == b"{", f"a frame that is no JSON object: {body[:40]!r}"
        return json.loads(body)

    def hello(self, **more):
        self.send({"type": "hello", "protocol": VERSION, "host": "conformance", "memory_fd": self.memory_fd,
                   "memory_limit_bytes": 0, **more})
        return self.receive()

    def exit_code(self):
        return self.process.wait(timeout=PATIENCE_S)


def need(condition, text):
    if not condition:
        raise AssertionError(text)


def matches(expected, found, where="message"):
    """The page's words: "..." in a transcript stands for any value; keys it does not show may be there."""
    if expected == "...":
        return
    if isinstance(expected, dict):
        need(isinstance(found, dict), f"{where}: expected an object, found {found!r}")
        for key, value in expected.items():
            need(key in found, f"{where}: '{key}' is missing in {found}")
            matches(value, found[key], f"{where}.{key}")
    else:
        need(expected == found, f"{where}: expected {expected!r}, found {found!r}")


def transcripts(path):
    """Blocks of the page fenced as ```transcript NAME: lines "> {json}" to the worker, "< {json}" from it, and
    "= BYTE NUMBER" for an fp32 that the memory then holds."""
    with open(path, encoding="utf-8") as page:
        for name, block in re.findall(r"```transcript (\w+)\n(.*?)```", page.read(), re.S):
            yield name, [(line[0], line[1:].strip()) for line in block.splitlines() if line[:1] in ("<", ">", "=")]


# --- demands on every worker ------------------------------------------------------------------------------------------


def says_hello(make, _):
    with make() as worker:
        hello = worker.hello()
        need(hello is not None, "it ended without a hello")
        matches({"type": "hello", "protocol": VERSION, "name": "...", "language": "...", "serves": "..."}, hello)
        for word in ("bursts", "fresh", "starts"):
            need(word not in hello["serves"] or "case" in hello["serves"], f"serves {word} but no cases")
        need("release" not in hello["serves"] or "call" in hello["serves"], "serves releases but no calls")
        need(hello["serves"] and set(hello["serves"]) <= {"case", "call", "bursts", "fresh", "starts", "release", "empty"}, f"serves {hello['serves']}")


def ends_at_bye(make, _):
    with make() as worker:
        worker.hello()
        worker.send({"type": "bye"})
        need(worker.receive() is None, "it answers bye")
        need(worker.exit_code() == 0, f"exit code {worker.exit_code()}")


def ends_with_the_pipe(make, _):
    with make() as worker:
        worker.hello()
        worker.process.stdin.close()
        need(worker.receive() is None, "it goes on talking")
        need(worker.exit_code() == 0, f"exit code {worker.exit_code()}")


def refuses_another_version(make, _):
    with make() as worker:
        worker.send({"type": "hello", "protocol": 999, "host": "conformance", "memory_fd": worker.memory_fd})
        matches({"type": "hello", "protocol": VERSION}, worker.receive())
        need(worker.receive() is None and worker.exit_code() != 0, "it goes on in a version it does not speak")


def answers_what_it_does_not_know(make, _):
    with make() as worker:
        worker.hello()
        worker.send({"type": "dance"})
        matches({"type": "failed", "kind": "protocol", "message": "..."}, worker.receive())
        worker.send({"type": "bye"})
        need(worker.exit_code() == 0, "it does not survive an unknown message")


def ignores_what_it_does_not_know_in_hello(make, _):
    with make() as worker:
        matches({"type": "hello"}, worker.hello(colour="green"))


# --- demands on those who serve cases ---------------------------------------------------------------------------------


def case_message(options, **changes):
    params = {name: json.loads(value) for name, _, value in (text.partition("=") for text in options.param)}
    return {"type": "case", "experiment": options.case, "params": params, "implementation": options.implementation,
            "seed": "18446744073709551615", "case_uid": "conformance", "task": "measure", "protocol": "quick",
            **changes}


def run_case(worker, message):
    worker.send(message)
    records = []
    while True:
        record = worker.receive()
        need(record is not None, f"the pipe ended without an end record, after {records}")
        need(record.get("type") in RECORDS, f"no record: {record}")
        records.append(record)
        if record["type"] == "end":
            need(record["status"] in STATUSES, f"ends in {record['status']!r}")
            return records


def serves_a_case_to_its_end(make, options):
    with make() as worker:
        worker.hello()
        records = run_case(worker, case_message(options))
        need(records[-1]["status"] == "ok", f"ends in {records[-1]}")
        need(any(r["type"] == "check" and r["outcome"] == "passed" for r in records), "ok without a check that passed")


def serves_cases_one_after_another(make, options):
    with make() as worker:
        worker.hello()
        for _ in range(3):
            need(run_case(worker, case_message(options))[-1]["status"] == "ok", "the cases do not all pass")
        worker.send({"type": "bye"})
        need(worker.exit_code() == 0, f"exit code {worker.exit_code()}")


def ends_an_unknown_experiment_in_error(make, options):
    with make() as worker:
        worker.hello()
        end = run_case(worker, case_message(options, experiment="no_such_experiment"))[-1]
        need(end["status"] == "error" and "no_such_experiment" in end["detail"], f"ends in {end}")


def names_the_field_that_is_missing(make, options):
    with make() as worker:
        worker.hello()
        message = case_message(options)
        del message["implementation"]
        end = run_case(worker, message)[-1]
        need(end["status"] == "error" and "implementation" in end["detail"], f"ends in {end}")


# --- demands on those who serve calls ---------------------------------------------------------------------------------


class Attention:
    """attention_forward of a small problem laid into a worker's shared memory, and what it must compute."""

    batch, heads, queries, dim = 2, 1, 5, 3

    def __init__(self, worker, stride=None):
        self.worker = worker
        self.row = stride or self.dim  # elements from one query to the next
        rows = self.batch * self.heads * self.queries
        chance = random.Random(7)
        self.values = {n: [[chance.gauss(0, 1) for _ in range(self.dim)] for _ in range(rows)] for n in "qkv"}
        shape = [self.batch, self.heads, self.queries, self.dim]
        strides = [self.heads * self.queries * self.row, self.queries * self.row, self.row, 1]
        self.tensors, end = {}, 0
        for name in ("q", "k", "v", "out", "lse"):
            is_lse = name == "lse"
            self.tensors[name] = {"name": name, "dtype": "fp32", "shape": shape[:3] if is_lse else shape,
                                  "strides": [self.heads * self.queries, self.queries, 1] if is_lse else strides,
                                  "offset": end + 256}
            end += 512 + 4 * rows * self.row
        self.bytes = (end + 4095) // 4096 * 4096
        os.ftruncate(worker.memory_fd, self.bytes)
        self.memory = mmap.mmap(worker.memory_fd, self.bytes)
        self.memory[:] = bytes([GUARD]) * self.bytes
        for name in "qkv":
            for index, row in enumerate(self.values[name]):
                struct.pack_into(f"{self.dim}f", self.memory, self.at(name, index), *row)

    def at(self, name, row):
        return self.tensors[name]["offset"] + 4 * row * (1 if name == "lse" else self.row)

    def message(self, **changes):
        return {"type": "call", "function": "attention_forward", "options": {"causal": 1, "scale": 0.0},
                "inputs": [self.tensors[n] for n in "qkv"], "outputs": [self.tensors[n] for n in ("out", "lse")],
                "memory_bytes": self.bytes, **changes}

    def check(self):
        touched = set()
        for row in range(self.batch * self.heads * self.queries):
            first = row - row % self.queries
            q, seen = self.values["q"][row], range(first, row + 1)
            scores = [sum(a * b for a, b in zip(q, self.values["k"][j])) / math.sqrt(self.dim) for j in seen]
            lse = math.log(sum(map(math.exp, scores)))
            wanted = [sum(math.exp(s - lse) * self.values["v"][j][d] for s, j in zip(scores, seen))
                      for d in range(self.dim)]
            found = struct.unpack_from(f"{self.dim}f", self.memory, self.at("out", row))
            need(all(abs(a - b) < 1e-5 for a, b in zip(found, wanted)), f"row {row}: {found}, expected {wanted}")
            (found_lse,) = struct.unpack_from("f", self.memory, self.at("lse", row))
            need(abs(found_lse - lse) < 1e-5, f"lse of row {row}: {found_lse}, expected {lse}")
            touched.update(range(self.at("out", row), self.at("out", row) + 4 * self.dim))
            touched.update(range(self.at("lse", row), self.at("lse", row) + 4))
        start = self.tensors["out"]["offset"] - 256
        for byte in range(start, self.bytes):
            need(byte in touched or self.memory[byte] == GUARD, f"byte {byte} lies in no output and was written")


def call(worker, attention, **changes):
    begin = time.monotonic_ns()
    worker.send(attention.message(**changes))
    reply = worker.receive()
    return reply, time.monotonic_ns() - begin


def computes_attention_in_shared_memory(make, _):
    with make() as worker:
        worker.hello()
        attention = Attention(worker)
        reply, round_trip = call(worker, attention)
        matches({"type": "returned", "elapsed_ns": "..."}, reply)
        need(0 < reply["elapsed_ns"] <= round_trip, f"{reply['elapsed_ns']} ns of a call that took {round_trip} ns")
        attention.check()


def waits_for_the_release_of_its_inputs(make, _):
    """Inputs are written when it is ready; by the time at which it is done its outputs are there."""
    with make() as worker:
        worker.hello()
        attention = Attention(worker)
        place = slice(attention.at("q", 0), attention.tensors["out"]["offset"] - 256)
        inputs, attention.memory[place] = attention.memory[place], bytes([GUARD]) * (place.stop - place.start)
        attention.memory[:128] = bytes(128)
        worker.send(attention.message(release=True))
        matches({"type": "ready"}, worker.receive())
        need(not select.select([worker.process.stdout], [], [], 0.05)[0], "it answered before the release")
        attention.memory[place] = inputs
        struct.pack_into("I", attention.memory, 0, 1)
        until = time.monotonic() + 10
        while struct.unpack_from("I", attention.memory, 64)[0] == 0:
            need(time.monotonic() < until, "it did not say that it was done")
        attention.check()
        matches({"type": "returned", "elapsed_ns": "..."}, worker.receive())


def follows_strides_and_growing_memory(make, _):
    with make() as worker:
        worker.hello()
        for stride in (None, 5, 900):
            attention = Attention(worker, stride)
            matches({"type": "returned"}, call(worker, attention)[0])
            attention.check()


def answers_an_unknown_function(make, _):
    with make() as worker:
        worker.hello()
        attention = Attention(worker)
        reply, _ = call(worker, attention, function="attention_sideways")
        matches({"type": "failed", "kind": "unsupported", "message": "..."}, reply)
        matches({"type": "returned"}, call(worker, attention)[0])


def refuses_to_be_called_for_a_case(make, _):
    with make() as worker:
        worker.hello()
        worker.send({"type": "case", "experiment": "x", "params": {}, "implementation": "x", "seed": "1"})
        matches({"type": "failed", "kind": "protocol"}, worker.receive())


def refuses_to_be_called(make, _):
    with make() as worker:
        worker.hello()
        worker.send({"type": "call", "function": "attention_forward", "options": {}, "inputs": [], "outputs": [],
                     "memory_bytes": 0})
        matches({"type": "failed", "kind": "protocol"}, worker.receive())


def replay(make, lines):
    with make() as worker:
        for direction, text in lines:
            if direction == "=":
                offset, number = text.split()
                (found,) = struct.unpack("f", os.pread(worker.memory_fd, 4, int(offset)))
                need(abs(found - float(number)) < 1e-6, f"byte {offset} holds {found}, expected {number}")
                continue
            message = json.loads(text.replace('"MEMORY_FD"', str(worker.memory_fd)))
            if direction == ">":
                if message.get("memory_bytes"):
                    os.ftruncate(worker.memory_fd, message["memory_bytes"])
                worker.send(message)
            else:
                found = worker.receive()
                passed_over = RECORDS if message["type"] == "end" else ("progress", "fact")  # may come at any time
                while found and found["type"] in passed_over and found["type"] != message["type"]:
                    found = worker.receive()
                matches(message, found)
        need(worker.receive() is None and worker.exit_code() == 0, "it does not end at bye")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", required=True, metavar="PAGE", help="docs/worker-wire.md")
    parser.add_argument("--case", metavar="EXPERIMENT")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=JSON")
    parser.add_argument("--implementation", default="selftest")
    parser.add_argument("--call", action="store_true")
    parser.add_argument("--must-fail", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    def make():
        return Worker(options.command)

    try:
        with make() as worker:
            serves = (worker.hello() or {}).get("serves", [])
    except (AssertionError, OSError, ValueError) as error:
        print(f"FAILED  says hello: {error}")
        return 0 if options.must_fail else 1
    demands = [says_hello, ends_at_bye, ends_with_the_pipe, refuses_another_version, answers_what_it_does_not_know,
               ignores_what_it_does_not_know_in_hello]
    if "case" in serves and options.case:
        demands += [serves_a_case_to_its_end, serves_cases_one_after_another, ends_an_unknown_experiment_in_error,
                    names_the_field_that_is_missing]
    if "call" in serves and options.call:
        demands += [waits_for_the_release_of_its_inputs] if "release" in serves else []
        demands += [computes_attention_in_shared_memory, follows_strides_and_growing_memory,
                    answers_an_unknown_function]
    demands += [] if "case" in serves else [refuses_to_be_called_for_a_case]
    demands += [] if "call" in serves else [refuses_to_be_called]
    trials = [(d.__name__.replace("_", " "), lambda d=d: d(make, options)) for d in demands]
    for name, lines in transcripts(options.protocol):
        if name in serves:
            trials.append((f"replays the page's transcript '{name}'", lambda lines=lines: replay(make, lines)))

    failures = 0
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("no answer")))
    for name, trial in trials:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        try:
            trial()
            print(f"ok      {name}")
        except (AssertionError, TimeoutError, OSError, ValueError) as error:
            failures += 1
            print(f"FAILED  {name}: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"{len(trials) - failures} of {len(trials)} demands met, serves {', '.join(serves) or 'nothing'}")
    return int((failures == 0) if options.must_fail else (failures > 0))


if __name__ == "__main__":
    sys.exit(main())
