"""Files given to --mine that would rather be believed than be right: what they reach, and what becomes of them.

Fixture → what keeps it → what it was seen to do with that switched off (SYSLAB_WALLS=none, as root):
  Reaches       walls   all that it tries but "descriptors", which spawning closes and not the walls
  OpensDevices  walls   opens every device of the machine
  KillsParent, KillsGroup, kill   walls   the worker is dead, the case `crashed`
  reach         walls   all that it tries
  fork          walls   two processes answer, and the outputs are not there
  spawn         walls   starts a process
  LyingClock    the lab's own clock in src/worker/judged/foreign.cpp   its own 1 µs is the time
  clock         the same                                        its own 0 s is the time
  inputs        their comparison after the call, there          the case ends `ok`
  CutsMemory    the seal of the shared memory                   the worker is dead, the case `crashed`
  test_what_is_looked_at_…   the walls around that look         the file outside is made
The others are kept by the separation of processes, which cannot be switched off, and were not tried without it.
"""
import os
import pathlib
import re
import time
import unittest

from hostile_lab import CASE, HOSTILE, PLUGINS, HostileLab
from lab import RIGHT, asked_again


class Hostile(HostileLab):
    # --- clocks -----------------------------------------------------------------------------------------------------------

    @asked_again
    def test_a_patched_clock_changes_no_time_and_is_told(self):
        self.assertEqual(self.python("LyingClock")["status"], "ok")
        [[seconds]] = self.sql("SELECT value FROM v_latest WHERE implementation = 'me' AND metric = 'time'")
        self.assertGreaterEqual(seconds, 0.06)
        self.assertIn("the lab's is the time", self.facts()["suspect"])

    @asked_again
    def test_a_library_that_stops_the_clock_changes_no_time_and_is_told(self):
        self.assertEqual(self.library("clock")["status"], "ok")
        [[seconds]] = self.sql("SELECT value FROM v_latest WHERE implementation = 'me' AND metric = 'time'")
        self.assertGreaterEqual(seconds, 0.02)
        self.assertIn("the lab's is the time", self.facts()["suspect"])

    def test_a_library_that_says_done_at_once_gains_no_time(self):
        ended = self.library("done")
        times = self.sql("SELECT value FROM metric WHERE name = 'time'")
        # Heard in time, its outputs were taken as they were; else the call was over when it returned.
        self.assertTrue(ended["status"] in ("check_failed", "error") or times[0][0] >= 0.02, (ended, times))

    def test_outputs_are_taken_when_the_call_says_that_they_are_there(self):
        ended = self.python("AnswersEarly")
        times = self.sql("SELECT value FROM metric WHERE name = 'time'")
        # Told in time, they were taken as they were; else the call was over only when it said so once more.
        self.assertTrue(ended["status"] in ("check_failed", "error") or times[0][0] >= 0.01, (ended, times))

    def test_an_honest_class_is_no_suspect(self):
        ended = self.attempt(f"{os.environ['SYSLAB_MINE']}/plain.py:Naive")
        self.assertEqual(ended["status"], "ok")
        facts = self.facts()
        self.assertNotIn("suspect", facts)
        self.assertEqual(facts["walls"], "python")

    def test_an_honest_library_is_no_suspect(self):
        self.assertEqual(self.library("nothing")["status"], "ok")
        facts = self.facts()
        self.assertNotIn("suspect", facts)
        self.assertEqual(facts["walls"], "native")

    def test_behind_the_walls_compilers_threads_and_processes_work(self):
        for name in ("Compiles", "UsesProcesses", "KeepsCaches"):
            ended = self.attempt(f"{HOSTILE}/honest.py:{name}")
            self.assertEqual(ended["status"], "ok", (name, ended.get("detail")))

    # --- verdicts ---------------------------------------------------------------------------------------------------------

    def test_what_is_wrong_stays_wrong_whatever_it_says(self):
        for name in ("ForgedRecords", "ParentsPipes", "Lazy"):
            ended = self.python(name)
            self.assertNotEqual(ended["status"], "ok", name)
            self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)], name)
        for name in ("forge", "close_all"):
            self.assertNotEqual(self.library(name)["status"], "ok", name)
            self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)], name)

    def test_an_input_that_was_written_is_found(self):
        ended = self.library("inputs")
        self.assertEqual(ended["status"], "check_failed")
        self.assertRegex(ended["detail"], r"changed its input 'v', \d+ of \d+ elements, the first \[[0-9, ]+\] from \S+ to \S+: .* in memory of your own")
        self.assertEqual(self.sql("SELECT name, outcome FROM check_result"), [("call:changes_no_input", "falsified")])

    # --- processes --------------------------------------------------------------------------------------------------------

    def test_nothing_outside_is_reached(self):
        self.assertIn("reached: nothing", self.python("Reaches", "--seed", "424242")["detail"])
        self.assertIn("reached: nothing", self.python("Reaches", "--seed=424242")["detail"])
        self.assertIn("returned 4: nothing", self.library("reach")["detail"])

    def test_walls_stand_under_compute_sanitizer_and_times_mean_nothing_which_is_told(self):
        self.walls = {"NV_SANITIZER_INJECTION_TRANSPORT_TYPE": "uds"}
        done = self.syslab("run", "flash_forward", *CASE, "--mine", f"me={PLUGINS}/hostile_nothing.so", expect=RIGHT)
        self.assertIn("under compute-sanitizer no time means anything", done.stderr)
        self.assertNotIn("may do whatever", done.stderr)
        self.assertEqual(self.facts()["walls"], "native")

    def test_without_walls_all_this_is_reached(self):
        # Else "nothing" would prove nothing. What the rights of this user or a container may forbid, too, is left out.
        self.walls = {"SYSLAB_WALLS": "none"}
        tried = re.search(r"reached: (.*?) \(", self.python("Reaches")["detail"])[1].split(", ")
        self.assertLessEqual({"signal", "file", "removal", "truncation", "keys", "internet", "unix socket", "niceness of all",
                              "database", "processors", "mode", "time", "memory by key", "session"}, set(tried))
        (self.outside / "made").unlink()
        reached = re.search(r"returned 4: (.*?) \(", self.library("reach")["detail"])[1].split(", ")
        self.assertLessEqual({"signal", "internet", "unix socket", "file", "fork", "program", "lock", "group"}, set(reached))
        self.assertIn("returned 4: process", self.library("spawn")["detail"])
        self.assertNotEqual(self.library("fork")["status"], "ok")
        for killer in (self.python("KillsParent"), self.python("KillsGroup"), self.library("kill")):
            self.assertEqual(killer["status"], "crashed")
        (self.outside / "made").unlink()
        for name in ("there", "cut"):
            (self.outside / name).write_text("kept")

    def test_of_all_devices_only_gpus_and_those_that_keep_nothing_are_opened(self):
        opened = re.search(r"opened: ([^.]*)\.", self.python("OpensDevices")["detail"])[1].split()
        self.assertIn("/dev/null", opened)
        allowed = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}
        self.assertEqual([path for path in opened if path not in allowed and not path.startswith("/dev/nvidia")], [])

    def test_what_is_looked_at_before_it_is_run_runs_behind_walls_too(self):
        mark = "import os; open(os.environ['OUTSIDE'] + '/made', 'w')\n"
        own = self.folder / "handed_in"
        (own / ".venv" / "bin").mkdir(parents=True)
        for name in ("ast.py", "pathlib.py", "json.py", "syslab_guards.py"):  # modules that a look at a file would import
            (self.folder / name).write_text(mark)
            (own / name).write_text(mark)
        (own / "plain.py").write_text(pathlib.Path(os.environ["SYSLAB_MINE"], "plain.py").read_text())
        self.attempt(own / "plain.py:Naive")
        (own / "adapters.py").write_text("def get_flashattention_autograd_function_pytorch():\n    raise NotImplementedError\n")
        interpreter = own / ".venv" / "bin" / "python"
        interpreter.write_text("#!/bin/sh\necho x >$OUTSIDE/made\necho started >&2\nexit 1\n")
        interpreter.chmod(0o755)
        self.walls = {"SYSLAB_PYTHON": ""}
        self.syslab("check", "--mine", f"me={own}", "--cases", "1", expect=None)
        # tearDown sees that nothing was made outside.

    def test_signals_end_nobody_else(self):
        self.assertIn("PermissionError", self.python("KillsParent")["detail"])
        self.assertEqual(self.python("KillsGroup")["status"], "ok")  # of its group it alone was asked to end
        self.assertEqual(self.library("kill")["status"], "ok")  # it was refused, and the rest of it is right

    def test_memory_that_is_cut_off_ends_nobody_else(self):
        self.assertEqual(self.python("CutsMemory")["status"], "check_failed")

    def test_a_death_is_told_and_is_never_a_verdict(self):
        for name, told in (("crash", "signal 11"), ("exit", "exit code 0"), ("longjmp", "while running attention_forward")):
            ended = self.library(name)
            self.assertEqual(ended["status"], "error", name)
            self.assertIn(told, ended["detail"])

    @asked_again
    def test_a_hang_ends_at_its_limit(self):
        began = time.monotonic()
        self.assertEqual(self.library("hang", "--timeout", "3")["status"], "timeout")
        self.assertLess(time.monotonic() - began, 8)

    def test_a_library_starts_no_process(self):
        self.assertEqual(self.library("fork")["status"], "ok")  # refused, and then right
        self.assertEqual(self.library("spawn")["status"], "ok")

    def test_a_private_folder_is_gone_afterwards(self):
        (self.folder / "tmp").mkdir()
        os.environ["TMPDIR"] = str(self.folder / "tmp")
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.python("LyingClock")
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
