"""bisect: a small repository with a slow commit in it, measured in turns, found. The slow commit takes three times as long, so
that other tests may run at the same time. Tests that measure nothing: test_revisions.py."""
import fcntl
import signal
import subprocess
import time
import unittest

from lab import asked_again
from revisions import Programs, Repository

LAUNCHES = "5"  # of three an interval is almost three times as wide, and a busy machine fills it


class BusyPrograms(Programs):
    busy = 1


class Bisect(Repository):
    def bisect(self, *options, expect=0, mine="fn", protocol="quick", **others):
        function = ["--mine", f"me=lib/work.py:{mine}", "--reference", "lib/work.py:reference", "--inputs", "lib/work.py:cases"]
        return self.lines("bisect", self.commits[0], "main", *options, "--launches", LAUNCHES, "--protocol", protocol, "--", *function,
                          expect=expect, cwd=self.repository, **others)

    @asked_again
    def test_the_commit_is_named_and_one_that_does_not_build_is_left_out(self):
        self.history(broken=(2,))  # the first that would be asked, were it whole, is the slow one itself
        *steps, end = self.bisect("--build-command", "grep whole state", expect=5)
        left_out, = [step for step in steps if "left out" in step["text"]]
        self.assertEqual(left_out["commit"], self.commits[2])
        self.assertEqual((end["verdict"], end["commit"]), ("unclear", None))
        for index in (2, 3):
            self.assertIn(f"change {index}", end["text"])
        self.assertNotIn("change 1", end["text"])
        failed, = (self.folder / "builds" / "syslab-builds").glob(f"*/{self.commits[2]}")
        self.assertEqual([path.name for path in failed.iterdir()], ["log"])
        # Without the command every one "builds".
        *steps, end = self.bisect()
        self.assertEqual((end["verdict"], end["commit"]), ("found", self.commits[2]))
        self.assertGreater(end["low"], 0)
        self.assertIn("change 2", end["text"])
        *again, end = self.bisect()
        self.assertTrue(all(step["remembered"] for step in again), again)
        self.assertEqual(end["commit"], self.commits[2])
        self.assertEqual([step["commit"] for step in again], [step["commit"] for step in steps])

    @asked_again
    def test_a_busy_launch_does_not_end_the_search(self):
        """The first launch of the only step: a mean of 30 %, and of five 6 %."""
        programs = BusyPrograms("setUp")
        programs.setUp()
        self.addCleanup(programs.doCleanups)
        *steps, end = programs.lines("bisect", programs.commits[0], programs.commits[1], "--launches", LAUNCHES, "--protocol", "quick", "--",
                                     "selftest_compare", "-a", "steps=100000", "-a", "slowdown=0", cwd=programs.repository, expect=0)
        self.assertEqual((len(steps), end["verdict"], end["commit"]), (1, "found", programs.commits[1]), end)

    @asked_again
    def test_equal_sources_answer_for_nobody_where_the_ends_are_equal_and_differ(self):
        """Every commit has the same files; what makes the later ones slower is the name of the folder that they lie in."""
        text = self.work("1200 if SLOW else 400") + "\n\nSLOW = __file__.split('/tree/')[0].rsplit('/', 1)[1][0] in '89abcdef'\n"
        for index, slow in enumerate((False, False, True)):
            self.commit(f"change {index}", {"lib/work.py": text})
            for attempt in range(100):
                if (self.commits[-1][0] in "89abcdef") == slow:
                    break
                self.git("-c", "commit.gpgsign=false", "commit", "--quiet", "--amend", "--allow-empty", "-m", f"change {index}: {attempt}")
                self.commits[-1] = self.git("rev-parse", "HEAD")
        *_, end = self.bisect()
        self.assertEqual((end["verdict"], end["commit"]), ("found", self.commits[2]))

    @asked_again
    def test_only_what_is_the_same_in_all_is_remembered(self):
        self.history(slow=1, last=1)
        self.assertEqual([step["remembered"] for step in self.bisect()[:-1]], [False])
        self.assertEqual([step["remembered"] for step in self.bisect()[:-1]], [True])
        hers = self.db.rename(self.folder / "hers.db")
        self.syslab("merge", hers)
        self.assertEqual([step["remembered"] for step in self.bisect()[:-1]], [False], "what others measured names no commit here")
        *_, end = self.bisect("--delta", "10%", mine="steady", expect=5)  # another function of the same file
        self.assertEqual(end["because"], "not_slower")
        self.assertEqual([step["remembered"] for step in self.bisect(protocol="kernel")[:-1]], [False])
        (self.repository / "lib" / "work.py").write_text(self.work(1200) + "# other inputs, as far as anybody can tell\n")
        self.assertEqual([step["remembered"] for step in self.bisect()[:-1]], [False])

    @asked_again
    def test_no_difference_is_told_and_a_gain_is_no_loss(self):
        self.history(slow=0, last=2)
        *_, end = self.bisect("--delta", "10%", expect=5)
        self.assertEqual((end["verdict"], end["because"]), ("not slower", "not_slower"))
        self.assertIn("not more than 10 % in all. Nothing was searched", end["text"])
        self.commit("faster", {"lib/work.py": self.work(400)})
        *_, end = self.bisect(expect=5)
        self.assertIn("exchange the two", end["text"])
        self.assertEqual((end["verdict"], end["because"]), ("not slower", "faster"))

    @asked_again
    def test_a_loss_counts_only_beyond_delta_and_two_commits_of_it_are_not_one(self):
        """30, 36, 36 and 54 ms: all of it is 80 % more, the last commit 50 %."""
        for index, tenths in enumerate((300, 360, 360, 540)):
            self.commit(f"change {index}", {"lib/work.py": self.work(tenths), "note": str(index)})
        *_, end = self.bisect("--delta", "60%", expect=5)
        self.assertEqual((end["verdict"], end["because"], end["commit"]), ("no single commit", "no_single", None), end)
        self.assertIn("not more than 60 %; the whole loss", end["text"])
        self.assertIn("more than one commit", end["text"])
        self.assertIn(f", to name {self.commits[3][:10]}", end["text"])
        *steps, end = self.bisect("--delta", "100%", expect=5)
        self.assertEqual((len(steps), steps[0]["remembered"]), (1, True))
        self.assertEqual((end["verdict"], end["because"]), ("not slower", "not_slower"), end)
        *_, end = self.bisect("--delta", "20%")
        self.assertEqual((end["verdict"], end["commit"]), ("found", self.commits[3]), end)
        self.assertIn("It is not the only one", end["text"])

    @asked_again
    def test_what_was_measured_before_an_interruption_is_kept(self):
        self.history()
        function = ["--mine", "me=lib/work.py:fn", "--reference", "lib/work.py:reference", "--inputs", "lib/work.py:cases"]
        words = self.command("bisect", self.commits[0], "main", "--launches", LAUNCHES, "--protocol", "quick", "--json", "--", *function)
        process = subprocess.Popen(words, cwd=self.repository, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        begun = 0
        for line in process.stderr:  # the second pair's second launch
            begun += "launch 2 of" in line
            if begun == 2:
                break
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn("interrupted", said)
        *steps, end = self.bisect()
        self.assertTrue(steps[0]["remembered"])
        self.assertEqual(end["commit"], self.commits[2])

    @asked_again
    def test_the_budget_ends_a_build_a_wait_and_a_launch(self):
        self.history(slow=1, last=1)
        began = time.monotonic()
        *_, end = self.bisect("--build-command", "sleep 600", "--budget", "1s", expect=5)
        self.assertEqual(end["text"], f"--budget 1s is spent while {self.commits[0][:10]} was built; the same command continues from finished comparisons and builds")
        checkouts, environment = (self.folder / "builds" / "syslab-builds"), self.environment
        self.assertTrue([*checkouts.glob(f"*/{self.commits[0]}/tree")], "the next call goes on in it")
        self.environment = lambda: {**environment(), "SYSLAB_BUILDS_LIMIT": "1"}
        self.bisect("--build-command", "sleep 600", "--budget", "1s", expect=5)
        self.assertFalse([*checkouts.glob(f"*/{self.commits[0]}/tree")], "as long as there is room")
        self.environment = environment
        *_, end = self.bisect("--budget", "300ms", "--build-command", "sleep 0.2", expect=5)
        self.assertIn("--budget 300ms is spent", end["text"])
        self.commit("endless", {"lib/work.py": self.work(400).replace("def fn(x):\n", "def fn(x):\n    import time; time.sleep(600)\n")})
        *_, end = self.bisect("--budget", "5s", expect=5)
        self.assertIn("--budget 5s is spent", end["text"])
        self.assertEqual(end["because"], "budget")
        self.assertLess(time.monotonic() - began, 300)
        self.git("reset", "--quiet", "--hard", self.commits[1])
        self.bisect()
        recipe, = {path.parent for path in (self.folder / "builds" / "syslab-builds").glob(f"*/{self.commits[2]}")}  # built without a command
        with open(recipe / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            *_, end = self.bisect("--budget", "1s", protocol="kernel", expect=5)  # nothing measured so is remembered
            self.assertIn("--budget 1s is spent", end["text"])
            waiting = subprocess.Popen(self.command("bisect", self.commits[0], "main", "--", "--mine", "me=lib/work.py:fn", "--reference",
                                                    "lib/work.py:reference", "--inputs", "lib/work.py:cases"), cwd=self.repository,
                                       env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for line in waiting.stderr:
                if "another process builds" in line:
                    break
            waiting.send_signal(signal.SIGINT)
            interrupted = time.monotonic()
            said, _ = waiting.communicate(timeout=30)
            self.assertLess(time.monotonic() - interrupted, 10)  # a second, on a machine that does nothing else
            self.assertEqual(waiting.returncode, 3, said)


if __name__ == "__main__":
    unittest.main()
