#!/usr/bin/env python3
"""Reads every #include of the project against the table below: which room may see which.

    tools/layering.py [ROOT]         exit 1 and a line for each arrow that the design forbids, or permits in vain
    tools/layering.py --graph        the house as the includes draw it, from the top down; CONTRIBUTING.md shows it
    tools/layering.py --cost         how many units (files that are compiled) include each header

Two towers stand on one ground (core, device, contract): the workload (pure numerics) and the lab (experiments as data).
Arrows go down; experiments/, the main program and the tests see both.
"""
import pathlib
import re
import sys

import include_cost

GROUND = {"core", "device", "contract"}
# Laws are written against operators and handed to the lab through check.
WORKLOAD = {"trace", "ops", "model", "train", "comm", "paper", "planning", "parallel", "certify", "trials", "capi",
            "property_tests"}
# The rest is the lab, of which check, measure and worker alone touch a device.
# Each room: what it is for, and what it may see.
HOUSE: dict[str, tuple[str, set[str]]] = {
    "core": ("errors, tensors, random numbers, ids, hashes, processes, pipes", set()),
    "device": ("memory, threads, streams, matrix products; the one door to CUDA", {"core"}),
    "contract": ("what both towers say: Pass, Operation, Expected, Axis, Law, MeasureSpec", {"core", "device"}),
    # Ranges in the workload reach trace through device/cuda/nvtx.hpp, so that nobody includes it but who records.
    "trace": ("what recordings are made of: kernels, memory, timelines", {"core", "device"}),
    "ops": ("one folder an operator: a ladder of rungs", GROUND),
    "model": ("the transformer LM, its precisions", GROUND | {"ops"}),
    "train": ("step, data, schedule, checkpoints", GROUND | {"ops", "model"}),
    "comm": ("ranks and their collectives: local, shm, nccl, gloo, copy_engines; rendezvous", {"core", "device"}),
    "paper": ("arithmetic on paper: costs of layers, rings and meshes", {"core", "contract"}),
    "planning": ("which gradients travel together and what is whose, and how long that takes at best", {"core"}),
    "parallel": ("data parallelism: ddp, zero, fsdp", {"core", "device", "ops", "model", "train", "comm", "paper",
                                                       "planning"}),
    "certify": ("the proof of a way to train: networks whose sums are exact",
                {"core", "device", "comm", "planning", "parallel"}),
    "trials": ("steps and collectives of ranks that a lab can check and time",
               GROUND | {"ops", "model", "train", "comm", "paper", "planning", "parallel", "certify"}),
    "capi": ("the C interface, plug-ins", {"core", "device", "contract", "ops", "planning"}),
    "registry": ("experiments, axes, metrics: data", {"core", "contract"}),
    "plan": ("selection, axes, skips, shards", {"core", "contract", "registry"}),
    "stats": ("quantiles, intervals, paired tests", {"core"}),
    "verdict": ("findings and timings to a verdict, pure", {"core", "contract", "stats"}),
    "words": ("text and JSON of verdicts", {"core", "stats", "verdict"}),
    "check": ("bounds, guards, laws", GROUND),
    "measure": ("clocks, samplers, stop rules", {"core", "device", "stats"}),
    "judge": ("walls around the process of what is judged", {"core"}),
    "worker": ("one attempt; the worker's wire format",
               GROUND | {"trace", "registry", "stats", "check", "measure", "judge"}),
    "submission": ("what is handed in: folders, zips, adapters", {"core", "judge", "worker"}),
    "runner": ("spawn, watch, limit", {"core", "contract", "plan", "stats", "worker"}),
    "agents": ("the processes of a launcher as one lab", {"core", "comm", "runner"}),
    "store": ("the only room that sees sqlite3", {"core", "worker"}),
    "report": ("tables, figures and sentences from queries", {"core", "contract", "registry", "store"}),
    "grade": ("rubrics, batches of submissions, pages of evidence",
              {"core", "contract", "stats", "verdict", "worker", "store", "submission"}),
    "evidence": ("what answers a hand-out's deliverables, and in which order it is measured",
                 {"core", "registry", "plan", "report"}),
    "session": ("a stored run while it happens: plan, runner and store meet here",
                {"core", "contract", "registry", "plan", "stats", "verdict", "measure", "worker", "runner", "store"}),
    "compare": ("two sides in turns, judged and gated",
                {"core", "plan", "stats", "verdict", "words", "measure", "report", "worker", "runner", "store",
                 "session"}),
    "claim": ("a claim about speed as a file that others verify",
              {"core", "contract", "stats", "verdict", "words", "measure", "worker", "runner", "report", "store"}),
    "cli": ("verbs and exit codes",
            {"core", "registry", "plan", "stats", "verdict", "words", "check", "measure", "judge", "worker", "runner",
             "store", "report", "evidence", "session", "compare", "claim", "submission", "grade"}),
    "property_tests": ("the shipped laws, and the faults that they must find",
                       GROUND | {"ops", "check"}),
}
ALLOWED = {room: sees for room, (_, sees) in HOUSE.items()}
ROOMS = set(ALLOWED)
SEES_ALL = {"experiments", "tests"}
# What joins the towers: the program itself, and the verb that asks the planner of one about measurements of the other.
MAIN_PROGRAM = {"src/cli/main.cpp", "src/cli/verbs/judged.cpp", "src/cli/plan_buckets.cpp"}
# Of some rooms another sees these headers alone: of the worker its wire, and what says before a case whether somebody's
# file can be served; where the lab touches no device, of the language only what speaks of none.
ONLY_HEADERS = {
    ("runner", "contract"): {"contract/measure_spec.hpp"},
    ("runner", "worker"): {"worker/wire/wire.hpp", "worker/cases/command_params.hpp"},
    ("store", "worker"): {"worker/wire/wire.hpp"},
    ("session", "worker"): {"worker/wire/wire.hpp", "worker/judged/python_probe.hpp", "worker/cases/function_cases.hpp",
                            "worker/cases/command_params.hpp"},
    ("compare", "worker"): {"worker/wire/wire.hpp"},
    ("session", "measure"): {"measure/device.hpp", "measure/protocol.hpp", "measure/resolution.hpp"},
    ("compare", "measure"): {"measure/protocol.hpp", "measure/host_load.hpp"},
    ("compare", "report"): {"report/table.hpp", "report/writers/writers.hpp"},
    ("evidence", "report"): {"report/deliverables.hpp"},
    ("claim", "contract"): {"contract/outcome.hpp"},
    ("claim", "report"): {"report/document.hpp", "report/table.hpp"},
    ("claim", "store"): {"store/cells.hpp"},
    ("claim", "runner"): {"runner/environment.hpp", "runner/known_facts.hpp"},
    ("cli", "worker"): {"worker/wire/wire.hpp", "worker/judged/python_probe.hpp", "worker/wire/serve.hpp"},
}
# The one file that stands on RapidCheck's private half, which may change with each revision (tools/rapidcheck_pin.py).
PRIVATE_RAPIDCHECK = re.compile(r"rapidcheck/detail/|\brc::detail\b|\brc::shrinkable::walkPath\b")
USES_PRIVATE_RAPIDCHECK = "src/check/search.cpp"
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


