#!/usr/bin/env python3
"""Draws statements of a report and recomputes each from the raw samples of its database, without the store's views.

    tools/long/report_statements.py DATABASE --handout 2026 [--syslab build/syslab] [--draw 100] [--seed 0] [--list]

A statement is one number of a table or a sentence, as `report --to json` has it at full precision. The row that it
stands in names its case and its run; of the newest good attempt at that case, on the same machine and by the same
protocol, the number is computed anew: medians, means and deviations from the samples, kernels and spans as recorded,
rates and ratios from these, paper formulas from their sizes. What nobody wrote a second way for (counts, shares of a
profile) is left out and counted. Exit 1 if a drawn statement is wrong, 2 if fewer than asked for can be recomputed.
"""

import argparse
import json
import random
import sqlite3
import statistics
import subprocess
import sys

TOLERANCE = 1e-6  # relative: both sides compute in doubles from the same samples


class Attempt:
    def __init__(self, row):
        (self.id, self.run, self.machine, self.protocol, self.experiment, self.params, self.implementation, self.ranks,
         self.role) = row
        self.params = json.loads(self.params)


class Database:
    def __init__(self, path):
        self.connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = self.connection.execute(
            "SELECT a.id, r.uid, e.comparability_key, json_array(r.protocol ->> '$.name', r.protocol ->> '$.data',"
            "       coalesce(r.protocol ->> '$.version', 1)), c.experiment, c.params, i.name, p.world_size, "
            "coalesce(p.role, '')  FROM attempt a JOIN run r ON r.id = a.run_id JOIN environment e ON e.id = "
            "r.environment_id  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq AND p.task = 'measure'"
            "  JOIN case_def c ON c.id = p.case_id JOIN implementation i ON i.id = p.implementation_id"
            " WHERE EXISTS (SELECT 1 FROM attempt_event e WHERE e.attempt_id = a.id AND e.status = 'ok')"
            " ORDER BY a.id")
        self.all = self.attempts = [Attempt(row) for row in rows]

    def beside(self, row):
        """From now on only attempts on the machine and by the protocol of the row's run: others are no peers of it."""
        own = next((one for one in reversed(self.all) if one.run == row.get("run_uid")), None)
        self.attempts = self.all if own is None else [
            one for one in self.all if (one.machine, one.protocol) == (own.machine, own.protocol)]

    def newest(self, experiment, wanted, **where):
        """The newest good attempt that agrees with all of `wanted` and `where`; None if these leave two cases."""
        found = [one for one in self.attempts if one.experiment == experiment and agrees(one, wanted)
                 and all(value_of(one, name) == value for name, value in where.items())]
        cases = {json.dumps([one.params, one.implementation, one.ranks], sort_keys=True) for one in found}
        return found[-1] if len(cases) == 1 else None

    def samples(self, attempt, name):
        """Raw samples in order; of several ranks the slowest of each moment."""
        rows = self.connection.execute(
            "SELECT x.launch, x.idx, max(x.value) FROM series s JOIN sample x ON x.series_id = s.id"
            " WHERE s.attempt_id = ? AND s.name = ? AND s.unit = 's' AND x.value IS NOT NULL"
            " GROUP BY x.launch, x.idx ORDER BY x.launch, x.idx", (attempt.id, name))
        return [row[2] for row in rows]

    def metric(self, attempt, name):
        rows = self.connection.execute("SELECT max(value) FROM metric WHERE attempt_id = ? AND name = ?",
                                       (attempt.id, name))
        return rows.fetchone()[0]


def value_of(attempt, name):
    if name == "implementation":
        return attempt.implementation
    if name in ("ranks", "world_size"):
        return attempt.ranks
    return attempt.params.get(name)


SAYS_CASE = {"model", "batch", "context", "precision", "mode", "implementation", "ranks", "strategy",
             "sharding", "updates",
             "granularity", "seq", "seq_k", "head_dim", "dtype", "causal", "align", "heads", "heads_kv",
             "pass", "bytes",
             "operation", "d_model", "d_ff", "layers", "vocab", "bucket_mb", "warmup", "wire", "segment", "size"}


def agrees(attempt, wanted):
    for name, value in wanted.items():
        if name not in SAYS_CASE or value is None or value == "–":
            continue
        own = value_of(attempt, name)
        if own is None:
            continue
        if isinstance(own, bool):
            own = int(own)
        if own != value and str(own) != str(value):
            return False
    return True


