"""Hand-ins by somebody who had read SECURITY.md and nothing else, and wrote them before seeing those of test_hostile.py.

Class → what keeps it → what it was seen to do with that switched off:
  Signals           the walls (Landlock 6)                 SYSLAB_WALLS=none: the worker is killed, the case `crashed`
  SetsTheClock      the walls (no privileges, seccomp), as root   SYSLAB_WALLS=none: both are granted
  old_calls         the walls (seccomp kills)              SYSLAB_WALLS=none: a process is started
  LeavesFolders     src/runner/worker_process.cpp, src/core/files/remove_tree.cpp   as it was: the folder of each case that failed stayed
                    until the next run; what is deep or closed, for ever (std::filesystem::remove_all wants a descriptor a level)
  Outlives          the keeper's groups, src/core/process/descendants.cpp   as it was: its process outlived the killed lab
  ForgesTheScreen   core/text/printable.hpp                     raw, its escapes reach the terminal
  RewritesTheLog    a pipe of its own for its error output   cannot be switched off
  Floods, Shouts, FlipsWords   limits of what is kept, the size of frames, outputs that the lab took   not switched off
"""
import os
import pathlib
import signal
import subprocess
import time
import unittest

from hostile_lab import CASE, HOSTILE, HostileLab


class ReadSecurity(HostileLab):
    def reader(self, name, *arguments):
        return self.python(name, *arguments, file="reader")

    def environment(self):
        return {**super().environment(), "SLEEPS": "3001.25"}

    def no_time(self):
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_the_kernel_sends_no_signal_for_it(self):
        self.assertEqual(self.reader("Signals")["status"], "ok")
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertEqual(self.reader("Signals")["status"], "crashed")

    def test_a_terminal_shows_what_the_lab_says_and_nothing_else(self):
        done = self.syslab("run", "flash_forward", *CASE, "--mine", f"me={HOSTILE}/reader.py:ForgesTheScreen", expect=None)
        shown = done.stdout + done.stderr
        self.assertIn("1 error", shown)
        self.assertNotRegex(shown, "[\x00-\x09\x0b-\x1f\x7f\u202e]")
        for line in shown.splitlines():
            self.assertFalse(line.startswith(("all laws", "me: all", "1 case in 0.1 s: 1 ok")), line)

    def test_what_was_said_before_stays_in_the_log(self):
        log = self.folder / "log"
        with open(log, "w") as out:
            out.write("said before\n")
            out.flush()
            subprocess.run(self.command("run", "flash_forward", *CASE, "--mine", f"me={HOSTILE}/reader.py:RewritesTheLog"),
                           env=self.environment(), cwd=self.folder, stdout=out, stderr=out, check=False, timeout=240)
        said = log.read_text()
        self.assertTrue(said.startswith("said before\n") and "1 check_failed" in said, said)
        self.assertNotIn("all laws passed", said)

    def test_too_much_is_cut_or_refused(self):
        ended = self.reader("Floods")
        self.assertEqual(ended["status"], "error")
        self.assertIn("RuntimeError: done", ended["detail"])
        ended = self.reader("Shouts")
        self.assertEqual(ended["status"], "error")
        self.assertLess(len(ended["detail"]), 1 << 16)

    def test_words_that_change_under_the_lab_end_nobody_and_prove_nothing(self):
        ended = self.reader("FlipsWords", "--timeout", "5")
        self.assertIn(ended["status"], ("check_failed", "error", "timeout"))
        self.no_time()

    def test_its_folder_is_gone_whatever_is_in_it(self):
        (self.folder / "tmp").mkdir()
        os.environ["TMPDIR"] = str(self.folder / "tmp")
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.assertIn("made", self.reader("LeavesFolders")["detail"])
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        self.assertEqual(self.library("hang", "--timeout", "1")["status"], "timeout")
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_what_threw_its_environment_away_ends_with_a_killed_lab(self):
        lab = subprocess.Popen(self.command("run", "flash_forward", *CASE, "--mine", f"me={HOSTILE}/reader.py:Outlives"), cwd=self.folder,
                               env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.await_sleeper(True, 60)
        lab.kill()
        lab.wait()
        self.await_sleeper(False, 10)

    def await_sleeper(self, there, patience):
        deadline = time.monotonic() + patience
        while (pid := self.sleeper()) is None if there else (pid := self.sleeper()) is not None:
            if time.monotonic() > deadline:
                if pid:
                    os.kill(pid, signal.SIGKILL)
                self.fail("it is not there" if there else "it outlives the lab")
            time.sleep(0.01)

    @staticmethod
    def sleeper():
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\x003001.25\x00":
                    return int(entry.name)
            except OSError:
                pass
        return None

    def test_the_clock_of_the_machine_is_not_set(self):
        self.assertIn("reached: nothing", self.reader("SetsTheClock")["detail"])

    def test_calls_of_another_architecture_are_none(self):
        ended = self.library("old_calls")
        self.assertEqual(ended["status"], "error")
        self.assertNotIn("process", ended["detail"])


if __name__ == "__main__":
    unittest.main()