def picture(arrows):
    """The rooms of each tower from the top down, each above all that it sees there. Of what it sees, only what no room
    between shows."""
    sees = {room: {to for source, to in arrows if source == room and to in ROOMS} for room in ROOMS}

    def level(room):
        return 1 + max((level(to) for to in sees[room]), default=0)

    def reached(room):
        return sees[room].union(*(reached(to) for to in sees[room]))

    lines = []
    for tower, rooms in (("the lab", ROOMS - GROUND - WORKLOAD), ("the workload", WORKLOAD), ("the ground", GROUND)):
        lines.append(tower)
        for room in sorted(rooms, key=lambda one: (-level(one), one)):
            direct = sorted(sees[room] - set().union(*(reached(to) for to in sees[room])))
            lines.append(f"  {room:<14}  {HOUSE[room][0]}" + (f"  → {' '.join(direct)}" if direct else ""))
    return "\n".join(lines)


def idle_permissions(arrows, headers):
    """What the tables permit and no file uses: the law is to be no laxer than the picture. `headers`: (room, header) of
    all arrows."""
    faults = [f"tools/layering.py: {room} may see {target}, and no file of it does; take that away"
              for room in HOUSE for target in sorted(ALLOWED[room]) if (room, target) not in arrows]
    return faults + [f"tools/layering.py: {room} may include {name}, and no file of it does; take that away"
                     for (room, _), names in ONLY_HEADERS.items() for name in sorted(names)
                     if (room, name) not in headers]


def stale_picture(root, arrows):
    page = root / "CONTRIBUTING.md"
    if not page.exists() or f"\n```text\n{picture(arrows)}\n```\n" in page.read_text(encoding="utf-8"):
        return []  # the whole block, with nothing after it
    return ["CONTRIBUTING.md: its picture of the house is not what tools/layering.py --graph prints; put that there"]


def main():
    arguments = [a for a in sys.argv[1:] if a not in ("--graph", "--cost")]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    if "--cost" in sys.argv:
        print("\n".join(include_cost.table(root)))
        return 0
    faults, arrows, headers, seen = [], set(), set(), 0
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
                if PRIVATE_RAPIDCHECK.search(line) and path.as_posix() != USES_PRIVATE_RAPIDCHECK:
                    faults.append(f"{path}:{number}: only {USES_PRIVATE_RAPIDCHECK} uses RapidCheck's private half")
                match = INCLUDE.match(line)
                if not match:
                    continue
                name = match.group(1)
                where = f"{path}:{number}: includes {name}"
                if CUDA_HEADER.match(name) and not cuda_allowed(path):
                    faults.append(f"{where}: CUDA headers belong in src/device, *.cu, *.cuh, src/comm/nccl*, "
                                  "src/trace/cupti*")
                if name == "sqlite3.h" and room != "store" and path.parent.as_posix() != "tests/store":
                    faults.append(f"{where}: only src/store and its tests see sqlite3")
                target = room_of_include(name)
                if target is None or target == room:
                    continue
                if room in SEES_ALL or path.as_posix() in MAIN_PROGRAM:
                    continue
                arrows.add((room, target))
                headers.add((room, name))
                if target not in ALLOWED.get(room, set()):
                    faults.append(f"{where}: {room} must not see {target}")
                elif name not in ONLY_HEADERS.get((room, target), {name}):
                    faults.append(f"{where}: {room} sees only {', '.join(sorted(ONLY_HEADERS[(room, target)]))} of "
                                  f"{target}")
    if "--graph" in sys.argv:
        print(picture(arrows))
    faults += stale_picture(root, arrows) + idle_permissions(arrows, headers)
    for fault in faults:
        print(fault)
    print(f"layering: {seen} files, {len(arrows)} arrows between rooms, {len(faults)} forbidden")
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
