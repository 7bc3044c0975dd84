"""What is stored is found again: `log`, `show`, short ids, and the run that `resume` takes."""
import json
import sqlite3
import subprocess
import unittest

from lab import Lab, summary


class History(Lab):
    def run_once(self, *arguments, **options):
        return summary(self.lines("run", "selftest_empty", *arguments, **options))["run"]

    def test_log_shows_runs_newest_first_with_ids_that_every_verb_takes(self):
        first = self.run_once("-a", "repeat=1:3:1", "--label", "early")
        second = self.run_once()
        self.syslab("pin", "base", first)
        logged = self.json("log")["runs"]
        self.assertEqual([run["run"] for run in logged], [second, first])
        self.assertEqual([logged[1][key] for key in ("ok", "label", "pins")], [3, "early", ["base"]])
        self.assertEqual([run["run"] for run in self.json("log", "-n", 1)["runs"]], [second])
        head, *lines = self.syslab("log").stdout.splitlines()
        self.assertTrue(head.startswith("run "))
        self.assertEqual([line.split()[0] for line in lines], [second[24:32], first[24:32]])
        self.assertNotEqual(first[24:32], second[24:32], "the random part differs where the time does not")
        self.assertIn("base, early", lines[1])
        self.assertIn("3 ok", lines[1])
        short = first[24:32]
        self.assertEqual(self.json("show", short)["run"]["run"], first)
        self.assertIn("nothing to resume", self.syslab("resume", short).stdout)
        self.assertIn(f"run {first}", self.syslab("resume", "base").stdout)
        self.syslab("diff", short, second[24:])
        self.syslab("pin", "again", short)
        self.assertEqual([run["run"] for run in self.json("prune", "--run", short)["runs"] if run["kept"]], [first])

    def test_the_command_of_a_run_is_one_that_a_shell_reads_again(self):
        words = ("run", "selftest_empty", "--label", "it's $HOME and\na line; rm x")
        self.syslab(*words)
        (line,) = self.syslab("log").stdout.splitlines()[1:]
        printed = line[line.rindex("syslab run"):]
        read = subprocess.run(["bash", "-c", f"printf '%s\\0' {printed}"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(read.split("\0")[:-1], ["syslab", *words])

    def test_a_text_of_several_lines_passes_for_no_other_line(self):
        self.syslab("run", "selftest_empty", "--label", "a\nf0f0f0f0  2026-01-01T00:00:00Z  forged\nhost           elsewhere\u009b")
        self.assertFalse([line for line in self.syslab("log").stdout.splitlines() if line.startswith("f0f0f0f0")])
        shown = self.syslab("show", "latest").stdout
        self.assertIn("\n" + 15 * " " + "f0f0f0f0", shown)
        self.assertEqual(len([line for line in shown.splitlines() if line.startswith("host ")]), 1)
        self.assertNotIn("\u009b", shown)

    def test_what_is_no_json_or_of_another_type_is_named_by_its_column(self):
        self.syslab("run", "selftest_empty")
        facts, protocol = self.sql("SELECT b.facts, r.protocol FROM run r JOIN build b ON b.id = r.build_id")[0]
        wrong = {"git_dirty": {**json.loads(facts), "git_dirty": "no"}, "launches": {**json.loads(protocol), "launches": "3"}}
        for table, column, text, told in (("build", "facts", "{oops", "its build.facts is malformed JSON; expected JSON (build "),
                                          ("build", "facts", json.dumps(wrong["git_dirty"]), "a stored build.facts has \"no\" as 'git_dirty'"),
                                          ("run", "protocol", json.dumps(wrong["launches"]), "a stored run.protocol has \"3\" as 'launches'")):
            with self.subTest(told):
                connection = sqlite3.connect(self.db)
                trigger, = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (f"{table}_no_update",)).fetchone()
                connection.execute(f"DROP TRIGGER {table}_no_update")
                kept, = connection.execute(f"SELECT {column} FROM {table}").fetchone()
                connection.execute(f"UPDATE {table} SET {column} = ?", (text,))
                connection.execute(trigger)
                connection.commit()
                self.assertIn(told, self.syslab("resume", expect=4).stderr)
                if "malformed" in told:
                    self.assertIn(told, self.syslab("report", expect=4).stderr)
                connection.execute(f"DROP TRIGGER {table}_no_update")
                connection.execute(f"UPDATE {table} SET {column} = ?", (kept,))
                connection.execute(trigger)
                connection.commit()
                connection.close()

    def test_log_lists_a_run_whose_command_is_no_json_or_nests_too_deep(self):
        self.syslab("run", "selftest_empty")
        uid = self.json("log")["runs"][0]["run"]
        for argv in ("{oops", "[" * 60_000 + "]" * 60_000):
            connection = sqlite3.connect(self.db)
            trigger, = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'run_no_update'").fetchone()
            connection.execute("DROP TRIGGER run_no_update")
            connection.execute("UPDATE run SET argv = ?", (argv,))
            connection.execute(trigger)
            connection.commit()
            connection.close()
            self.assertIn(uid[24:32], self.syslab("log").stdout)
            self.assertEqual([(run["run"], run["argv"]) for run in self.json("log")["runs"]], [(uid, None)])
            self.assertIn("lab.db': its run.argv is ", self.syslab("resume", expect=4).stderr)

    def test_confirm_names_what_is_not_measured_again(self):
        for milliseconds in (100, 150):
            self.syslab("run", f"--command=me=echo took {milliseconds} ms", "--reads", "took {} ms", "--protocol", "quick")
        told = self.syslab("log", "command", "--confirm")
        self.assertIn("perhaps", told.stdout)
        self.assertIn("me is your own: of its revisions only digests are known", told.stderr)

    def test_show_tells_of_a_run_an_attempt_and_a_check(self):
        self.syslab("run", "selftest_faults", "-a", "fault=nan")
        run = self.json("show", "latest")
        self.assertEqual((run["kind"], run["run"]["ok"]), ("run", 1))
        attempt = self.json("show", run["attempts"][0]["attempt"])
        self.assertEqual(attempt["kind"], "attempt")
        self.assertEqual(attempt["attempt"]["status"], run["attempts"][0]["status"])
        ((uid, outcome),) = self.sql("SELECT uid, outcome FROM check_result LIMIT 1")
        check = self.json("show", uid[24:])
        self.assertEqual((check["kind"], check["check"]["outcome"]), ("check", outcome))
        self.assertIn("selftest_faults", self.syslab("show", uid).stdout)
        self.assertIn("unknown experiment 'flash_forwad'; did you mean 'flash_forward'?", self.refused("log", "flash_forwad"))
        self.assertIn("no run, attempt, check or comparison", self.refused("show", "fefefefefefe"))
        self.assertIn("no pin 'nobody'", self.refused("show", "nobody"))
        self.assertIn("names several", self.refused("show", "0"))

    def test_a_pin_in_the_wrong_order_offers_the_swap(self):
        run = self.run_once()
        refused = self.refused("pin", run, "base")
        self.assertIn(f"syslab pin base {run}", refused)
        self.assertEqual(self.json("pin")["pins"], [])

    def test_resume_takes_the_newest_run_with_something_missing(self):
        whole = self.run_once("-a", "repeat=1:2:1")
        done = self.lines("resume")
        self.assertEqual((summary(done)["run"], summary(done)["missing"]), (whole, 0))
        first = summary(self.lines("run", "selftest_faults", "-a", "fault=throw", expect=None))["run"]
        self.run_once()
        again = self.syslab("resume", "--failed", "--json", expect=None)
        self.assertIn(first, again.stdout)
        self.assertIn(f"resuming run {first}", again.stderr)


if __name__ == "__main__":
    unittest.main()
