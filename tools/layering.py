#!/usr/bin/env python3
"""Reads every #include of the project against the table below: which room may see which.

    tools/layering.py [ROOT]         exit 1 and a line for each arrow that the design forbids
    tools/layering.py --graph        the arrows as they are, one a line
    tools/layering.py --cost         how many units (files that are compiled) include each header

Two towers stand on one ground (core, device): the workload (pure numerics) and the lab (experiments as data). Arrows go
down; experiments/, the main program and the tests see both.
"""
import pathlib
import re
import sys

import include_cost

GROUND = {"core", "device"}
ALLOWED = {
    # the ground
    "core": set(),
    "device": {"core"},
    # what recordings are made of; ranges in the workload reach it through device/nvtx.hpp, so that nobody includes it
    # but who records
    "trace": GROUND,
    # the workload
    "ops": GROUND,
    "model": GROUND | {"ops"},
    "train": GROUND | {"ops", "model"},
    "comm": GROUND,
    # arithmetic on paper: costs of layers, rings and meshes
    "paper": {"core", "ops"},
    # which gradients travel together, and how long that takes at best: from measured numbers alone
    "planning": {"core"},
    "parallel": GROUND | {"ops", "model", "train", "comm", "paper", "planning"},
    # the proof of a way to train: networks whose sums are exact
    "certify": GROUND | {"comm", "planning", "parallel"},
    # steps and collectives that a lab can check and time
    "trials": GROUND | {"ops", "model", "train", "comm", "paper", "planning", "parallel", "certify"},
    "capi": GROUND | {"ops"},
    # the lab: only check, measure and worker touch a device
    "registry": {"core"},
    "plan": {"core", "registry"},
    "stats": {"core"},
    "check": GROUND | {"stats"},
    "measure": GROUND | {"stats"},
    "worker": GROUND | {"registry", "stats", "check", "measure"},
    "runner": {"core", "registry", "plan", "stats", "worker"},
    # several processes as one lab: the lab's places for ranks, reached with the sockets and the store of comm
    "agents": {"core", "comm", "runner"},
    "store": {"core", "worker"},
    "report": {"core", "registry", "stats", "store"},
    # a stored run while it happens: plan, runner and store meet here
    "session": {"core", "registry", "plan", "stats", "measure", "worker", "runner", "store"},
    # two sides in turns, judged and gated
    "compare": {"core", "registry", "plan", "stats", "measure", "report", "worker", "runner", "store", "session"},
    "cli": {"core", "registry", "plan", "stats", "check", "measure", "worker", "runner", "store", "report", "session", "compare"},
    # laws are written against operators and handed to the lab through check
    "property_tests": GROUND | {"ops", "model", "train", "capi", "check"},
}
ROOMS = set(ALLOWED)
SEES_ALL = {"experiments", "tests"}
# What joins the towers: the program itself, and the verb that asks the planner of one about measurements of the other.
MAIN_PROGRAM = {"src/cli/main.cpp", "src/cli/plan_buckets.cpp"}
# From outside the runner and the store, a worker is its protocol alone.
ONLY_HEADERS = {("runner", "worker"): {"worker/protocol.hpp"}, ("store", "worker"): {"worker/protocol.hpp"},
                ("session", "worker"): {"worker/protocol.hpp", "worker/python_probe.hpp"}, ("compare", "worker"): {"worker/protocol.hpp"},
                ("session", "measure"): {"measure/device.hpp", "measure/protocol.hpp"},
                ("compare", "measure"): {"measure/protocol.hpp"}, ("compare", "report"): {"report/table.hpp"},
                ("cli", "worker"): {"worker/protocol.hpp", "worker/python_probe.hpp", "worker/serve.hpp"}}
CUDA_HEADER = re.compile(r"^(cuda|cublas|cupti|nccl|nvml|nvToolsExt|nvtx3|cooperative_groups|mma\.h)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}


def room_of(path):
    parts = path.parts
    inner = "/".join(parts[:2])
    return parts[1] if parts[0] == "src" else inner if inner in ALLOWED else parts[0]


def room_of_include(name):
    head = name.split("/")[0]
    return head if head in ROOMS | SEES_ALL and "/" in name else None


def cuda_allowed(path):
    text = path.as_posix()
    return (path.suffix in {".cu", ".cuh"} or text.startswith("src/device/") or text.startswith("src/comm/nccl")
            or text.startswith("src/trace/cupti") or text.startswith("tests/device/"))


def main():
    arguments = [a for a in sys.argv[1:] if a not in ("--graph", "--cost")]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    if "--cost" in sys.argv:
        print("\n".join(include_cost.table(root)))
        return 0
    faults, arrows, seen = [], set(), 0
    for top in ("src", "experiments", "tests", "property_tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root)
            room = room_of(path)
            if top == "src" and room not in ROOMS:
                faults.append(f"{path}: the room '{room}' is not in the table of tools/layering.py")
                continue
            seen += 1
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                name = match.group(1)
                where = f"{path}:{number}: includes {name}"
                if CUDA_HEADER.match(name) and not cuda_allowed(path):
                    faults.append(f"{where}: CUDA headers belong in src/device, *.cu, *.cuh, src/comm/nccl*, src/trace/cupti*")
                if name == "sqlite3.h" and room != "store":
                    faults.append(f"{where}: only src/store sees sqlite3")
                target = room_of_include(name)
                if target is None or target == room:
                    continue
                arrows.add((room, target))
                if room in SEES_ALL or path.as_posix() in MAIN_PROGRAM:
                    continue
                if target not in ALLOWED.get(room, set()):
                    faults.append(f"{where}: {room} must not see {target}")
                elif name not in ONLY_HEADERS.get((room, target), {name}):
                    faults.append(f"{where}: {room} sees only {', '.join(sorted(ONLY_HEADERS[(room, target)]))} of {target}")
    if "--graph" in sys.argv:
        for source, target in sorted(arrows):
            print(f"{source} -> {target}")
    for fault in faults:
        print(fault)
    print(f"layering: {seen} files, {len(arrows)} arrows between rooms, {len(faults)} forbidden")
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
