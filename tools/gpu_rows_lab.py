"""The machine that tools/gpu_rows fills rows on: its program, database, GPUs, disk and NCCL, and what cannot be done
here."""
import json
import os
import pathlib
import re
import shlex
import shutil
import site
import subprocess
import sys

from gpu_rows_parts import SIZES

# tools/ of a checkout, or a bundle, as gpu_rows was called: Python follows links before it imports this file.
HERE = pathlib.Path(sys.argv[0]).absolute().parent
UNITS = {"s": 1, "m": 60, "h": 3600}
BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Cannot(Exception):
    """What was asked cannot be done here; the message says what to do."""


def parsed(text, units, example):
    found = re.findall(r"([0-9]+(?:\.[0-9]*)?) *([a-zA-Z]?)", text)
    if not re.fullmatch(r"(?:[0-9]+(?:\.[0-9]*)? *[a-zA-Z]? *)+", text) or any(unit not in units for _, unit in found):
        raise Cannot(f"'{text}' is no amount that is understood here: {example}")
    return sum(float(number) * units[unit] for number, unit in found)


def find_syslab(asked, device):
    if asked:
        candidates = [pathlib.Path(asked)]
    else:
        builds = [HERE.parent / "build-cuda/syslab", HERE.parent / "build/syslab"]
        candidates = [HERE / "syslab", *(builds if device == "cuda" else builds[::-1])]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate.resolve())
    raise Cannot(f"there is no program at {', '.join(map(str, candidates))}: build it (ninja -C build syslab), or name "
                 "it with --syslab")


def pytorchs_nccl():
    """Where PyTorch's packages put a library that the loader does not find, for the message."""
    for folder in {*site.getsitepackages(), site.getusersitepackages()}:
        for file in pathlib.Path(folder).glob("nvidia/nccl/lib/libnccl.so.2"):
            return file
    return None


# A case that wants more memory than there is has its answer.
RUNS = """
SELECT label, run_uid, planned, ok + oom AS measured, failed, missing
  FROM v_run
 WHERE label LIKE 'gpu_rows %: %'
 ORDER BY run_id"""


class Lab:
    """syslab, its database and the folder of results."""

    def __init__(self, arguments):
        self.folder = pathlib.Path(arguments.folder)
        self.db, self.logs = self.folder / "rows.db", self.folder / "logs"
        self.program = find_syslab(arguments.syslab, arguments.device)

    def command(self, *words):
        return [self.program, *words, "--db", str(self.db)]

    def ask(self, *words):
        """The JSON that a verb which measures nothing prints."""
        done = subprocess.run(self.command(*words), text=True, capture_output=True, check=False)
        if done.returncode:
            why = (done.stderr or done.stdout).strip()[-2000:]
            raise Cannot(f"{shlex.join(self.command(*words))} ended with {done.returncode}: {why}")
        return json.loads(done.stdout)

    def gpus(self):
        found = self.ask("env", "--json")
        return len(found["environment"].get("gpu") or []), found["build"].get("cuda", False)

    def begun(self):
        """An empty file is of a run that was stopped while it made its database."""
        return self.db.exists() and self.db.stat().st_size > 0

    def runs(self):
        """By label, the newest run: its uid, and how many of its cases ended in a number or a reason, failed, are
        missing."""
        return {row["label"]: row for row in self.ask("query", RUNS, "--to", "json")} if self.begun() else {}

    def ranks_there(self, device):
        """The most ranks that something was measured for on such a device; 0: nothing was."""
        found = (re.match(rf"gpu_rows (\d+) {device}: ", label) for label in self.runs())
        return max((int(match[1]) for match in found if match), default=0)


def choose_sizes(arguments, gpus):
    """World sizes to measure, or why there are none. On GPUs also those that want more: their rows say so."""
    asked = arguments.ranks
    if arguments.device == "cpu":
        return tuple(size for size in SIZES if size <= (asked or 4)), asked or 4
    if asked is not None and asked > gpus:
        raise Cannot(f"--ranks {asked} was asked and this machine has {gpus} GPU{'' if gpus == 1 else 's'}: ask for "
                     "fewer, or leave --ranks out to take those that there are")
    if gpus < 2:
        raise Cannot(f"this machine has {gpus} GPU{'' if gpus == 1 else 's'}, and two at least are needed; "
                     "plan forecasts for one that has them, --device cpu tries the script on ranks of the CPU, "
                     "--dry-run shows its commands")
    return (SIZES if asked is None else tuple(size for size in SIZES if size <= asked)), asked or gpus


def check_disk(lab, wanted):
    lab.logs.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(lab.folder).free
    if free < wanted:
        raise Cannot(f"{lab.folder} has {free / 1e9:.3g} GB free and --free wants {wanted / 1e9:.3g} GB: name another "
                     "place with --folder, or less with --free")


def check_nccl(lab):
    """One small all-reduce on two GPUs: whoever lacks NCCL learns so before anything long begins."""
    words = ("run", "distributed_communication_single_node", "-a", "world_size=2", "-a", "bytes=1024", "--impl", "nccl",
             "--laws", "none", "--timeout", "60s", "--label", "gpu_rows, the first try", "--json")
    done = subprocess.run(lab.command(*words), text=True, capture_output=True, check=False)
    (lab.logs / "first-try.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    attempts = []
    for line in done.stdout.splitlines():
        try:
            attempts.append(json.loads(line))
        except ValueError:
            continue
    ended = [line for line in attempts if isinstance(line, dict) and line.get("type") == "attempt"]
    if done.returncode == 0 and ended and all(line["status"] == "ok" for line in ended):
        return
    why = "; ".join(str(line.get("detail") or line["status"]) for line in ended if line["status"] != "ok")
    hint = pytorchs_nccl()
    raise Cannot(f"an all-reduce of two GPUs does not work here: {why or (done.stderr or done.stdout).strip()[-1500:]}"
                 + (f" (PyTorch has brought one: export SYSLAB_NCCL_LIB={hint})" if hint else ""))
