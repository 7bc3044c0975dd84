"""Any program as an implementation: its process's time or a number that it prints, by run, check, compare, gate and report."""
import math
import stat
import unittest

from lab import Lab, attempts

BENCH = """\
#!/bin/sh
# bench.sh N [SLOWER]: prints what it has computed, and how long it says that took.
[ "$1" = 13 ] && { echo "13 brings bad luck" >&2; exit 3; }
[ "$1" = 17 ] && kill -9 $$
echo "sum of 1 to $1: $(( $1 * ($1 + 1) / 2 + ${3:-0} ))"
echo "took: 0.$(( 500 + ${2:-0} ))  ms"
"""


class Commands(Lab):
    state = "state"

    def environment(self):
        return {**super().environment(), "XDG_STATE_HOME": str(self.folder / self.state)}

    def setUp(self):
        super().setUp()
        script = self.folder / "bench.sh"
        script.write_text(BENCH)
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def test_a_process_is_timed_checked_and_stored_for_each_value(self):
        ended = attempts(self.lines("run", "--command", "./bench.sh {n}", "-a", "n=1:4", "--protocol", "quick", expect=0))
        self.assertEqual([(one["params"]["n"], one["status"], one["impl"]) for one in ended], [(n, "ok", "me") for n in (1, 2, 4)])
        found = self.sql("SELECT params ->> '$.n', value FROM v_latest WHERE metric = 'time' ORDER BY 1")
        self.assertTrue(all(1e-4 < value < 1 for _, value in found), found)
        self.assertEqual(len(self.table("command", "command")["rows"]), 3)

    def test_a_printed_time_is_the_time_and_a_printed_rate_its_reciprocal(self):
        self.syslab("run", "--command", "./bench.sh {n}", "-a", "n=2", "--reads", "took: {} ms", "--protocol", "quick")
        self.assertEqual(self.sql("SELECT value FROM v_latest WHERE metric = 'time'"), [(0.0005,)])
        self.syslab("run", "--command", "printf '%s GB/s\\n' {n}", "-a", "n=250", "--reads", "{} GB/s", "--protocol", "quick")
        found = self.sql("SELECT metric, value, unit FROM v_latest WHERE metric IN ('time', 'rate') AND params ->> '$.n' = 250 ORDER BY 1")
        self.assertEqual(found, [("rate", 250.0, "GB/s"), ("time", 0.004, "s")])

    def test_what_is_left_behind_costs_no_time_and_the_last_line_is_read(self):
        # The one left behind holds the pipes open, so that their end does not tell of the program's.
        script = self.folder / "leaves.sh"
        script.write_text("#!/bin/sh\nsleep 20 &\nhead -c 300000 /dev/zero | tr '\\0' x\necho; echo took: $1 ms\n")
        script.chmod(0o755)
        shortest = 1
        for _ in range(5):  # a busy machine makes a call longer, and nothing makes a look every 50 ms shorter
            self.syslab("run", "--command", "./leaves.sh {n}", "-a", "n=1,2", "--protocol", "quick", expect=0)
            shortest = self.sql("SELECT min(s.value) FROM sample s JOIN series r ON r.id = s.series_id WHERE r.name = 'time'")[0][0]
            if shortest < 0.045:
                break
        self.assertLess(shortest, 0.045, "its end was looked for every 50 ms")
        self.syslab("run", "--command", "./leaves.sh {n}", "-a", "n=1,2", "--reads", "took: {} ms", "--protocol", "quick", expect=0)

    def test_each_failure_is_a_line_with_its_case_and_the_others_go_on(self):
        ended = attempts(self.lines("check", "--command", "./bench.sh {n}", "-a", "n=2,13,17", "--reads", "took: {} ms", expect=3))
        self.assertEqual([one["status"] for one in ended], ["ok", "error", "error"])
        self.assertIn("exit code 3: 13 brings bad luck", ended[1]["detail"])
        self.assertIn("signal 9", ended[2]["detail"])
        none = attempts(self.lines("check", "--command", "./bench.sh {n}", "-a", "n=2", "--reads", "time: {} s", expect=3))
        self.assertIn("prints no 'time: {} s': its last line is 'took: 0.500  ms'", none[0]["detail"])
        hangs = attempts(self.lines("check", "--command", "sleep {n}", "-a", "n=60", "--timeout", "1s", expect=3))
        self.assertEqual(hangs[0]["status"], "timeout")

    def test_output_is_that_of_the_command_called_reference_but_for_the_number(self):
        ended = attempts(self.lines("check", "--command", "reference=./bench.sh {n} 7", "--command", "me=./bench.sh {n}", "--command",
                                    "wrong=./bench.sh {n} 0 1", "-a", "n=4", "--reads", "took: {} ms", expect=1))
        self.assertEqual({one["impl"]: one["status"] for one in ended}, {"reference": "ok", "me": "ok", "wrong": "check_failed"})
        wrong = next(one for one in ended if one["impl"] == "wrong")
        self.assertIn("line 1 of its output is 'sum of 1 to 4: 11', the reference prints 'sum of 1 to 4: 10'", wrong["detail"])

    def test_compare_says_which_is_faster_by_the_number_that_they_print(self):
        two = ("--command", "old=./bench.sh {n} 100", "--command", "new=./bench.sh {n}", "-a", "n=4", "--reads", "took: {} ms")
        found = [line for line in self.lines("compare", *two, "--launches", "3", "--protocol", "quick", expect=0) if line["type"] == "comparison"]
        self.assertEqual([(one["verdict"], one["side_a"]["impl"], one["side_b"]["impl"]) for one in found], [("faster", "old", "new")])

    def test_an_axis_of_a_command_may_be_what_the_sides_differ_in(self):
        def compare(*words, expect=0):
            lines = self.lines("compare", "--reads", "took: {} ms", "--launches", "3", "--protocol", "quick", *words, expect=expect)
            return [line for line in lines if line["type"] == "comparison"]

        one, two = compare("--command", "./bench.sh {n} {more}", "A:more=0", "B:more=250", "-a", "n=4,8", expect=6)
        self.assertEqual([(each["params"]["n"], each["verdict"]) for each in (one, two)], [(4, "slower"), (8, "slower")])
        self.assertAlmostEqual(math.exp(one["log_ratio"]), 1.5, places=6)
        self.assertEqual((one["side_a"]["params"]["more"], one["side_b"]["params"]["more"]), (0, 250))
        # Of two commands, each with its own value; and what is not said by a side is -a's.
        pair = ("--command", "old=./bench.sh {n} {more}", "--command", "new=./bench.sh {n} {more}")
        found, = compare(*pair, "A:impl=new,more=100", "B:impl=old,more=40", "-a", "n=4")
        self.assertAlmostEqual(math.exp(found["log_ratio"]), 0.9, places=6)
        for words, reason in ((("-a", "n=4", "-a", "more=1", "A:more=0", "B:more=5"), "assigned by -a and by a side"),
                              (("-a", "n=4", "A:more=0", "B:other=5"), "no --command has a place {other}"),
                              (("-a", "n=4", "A:more=0"), "side B is missing"),
                              (("A:more=0", "B:more=5"), "has a place {n}")):
            told = self.syslab("compare", "--command", "./bench.sh {n} {more}", *words, expect=2)
            self.assertIn(reason, told.stderr)

    def test_gate_takes_the_command_of_ones_own_run_and_nobody_elses(self):
        self.syslab("run", "--command", "./bench.sh {n}", "-a", "n=4", "--reads", "took: {} ms", "--launches", "3", "--protocol", "quick")
        self.syslab("pin", "base", "latest")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        gate = ("gate", "--against", "base", "--launches", "3", "--delta", "50%")
        self.assertEqual(self.lines(*gate, cwd=elsewhere, expect=0)[-1]["verdict"], "same")
        script = self.folder / "bench.sh"
        script.write_text(script.read_text().replace("0.$((", "1.$(("))
        self.assertEqual([line["verdict"] for line in self.lines(*gate, expect=6) if line["type"] == "comparison"], ["slower"])
        # Who merged it is not asked to start what somebody else has written.
        mark = self.folder / "started"
        script.write_text(f"#!/bin/sh\ntouch {mark}\n")
        others = self.folder / "others.db"
        self.db.rename(others)
        self.state = "another user's"
        self.syslab("merge", others)
        run, = self.sql("SELECT uid FROM run WHERE verb = 'run'")[0]
        refused = self.syslab("gate", "--against", run, "--launches", "3", expect=3).stdout
        self.assertIn("nothing proves that run", refused)
        self.assertFalse(mark.exists())

    def test_a_command_reaches_only_its_own_folder_for_what_it_writes(self):
        for where, status in (("$TMPDIR/x", "ok"), (f"{self.folder}/x", "error")):
            ended = attempts(self.lines("check", "--command", f"sh -c 'echo x > {where}'", expect=None))
            self.assertEqual(ended[0]["status"], status, ended)
        self.assertFalse((self.folder / "x").exists())

    def test_what_makes_no_sense_is_refused_before_anything_runs(self):
        for arguments, said in ((("--command", "./bench.sh {n}"), "a place {n} and -a no axis 'n'"),
                                (("--command", "./bench.sh", "-a", "n=1"), "no --command has a place {n}"),
                                (("--command", "./bensh.sh"), "there is no program './bensh.sh'"),
                                (("--command", "A=1 ./bench.sh 1"), "env NAME=VALUE program"),
                                (("--command", "./bench.sh 1 | cat"), "no shell reads it"),
                                (("--command", "./bench.sh '1"), "does not end"),
                                (("--command", "./bench.sh 1", "--reads", "took: ms"), "there is no {}"),
                                (("--command", "./bench.sh 1", "--reads", "{} apples"), "neither a unit of time nor one per second"),
                                (("--command", "./bench.sh 1", "--command", "./bench.sh 2"), "two commands are called 'me'"),
                                (("--reads", "{} ms", "flash_forward"), "there is no --command"),
                                (("command",), "--command './bench {n}'"),
                                (("flash_forward", "--command", "./bench.sh 1"), "leave the other names out")):
            with self.subTest(said):
                self.assertIn(said, self.syslab("run", *arguments, expect=2).stderr)
        self.assertFalse(self.db.exists())


if __name__ == "__main__":
    unittest.main()
