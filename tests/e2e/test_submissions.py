"""Hand-ins of several people: kept apart, merged, ranked, imported, and pruned."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from lab import RIGHT, Lab, asked_again, attempts

MINE = os.environ["SYSLAB_MINE"]
SMALL = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "--impl", "me", "--laws", "none")


# Right for 32 queries and more, and slow enough to be stopped.
WRONG_IF_SMALL = """import time
import numpy as np


class Flash:
    def forward(self, q, k, v, causal):
        time.sleep(PAUSE)
        s = np.einsum("bqd,bkd->bqk", q.astype("f8"), k.astype("f8")) / q.shape[-1] ** 0.5
        s = np.where(np.tri(s.shape[1], s.shape[2], dtype=bool), s, -np.inf) if causal else s
        m = s.max(-1, keepdims=True)
        p = np.exp(s - m)
        t = p.sum(-1, keepdims=True)
        out = np.einsum("bqk,bkd->bqd", p / t, v.astype("f8")) + (q.shape[1] < 32)
        return out.astype(q.dtype), (m + np.log(t))[..., 0].astype("f4")
"""


def log_lines(**changes):
    """A log of one case of weighted_sum, as another program might write it."""
    case = {"type": "case", "experiment": "weighted_sum", "implementation": "theirs", "language": "Rust",
            "params": {}}
    case.update(changes.pop("case", {}))
    return [
        {"type": "run", "author": "eve", "label": "from her laptop", "protocol": {"name": "do_bench"}},
        case,
        {"type": "check", "name": "reference:y", "outcome": changes.pop("outcome", "passed"), "worst_error": 1e-7,
         "tolerance": 1e-6},
        {"type": "sample", "series": "time", "unit": "s", "values": [1e-4, 1.1e-4, 1.2e-4]},
        {"type": "metric", "name": "time", "unit": "s", "value": 1.1e-4, "low": 1e-4, "high": 1.2e-4, "n": 3},
        {"type": "end", "status": "ok", "detail": ""},
    ]


class Submissions(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def hand_in(self, author, spec, *, db=None):
        more = ("--db", db) if db else ()
        self.syslab("run", "flash_forward", *SMALL, "--protocol", "quick", "--mine", f"me={MINE}/{spec}", "--author", author, *more, expect=RIGHT)

    def hand_in_timed(self, author, *more):
        """A class of that person's own whose calls last long enough to have a time on a busy machine, and samples enough for a rank."""
        late = self.folder / f"{author}.py"
        late.write_text(pathlib.Path(MINE, "plain.py").read_text(encoding="utf-8") + f"# {author}'s\nclass Late(Naive):\n"
                        f"    def forward(self, *arguments):\n        time.sleep({0.15 * self.longer})\n        return super().forward(*arguments)\n", encoding="utf-8")
        self.syslab("run", "flash_forward", *SMALL, "--protocol", "kernel", "--mine", f"me={late}:Late", "--author", author, *more)

    def test_what_fails_a_law_gets_no_time_and_no_rank(self):
        (self.folder / "small.py").write_text(WRONG_IF_SMALL.replace("PAUSE", "0.002"), encoding="utf-8")
        mine = ("flash_forward", *SMALL[:-2], "--mine", "me=small.py:Flash", "--protocol", "quick")
        lines = self.lines("run", *mine, expect=1)
        last = attempts(lines)[-1]
        self.assertEqual((last["status"], "law" in last), ("skipped", False))
        self.assertIn("fails attention.equals_oracle (handout), and what is wrong gets no time", last["detail"])
        ((law,),) = self.sql("SELECT facts ->> '$.falsified_law.name' FROM v_attempt WHERE task = 'measure'")
        self.assertEqual(law, "attention.equals_oracle")
        self.lines("run", *mine, "--laws", "none", expect=None)  # whoever asks for it
        self.assertEqual(self.sql("SELECT status FROM v_newest WHERE task = 'measure'"), [("ok",)])
        (row,) = json.loads(self.syslab("report", "--leaderboard", "--to", "json").stdout)["rows"]
        self.assertEqual(row["rank"], "unranked: fails a law")
        told = self.syslab("claim", "me >= 1e-6 x naive", "flash_forward", *SMALL[:-4], "--mine", "me=small.py:Flash", "--protocol", "quick", "--launches", "3", "-o", "x.claim",
                           expect=None)
        self.assertIn("me fails attention.equals_oracle (handout)", told.stderr)

    def test_a_resumed_run_remembers_which_laws_failed(self):
        (self.folder / "small.py").write_text(WRONG_IF_SMALL.replace("PAUSE", "0.1"), encoding="utf-8")
        command = self.command("run", "flash_forward", *SMALL[:-2], "--mine", "me=small.py:Flash", "--json")
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in process.stdout:
            if '"check_failed"' in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        last = attempts(self.lines("resume", expect=1))[-1]
        self.assertEqual((last["status"], last["detail"].split(" (")[0]), ("skipped", "me fails attention.equals_oracle"))

    def write_log(self, lines, name="theirs.jsonl"):
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def params(self):
        """Axes of weighted_sum at their first values."""
        axes = self.json("describe", "weighted_sum")["axes"]
        return {axis["name"]: axis["values"][0] for axis in axes}

    @asked_again
    def test_two_people_with_one_name_for_their_kernels_stay_apart(self):
        theirs = self.folder / "theirs.db"
        self.hand_in_timed("ada")
        self.hand_in_timed("grace", "--db", theirs)
        self.syslab("merge", theirs)
        self.syslab("merge", theirs)
        rows = self.sql("SELECT author, measured_here FROM v_newest WHERE implementation = 'me' ORDER BY author")
        self.assertEqual(rows, [("ada", 1), ("grace", 0)])
        self.assertEqual(self.sql("SELECT count(*) FROM submission"), [(2,)])
        board = self.syslab("report", "--leaderboard", "--to", "json").stdout
        rows = json.loads(board)["rows"]
        self.assertEqual({(row["author"], row["standing"]) for row in rows}, {("ada", "verified"), ("grace", "self-reported")})
        for row in rows:  # each alone on its board; on a busy machine a time may have two modes
            self.assertIn(row["rank"], ("1", "unranked: two modes"))
        self.assert_intact()

    def test_a_time_without_an_interval_has_no_rank(self):
        case = {"params": self.params()}
        sure, unsure = log_lines(case=case), log_lines(case=case)
        unsure[0]["author"] = "mallory"
        unsure[3]["values"] = [1e-6, 1e-6, 1e-6]
        unsure[4] = {"type": "metric", "name": "time", "unit": "s", "value": 1e-6, "n": 3}
        self.syslab("import", self.write_log(sure))
        self.syslab("import", self.write_log(unsure, "unsure.jsonl"))
        rows = json.loads(self.syslab("report", "--leaderboard", "--to", "json").stdout)["rows"]
        self.assertEqual([(row["author"], row["rank"], row["time"] is None) for row in rows],
                         [("eve", "1", False), ("mallory", "unranked", False)])
        text = self.syslab("report", "--leaderboard").stdout
        self.assertIn("| unranked | mallory | `theirs` | Rust | 0.00100 |", text)
        self.assertIn("| `weighted_sum` |", text)  # which board this is, though there is one only

    @asked_again
    def test_tables_keep_authors_and_origins_apart(self):
        theirs = self.folder / "theirs.db"
        for author, more in (("ada", ()), ("grace", ("--db", theirs))):
            self.hand_in_timed(author, "--impl", "naive", *more)
        self.syslab("merge", theirs)
        table = next(table for table in self.json("report", "flash_forward") if table["id"] == "flash_forward")
        rows = {row["implementation"]: row for row in table["rows"]}
        self.assertEqual(len(table["rows"]), 4)
        self.assertEqual(set(rows), {"naive", "naive (self-reported)", "me (ada)", "me (grace, self-reported)"})
        for one, naive in (("me (ada)", "naive"), ("me (grace, self-reported)", "naive (self-reported)")):
            self.assertAlmostEqual(rows[one]["vs_naive"], rows[naive]["time_ms"] / rows[one]["time_ms"])

    def test_without_an_alias_each_is_handed_in_under_its_own_name(self):
        ada, bob = (f"--command={name}=echo took {time} ms" for name, time in (("ada", 100), ("bob", 200)))
        self.syslab("run", ada, bob, "--reads", "took {} ms", "--protocol", "quick")
        self.syslab("run", bob, "--reads", "took {} ms", "--protocol", "quick")
        self.assertEqual(self.sql("SELECT DISTINCT implementation, author FROM v_attempt ORDER BY 1"), [("ada", "ada"), ("bob", "bob")])
        self.assertEqual(self.sql("SELECT DISTINCT implementation, author FROM v_coverage ORDER BY 1"), [])
        rows = json.loads(self.syslab("report", "--leaderboard", "--to", "json").stdout)["rows"]
        self.assertEqual(sorted((row["implementation"], row["author"]) for row in rows), [("ada", "ada"), ("bob", "bob")])

    def test_handing_in_the_same_file_again_is_the_same_submission(self):
        self.hand_in("ada", "plain.py:Naive")
        self.hand_in("ada", "plain.py:Naive")
        self.assertEqual(self.sql("SELECT count(*) FROM submission"), [(1,)])
        self.assertEqual(self.sql("SELECT count(*) FROM run_submission"), [(2,)])

    def test_shards_that_are_vouched_for_count_as_measured_here(self):
        shard, relayed = self.folder / "shard.db", self.folder / "relayed.db"
        self.hand_in("ada", "plain.py:Naive", db=shard)
        self.syslab("merge", shard)
        self.assertEqual(self.sql("SELECT trusted FROM arrival"), [(0,)])
        self.syslab("merge", shard, "--trust")
        self.assertEqual(self.sql("SELECT trusted FROM arrival"), [(1,)])
        # What one was only told, one cannot vouch for by passing it on.
        self.syslab("merge", shard, "--db", relayed)
        third = self.folder / "third.db"
        self.syslab("merge", relayed, "--trust", "--db", third)
        self.assertEqual(self.sql("SELECT trusted FROM arrival", db=third), [(0,)])

    def test_a_log_of_another_program_is_taken_in_once(self):
        log = self.write_log(log_lines(case={"params": self.params()}))
        self.syslab("import", log)
        again = self.syslab("import", log)
        self.assertIn("already there", again.stdout)
        row = self.sql("SELECT author, implementation, is_mine, measured_here, status, value FROM v_latest"
                       " WHERE metric = 'time'")
        self.assertEqual(row, [("eve", "theirs", 1, 0, "ok", 1.1e-4)])
        self.assert_intact()

    def imported(self, name, day, seconds, *, author="eve", version="2", implementation="theirs"):
        lines = log_lines(case={"params": self.params(), "version": version, "implementation": implementation, "digest": f"d{name}"})
        lines[0].update(author=author, started_at=f"2026-05-0{day}T00:00:00Z", environment={"cpu": {"model": "x"}})
        lines[3]["values"] = [seconds] * 6
        lines[4] = {"type": "metric", "name": "time", "unit": "s", "value": seconds}
        self.syslab("import", self.write_log(lines, f"{name}.jsonl"))

    def test_the_course_of_a_case_mixes_no_versions_and_no_authors(self):
        for i, (author, version, seconds) in enumerate((("eve", "1", 1e-3), ("eve", "2", 2e-3), ("ada", "2", 3e-3))):
            self.imported(f"log{i}", i + 1, seconds, author=author, version=version)
        series = self.json("log", "weighted_sum")["series"]
        self.assertEqual(sorted((one["author"], one["version"], len(one["points"]), len(one["changes"])) for one in series),
                         [("ada", "2", 1, 0), ("eve", "1", 1, 0), ("eve", "2", 1, 0)])
        said = self.syslab("log", "weighted_sum").stdout
        self.assertIn("version=1 ", said)
        self.assertIn("theirs (eve, self-reported)", said)
        self.assertNotIn("perhaps", said)

    def test_five_values_that_go_up_and_down_are_no_step(self):
        for i in range(5):
            self.imported(f"log{i}", i + 1, 1.05e-3 if i % 2 else 1e-3)
        series, = self.json("log", "weighted_sum")["series"]
        self.assertEqual((len(series["points"]), series["changes"]), (5, []))

    def test_an_alias_that_is_too_long_and_times_below_zero_are_refused(self):
        log = self.write_log(log_lines(case={"params": self.params()}))
        self.assertIn("--author has 201 characters; expected at most 200", self.refused("import", log, "--author", "a" * 201))
        for unit in ("ms", "us", "µs", "ns", "min"):
            lines = log_lines(case={"params": self.params()})
            lines.insert(4, {"type": "sample", "series": "step", "unit": unit, "values": [-5.0]})
            self.assertRegex(self.refused("import", self.write_log(lines)), rf"'step' .* is -5 {unit}; wanted: from 0 to ")
        lines[4]["unit"] = "percent"
        self.syslab("import", self.write_log(lines))

    def test_a_series_of_times_and_its_metric_have_one_unit(self):
        lines = log_lines(case={"params": self.params()})
        lines[4:4] = [{"type": "sample", "series": "step", "unit": "s", "values": [1.0, 2.0]},
                      {"type": "metric", "name": "step", "unit": "ms", "value": 5.0}]
        self.assertIn("'step' is in 'ms', and has samples in 's'; expected one unit", self.refused("import", self.write_log(lines)))
        lines[5]["unit"] = "s"
        self.assertIn("expected a value among them", self.refused("import", self.write_log(lines)))

    def test_an_imported_ok_is_believed_as_far_as_it_was_checked(self):
        lines = log_lines(case={"params": self.params()})
        del lines[2]
        self.syslab("import", self.write_log(lines))
        self.assertEqual(self.sql("SELECT status FROM v_attempt"), [("error",)])
        self.syslab("import", self.write_log(log_lines(case={"params": self.params()}, outcome="falsified"), "b.jsonl"))
        self.assertEqual(self.sql("SELECT status FROM v_attempt ORDER BY status"), [("check_failed",), ("error",)])

    def test_a_log_with_a_mistake_is_refused_whole_with_its_line(self):
        whole = self.params()
        some_axis = next(name for name, value in whole.items() if isinstance(value, int) and value is not True)
        spoilt = {
            "unknown axis": log_lines(case={"params": {**whole, "sek": 1}}),
            "does not take": log_lines(case={"params": {**whole, some_axis: "wide"}}),
            "no 'end'": log_lines(case={"params": whole})[:-1],
            "weighted_sun": log_lines(case={"params": whole, "experiment": "weighted_sun"}),
            "name of its 'implementation'": log_lines(case={"params": whole, "implementation": ""}),
            "outside a case": log_lines(case={"params": whole})[2:],
        }
        for reason, lines in spoilt.items():
            with self.subTest(reason):
                done = self.syslab("import", self.write_log(lines), expect=2)
                self.assertIn(reason, done.stderr)
                self.assertIn("line ", done.stderr)
                self.assertFalse(self.db.exists())
        self.folder.joinpath("torn.jsonl").write_text('{"type":"run"}\n{"type":"ca')
        self.assertIn("line 2", self.refused("import", "torn.jsonl"))

    def test_numbers_that_cannot_be_are_refused_with_their_line(self):
        whole = self.params()
        case = {"params": whole}

        def spoilt(line, **changes):
            lines = log_lines(case=case)
            lines[line].update(changes)
            return self.write_log(lines)

        run, of_case, check, sample, metric, end = range(6)
        for place, changes, reason in (
                (run, {"started_at": "yesterday"}, "must be a time in UTC"),
                (run, {"started_at": "2026-02-29T10:00:00Z"}, "must be a time in UTC"),
                (run, {"started_at": "2026-02-28T24:00:00Z"}, "must be a time in UTC"),
                (run, {"started_at": "2026-02-28T10:00:00.Z"}, "must be a time in UTC"),
                (run, {"started_at": "2026-02-28 10:00:00Z"}, "must be a time in UTC"),
                (of_case, {"started_at": "2999-01-01T00:00:00Z"}, "in the future"),
                (of_case, {"started_at": "1969-12-31T23:59:59Z"}, "before 1970"),
                (end, {"ended_at": "2001-01-01T00:00:00Z"}, "before it began"),
                (run, {"seed": "abc"}, "'seed'"),
                (of_case, {"seed": "-1"}, "'seed'"),
                (of_case, {"world_size": 0}, "at least 1"),
                (of_case, {"world_size": 1.5}, "'world_size'"),
                (check, {"fraction_checked": 7}, "'fraction_checked'"),
                (check, {"cases_run": -1}, "'cases_run'"),
                (check, {"worst_error": 2e-3, "tolerance": 1e-3}, "its error 0.002 is above its tolerance 0.001; expected 'falsified'"),
                (check, {"worst_error": "Infinity", "tolerance": 1e-3}, "'passed' with an error of inf"),
                (check, {"worst_error": "NaN", "tolerance": 1e-3}, "'passed' with an error of nan"),
                (check, {"worst_error": 0, "tolerance": "NaN"}, "'passed' with a tolerance of NaN"),
                (check, {"worst_error": -1e-9}, "a 'worst_error' of -1e-09; expected 0 or more"),
                (check, {"worst_error": None, "tolerance": -1}, "a 'tolerance' of -1; expected 0 or more"),
                (check, {"outcome": "falsified", "worst_error": -1}, "a 'worst_error' of -1"),
                (check, {"contract": "nope"}, "'contract'"),
                (check, {"counterexample": {"a": json.loads("[" * 150 + "]" * 150)}}, "levels deep; expected at most 100"),
                (run, {"protocol": {"name": 5}}, "'name' must be a text"),
                (run, {"protocol": {"name": "kernel", "data": 5}}, "'data' must be a text"),
                (metric, {"n": -1}, "-1 samples"),
                (sample, {"first_index": -1}, "'first_index'"),
                (sample, {"values": [1e-4, "Infinity"]}, "wanted: from 0 to 3200000000 s"),
                (sample, {"rank": 1}, "rank 1 of a case"),
                (sample, {"values": [1e-4, 0, 1e-4]}, "no time is that"),
                (sample, {"unit": "ms"}, "is in 's'"),
                (metric, {"unit": "ms"}, "is in 's'"),
                (metric, {"value": -1, "low": None, "high": None}, "wanted: from 0 to 3200000000 s"),
                (metric, {"low": -5.0}, "the interval of 'time' has the end -5 s; expected 0 or more"),
                (metric, {"low": 1.2e-4, "high": 1e-4}, "begins at"),
                (metric, {"value": 1}, "outside its own interval")):
            with self.subTest(changes):
                done = self.syslab("import", spoilt(place, **changes), expect=2)
                self.assertIn(reason, done.stderr)
                self.assertIn(f"line {place + 1}: ", done.stderr)
                self.assertFalse(self.db.exists())
        self.assertIn("is a folder", self.refused("import", self.folder))
        self.syslab("import", spoilt(run, started_at="2026-02-28T23:59:59.1234Z", seed=7, world_size=None))
        self.assertEqual(self.sql("SELECT a.started_at, a.ended_at, r.root_seed FROM v_attempt a JOIN run r ON r.id = a.run_id"),
                         [("2026-02-28T23:59:59.123Z", "2026-02-28T23:59:59.123Z", "7")])

    def test_an_error_at_its_tolerance_passed_and_a_falsified_check_may_have_any(self):
        for outcome, error, status in (("passed", 1e-3, "ok"), ("passed", None, "ok"), ("falsified", 2e-3, "check_failed"),
                                       ("falsified", "NaN", "check_failed")):
            with self.subTest(outcome=outcome, error=error):
                lines = log_lines(case={"params": self.params()})
                lines[2].update(outcome=outcome, worst_error=error, tolerance=1e-3)
                self.syslab("import", self.write_log(lines), "--db", self.folder / f"{outcome}{error}.db")
                self.assertEqual(self.sql("SELECT status FROM v_attempt", db=self.folder / f"{outcome}{error}.db"), [(status,)])

    def test_a_line_that_is_no_object_is_refused_with_what_is_wrong(self):
        whole = [json.dumps(line).encode() for line in log_lines(case={"params": self.params()})]
        for line, content, said in ((4, whole[4].replace(b"0.00011", b"NaN", 1), "line 5: this is no JSON from column "),
                                    (4, whole[4].replace(b"0.00011", b"1e400", 1), "the number 1e400 (column "),
                                    (4, whole[4].replace(b"0.00011", b"1e400", 1), "beyond fp64"),
                                    (0, whole[0].replace(b"eve", b"\xe4ve"), "line 1: this is not UTF-8 (byte 0xe4 in column "),
                                    (0, whole[0].replace(b"eve", b"\\ud800"), "surrogate"),
                                    (3, b"[1]", "line 4: this is a list; expected a JSON object"),
                                    (4, whole[4].replace(b'"n"', b'"value": 1e-4, "n"'), "an object that has the key 'value' twice")):
            with self.subTest(said):
                (self.folder / "bad.jsonl").write_bytes(b"\n".join(whole[:line] + [content] + whole[line + 1:]) + b"\n")
                self.assertIn(said, self.refused("import", "bad.jsonl"))
        self.assertFalse(self.db.exists())

    def test_a_metric_that_its_own_samples_contradict_is_refused(self):
        def changed(metric, **sample):
            lines = log_lines(case={"params": self.params()})
            lines[3].update(sample)
            lines[4] = {"type": "metric", "name": "time", "unit": "s", **metric}
            return self.write_log(lines)

        for metric, said in (({"value": 1e-9, "n": 3}, "'time' is 1e-09 s, and its 3 samples are from 0.0001 to 0.00012; expected a value among them"),
                             ({"value": 1.1e-4, "n": 500}, "'time' says that it is of 500 samples, and the case has 3 samples; expected n = 3"),
                             ({"value": 9e-5, "n": 3}, "'time' is 9e-05 s, and its 3 samples are from")):
            with self.subTest(said):
                self.assertIn(said, self.syslab("import", changed(metric), expect=2).stderr)
        self.assertFalse(self.db.exists())
        skewed = {"values": [1e-4, 1.1e-4, 1.5e-4]}
        for told in (1.1e-4, 1.2e-4, 0.999e-4):  # the median, the mean, and the fastest rounded
            self.syslab("import", changed({"value": told}, **skewed))
        self.syslab("import", changed({"value": 7.0, "name": "loss", "unit": "1"}))
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(4,)])

    def test_names_longer_than_a_table_are_refused(self):
        for place, key in ((1, "implementation"), (1, "language"), (0, "author")):
            lines = log_lines(case={"params": self.params()})
            lines[place][key] = 201 * "\u00e4"
            said = self.syslab("import", self.write_log(lines), expect=2).stderr
            self.assertIn(f"'{key}' has 201 characters; expected at most 200", said)
            lines[place][key] = 200 * "\u00e4"
            self.syslab("import", self.write_log(lines))

    def test_the_log_on_the_page_is_one(self):
        page = pathlib.Path(MINE).parents[2] / "docs/importing-results.md"
        log = self.folder / "page.jsonl"
        log.write_text(page.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0], encoding="utf-8")
        self.syslab("import", log)
        self.assertEqual(self.sql("SELECT author, status, measured_here FROM v_attempt"), [("eve", "ok", 0)])

    def test_an_imported_run_is_not_resumed(self):
        lines = log_lines(case={"params": self.params()})
        lines[-1]["status"] = "crashed"
        self.syslab("import", self.write_log(lines))
        self.assertIn("imported", self.refused("resume", "--failed", "--force"))

    def test_prune_keeps_what_a_kept_verdict_was_made_of(self):
        small = ("-a", "rows=64", "-a", "pass=forward", "-a", "dtype=fp32", "-a", "dim=32", "--impl", "naive", "--laws",
                 "none", "--protocol", "quick", "--launches", "3")
        self.syslab("run", "weighted_sum", *small)
        self.syslab("gate", "--against", "latest", "--launches", "3", expect=None)
        ((first, gate),) = self.sql("SELECT (SELECT uid FROM run WHERE verb = 'run'), (SELECT uid FROM run WHERE verb = 'gate')")
        told = {run["run"]: (run["kept"], run["needed_by"]) for run in self.json("prune", "--keep", "1", "-o", "small.db")["runs"]}
        self.assertEqual(told, {gate: (True, ""), first: (True, gate)})
        count = "SELECT count(*) FROM comparison_attempt"
        self.assertEqual(self.sql(count, db=self.folder / "small.db"), self.sql(count))
        self.assertIn("part of a comparison", self.refused("prune", "--drop", first))
        self.assertIn("leave it out of one", self.refused("prune", "--drop", first, "--run", first))
        self.assertEqual([run["kept"] for run in self.json("prune", "--drop", first, "--drop", gate)["runs"]], [False] * 2)

    def test_merge_looks_at_every_file_before_it_takes_one(self):
        theirs = self.folder / "theirs.db"
        self.syslab("run", "selftest_empty", "--laws", "none", "--protocol", "quick", "--db", theirs)
        (self.folder / "torn.db").write_text("no database")
        self.assertIn("torn.db", self.syslab("merge", theirs, "torn.db", expect=4).stderr)
        self.assertFalse(self.db.exists())

    def test_prune_copies_what_is_kept_and_leaves_the_old_file_alone(self):
        for _ in range(3):
            self.syslab("run", "selftest_empty", "--laws", "none", "--protocol", "quick")
        runs = [uid for (uid,) in self.sql("SELECT uid FROM run ORDER BY started_at, uid")]
        before = self.sql("SELECT count(*) FROM attempt")
        told = self.json("prune", "--keep", "1")
        self.assertEqual([run["kept"] for run in told["runs"]], [True, False, False])
        self.syslab("prune", "--keep", "1", "--run", runs[0], "-o", "small.db")
        small = self.folder / "small.db"
        self.assertEqual({uid for (uid,) in self.sql("SELECT uid FROM run", db=small)}, {runs[0], runs[2]})
        self.assertEqual(self.sql("SELECT count(*) FROM attempt"), before)
        self.assert_intact(db=small)
        self.assertIn("there already", self.refused("prune", "-o", "small.db"))
        self.assertFalse(list(self.folder.glob("*.partial*")))
        self.syslab("prune", "--drop", runs[1], "--no-samples", "-o", "less.db")
        less = self.folder / "less.db"
        self.assertEqual(self.sql("SELECT count(*) FROM sample", db=less), [(0,)])
        self.assertEqual(self.sql("SELECT count(*) FROM run", db=less), [(2,)])

    def test_prune_everything_is_a_copy(self):
        self.hand_in("ada", "plain.py:Naive")
        self.syslab("prune", "-o", "copy.db")
        copy = self.folder / "copy.db"
        for table in ("run", "attempt", "sample", "metric", "check_result", "submission", "run_submission", "arrival"):
            self.assertEqual(self.sql(f"SELECT count(*) FROM {table}"), self.sql(f"SELECT count(*) FROM {table}", db=copy))
        shutil.rmtree(self.folder / "nowhere", ignore_errors=True)
        self.syslab("prune", "-o", "nowhere/copy.db", expect=None)
        self.assertFalse((self.folder / "nowhere").exists())


if __name__ == "__main__":
    unittest.main()
