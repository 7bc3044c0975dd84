"""Cases that several processes do together: statuses, reasons that name the rank, what is stored, and nothing left."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import time
import unittest

from lab import Lab, asked_again, attempts, summary

LIMIT = ("-a", "limit_ms=3000")


class Ranks(Lab):
    def setUp(self):
        super().setUp()
        self.meeting = self.folder / "meeting"
        self.meeting.mkdir()

    def environment(self):
        return {**super().environment(), "TMPDIR": str(self.meeting)}

    def tearDown(self):
        self.assertEqual(list(self.meeting.iterdir()), [], "a folder of ranks was left")
        self.assertEqual(self.workers(), [], "a process was left")

    def workers(self):
        """Processes that were told to meet below our folder: their environment names it."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"TMPDIR={self.meeting}".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                pass
        return found

    def run_ranks(self, fault, *more, expect, ranks=2):
        lines = self.lines("run", "selftest_ranks", "-a", f"fault={fault}", "-a", f"world_size={ranks}", *LIMIT, *more,
                           expect=expect)
        return attempts(lines)

    def test_ranks_that_work_together_are_one_attempt_with_the_samples_of_each(self):
        (line,) = self.run_ranks("none", expect=0)
        self.assertEqual((line["status"], line["world_size"]), ("ok", 2))
        samples = self.sql("SELECT x.rank, x.idx, x.value FROM sample x JOIN series s ON s.id = x.series_id"
                           " WHERE s.name = 'time' ORDER BY x.rank, x.idx")
        by_rank = {rank: [value for r, _, value in samples if r == rank] for rank in (0, 1)}
        self.assertEqual([len(values) for values in by_rank.values()], [8, 8])
        slowest = statistics.median(max(pair) for pair in zip(*by_rank.values()))
        times = dict(self.sql("SELECT rank, value FROM metric WHERE name = 'time'"))
        self.assertEqual(set(times), {-1, 0, 1})
        self.assertAlmostEqual(times[-1], slowest, delta=1e-9 * slowest)
        self.assertEqual(line["metrics"]["time"], times[-1])
        self.assertAlmostEqual(times[1], statistics.median(by_rank[1]), delta=1e-9 * times[1])
        self.assertEqual(self.sql("SELECT world_size FROM v_result WHERE metric = 'answer' GROUP BY 1"), [(2,)])
        self.assertEqual(self.sql("SELECT rank, value FROM metric WHERE name = 'answer' ORDER BY 1"), [(0, 1.0), (1, 2.0)])
        # v_measured shows the time of all ranks together.
        self.assertEqual(self.sql("SELECT time_ms FROM v_measured"), [(1e3 * times[-1],)])
        self.assertEqual(self.sql("SELECT DISTINCT name FROM check_result ORDER BY 1"),
                         [("selftest:sum (rank 0)",), ("selftest:sum (rank 1)",)])

    def test_a_fault_of_one_rank_ends_all_and_names_it(self):
        expected = {"crash": ("crashed", "rank 1: killed by signal 11", 3), "throw": ("error", "rank 1: device: the fault", 3),
                    "hang": ("timeout", "rank 1 said nothing while others waited", 3), "late": ("ok", "", 0),
                    "nan": ("check_failed", "the number of rank 1 is NaN", 1)}
        for fault, (status, reason, exit_code) in expected.items():
            with self.subTest(fault=fault):
                began = time.monotonic()
                (line,) = self.run_ranks(fault, expect=exit_code)
                self.assertEqual(line["status"], status, line["detail"])
                self.assertIn(reason, line["detail"])
                self.assertLess(time.monotonic() - began, 40)  # a limit of 3 s, a grace of 2 s, a busy machine
                self.assertEqual(self.workers(), [])
        self.assertEqual(self.sql("SELECT count(*) FROM v_failures")[0][0], 4)

    def test_what_failed_on_more_ranks_is_told_apart(self):
        for ranks in (2, 3):
            self.run_ranks("throw", expect=3, ranks=ranks)
        failed = self.syslab("report", "--appendix", "--no-figures").stdout.split("## Failures")[1]
        (header,) = re.findall(r"^\| experiment .*$", failed, re.MULTILINE)
        place = [cell.strip() for cell in header.split("|")].index("ranks")
        self.assertEqual([row.split("|")[place].strip() for row in failed.splitlines() if "selftest" in row], ["2", "3"])

    def test_the_limit_of_the_case_ends_every_rank(self):
        (line,) = self.run_ranks("all_hang", "--timeout", "6s", expect=3)
        self.assertEqual(line["status"], "timeout")
        for rank in (0, 1):
            self.assertIn(f"rank {rank} was killed; last seen: step 2", line["detail"])

    def test_an_interrupted_run_is_resumed_with_its_ranks(self):
        process = self.start_hanging()
        deadline = time.monotonic() + 60
        while len(self.workers()) < 3 and time.monotonic() < deadline:  # itself and two ranks
            time.sleep(0.05)
        process.terminate()
        process.wait(timeout=30)
        self.assertEqual([status for _, status, _ in self.ended_attempts(self.newest_run())], ["aborted"])
        (line,) = attempts(self.lines("resume", expect=3))
        self.assertEqual((line["world_size"], line["status"]), (2, "timeout"))

    def start_hanging(self):
        return subprocess.Popen(self.command("run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2",
                                             "--timeout", "5s"), cwd=self.folder, env=self.environment(),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def newest_run(self):
        return self.sql("SELECT uid FROM run ORDER BY id DESC LIMIT 1")[0][0]

    def test_a_killed_program_leaves_no_rank(self):
        process = self.start_hanging()
        deadline = time.monotonic() + 60
        while len(self.workers()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.wait(timeout=30)
        while self.workers() and time.monotonic() < deadline:
            time.sleep(0.05)
        for folder in self.meeting.iterdir():  # nobody was left to remove it
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def test_every_verb_knows_of_ranks(self):
        plan = self.json("plan", "selftest_ranks")
        self.assertEqual([case["world_size"] for case in plan["cases"]], [2, 3])
        self.assertEqual(len({case["case_uid"] for case in plan["cases"]}), 1)
        smoke = self.json("plan", "selftest_ranks", "--preset", "smoke", "-a", "world_size=1,4")
        self.assertEqual([case["world_size"] for case in smoke["cases"]], [1, 4])
        self.assertRegex(self.syslab("plan", "selftest_ranks").stdout,
                         r"(?m)^selftest_ranks .*\ncase +implementation +ranks .*\n +1 +selftest +2 .*\n +2 +selftest +3 ")
        self.assertIn("2, 3; or any other up to 64", self.syslab("describe", "selftest_ranks").stdout)
        described = self.json("describe", "selftest_ranks")
        self.assertEqual((described["world_sizes"], described["takes_ranks"]), ([2, 3], True))
        many = 2 * os.cpu_count() + 1
        self.assertIn(f"up to {many} ranks on", self.syslab("plan", "selftest_ranks", "-a", f"world_size={many}").stderr)
        self.assertIn("takes 1 to 64 ranks",
                      self.syslab("plan", "selftest_ranks", "-a", "world_size=65", expect=2).stderr)
        self.assertIn("takes 1, not '2'", self.syslab("plan", "selftest_empty", "-a", "world_size=2", expect=2).stderr)

    def test_replay_and_the_suggested_command_keep_the_ranks(self):
        lines = self.lines("run", "selftest_ranks", "-a", "fault=wrong", "-a", "world_size=3", expect=1)
        command = summary(lines)["concerns"][0]["command"]
        self.assertTrue(command.startswith("syslab replay "), command)
        replayed = self.syslab(*command.split()[1:], expect=1)
        self.assertIn("on 3 ranks", replayed.stdout)
        self.assertIn("the sum over 3 ranks is 7, expected 6", replayed.stdout)
        lines = self.lines("run", "selftest_ranks", "-a", "fault=throw", "-a", "world_size=3", *LIMIT, expect=3)
        self.assertIn("-a world_size=3", summary(lines)["concerns"][0]["command"])

    def test_merge_keeps_ranks_apart(self):
        self.run_ranks("none", expect=0)
        self.run_ranks("none", ranks=3, expect=0)
        other = self.folder / "other.db"
        self.syslab("merge", self.db, "--db", other)
        wanted = "SELECT world_size, rank, value FROM v_result WHERE metric = 'time' ORDER BY 1, 2"
        self.assertEqual(self.sql(wanted, db=other), self.sql(wanted))
        self.assertEqual([size for size, _, _ in self.sql(wanted)], [2, 2, 2, 3, 3, 3, 3])
        self.assertEqual(self.sql("SELECT world_size FROM v_newest ORDER BY 1"), [(2,), (3,)])

    def test_an_imported_log_of_ranks_gets_their_time_together(self):
        records = [{"type": "case", "experiment": "selftest_ranks", "implementation": "theirs", "language": "Rust",
                    "params": {}, "world_size": 2}, {"type": "check", "name": "reference:sum", "outcome": "passed"}]
        for rank, values in enumerate([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]]):
            records += [{"type": "sample", "series": "time", "unit": "s", "values": values, "rank": rank},
                        {"type": "metric", "name": "time", "unit": "s", "value": statistics.median(values), "rank": rank}]
        log = self.folder / "log.jsonl"
        log.write_text("".join(json.dumps(record) + "\n" for record in [*records, {"type": "end", "status": "ok"}]))
        self.syslab("import", log)
        self.assertEqual(self.sql("SELECT rank, value FROM metric WHERE name = 'time' ORDER BY 1"), [(-1, 5.0), (0, 3.0), (1, 4.0)])
        self.assertEqual(self.sql("SELECT world_size, time_ms FROM v_measured"), [(2, 5000.0)])

    @asked_again
    def test_sides_of_several_ranks_are_compared_in_turns(self):
        self.syslab("compare", "selftest_ranks", "A:share_us=500", "B:share_us=5000", "-a", "world_size=2", "--launches", "3",
                    expect=6)
        self.assertEqual(self.sql("SELECT verdict FROM comparison"), [("slower",)])
        self.assertEqual(self.sql("SELECT DISTINCT status, world_size FROM v_attempt"), [("ok", 2)])
        self.assertEqual(self.sql("SELECT DISTINCT rank FROM sample ORDER BY 1"), [(0,), (1,)])


if __name__ == "__main__":
    unittest.main()
