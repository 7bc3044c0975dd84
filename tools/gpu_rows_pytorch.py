"""PyTorch's measurements as a log for `syslab import`: the lines of tools/peers/data_parallel.py become cases of our
experiments.

What was not checked is left out: steps whose ranks do not end with the same weights (without communication they part)
or of which no rank holds all (fully_shard's), and whatever did not end well. Those stand in the lines alone.
"""
import json
import statistics

# Of a variant: the experiment, and the axis values that ask the same of ours.
STEPS = {"naive": ("ddp_bucketed_benchmarking", {"strategy": "naive", "bucket_mb": 0}),
         "flat": ("ddp_bucketed_benchmarking", {"strategy": "flat_copy", "bucket_mb": 0}),
         "zero": ("optimizer_state_sharding_accounting", {"sharding": "optimizer", "bucket_mb": 25})}
WHOLE = {"d_model": 0, "d_ff": 0, "layers": 0, "heads": 0, "vocab": 0, "mode": "train"}


def series(name, by_rank):
    for rank, milliseconds in enumerate(by_rank):
        seconds = [1e-3 * one for one in milliseconds]
        yield {"type": "sample", "series": name, "unit": "s", "rank": rank, "values": seconds}
        yield {"type": "metric", "name": name, "unit": "s", "rank": rank, "value": statistics.median(seconds),
               "n": len(seconds)}


def numbers(line, of_rank):
    for rank in range(line["ranks"]):
        for name, unit, value in of_rank(rank):
            yield {"type": "metric", "name": name, "unit": unit, "rank": rank, "value": value}


def case(line, experiment, params):
    digest = f"torch {line['torch']}, {line['backend']} {line['nccl'] or ''}".strip()
    return {"type": "case", "experiment": experiment, "implementation": "torch", "language": "Python", "digest": digest,
            "params": params, "world_size": line["ranks"]}


def checked(name, message):
    return {"type": "check", "name": f"reference:{name}", "outcome": "passed", "cases_run": 1, "message": message}


def of_collective(line):
    yield case(line, "distributed_communication_single_node", {"bytes": line["bytes"], "operation": line["operation"]})
    yield checked("result", "every element on every rank, before any was timed")
    yield from series("time", line["single_by_rank_ms"])
    yield from series("pipelined", line["pipelined_by_rank_ms"])
    yield from numbers(line, lambda _: [("payload_bytes", "B", line["bytes"]), ("bus_factor", "1", line["bus_factor"])])


def of_step(line):
    variant = line["variant"]
    if variant.startswith("ddp_"):
        experiment, params = "ddp_bucketed_benchmarking", {"strategy": "bucketed",
                                                           "bucket_mb": int(variant.split("_")[1])}
    else:
        experiment, params = STEPS[variant]
    sizes = {name: line[name] for name in ("model", "context", "batch", "precision")}
    yield case(line, experiment, {**WHOLE, **sizes, **params})
    yield checked("replicas", "all ranks hold the same weights behind the last step, bit for bit")
    yield from series("time", line["by_rank_ms"])
    peaks = line["peak_gib"]
    yield from numbers(line, lambda rank: [("parameters", "1", line["parameters"])]
                       + ([("peak", "B", peaks[rank] * 2**30)] if peaks and "sharding" in params else []))


def log_of(lines, label, environment):
    """The text of a log, or None where nothing of it can be taken in."""
    found = []
    for line in lines:
        if line["status"] != "ok":
            continue
        if "operation" in line:
            found += [*of_collective(line), {"type": "end", "status": "ok"}]
        elif line["replicas_equal"] and (line["variant"] in STEPS or line["variant"].startswith("ddp_")):
            found += [*of_step(line), {"type": "end", "status": "ok"}]
    if not found:
        return None
    head = {"type": "run", "author": "pytorch", "label": label, "protocol": {"name": "cs336"},
            "environment": environment}
    return "".join(json.dumps(one) + "\n" for one in [head, *found])
