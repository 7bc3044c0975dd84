"""What `syslab check` says of a submission, read as an answer to each of the hand-outs' own tests; official_suites.py
compares the two."""
import json
import os
import re
import subprocess
import sys
import time

LIMIT = 900  # seconds, of a whole check

ATTENTION = "get_flashattention_autograd_function_"
# File of tests → function of adapters.py and experiment that are about the same; by year where they differ.
ANSWERED_BY = {
    ("2025", "test_ddp"): ("get_ddp_bucketed", "ddp_overlap_bucketed"),
    ("2026", "test_ddp"): ("get_ddp", "ddp_overlap_individual_parameters"),
    ("2025", "test_ddp_individual_parameters"): ("get_ddp_individual_parameters", "ddp_overlap_individual_parameters"),
    ("2025", "test_sharded_optimizer"): ("get_sharded_optimizer", "optimizer_state_sharding"),
    ("2026", "test_sharded_optimizer"): ("get_sharded_optimizer", "optimizer_state_sharding"),
    ("2026", "test_fsdp"): ("get_fsdp", "fsdp"),
}


def answered_by(year, test):
    """(function, experiment, laws that the test cannot see), or None: `check` does not look at that."""
    file, name = test.split(":", 1)
    if file == "test_attention":
        kind = "triton" if "triton" in name else "pytorch"
        return ATTENTION + kind, "flash_backward" if "backward" in name else "flash_forward", ()
    if (year, file) not in ANSWERED_BY:
        return None
    unseen = [] if "Tied" in name else ["ddp.tied_weights", "sharded.tied_weights"]
    # Each test of FSDP computes in one dtype; in fp16 its tolerance hides what fp32 would show.
    unseen.append("fsdp.real_numbers" if "fp16" in name else "fsdp.fp16")
    return *ANSWERED_BY[year, file], tuple(unseen)


def is_seen(law, test):
    """Whether the test could see it: one without a mask meets nothing of a fault whose smallest input needs one."""
    masked = re.search(r", mask (?!none)", law["message"])
    return not masked or "[True]" in test or not test.startswith("test_attention")


def laws_of(row, experiment, unseen):
    return [law for law in row["laws"] if law["experiment"] == experiment and law["contract"] == "handout"
            and law["law"] not in unseen]


def verdict_of(record, year, test):
    """(whether the laws hold, why not), or None where nothing was checked."""
    answered = answered_by(year, test)
    if answered is None:
        return None
    if record.get("error"):
        return False, record["error"]
    function, experiment, unseen = answered
    row = next((row for row in record["adapters"] if row["function"] == function), None)
    if row is None or row["state"] in ("not there", "not implemented"):
        return False, f"{function} is not implemented"
    if row["state"] != "implemented":
        return None if row["out_of_time"] or row["open"] else (False, row["why"])
    if row["not_checked"]:
        return None
    laws = laws_of(row, experiment, unseen)
    if not laws or any(law["open"] or untried(law) for law in laws):
        return None
    lost = [law for law in laws if law["outcome"] != "passed" and is_seen(law, test)]
    return not lost, "; ".join(f"{law['law']}: {in_short(law['message']) or law['outcome']}" for law in lost)


def untried(law):
    """Whether the time was over before anything was found out."""
    return law["out_of_time"] and law["outcome"] not in ("passed", "falsified")


def had_no_time(record, year, test):
    """Whether verdict_of() knows nothing since the time of `check` was over."""
    answered = answered_by(year, test)
    row = next((row for row in record["adapters"] if answered and row["function"] == answered[0]), None)
    if row is None or row["not_checked"]:
        return False
    return (row["out_of_time"] if row["state"] != "implemented"
            else any(untried(law) for law in laws_of(row, *answered[1:])))


def in_short(message):
    """Its first line; of what a process has said before it ended the last one, too."""
    lines = [line for line in message.splitlines() if line.strip()]
    return " ".join(lines[:1] + lines[-1:] if lines and lines[0].endswith("its last lines:") else lines[:1])


def check(options, repository, year, device, stubs, work):
    """What `check` says with ranks where those of the tests are. On GPUs it sees one: with one for each rank the group
    would be NCCL's, and the tests name Gloo, which of a tensor on a GPU takes less."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] if device == "cuda" else ""
    environment = {**os.environ, "PYTHONPATH": str(stubs), "XDG_STATE_HOME": str(work / "state"),
                   "CUDA_VISIBLE_DEVICES": seen}
    depth = ["--cases", str(options.cases)] if options.cases else []
    command = [str(options.program), "check", "--json", "--handout", year, "--contract", "handout", "--device", device,
               *depth, "--mine",
               f"me={repository}", "--python", sys.executable, "--db", str(work / "lab.db")]
    try:
        done = subprocess.run(command, text=True, capture_output=True, env=environment, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"adapters": [], "error": f"check was stopped after {LIMIT} s"}
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    record = lines[-1] if lines else {}
    return (record if record.get("type") == "submission"
            else {"adapters": [], "error": (done.stderr.strip() or "no answer").splitlines()[-1]})


def timed_check(options, repository, year, device, stubs, work):
    began = time.perf_counter()
    record = check(options, repository, year, device, stubs, work)
    print(f"  {year} {device} check: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return record