def median(values):
    return statistics.median(values) if values else None


# --- how numbers of a row follow from its attempt ---

def attention_flops(params, seconds):
    seq, keys = params["seq"], params["seq_k"] or params["seq"]
    pairs = seq * (seq + 1) / 2 if params["causal"] and seq == keys else seq * keys
    if params["causal"] and seq != keys:
        return None
    products = {"forward": 2, "backward": 5, "both": 7}[params.get("pass", "forward")]
    return 2 * products * params["batch"] * params["heads"] * pairs * params["head_dim"] / seconds * 1e-12


def of_attention(db, table, row, say):
    experiment = table["experiment"]
    if table["id"] == experiment and experiment in ("flash_forward", "flash_backward", "pytorch_attention"):
        one = db.newest(experiment, row)
        time = median(db.samples(one, "time")) if one else None
        if time:
            say("time_ms", 1e3 * time)
            params = dict(one.params, **({"pass": "backward"} if experiment == "flash_backward" else {}))
            if experiment != "pytorch_attention":
                say("tflops", attention_flops(params, time))
            naive = [a for a in db.attempts if a.experiment == experiment and a.params == one.params
                     and a.role == "naive"]
            if naive:
                say("vs_naive", median(db.samples(naive[-1], "time")) / time)
    if experiment == "flash_benchmarking" and table["id"] == experiment:
        times = {}
        for name in ("forward", "backward", "both"):
            one = db.newest(experiment, row, **{"pass": name})
            if one:
                times[name] = one, median(db.samples(one, "time"))
                say(name, 1e3 * times[name][1])
        if "both" in times:
            one, time = times["both"]
            say("rate", attention_flops(one.params, time))
            literal = [a for a in db.attempts if a.experiment == experiment and a.params == one.params
                       and a.role == "literal"]
            if literal:
                say("vs_literal", median(db.samples(literal[-1], "time")) / time)
    if experiment == "flash_benchmarking" and table["id"] == "speedup":
        for at, seq in (("at_low", row["low_seq"]), ("at_high", row["high_seq"])):
            ours = db.newest(experiment, row, **{"pass": "both", "seq": seq})
            literal = (ours and [a for a in db.attempts if a.experiment == experiment and a.params == ours.params
                                 and a.role == "literal"])
            if literal:
                say(at, median(db.samples(literal[-1], "time")) / median(db.samples(ours, "time")))


def of_steps(db, table, row, say):
    """Steps of one process: benchmarking_script and the like."""
    experiment, name = table["experiment"], table["id"]
    if experiment == "benchmarking_script" and name == experiment:
        one = db.newest(experiment, row, warmup=5)
        if one:
            for column, series in (("forward", "forward"), ("backward", "backward"), ("optimizer", "optimizer"),
                                   ("step", "time")):
                values = db.samples(one, series)
                if len(values) > 1:
                    mean, deviation = statistics.fmean(values), statistics.stdev(values)
                    say(column, 1e3 * mean)
                    say(column + "_low", 1e3 * (mean - deviation))
                    say(column + "_high", 1e3 * (mean + deviation))
            forward, backward = median(db.samples(one, "forward")), median(db.samples(one, "backward"))
            if forward and backward:
                say("backward_over_forward", backward / forward)
            say("tokens", one.params["batch"] * one.params["context"] / median(db.samples(one, "time")))
    if experiment == "benchmarking_script" and name == "first_steps":
        cold, warm = db.newest(experiment, row, warmup=0), db.newest(experiment, row, warmup=5)
        if cold and warm:
            values, steady = db.samples(cold, "time"), db.samples(warm, "time")
            for column, value in (("first", values[0]), ("median", median(values)), ("mean", statistics.fmean(values)),
                                  ("sd", statistics.stdev(values)), ("steady_mean", statistics.fmean(steady)),
                                  ("steady_sd", statistics.stdev(steady))):
                say(column, 1e3 * value)
            say("n", len(values))
    if experiment == "benchmarking_mixed_precision" and name == experiment:
        one = db.newest(experiment, row)
        for column in ("forward", "backward"):
            values = db.samples(one, column) if one else []
            if values:
                say(column, 1e3 * statistics.fmean(values))
    if experiment == "nsys_profile" and name == "kernels":
        one = db.newest(experiment, row)
        if one:
            found = db.connection.execute("SELECT calls, total_ns, min_ns, max_ns FROM kernel_stat WHERE attempt_id = ?"
                                          " AND phase LIKE ? AND kernel LIKE ?",
                                          (one.id, row["phase"] + "%", "%" + str(row.get("kernel")))).fetchall()
            if len(found) == 1:
                say("mean", 1e-6 * found[0][1] / found[0][0])
                say("least", 1e-6 * found[0][2])
                say("most", 1e-6 * found[0][3])


