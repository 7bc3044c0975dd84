#!/usr/bin/env python3
"""Makes a large store of a small one: grow_store.py DATABASE METRIC_ROWS

Everything that was measured is written again, as later runs on two kinds of machine and with eight times as many cases,
until there are as many metric rows. Numbers differ by a few percent from run to run; checks, events, samples and facts
come along.
"""
import json
import sqlite3
import sys
import uuid

MACHINES, SIZES = 2, 8
SAMPLES = 20  # of each series


def uid(count):
    """As a UUIDv7: sorts by the order in which it was made."""
    return str(uuid.UUID(int=(0x01A00000000070008000 << 48) | count))


class Grower:
    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")
        self.made, self.known = 0, {}

    def rows(self, sql, *parameters):
        return self.db.execute(sql, parameters).fetchall()

    def uid(self):
        self.made += 1
        return uid(self.made)

    def insert(self, table, *values):
        return self.db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values).lastrowid

    def once(self, key, make):
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def environment(self, original, machine):
        def make():
            (key, facts), = self.rows("SELECT comparability_key, facts FROM environment WHERE id = ?", original)
            facts = json.loads(facts)
            facts["cpu"]["model"] += f" {machine}"
            facts["cuda"] = {}
            return self.db.execute("INSERT INTO environment (uid, comparability_key, facts) VALUES (?, ?, ?)",
                                   (self.uid(), f"{key}-{machine}", json.dumps(facts))).lastrowid
        return original if machine == 0 else self.once(("environment", original, machine), make)

    def case(self, original, size):
        def make():
            (experiment, version, params), = self.rows("SELECT experiment, version, params FROM case_def WHERE id = ?",
                                                       original)
            params = json.loads(params)
            axis = next((name for name in ("batch", "rows", "size", "bytes", "n") if name in params), None)
            if axis is None:
                return original
            params[axis] += size
            return self.db.execute("INSERT INTO case_def (uid, experiment, version, params) VALUES (?, ?, ?, ?)",
                                   (self.uid(), experiment, version,
                                    json.dumps(params, separators=(",", ":")))).lastrowid
        return original if size == 0 else self.once(("case", original, size), make)

    def again(self, run, number):
        """Writes a run once more: another machine, other sizes, other times."""
        (old, _, environment, build, verb, started, label, argv, protocol,
         seed), = self.rows("SELECT * FROM run WHERE id = ?", run)
        started = f"2027-01-{1 + number % 28:02}{started[10:]}"
        new = self.db.execute(
            "INSERT INTO run (uid, environment_id, build_id, verb, started_at, label, argv, protocol, root_seed) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self.uid(), self.environment(environment, number % MACHINES), build, verb, started, label, argv, protocol,
             seed)).lastrowid
        for (_, seq, case, *rest) in self.rows("SELECT * FROM plan_case WHERE run_id = ?", old):
            self.insert("plan_case", new, seq, self.case(case, number // MACHINES % SIZES), *rest)
        for attempt, seq in self.rows("SELECT id, plan_seq FROM attempt WHERE run_id = ?", old):
            self.attempt(attempt, new, seq, 1 + (number * 37 + seq * 11) % 50 / 1000)

    def attempt(self, old, run, seq, factor):
        new = self.db.execute("INSERT INTO attempt (uid, run_id, plan_seq) VALUES (?, ?, ?)",
                              (self.uid(), run, seq)).lastrowid
        copy = self.db.execute
        copy("INSERT INTO attempt_event SELECT ?, at, status, detail FROM attempt_event WHERE attempt_id = ?",
             (new, old))
        copy("INSERT INTO attempt_facts SELECT ?, facts FROM attempt_facts WHERE attempt_id = ?", (new, old))
        copy("INSERT INTO metric SELECT ?, name, rank, unit, value * ?, ci_low * ?, ci_high * ?, n, note FROM metric "
             "WHERE attempt_id = ?",
             (new, factor, factor, factor, old))
        columns = ("name, contract, outcome, cases_run, shrinks_tried, shrinks_taken, seed, reproduce, counterexample, "
                   "message, worst_error, tolerance, fraction_checked")
        for check, in self.rows("SELECT id FROM check_result WHERE attempt_id = ?", old):
            copy(f"INSERT INTO check_result (uid, attempt_id, {columns}) SELECT ?, ?, {columns} FROM check_result "
                 "WHERE id = ?",
                 (self.uid(), new, check))
        for series, name, unit in self.rows("SELECT id, name, unit FROM series WHERE attempt_id = ?", old):
            made = copy("INSERT INTO series (attempt_id, name, unit) VALUES (?, ?, ?)", (new, name, unit)).lastrowid
            copy("INSERT INTO sample SELECT ?, launch, rank, idx, value * ?, sm_hz, flags FROM sample WHERE series_id "
                 "= ? AND idx < ?",
                 (made, factor, series, SAMPLES))


def main():
    path, wanted = sys.argv[1], int(sys.argv[2])
    grower = Grower(path)
    runs = [run for run, in grower.rows("SELECT id FROM run WHERE verb = 'run' ORDER BY id")]

    def count():
        return grower.rows("SELECT count(*) FROM metric")[0][0]

    if not runs or count() == 0:
        sys.exit(f"{path}: nothing was measured there")
    grower.db.execute("BEGIN")
    number = 1
    while count() < wanted:
        for run in runs:
            grower.again(run, number)
        number += 1
    grower.db.execute("COMMIT")
    tables = ("run", "plan_case", "case_def", "attempt", "metric", "check_result", "sample")
    print(", ".join(f"{grower.rows(f'SELECT count(*) FROM {table}')[0][0]} {table}" for table in tables))


if __name__ == "__main__":
    main()
