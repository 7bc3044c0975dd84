"""A whole hand-out: planned by points per second, run in sittings that go on where the last one was, and told by part."""
import json
import os
import signal
import sqlite3
import subprocess
import unittest

from lab import Lab, asked_again, attempts
from submitted import make_parallel

ONCE = """SELECT c.uid, i.name, p.world_size, coalesce(p.law, ''), count(*) FROM attempt a
            JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq
            JOIN case_def c ON c.id = p.case_id JOIN implementation i ON i.id = p.implementation_id
            JOIN attempt_event e ON e.attempt_id = a.id AND e.status = 'ok' GROUP BY 1, 2, 3, 4"""


class Handout(Lab):
    def plan(self, *arguments):
        return self.json("plan", "--handout", "2026", "--device", "cpu", *arguments)

    def sitting(self, *arguments, **options):
        return self.lines("run", "--handout", "2026", "--device", "cpu", *arguments, **options)

    def end(self, lines):
        self.assertEqual(lines[-1]["type"], "handout")
        return lines[-1]

    def test_the_plan_has_what_answers_first_and_marks_where_a_budget_ends(self):
        steps = self.plan("--budget", "30s")["steps"]
        order = ["least", "laws", "asked", "nice"]
        self.assertEqual([order.index(one["stage"]) for one in steps], sorted(order.index(one["stage"]) for one in steps))
        inside = [one["within_budget"] for one in steps]
        self.assertTrue(inside[0] and not inside[-1])
        # What is too long for the rest of the budget is passed over, what is behind it and short is not.
        spent = sum(one["seconds"] for one, within in zip(steps, inside) if within)
        self.assertLessEqual(spent, 30)
        longer = self.plan("--budget", "5m")["steps"]
        self.assertEqual([one["cases"] for one in longer], [one["cases"] for one in steps])
        self.assertGreater(sum(one["within_budget"] for one in longer), sum(inside))
        self.assertFalse(self.db.exists())

    @asked_again  # ten seconds of a busy machine may end before any of the runs that are looked at
    def test_a_sitting_measures_by_each_experiments_protocol_and_the_next_goes_on(self):
        whole, budget = self.plan(), f"{10 * self.longer}s"
        first = self.sitting("--budget", budget)
        done = self.end(first)
        self.assertGreater(done["counts"]["ok"], 0)
        self.assertGreater(done["worth"], 0)
        self.assertLess(done["seconds"], 60 * self.longer)
        # As the plan had it: what was run is its beginning.
        boards = [line for line in first if line["type"] == "board"]
        self.assertEqual(boards[0]["worth"], 0)
        ran = [line["experiment"] for line in attempts(first)]
        self.assertEqual(ran[0], whole["steps"][0]["experiment"])
        # A run is of one experiment and its protocol.
        runs = self.sql("SELECT run_uid, count(DISTINCT experiment), min(protocol), min(experiment) FROM v_attempt GROUP BY 1")
        self.assertEqual({count for _, count, _, _ in runs}, {1})
        self.assertEqual(len(runs), done["runs"])
        self.assertEqual({protocol for _, _, protocol, name in runs if name in ("fsdp", "optimizer_state_sharding")},
                         {"cs336"})
        second = self.end(self.sitting("--budget", budget))
        self.assertGreaterEqual(second["worth"], done["worth"])
        self.assertEqual({count for *_, count in self.sql(ONCE)}, {1})  # nothing twice
        left = self.plan()
        self.assertLess(sum(len(one["cases"]) for one in left["steps"]), sum(len(one["cases"]) for one in whole["steps"]))
        self.assertAlmostEqual(left["worth"], second["worth"])
        # In the order of the plan in one, whatever has been measured since.
        rest = iter([case for one in whole["steps"] for case in one["cases"]])
        self.assertTrue(all(case in rest for one in left["steps"] for case in one["cases"]))

    def test_an_interruption_loses_nothing_and_the_next_sitting_goes_on(self):
        process = subprocess.Popen(self.command("run", "--handout", "2026", "--device", "cpu", "--json"), cwd=self.folder,
                                   env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if len(attempts(lines)) == 2:
                process.send_signal(signal.SIGINT)
                break
        rest, _ = process.communicate(timeout=60)
        lines += [json.loads(line) for line in rest.splitlines()]
        end = self.end(lines)
        self.assertEqual((process.returncode, end["interrupted"]), (3, True))
        self.assertLessEqual(len(attempts(lines)), 3)
        self.end(self.sitting("--budget", "10s"))
        self.assertEqual({count for *_, count in self.sql(ONCE)}, {1})

    def test_evidence_of_a_named_run_counts_and_the_list_tells_it(self):
        self.syslab("run", "tp_calcs", "--preset", "paper")
        listed = self.json("list", "--handout", "2026")["handout"]
        parts = {(one["problem"], one["part"]): one for one in listed["parts"]}
        self.assertTrue(all(parts["tp_calcs", letter]["answered"] for letter in "abcd"))
        self.assertFalse(parts["fsdp_calcs", "a"]["answered"])
        self.assertAlmostEqual(listed["worth"], 4)
        self.assertNotIn("tp_calcs", {one["experiment"] for one in self.plan()["steps"]})
        text = self.syslab("list", "--handout", "2026").stdout
        self.assertIn("4 of 137 points' worth", text)
        self.assertRegex(text, r"tp_calcs \(a\) +1 +1 +answered")

    def test_what_somebody_else_reported_is_measured_here(self):
        hers = self.folder / "hers.db"
        self.syslab("run", "tp_calcs", "--preset", "paper", "--db", hers)
        self.syslab("run", "selftest_empty")
        self.syslab("merge", hers)
        self.assertIn("tp_calcs", {one["experiment"] for one in self.plan()["steps"]})
        self.assertEqual(self.json("list", "--handout", "2026")["handout"]["worth"], 4, "a report shows it")
        self.syslab("merge", "--trust", hers)
        self.assertNotIn("tp_calcs", {one["experiment"] for one in self.plan()["steps"]})

    def test_quick_numbers_are_no_evidence(self):
        self.syslab("run", "fsdp", "--preset", "laptop", "--protocol", "quick", "--budget", "1m")
        self.assertEqual(self.json("list", "--handout", "2026")["handout"]["worth"], 0)

    def test_what_ran_out_of_memory_is_an_answer_under_any_protocol_but_not_under_a_limit(self):
        self.syslab("run", "pytorch_attention", "-a", "seq=16384", "-a", "head_dim=16", "--impl", "literal", "--memory-limit", "256Mi",
                    "--protocol", "quick", "--laws", "none")
        self.assertEqual(self.worth_of("pytorch_attention"), 0)
        connection = sqlite3.connect(self.db)
        with connection:  # the same of a machine that has no more
            connection.execute("DROP TRIGGER run_no_update")
            connection.execute("UPDATE run SET protocol = json_set(protocol, '$.memory_limit_bytes', 0)")
        connection.close()
        self.assertGreater(self.worth_of("pytorch_attention"), 0)

    def worth_of(self, problem):
        (part,) = [one for one in self.json("list", "--handout", "2026")["handout"]["parts"] if one["problem"] == problem]
        return part["worth"]

    def test_a_law_that_an_implementation_does_not_have_to_keep_is_looked_at_once(self):
        done = attempts(self.lines("check", "flash_forward", "--impl", "flash_tiled", "--device", "cpu", "--cases", "1"))
        self.assertIn("unsupported", {line["status"] for line in done})
        part = next(one for one in self.json("list", "--handout", "2026")["handout"]["parts"] if (one["problem"], one["part"]) == ("flash_forward", "a"))
        self.assertTrue(part["answered"], part)

    def test_a_folder_joins_what_its_functions_answer(self):
        make_parallel(self.folder / "ada", tail="\n\ndef get_fsdp(module, compute_dtype=None):\n    raise NotImplementedError\n")
        mine = ("--handout", "2026", "--device", "cpu", "--mine", "me=ada", "--python", os.environ["SYSLAB_PYTHON"])
        planned = self.syslab("plan", *mine, "--json")
        of_mine = {case.split()[0] for one in json.loads(planned.stdout)["steps"] for case in one["cases"] if " me " in case}
        self.assertEqual(of_mine, {"naive_ddp", "naive_ddp_benchmarking", "ddp_overlap_individual_parameters",
                                   "ddp_overlap_individual_parameters_benchmarking", "optimizer_state_sharding", "optimizer_state_sharding_accounting"})
        ran = self.syslab("run", *mine, "--budget", "200ms", expect=None)
        for said in (planned.stderr, ran.stderr):
            self.assertIn("me: tests/adapters.py:get_ddp answers naive_ddp, ddp_overlap_individual_parameters, naive_ddp_benchmarking", said)
            self.assertIn("me: stays out: get_flashattention_autograd_function_pytorch (not there), ", said)
            self.assertIn("get_fsdp (not implemented)", said)
        self.assertIn("next: syslab run --handout 2026 --mine me=ada", ran.stdout)

    def test_what_cannot_join_a_hand_out_is_refused_with_what_to_do(self):
        empty = make_parallel(self.folder / "empty")
        (empty / "tests" / "adapters.py").write_text("def get_ddp(module):\n    raise NotImplementedError\n")
        (self.folder / "one.py").write_text("class One:\n    pass\n")
        for mine, said in (("me=empty", r"no function of its tests/adapters.py can join the hand-out of 2026: .*get_ddp \(not implemented\)"),
                           ("me=one.py:One", r"one implementation, .* name its experiments .* or the folder whose adapters.py says so"),
                           ("me=nowhere", "there is no file or folder 'nowhere'")):
            for verb in ("run", "plan"):
                self.assertRegex(self.syslab(verb, "--handout", "2026", "--mine", mine, expect=2).stderr, said)
        self.assertFalse(self.db.exists())

    def test_choices_want_an_experiments_name(self):
        for option in (("-a", "seq=128"), ("--preset", "smoke"), ("--impl", "naive"), ("--protocol", "quick"), ("--shard", "1/2")):
            refused = self.syslab("run", "--handout", "2026", *option, expect=2)
            self.assertIn("is for experiments that are named", refused.stderr)
        self.assertIn("unknown hand-out '2024'", self.syslab("run", "--handout", "2024", expect=2).stderr)
        self.assertIn("no experiment was named", self.syslab("run", expect=2).stderr)
        self.assertFalse(self.db.exists())

    def test_check_takes_a_hand_out_whole(self):
        done = self.lines("check", "--handout", "2025", "-k", "causal_prefix", "--impl", "flash_tiled", "--cases", "1")
        self.assertIn("flash_forward", {line["experiment"] for line in attempts(done)})


if __name__ == "__main__":
    unittest.main()