def of_ranks(db, table, row, say):
    experiment, name = table["experiment"], table["id"]

    def times(one, series="time"):
        return median(db.samples(one, series)) if one else None

    if name in ("steps", "b_time"):
        one = db.newest(experiment, row)
        if not one:
            return
        for column, series in (("time_ms", "time"), ("forward", "forward"), ("backward", "backward"),
                               ("updating", "update"),
                               ("exposed", "exposed"), ("communicating", "communicating"),
                               ("exposed_forward", "exposed_forward"),
                               ("exposed_backward", "exposed_backward")):
            value = times(one, series)
            if value is not None:
                say(column, 1e3 * value)
        axis = "strategy" if "strategy" in one.params else "sharding"
        without = {key: value for key, value in row.items() if key not in (axis, "bucket_mb", "updates")}
        plain = db.newest(experiment, without, **{axis: "none"})
        if plain and axis in one.params and row.get("over_none") is not None:
            say("over_none", 1e3 * (times(one) - times(plain)))
        say("n", len(db.samples(one, "time")))

    def strategy(which):
        return db.newest(experiment, {k: v for k, v in row.items() if k != "strategy"}, strategy=which)

    if name == "share":
        naive, none = strategy("naive"), strategy("none")
        if naive and none:
            say("time_ms", 1e3 * times(naive))
            say("none_ms", 1e3 * times(none))
            say("share", 100 * times(naive, "exposed") / times(naive))
            for column in ("forward", "backward", "exposed"):
                say(column, 1e3 * times(naive, column))
    if name == "messages":
        for column, which, series in (("naive_ms", "naive", "time"), ("time_ms", "flat_copy", "time"),
                                      ("views_ms", "flat_view", "time"),
                                      ("naive", "naive", "exposed"), ("exposed", "flat_copy", "exposed"),
                                      ("of_views", "flat_view", "exposed")):
            if strategy(which):
                say(column, 1e3 * times(strategy(which), series))
    if name == "hidden" and experiment.startswith("ddp_"):
        found = {which: strategy(which) for which in ("none", "naive", "flat_copy", "overlap")}
        if all(found.values()):
            for column, which in (("none_ms", "none"), ("naive_ms", "naive"), ("flat_ms", "flat_copy"),
                                  ("time_ms", "overlap")):
                say(column, 1e3 * times(found[which]))
            none = times(found["none"])
            say("recovered", 100 * (1 - (times(found["overlap"]) - none) / (times(found["naive"]) - none)))
            say("exposed", 1e3 * times(found["overlap"], "exposed"))
    if name == "hidden" and experiment == "fsdp_accounting":
        one = db.newest(experiment, row)
        if one:
            for column in ("gathering", "exposed_forward", "exposed_backward", "forward"):
                say(column, 1e3 * times(one, column))
            say("share", 100 * times(one, "exposed_forward") / times(one, "forward"))
    if name == "saved":
        one = db.newest(experiment, row)
        if one:
            count, gib = db.metric(one, "parameters"), 2.0**30
            say("whole", 16 * count / gib)
            say("optimizer", (8 + 8 / one.ranks) * count / gib)
    if name == "a_expected":
        one = db.newest(experiment, row)
        if one:
            say("none_state", 16 * db.metric(one, "parameters") / 2.0**30)
    if experiment == "distributed_communication_single_node" and name == experiment:
        one = db.newest(experiment, row)
        if one:
            say("time_ms", 1e3 * times(one))
            say("pipelined", 1e3 * times(one, "pipelined"))
            say("algbw", 1e-9 * row["bytes"] / times(one))
            say("busbw", 1e-9 * row["bytes"] / times(one) * 2 * (one.ranks - 1) / one.ranks)
    if name == "factors":  # texts: one number of each size, as it is printed
        for size, said in zip(row["sizes"].split(", "), row["times"].split(", ")):
            one = db.newest(experiment, row, operation="all_reduce", bytes=round(float(size) * 1e6))
            if one:
                row[f"times of {size}"] = float(said)
                say(f"times of {size}", float(f"{1e3 * times(one):.3g}"))
    if experiment == "alternate_ring_all_reduce" and name == experiment:
        one = db.newest(experiment, row)
        if one:
            say("time_ms", 1e3 * times(one))
            say("expected", one.ranks / 2 if row["implementation"] == "whole" else 1)


