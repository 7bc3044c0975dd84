"""Hand-ins by somebody who had read SECURITY.md and then the sources, in search of what both forget.

Class → what keeps it → what it was seen to do with that switched off:
  WakesItself     the walls (seccomp)           SYSLAB_WALLS=none: all four where the file system has attributes
  RemembersRuns   CaseContext::unforeseen       as it was: every timed question of the second run was known from the first
  Types           the walls (Landlock)          SYSLAB_WALLS=none: the terminal no longer shows what is typed
  TellsTheNext    the walls (a /dev/shm of its own)    SYSLAB_WALLS=none: the second finds the first's word; and as it was before
  Brackets        the depth that a message may have    not switched off
test_grading.py has two more: a seed in the command line of a check that runs beside, and the names of all who handed something in.
"""
import os
import re
import unittest

from hostile_lab import HostileLab


class Insiders(HostileLab):
    def insider(self, name, *arguments):
        return self.python(name, *arguments, file="insider")

    def environment(self):
        return {**super().environment(), "MEMORY": f"/dev/shm/{self.folder.name}"}

    def test_what_is_stopped_stays_so_and_a_file_that_is_read_stays_as_it_is(self):
        self.assertIn("reached: nothing", self.insider("WakesItself")["detail"])
        self.assertIn("reached: nothing", self.insider("Types")["detail"])
        self.walls = {"SYSLAB_WALLS": "none"}
        tried = re.search(r"reached: (.*?) \(", self.insider("WakesItself")["detail"] + " (")[1].split(", ")
        self.assertLessEqual({"timer", "signal of a descriptor", "lease"}, set(tried))
        self.assertIn("reached: terminal", self.insider("Types")["detail"])

    def test_no_timed_question_comes_again(self):
        self.addCleanup(lambda: os.path.exists(self.environment()["MEMORY"]) and os.remove(self.environment()["MEMORY"]))
        self.walls = {"SYSLAB_WALLS": "none"}  # behind them it remembers nothing
        for _ in range(2):
            ended = self.insider("RemembersRuns")
            self.assertEqual(ended["status"], "ok", ended.get("detail"))
        with open(self.environment()["MEMORY"]) as file:
            questions = file.read().split()
        self.assertEqual(len(questions) - len(set(questions)), 1)  # the checked one, and it does come again

    def test_runs_tell_each_other_nothing(self):
        memory = self.environment()["MEMORY"]
        self.addCleanup(lambda: os.path.exists(memory) and os.remove(memory))
        for word in ("", "again"):
            ended = self.insider("TellsTheNext")
            self.assertEqual(ended["status"], "ok", (word, ended.get("detail")))
            self.assertFalse(os.path.exists(memory))
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertEqual(self.insider("TellsTheNext")["status"], "ok")
        self.assertIn("somebody was here", self.insider("TellsTheNext")["detail"])

    def test_a_message_without_end_of_its_depth_ends_its_case_alone(self):
        ended = self.insider("Brackets")
        self.assertEqual(ended["status"], "error", ended)


if __name__ == "__main__":
    unittest.main()
