"""Any program as an implementation: its process's time or a number that it prints, by run, check, compare, gate and report."""
import json
import math
import os
import pathlib
import re
import shutil
import stat
import sys
import unittest

from lab import Lab, asked_again, attempts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from claim_seal import sealed  # noqa: E402

HOSTILE = pathlib.Path(__file__).parent / "hostile"
BENCH = """\
#!/bin/sh
# bench.sh N [SLOWER]: prints what it has computed, and how long it says that took.
[ "$1" = 13 ] && { echo "13 brings bad luck" >&2; exit 3; }
[ "$1" = 17 ] && kill -9 $$
echo "sum of 1 to $1: $(( $1 * ($1 + 1) / 2 + ${3:-0} ))"
echo "took: 0.$(( 500 + ${2:-0} ))  ms"
"""


def running(word):
    """Processes with that word in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:
            pass
    return found


class Commands(Lab):
    state = "state"
    walls: dict = {}

    def environment(self):
        return {**super().environment(), "XDG_STATE_HOME": str(self.folder / self.state), **self.walls}

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

    @asked_again  # a busy machine makes a call longer, and nothing makes a look every 50 ms shorter
    @asked_again
    def test_what_is_left_behind_costs_no_time_and_the_last_line_is_read(self):
        # The one left behind holds the pipes open, so that their end does not tell of the program's.
        script = self.folder / "leaves.sh"
        script.write_text("#!/bin/sh\n[ $1 = 2 ] || sleep 20 &\nhead -c 300000 /dev/zero | tr '\\0' x\necho; echo took: $1 ms\n")
        script.chmod(0o755)
        self.syslab("run", "--command", "./leaves.sh {n}", "-a", "n=1,2", "--protocol", "quick", expect=0)
        shortest = dict(self.sql("SELECT a.params ->> '$.n', min(s.value) FROM sample s JOIN series r ON r.id = s.series_id"
                                 " JOIN v_attempt a ON a.attempt_id = r.attempt_id WHERE r.name = 'time' GROUP BY 1"))
        self.assertLess(shortest[1], shortest[2] + 0.045, "its end was looked for every 50 ms")
        self.syslab("run", "--command", "./leaves.sh {n}", "-a", "n=1,2", "--reads", "took: {} ms", "--protocol", "quick", expect=0)

    def test_each_failure_is_a_line_with_its_case_and_the_others_go_on(self):
        ended = attempts(self.lines("check", "--command", "./bench.sh {n}", "-a", "n=2,13,17", "--reads", "took: {} ms", expect=3))
        self.assertEqual([one["status"] for one in ended], ["ok", "error", "error"])
        self.assertIn("exit code 3: 13 brings bad luck", ended[1]["detail"])
        self.assertIn("signal 9", ended[2]["detail"])
        none = attempts(self.lines("check", "--command", "./bench.sh {n}", "-a", "n=2", "--reads", "time: {} s", expect=3))
        self.assertIn("prints no 'time: {} s': its last line is 'took: 0.500  ms'", none[0]["detail"])
        for number in ("0", "-3", "nan", "inf", "1,234.5"):
            wrong = attempts(self.lines("check", "--command", f"echo took: {number} ms", "--reads", "took: {} ms", expect=3))
            self.assertIn(f"the command printed 'took: {number} ms'; expected a positive number", wrong[0]["detail"])
            after = attempts(self.lines("check", "--command", f"printf 'took: 5 ms (warm-up)\ntook: {number} ms\n'", "--reads", "took: {} ms", expect=3))
            self.assertIn(f"the command printed 'took: {number} ms'; expected a positive number", after[0]["detail"])
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

    def test_of_rates_the_larger_is_faster_in_every_unit(self):
        """As times of one unit, 3e11 and 3.3e12 B/s are far below a nanosecond: they were the same."""
        for old, new, unit in (("300", "330", "TFLOP/s"), ("0.5", "0.6", "GB/s"), ("30", "33", "steps/s"), ("3e11", "3.3e12", "B/s"), ("5.1e8", "6.3e8", "tokens/s")):
            with self.subTest(unit):
                def measured(verb, *words, a=old, b=new, unit=unit, **options):
                    return self.syslab(verb, *words, "--command", f"old=echo {a} {unit}", "--command", f"new=echo {b} {unit}", "--reads", "{} " + unit,
                                       "--launches", "3", "--protocol", "quick", **options)

                ratio = float(new) / float(old)
                found = json.loads(measured("compare", "--json", expect=0).stdout.splitlines()[-1])
                self.assertEqual((found["verdict"], found["better"], found["unit"]), ("faster", "larger", unit))
                self.assertAlmostEqual(found["rate_a"] / float(old), 1)
                self.assertAlmostEqual(found["rate_b"] / float(new), 1)
                self.assertAlmostEqual(math.exp(-found["log_ratio"]), ratio, places=6)
                self.assertEqual(json.loads(measured("compare", "--json", a=new, b=old, expect=6).stdout.splitlines()[-1])["verdict"], "slower")
                measured("claim", f"new >= {0.99 * ratio} x old", "-o", "x.claim", expect=0)
                measured("claim", f"new >= {1.01 * ratio} x old", "-o", "y.claim", expect=6)
                self.syslab("run", "--command", f"me=echo {new} {unit}", "--reads", "{} " + unit, "--protocol", "quick", expect=0)
                rate, = self.sql("SELECT value FROM v_latest WHERE metric = 'rate' AND implementation = 'me' AND unit = ?", unit)[0]
                self.assertAlmostEqual(rate / float(new), 1)

    def test_the_course_of_a_rate_is_in_its_unit_and_more_of_it_is_faster(self):
        script = self.folder / "rate.sh"
        for number in ("1e12", "1.5e12", "2e13"):
            script.write_text(f"#!/bin/sh\necho rate {number} B/s\n")
            script.chmod(0o755)
            self.syslab("run", "--command", "./rate.sh", "--reads", "rate {} B/s", "--protocol", "quick", expect=0)
        told = self.syslab("log", "command", "-o", "rate.svg").stdout
        head, row, *said = told.splitlines()[1:]
        self.assertRegex(head, r"first +rate +last +rate +course$")
        self.assertRegex(row, r" 1e\+12 B/s .* 2e\+13 B/s +▁▁█$")
        self.assertEqual([re.sub(r"\b[0-9a-f]{10}\b", "HASH", line) for line in said], [
            "reads=rate {} B/s me: perhaps faster since HASH (50.0 % more B/s); not a finding before HASH was measured beside it in turns",
            "reads=rate {} B/s me: perhaps faster since HASH (13.3 times the B/s); not a finding before HASH was measured beside it in turns"])
        series, = self.json("log", "command")["series"]
        self.assertEqual((series["unit"], series["better"]), ("B/s", "larger"))
        for point, rate in zip(series["points"], (1e12, 1.5e12, 2e13), strict=True):
            self.assertAlmostEqual(point["rate"] / rate, 1)
            self.assertAlmostEqual(point["seconds"] * rate, 1)
        self.assertTrue(all(one["log_ratio"] < 0 and "faster since" in one["text"] for one in series["changes"]), series)
        drawn = (self.folder / "rate.svg").read_text(encoding="utf-8")
        self.assertIn("1e+12 B/s to 2e+13 B/s", drawn)
        self.assertIn(": 1.5e+12 B/s</title>", drawn)
        first, *_, last = re.findall(r'<circle [^>]*cy="([0-9.]+)"', drawn)
        self.assertGreater(float(first), float(last), "the larger rate is drawn higher")

    def test_a_comparison_of_rates_is_shown_and_reported_as_that(self):
        two = ("--command", "a=echo rate 100 tokens/s", "--command", "b=echo rate 120 tokens/s", "--reads", "rate {} tokens/s")
        self.syslab("compare", *two, "--launches", "3", "--protocol", "quick", expect=0)
        self.syslab("compare", "--command", "a=echo took 100 ms", "--command", "b=echo took 120 ms", "--reads", "took {} ms", "--launches", "3",
                    "--protocol", "quick", expect=6)
        uid, = self.sql("SELECT comparison_uid FROM v_comparison WHERE rate_unit = 'tokens/s'")[0]
        shown = dict(line.split(maxsplit=1) for line in self.syslab("show", uid).stdout.split("\n\n")[0].splitlines())
        self.assertEqual([shown[name] for name in ("metric", "unit", "value_a", "value_b", "change", "change_low", "change_high", "verdict")],
                         ["rate", "tokens/s", "100", "120", "0.2", "0.2", "0.2", "faster"])
        self.assertNotIn("rate_unit", shown)
        stored = self.json("show", uid)["comparison"]
        self.assertEqual((stored["unit"], stored["value_a"], stored["rate_unit"]), ("s", 0.01, "tokens/s"), "what the database has, and the rates")
        for name, value in (("rate_a", 100), ("rate_b", 120), ("rate_change", 0.2), ("rate_change_low", 0.2), ("rate_change_high", 0.2)):
            self.assertAlmostEqual(stored[name], value)
        row, = self.table("command", "comparisons_of_rates")["rows"]
        self.assertEqual((row["a"], row["b"], row["unit"], row["verdict"]), ("a", "b", "tokens/s", "faster"))
        for name, value in (("rate_a", 100), ("rate_b", 120), ("change", 20), ("change_low", 20), ("change_high", 20)):
            self.assertAlmostEqual(row[name], value)
        rows = self.table("command", "comparisons")["rows"]
        self.assertEqual({one["case"] for one in rows}, {"reads=took {} ms"}, "no rate among times")
        times = dict(line.split(maxsplit=1) for line in self.syslab(
            "show", self.sql("SELECT comparison_uid FROM v_comparison WHERE rate_unit IS NULL AND is_last")[0][0]).stdout.split("\n\n")[0].splitlines())
        self.assertEqual((times["metric"], times["unit"], times["change"], times["verdict"]), ("time", "s", "0.2", "slower"))

    def test_a_claim_over_commands_lists_another_revision_of_syslab(self):
        two = ("--command", "old=echo 3 ms", "--command", "new=echo 2 ms")
        self.syslab("claim", "new >= 1.5 x old", *two, "--reads", "{} ms", "--launches", "3", "--protocol", "quick", "-o", "x.claim")
        file = self.folder / "x.claim"
        held = json.loads(file.read_text())
        self.assertEqual(json.loads(self.syslab("verify", file, *two, "--launches", "3", "--json").stdout)["differing"], [])
        held["build"]["git_sha"] = "0" * 40
        file.write_text(json.dumps(sealed(held)))
        said = self.syslab("verify", file, *two, "--launches", "3").stdout
        self.assertIn("\ndiffers  revision of syslab: claim “0000000000", said)

    def test_detect_takes_the_delta_of_a_rate_for_a_rate(self):
        rates = ("--command", "a=echo 1e9 B/s", "--command", "b=echo 1.1e9 B/s", "--reads", "{} B/s", "--protocol", "quick")
        detection, = [line for line in self.lines("compare", *rates, "--detect", "1.5%", expect=0) if line["type"] == "detection"]
        self.assertEqual(detection["delta"], 0.01)
        two = ("--command", "a=echo 1000 ns", "--command", "b=echo 1100 ns", "--reads", "{} ns", "--protocol", "quick")
        refused = self.syslab("compare", *two, "--detect", "1.5%", expect=2).stderr
        self.assertIn("--detect 1.5% is no more than δ = 2 %, up to which a change of calls as short as these (1.00 us) counts as none; add --delta 0.75%", refused)

    def test_the_same_words_under_two_names_are_refused(self):
        same = ("--command", "a=echo 1 {n} ms", "--command", "b=echo  1 '{n}' ms", "-a", "n=5", "--reads", "1 {} ms", "--launches", "3", "--protocol", "quick")
        self.assertIn("both sides are command a, and b is the same under another name: there is nothing to compare", self.refused("compare", *same))
        self.syslab("compare", *same, "--same-on-purpose", expect=0)
        self.syslab("compare", *same[:2], "--command", "b=echo 1 1{n} ms", *same[4:], expect=6)

    def test_a_unit_of_which_nobody_knows_what_is_better_is_refused_by_all_verbs(self):
        two = ("--command", "old=echo 1 apples", "--command", "new=echo 2 apples", "--reads", "{} apples")
        for verb in (("run",), ("check",), ("compare",), ("claim", "new >= 1 x old", "-o", "x.claim")):
            self.assertIn("nobody knows whether more of it is better", self.syslab(*verb, *two, expect=2).stderr)

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

    def test_an_answer_kept_in_tmpdir_gains_nothing(self):
        script = self.folder / "keeps.sh"
        script.write_text('#!/bin/sh\n[ -f "$TMPDIR/c" ] && { cat "$TMPDIR/c"; exit; }\nls -A "$TMPDIR"; sleep 0.1; echo x | tee "$TMPDIR/c"\n')
        script.chmod(0o755)
        self.syslab("run", "--command", "./keeps.sh", "--protocol", "quick", expect=0)
        shortest, = self.sql("SELECT min(s.value) FROM sample s JOIN series r ON r.id = s.series_id WHERE r.name = 'time'")[0]
        self.assertGreater(shortest, 0.1)
        self.syslab("check", "--command", "reference=echo x", "--command", "me=./keeps.sh", expect=0)  # it finds TMPDIR empty

    def passes_on(self, way):
        """The shortest of the times that the program says it took, and the facts of the attempt."""
        self.db.unlink(missing_ok=True)
        shutil.copy(HOSTILE / "passes_on.py", self.folder)
        self.syslab("run", "--command", f"python3 passes_on.py {way} mark{os.getpid()}", "--reads", "took {} ms", "--protocol", "quick", expect=0)
        shortest, = self.sql("SELECT min(s.value) FROM sample s JOIN series r ON r.id = s.series_id WHERE r.name = 'time'")[0]
        [[facts]] = self.sql("SELECT facts FROM v_attempt")
        return shortest, json.loads(facts)

    def test_no_process_and_no_lock_tells_the_next_start_an_answer(self):
        for way in ("zombie", "unheard", "session", "orphan", "sibling", "hops", "lock"):
            with self.subTest(way):
                shortest, facts = self.passes_on(way)
                self.assertGreater(shortest, 0.06)
                self.assertEqual(facts["walls"], "python")
                codes = [one["code"] for one in facts.get("warnings", [])]
                self.assertEqual(codes, [] if way in ("zombie", "unheard") else ["left_running"])

    def test_no_hint_of_a_file_tells_the_next_start_an_answer(self):
        self.assertGreater(self.passes_on("hint")[0], 0.06)

    @asked_again
    def test_a_hint_of_a_file_tells_it_without_walls(self):
        self.walls = {"SYSLAB_WALLS": "none"}
        shortest, facts = self.passes_on("hint")
        self.assertEqual(facts["walls"], "none")
        self.assertLess(shortest, 0.06)

    def test_what_a_program_leaves_running_is_ended_and_printed_with_its_time(self):
        script = self.folder / "leaves.sh"
        script.write_text("#!/bin/sh\nsleep 731.7 &\nsleep 731.7 &\nsleep 0.02\n")
        script.chmod(0o755)
        done = self.syslab("run", "--command", "./leaves.sh", "--protocol", "quick", expect=0)
        self.assertIn("warning: './leaves.sh' ended while processes of it still ran (up to 2 in a call)", done.stdout)
        self.assertEqual(running("731.7"), [])

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
                                (("--command", "./bench.sh \udcff"), "--command './bench.sh \ufffd'; expected text in UTF-8"),
                                (("--command", "./bench.sh", "--reads", "\udcff {} ms"), "expected text in UTF-8"),
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