def of_paper(db, table, row, say):
    """Calculators: the formulas of the problems, with N, B, D, F, C and W of the row."""
    experiment = table["experiment"]
    if experiment not in ("data_parallel_calcs", "fsdp_calcs", "tp_calcs") or table["id"] != experiment:
        return
    n, b, d, f = row["ranks"], row["tokens"], row["d_model"], row["d_ff"]
    c, w, size = row["compute"] * 1e12, row["link"] * 1e9, row["element_bytes"]
    say("forward_flops", 6e-12 * b * d * f / n)
    say("backward_flops", 12e-12 * b * d * f / n)
    say("forward_compute", 6e3 * b * d * f / n / c)
    say("backward_compute", 12e3 * b * d * f / n / c)
    weights, partial = 3 * d * f * size * (n - 1) / n, 2 * b * d * size * (n - 1) / n
    forward = {"data_parallel_calcs": 0, "fsdp_calcs": weights, "tp_calcs": partial}[experiment]
    backward = {"data_parallel_calcs": 2 * weights, "fsdp_calcs": 2 * weights, "tp_calcs": partial}[experiment]
    say("forward_communication", 1e3 * forward / w)
    say("backward_communication", 1e3 * backward / w)
    if experiment == "tp_calcs":
        say("forward_limit", 1 + 1.5 * f * w / c * 2 / size)
        say("backward_limit", 1 + 3 * f * w / c * 2 / size)
    else:
        say("backward_limit", 1 + b * w / c * 2 / size)


def of_sums(db, table, row, say):
    """1000 × 0.01 in fp32 and halves, by Python's own rounding to them."""
    if table["id"] != "mixed_precision_accumulation" or row["additions"] != 1000:
        return
    import struct
    rounded = {"fp32": lambda x: struct.unpack("f", struct.pack("f", x))[0],
               "fp16": lambda x: struct.unpack("e", struct.pack("e", x))[0]}
    if row["accumulator"] not in rounded or row["addend"] not in rounded:
        return
    addend, total = rounded[row["addend"]](0.01), 0.0
    for _ in range(1000):
        total = rounded[row["accumulator"]](total + addend)
    say("value", total)


def statements(db, tables):
    """(where, column, said, recomputed) of all that can be recomputed, and how many numbers there are."""
    found, numbers = [], 0
    for table in tables:
        for index, row in enumerate(table["rows"]):
            own: dict = {}
            db.beside(row)
            for ways in (of_attention, of_steps, of_ranks, of_paper, of_sums):
                ways(db, table, row, own.__setitem__)
            numbers += sum(1 for key, value in row.items() if isinstance(value, (int, float)) and key not in SAYS_CASE)
            for column, value in own.items():
                if isinstance(row.get(column), (int, float)) and value is not None:
                    found.append((f"{table['experiment']}/{table['id']} row {index + 1}", column, row[column], value))
    return found, numbers


def is_wrong(said, value):
    return abs(said - value) > TOLERANCE * max(abs(said), abs(value), 1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--handout", required=True, choices=("2025", "2026"))
    parser.add_argument("--syslab", default="build/syslab")
    parser.add_argument("--draw", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print every statement drawn")
    options = parser.parse_args()
    made = subprocess.run([options.syslab, "report", "--handout", options.handout, "--db", options.database,
                           "--to", "json"],
                          check=True, capture_output=True, text=True)
    found, numbers = statements(Database(options.database), json.loads(made.stdout))
    drawn = random.Random(options.seed).sample(found, min(options.draw, len(found)))
    wrong = [one for one in drawn if is_wrong(one[2], one[3])]
    for where, column, said, value in drawn if options.list else wrong:
        print(f"{'WRONG ' if is_wrong(said, value) else ''}{where}, {column}: {said!r}, from samples {value!r}")
    print(f"{len(wrong)} of {len(drawn)} statements drawn with seed {options.seed} are wrong; {len(found)} of "
          f"{numbers} numbers can be recomputed")
    return 1 if wrong else 2 if len(drawn) < options.draw else 0


if __name__ == "__main__":
    sys.exit(main())
