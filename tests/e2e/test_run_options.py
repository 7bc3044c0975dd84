"""How a run is told to measure: launches, isolation, a budget of time, predictions; and that resume keeps to it."""
import json
import random
import sqlite3
import subprocess
import unittest
from collections import Counter

from lab import Lab, attempts, summary

SMALL = ("flash_forward", "-a", "seq=16", "-a", "causal=false", "-a", "dtype=fp32", "--laws", "none")
QUICK = ("--protocol", "quick")
HUGE = ("flash_forward", "-a", "seq=4Mi", "-a", "causal=false", "-a", "dtype=fp32", "--impl", "naive", "--laws", "none")


class RunOptions(Lab):
    def facts(self):
        return [json.loads(text) for (text,) in self.sql("SELECT facts FROM attempt_facts ORDER BY attempt_id")]

    def test_launches_are_stored_with_their_samples_and_facts(self):
        self.syslab("run", *SMALL, *QUICK, "--impl", "flash_tiled", "--launches", "3")
        (facts,) = self.facts()
        self.assertEqual([launch["worker"] for launch in facts["launches"]], [1, 2, 3])
        self.assertEqual(self.sql("SELECT DISTINCT launch FROM sample ORDER BY 1"), [(0,), (1,), (2,)])
        self.assertEqual(self.sql("SELECT protocol ->> '$.launches' FROM run"), [(3,)])
        ((value, low, high, n, note),) = self.sql(
            "SELECT value, ci_low, ci_high, n, note FROM metric WHERE name = 'time'")
        times = "FROM sample s JOIN series n ON n.id = s.series_id AND n.name = 'time'"
        medians = sorted(self.sql(f"SELECT value {times} WHERE launch = ? ORDER BY value LIMIT 1 OFFSET "
                                  f"(SELECT count(*) / 2 {times} WHERE launch = ?)", k, k)[0][0] for k in range(3))
        self.assertAlmostEqual(value / medians[1], 1, delta=0.5)  # an even count's median lies between two
        self.assertTrue(low <= value <= high)
        self.assertEqual(self.sql(f"SELECT count(*) {times}"), [(n,)])
        self.assertIn("3 launches", note)
        self.assertEqual(self.sql("SELECT count(*) FROM check_result GROUP BY name"), [(1,)] * len(
            self.sql("SELECT DISTINCT name FROM check_result")))

    def test_a_shared_worker_is_recorded_and_replaced_after_a_bad_end(self):
        lines = self.lines("run", "selftest_faults", "-a", "fault=none,check_failed,none,segv,unsupported,throw,oom",
                           "--isolation", "reuse", expect=1)
        status = {line["params"]["fault"]: line["status"] for line in attempts(lines)}
        self.assertEqual(status, {"none": "ok", "check_failed": "check_failed", "segv": "crashed",
                                  "unsupported": "unsupported", "throw": "error", "oom": "oom"})
        facts = self.facts()
        self.assertEqual([fact["isolation"] for fact in facts], ["reuse"] * 6)
        self.assertEqual([(fact["worker"], fact["worker_cases_before"]) for fact in facts],
                         [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)])

    def test_launches_and_a_shared_worker_contradict(self):
        done = self.syslab("run", *SMALL, "--launches", "2", "--isolation", "reuse", expect=2)
        self.assertIn("fresh processes", done.stderr)
        self.assertFalse(self.db.exists())

    def test_a_budget_leaves_the_rest_to_resume(self):
        lines = self.lines("run", "selftest_faults", "-a", "fault=hang,none,print,nan", "--timeout", "500ms", "--budget",
                           "200ms", expect=3)
        end = summary(lines)
        self.assertEqual((end["missing"], end["left_out"]), (3, 3))
        self.assertEqual([line["status"] for line in attempts(lines)], ["timeout"])
        text = self.syslab("resume", "--budget", "1ns", expect=3).stdout
        self.assertIn("3 did not start; ", text)
        self.assertIn("next: syslab resume", text)
        again = self.lines("resume", expect=3)  # the hang stays as it was
        self.assertEqual([line["status"] for line in attempts(again)], ["ok"] * 3)
        self.assertEqual(summary(again)["missing"], 0)

    def test_a_case_that_will_not_fit_does_not_start(self):
        self.syslab("run", *SMALL, "--impl", "flash_tiled", "--protocol", "kernel")  # some seconds
        lines = self.lines("run", *SMALL, "--impl", "flash_tiled", "--protocol", "kernel", "--budget", "100ms", expect=3)
        self.assertEqual(attempts(lines), [])
        self.assertEqual(summary(lines)["left_out"], 1)

    def test_plan_predicts_from_what_was_measured_and_else_estimates(self):
        case = SMALL[:-2]
        before = self.json("plan", *case, *QUICK)
        self.assertFalse(self.db.exists(), "plan made a database")
        for planned in before["cases"]:
            self.assertTrue("skip" in planned or "estimated at" in planned["predicted_from"], planned)
        self.assertGreater(before["predicted_seconds"], 0)
        done = {line["impl"]: line["seconds"] for line in attempts(self.lines("run", *SMALL, *QUICK))}
        for launches in (1, 2):
            after = [it for it in self.json("plan", *case, *QUICK, "--launches", launches)["cases"] if "skip" not in it]
            self.assertGreater(len(after), 1)
            for planned in after:
                self.assertEqual(planned["predicted_from"], "measured just now")
                self.assertAlmostEqual(planned["predicted_seconds"], launches * done[planned["impl"]], delta=0.1)
        other = [it for it in self.json("plan", *case, "--protocol", "kernel")["cases"] if "skip" not in it]
        self.assertTrue(all("its own rate" in it["predicted_from"] for it in other), "another protocol, another time")
        self.assertIn("under protocol quick", self.syslab("plan", *case, *QUICK).stdout)

    def test_what_cannot_fit_into_memory_is_a_result_without_a_try(self):
        plan = self.json("plan", *HUGE[:-2])
        self.assertEqual((plan["to_run"], plan["predicted_oom"]), (0, 1))
        self.assertRegex(plan["cases"][0]["predicted_oom"], r"^needs [\d.]+ [PT]iB, this machine has [\d.]+ [GT]iB$")
        (line,) = attempts(self.lines("run", *HUGE, expect=None))
        self.assertEqual(line["status"], "oom")
        self.assertRegex(line["detail"], r"^needs [\d.]+ [PT]iB")
        self.assertEqual(self.facts(), [{"device": "cpu", "predicted": True}])

    def test_blas_without_room_for_its_buffers_is_refused_before_it_hangs(self):
        for limit in ("64Mi", "170Mi"):
            lines = self.lines("run", "ceiling_gemm", "--device", "cpu", "--impl", "openblas", "-a", "size=64", "-a", "dtype=fp32", "--laws",
                               "none", "--protocol", "quick", "--memory-limit", limit, expect=None, timeout=60)
            (line,) = attempts(lines)
            if "no OpenBLAS" in (line["detail"] or ""):
                return  # plain loops serve here
            self.assertEqual(line["status"], "oom", line)
            self.assertRegex(line["detail"], r"OpenBLAS reserves up to .* the memory limit leaves .*OPENBLAS_NUM_THREADS")

    def test_try_oom_tries(self):
        limited = ("flash_forward", "-a", "seq=2048", "-a", "causal=false", "-a", "dtype=fp32", "--impl", "naive",
                   "--laws", "none", "--protocol", "quick", "--memory-limit", "16Mi")
        (line,) = attempts(self.lines("run", *limited, expect=None))
        self.assertRegex(line["detail"], r"^needs \d+ MiB, --memory-limit is 16 MiB$")
        (line,) = attempts(self.lines("run", *limited, "--try-oom", expect=None))
        self.assertEqual(line["status"], "oom")
        self.assertNotIn("needs", line["detail"])
        self.assertNotIn("predicted", self.facts()[1])

    def test_resume_takes_try_oom_too(self):
        self.syslab("run", "flash_forward", "-a", "seq=2048", "-a", "causal=false", "-a", "dtype=fp32", "--impl", "naive",
                    "--laws", "none", "--protocol", "quick", "--memory-limit", "16Mi", expect=None)
        self.assertEqual(self.lines("resume", expect=None)[-1]["missing"], 0, "out of memory is an end")
        (line,) = attempts(self.lines("resume", "--try-oom", expect=None))
        self.assertEqual(line["status"], "oom")
        self.assertNotIn("needs", line["detail"], "tried, not predicted")

    def test_resume_measures_as_the_run_did(self):
        self.syslab("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "300ms", "--budget", "100ms",
                    "--launches", "2", expect=3)
        self.syslab("resume", expect=3)
        self.assertEqual([len(fact["launches"]) for fact in self.facts()], [1, 2])

    def test_a_resume_of_any_part_completes_exactly_the_rest(self):
        draw = random.Random(7)
        names = ["none", "print", "nan", "chatter", "unsupported", "grandchild"]
        for _ in range(4):
            self.db = self.folder / f"{draw.random()}.db"
            faults = ["hang"] + draw.sample(names, draw.randrange(1, len(names)))
            draw.shuffle(faults)
            lines = self.lines("run", "selftest_faults", "-a", "fault=" + ",".join(faults), "--timeout", "300ms",
                               "--budget", "150ms", expect=3)
            first = {line["index"] for line in attempts(lines)}
            second = {line["index"] for line in attempts(self.lines("resume", expect=3))}
            self.assertEqual(first & second, set())
            self.assertEqual(first | second, set(range(len(faults))))
            self.assertEqual(self.lines("resume", expect=3)[-1]["missing"], 0)

    def test_of_two_resumes_at_once_one_goes(self):
        faults = "fault=hang,none,print,nan,chatter"
        self.syslab("run", "selftest_faults", "-a", faults, "--timeout", "300ms", "--budget", "100ms", expect=3)
        both = [subprocess.Popen(self.command("resume", "--json"), cwd=self.folder, env=self.environment(),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            process.communicate(timeout=60)
        run = self.sql("SELECT uid FROM run")[0][0]
        each = Counter(seq for seq, _, _ in self.ended_attempts(run))
        self.assertEqual(each, Counter(range(5)), "each case once")
        self.assertIn(sorted(process.returncode for process in both), ([2, 3], [3, 3]))

    def test_skips_are_told_with_their_reasons(self):
        text = self.syslab("run", "flash_forward", "--preset", "smoke", "--laws", "none", "-a", "dtype=fp64").stdout
        skipped = self.sql("SELECT p.skip_reason, e.status, count(*) FROM plan_case p JOIN attempt a ON (a.run_id, a.plan_seq) = (p.run_id, p.seq)"
                           " JOIN attempt_event e ON e.attempt_id = a.id AND e.status IN ('skipped', 'unsupported')"
                           " WHERE p.skip_reason IS NOT NULL GROUP BY 1, 2")
        self.assertTrue(skipped)
        for reason, status, count in skipped:
            self.assertIn(f"  {count} {status}: {reason}\n", text)

    def test_commands_to_look_closer_measure_the_same_way(self):
        lines = self.lines("run", "selftest_faults", "-a", "fault=hang", "--timeout", "400ms", "--seed", "9", "--protocol",
                           "quick", "--launches", "2", expect=3)
        (concern,) = summary(lines)["concerns"]
        for part in ("--seed 9", "--timeout 400ms", "--protocol quick", "--launches 2"):
            self.assertIn(part, concern["command"])
        self.assertEqual(self.lines(*concern["command"].split()[1:], expect=3)[1]["seed"], attempts(lines)[0]["seed"])

    def test_a_python_file_without_its_modules_is_refused_once(self):
        (self.folder / "mine.py").write_text("import torch\nclass Mine: pass\n")
        bare = self.folder / "bare"
        bare.write_text("#!/bin/sh\nexec python3 -I -S \"$@\"\n")
        bare.chmod(0o755)
        for interpreter, words in ((bare, "torch"), (self.folder / "none", "cannot be started")):
            done = subprocess.run(self.command("run", *SMALL, "--mine", "me=mine.py:Mine"), cwd=self.folder, text=True,
                                  env={**self.environment(), "SYSLAB_PYTHON": str(interpreter)}, capture_output=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(self.db.exists())

    def test_resume_asks_for_the_same_code(self):
        self.syslab("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "300ms", "--budget", "100ms", expect=3)
        connection = sqlite3.connect(self.db)
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'build'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE build SET facts = json_set(facts, '$.git_diff', 'feed', '$.git_dirty', json('true'))")
        connection.commit()
        connection.close()
        self.assertIn("changes feed", self.refused("resume"))
        self.syslab("resume", "--force", expect=3)

    def test_every_preset_of_every_experiment_can_be_planned(self):
        names = [experiment["id"] for experiment in self.json("list")["experiments"]]
        self.assertGreater(len(names), 3)
        for name in names:
            if name in ("function", "command"):
                continue  # their cases come from a file, or from the command line
            described = self.json("describe", name)
            for preset in [None, *described.get("presets", {})]:
                chosen = ["--preset", preset] if preset else []
                first, second = (self.json("plan", name, *chosen) for _ in range(2))
                self.assertEqual(first["cases"], second["cases"], "a plan is deterministic")
                self.assertGreater(len(first["cases"]), 0, f"{name} {preset}")
                for case in first["cases"]:
                    for number in (case.get("predicted_bytes", 0), case.get("predicted_seconds", 0)):
                        self.assertTrue(0 <= number < float("inf"), case)


class WithoutAGpu(Lab):
    """What is asked of a GPU where CUDA finds none."""

    def environment(self):
        return {**super().environment(), "CUDA_VISIBLE_DEVICES": ""}

    def test_cases_run_on_the_cpu_unless_a_gpu_is_named(self):
        lines = self.lines("run", "weighted_sum", "--preset", "smoke", "--laws", "none")
        self.assertEqual({line["device"] for line in attempts(lines)}, {"cpu"})
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})

    def test_cases_of_a_gpu_are_skipped_with_the_fact_and_the_remedy(self):
        for words in (("--device", "cuda"), ("-a", "device=cuda"), ("--impl", "tiled_cuda")):
            lines = self.lines("run", "weighted_sum", "--preset", "smoke", *words)
            self.assertTrue(attempts(lines))
            for line in attempts(lines):
                self.assertEqual((line["device"], line["status"]), ("cuda", "skipped"))
                self.assertRegex(line["detail"], "needs (CUDA|a GPU)")
            planned = self.json("plan", "weighted_sum", *words)["cases"]
            self.assertTrue(all("needs" in case["skip"] for case in planned))

    def test_a_device_that_there_is_not_is_refused(self):
        done = self.syslab("run", "weighted_sum", "--device", "gpu", expect=2)
        self.assertIn("cuda", done.stderr)
        done = self.syslab("run", "selftest_empty", "--device", "cuda", expect=2)
        self.assertIn("nothing that is selected runs on the device", done.stderr)
        self.assertFalse(self.db.exists())

    def test_the_worker_tells_what_cuda_finds(self):
        probe = json.loads(self.syslab("worker", "--probe").stdout)
        self.assertEqual(probe["gpus"], [])
        self.assertTrue(probe["why_none"])


if __name__ == "__main__":
    unittest.main()
