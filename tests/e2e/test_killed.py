"""The parent killed at any moment: what was acknowledged is there, and `resume` finishes each planned case once."""
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import termios
import threading
import time
import unittest
from collections import Counter

from lab import Lab, asked_again, attempts, summary

CASES = 40
ROUNDS = 12

SLOW_RIGHT = """import time
import numpy as np


class Flash:
    def forward(self, q, k, v, causal):
        time.sleep(0.1)
        s = np.einsum("bqd,bkd->bqk", q.astype("f8"), k.astype("f8")) / q.shape[-1] ** 0.5
        s = np.where(np.tri(s.shape[1], s.shape[2], dtype=bool), s, -np.inf) if causal else s
        m = s.max(-1, keepdims=True)
        p = np.exp(s - m)
        t = p.sum(-1, keepdims=True)
        return np.einsum("bqk,bkd->bqd", p / t, v.astype("f8")).astype(q.dtype), (m + np.log(t))[..., 0].astype("f4")
"""


class Killed(Lab):
    more: dict = {}

    def environment(self):
        return {**super().environment(), **self.more}

    def start(self, *arguments):
        return subprocess.Popen(self.command(*arguments), cwd=self.folder, env=self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def acknowledged_until_killed(self, process, count, delay):
        """Kills the process `delay` seconds after it promised `count` attempts; run and uids of all it promised."""
        uids, run = [], None
        killer = threading.Timer(delay, process.kill)
        for line in process.stdout:
            if not line.endswith("\n"):
                break  # cut short by the kill: nothing was promised
            message = json.loads(line)
            run = message.get("run", run)
            if message["type"] == "attempt":
                uids.append(message["attempt"])
            if len(uids) == count and delay == 0:
                process.kill()  # at once: a promise made before it is kept would show
            elif len(uids) == count and not killer.is_alive():
                killer.start()
        process.wait()
        process.stdout.close()
        killer.cancel()
        return run, uids

    def test_kill_9_loses_nothing_that_was_acknowledged(self):
        moments = random.Random(20260601)
        killed = 0
        for round_number in range(ROUNDS):
            self.db = self.folder / f"round{round_number}.db"
            process = self.start("run", "selftest_empty", "-a", f"repeat=1:{CASES}:1", "--json")
            # An empty case takes a few milliseconds: the delay reaches every moment of one; half of the kills come
            # right upon a promise.
            delay = moments.uniform(0, 0.008) if round_number % 2 else 0
            run, uids = self.acknowledged_until_killed(process, moments.randrange(CASES - 10), delay)
            killed += process.returncode == -signal.SIGKILL
            with self.subTest(round=round_number, acknowledged=len(uids), exit=process.returncode):
                self.assert_intact()
                stored = {uid for _, _, uid in self.ended_attempts(run)}
                self.assertLessEqual(set(uids), stored)
                resumed = self.lines("resume", run)
                self.assertEqual(summary(resumed)["exit"], 0)
                well = Counter(seq for seq, status, _ in self.ended_attempts(run) if status == "ok")
                self.assertEqual(well, Counter(range(CASES)), "each planned case once")
                again = {line["index"] for line in attempts(resumed)}
                finished = {seq for seq, _, uid in self.ended_attempts(run) if uid in uids}
                self.assertEqual(again & finished, set(), "resume repeated what was finished")
        self.assertGreaterEqual(killed, ROUNDS // 2, "too few rounds met their kill")

    def await_an_attempt(self):
        self.await_attempts(1)

    def await_attempts(self, count):
        """Until so many cases have begun; a busy machine may take seconds to its first."""
        deadline = time.monotonic() + 20
        while self.begun() < count:
            self.assertLess(time.monotonic(), deadline, f"{count} cases were not begun")
            time.sleep(0.02)

    def begun(self):
        try:
            return self.sql("SELECT count(*) FROM attempt")[0][0]
        except sqlite3.OperationalError:  # no file yet, or no table in it
            return 0

    def test_resume_leaves_alone_what_is_still_running(self):
        process = self.start("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "6s", "--json")
        run = json.loads(process.stdout.readline())["run"]
        self.await_an_attempt()
        self.assertIn(f"process {process.pid}", self.syslab("resume", expect=2).stderr)
        process.communicate()
        self.assertEqual(sorted((seq, status) for seq, status, _ in self.ended_attempts(run)), [(0, "timeout"), (1, "ok")])

    def test_a_worker_does_not_outlive_its_killed_parent(self):
        process = self.start("run", "selftest_faults", "-a", "fault=hang", "--timeout", "60s", "--json")
        deadline = time.monotonic() + 20
        workers = []
        while not workers and time.monotonic() < deadline:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = [pid for pid in children if "keeper" not in self.name(pid)]
            time.sleep(0.01)
        self.assertTrue(workers, "no worker was started")
        process.kill()
        process.communicate()
        while time.monotonic() < deadline and any(self.alive(pid) for pid in workers):
            time.sleep(0.02)
        self.assertFalse(any(self.alive(pid) for pid in workers))

    def test_what_a_python_class_started_ends_with_its_case(self):
        marked = f"import time; time.sleep(300)  # {self.folder.name}"  # names and command lines are told through all walls
        (self.folder / "mine.py").write_text(
            "import subprocess, sys\n"
            f"child = subprocess.Popen([sys.executable, '-c', {marked!r}])\n"
            "child.wait()\n"
            "class Mine: pass\n")
        process = self.start("run", "flash_forward", "-a", "seq=16", "-a", "causal=false", "--laws", "none", "--impl", "me",
                             "--mine", "me=mine.py:Mine", "--timeout", "3s")
        while not self.running(marked) and process.poll() is None:  # whose --timeout ends this
            time.sleep(0.02)
        self.assertNotEqual(self.running(marked), [], "it was not started")
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        deadline = time.monotonic() + 5
        while self.running(marked) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.running(marked), [])

    def start_what_leaves_its_group(self):
        """A case whose Python class starts a session of its own, below a parent that is gone at once."""
        stray = "import os, pathlib, time; pathlib.Path('stray').write_text(str(os.getpid())); time.sleep(300)"
        (self.folder / "mine.py").write_text(
            "import subprocess, sys, time\n"
            f"start = [sys.executable, '-c', {stray!r}]\n"
            "subprocess.run([sys.executable, '-c', f'import subprocess; "
            "subprocess.Popen({start!r}, start_new_session=True)'])\n"
            "time.sleep(300)\n"
            "class Mine: pass\n")
        self.more = {"SYSLAB_WALLS": "none"}  # behind them it could not tell us its number
        process = self.start("run", "flash_forward", "-a", "seq=16", "-a", "causal=false", "--laws", "none", "--impl",
                             "me", "--mine", "me=mine.py:Mine", "--timeout", "4s")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            text = (self.folder / "stray").read_text() if (self.folder / "stray").exists() else ""
            if text:
                return process, text
            time.sleep(0.02)
        self.fail("the stray process was not started")

    def assert_gone(self, pid, within=1):
        deadline = time.monotonic() + within
        while self.alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        if self.alive(pid):
            os.kill(int(pid), signal.SIGKILL)
            self.fail(f"process {pid} is left")

    @asked_again
    def test_what_left_its_group_ends_with_its_case(self):
        process, stray = self.start_what_leaves_its_group()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        self.assert_gone(stray, within=0.1)

    def test_what_left_its_group_ends_with_a_killed_parent(self):
        process, stray = self.start_what_leaves_its_group()
        process.kill()
        process.communicate()
        self.assert_gone(stray)

    @staticmethod
    def name(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text()
        except OSError:
            return ""

    @staticmethod
    def running(word):
        found = []
        for commands in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found += [commands.parent.name] if word in commands.read_text() else []
            except OSError:  # it has ended meanwhile
                pass
        return found

    @staticmethod
    def alive(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_an_interrupted_run_says_how_to_go_on(self):
        process = self.start("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "3s", "--json")
        self.await_attempts(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        ended = summary(map(json.loads, out.splitlines()))
        self.assertEqual((ended["counts"], ended["missing"]), ({"aborted": 1}, 1))
        resumed = attempts(self.lines("resume", expect=3))  # under the timeout of the run
        self.assertEqual([(line["params"]["fault"], line["status"]) for line in resumed],
                         [("hang", "timeout"), ("none", "ok")])

    def test_an_interrupted_check_accuses_nobody_and_is_not_well(self):
        (self.folder / "slow.py").write_text(SLOW_RIGHT)
        process = subprocess.Popen(self.command("check", "flash_forward", "--mine", "me=slow.py:Flash", "--impl", "me", "--cases", "3", "--json"), cwd=self.folder,
                                   env={**self.environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        for line in process.stderr:
            if "(full)" in line:  # all laws of the hand-out have ended
                break
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3, out)
        verdict = json.loads(out.splitlines()[-1])
        self.assertEqual([verdict[field] for field in ("verdict", "held", "of", "warned", "exit")], ["PASS", 3, 3, 0, 3])
        self.assertTrue({"the check was stopped while they were searched", "not begun"} & set(verdict["never_tried"]))

    def run_until_its_terminal_is_closed(self, hangup):
        """Runs two cases, the second of which hangs until its timeout, with what SIGHUP does at first as told."""
        ours, theirs = os.openpty()

        def make_it_the_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, hangup)

        process = subprocess.Popen(self.command("run", "selftest_faults", "-a", "fault=none,hang", "--timeout", "3s"),
                                   cwd=self.folder, env=self.environment(), stdin=theirs, stdout=theirs, stderr=theirs,
                                   preexec_fn=make_it_the_terminal)
        os.close(theirs)
        self.await_attempts(2)
        os.close(ours)
        process.wait(timeout=30)
        self.assert_intact()

    def test_a_run_whose_terminal_is_closed_can_be_resumed(self):
        self.run_until_its_terminal_is_closed(signal.SIG_DFL)
        self.assertEqual(self.sql("SELECT status, message FROM v_attempt ORDER BY plan_seq"),
                         [("ok", None), ("aborted", "stopped by SIGHUP: its terminal was closed")])
        resumed = attempts(self.lines("resume", expect=3))
        self.assertEqual([(line["params"]["fault"], line["status"]) for line in resumed], [("hang", "timeout")])

    def test_a_run_that_ignores_hangups_goes_on_when_its_terminal_is_closed(self):
        self.run_until_its_terminal_is_closed(signal.SIG_IGN)
        self.assertEqual(self.sql("SELECT status FROM v_attempt ORDER BY plan_seq"), [("ok",), ("timeout",)])

    def test_a_run_interrupted_in_its_last_case_is_to_be_resumed_too(self):
        process = subprocess.Popen(self.command("run", "selftest_faults", "-a", "fault=hang", "--timeout", "3s"),
                                   cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.await_attempts(1)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3)
        self.assertIn("next: syslab resume", out)

    def stopped_again(self, number):
        before = self.begun()
        process = subprocess.Popen(self.command("resume", "--json"), cwd=self.folder, stdout=subprocess.PIPE,
                                   env={**self.environment(), "SLURM_JOB_ID": "7"}, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        self.await_attempts(before + 1)  # its one case hangs for seconds
        process.send_signal(number)
        process.communicate(timeout=30)
        return process.returncode

    @asked_again
    def test_a_scheduler_is_told_to_requeue_what_it_stopped(self):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            self.db = self.folder / f"{number}.db"
            process = subprocess.Popen(self.command("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "6s",
                                                    "--json"), cwd=self.folder,
                                       env={**self.environment(), "SLURM_JOB_ID": "7"}, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            process.stdout.readline()
            self.await_an_attempt()
            sent = time.monotonic()
            process.send_signal(number)
            out, _ = process.communicate(timeout=30)
            self.assertLess(time.monotonic() - sent, self.longer)
            self.assertEqual(process.returncode, 75)
            self.assertEqual(summary([json.loads(line) for line in out.splitlines()])["exit"], 75)
            self.assertEqual(self.sql("SELECT status, message FROM v_attempt"),
                             [("aborted", f"stopped by {number.name}")])
            self.assertEqual(self.stopped_again(number), 75)
            self.assertEqual([line["status"] for line in attempts(self.lines("resume", expect=3))], ["timeout", "ok"])

    def test_what_was_wrong_before_the_signal_keeps_nobody_from_the_rest(self):
        job = {**self.environment(), "SLURM_JOB_ID": "7"}
        process = subprocess.Popen(self.command("run", "selftest_faults", "-a", "fault=check_failed,hang,none", "--timeout", "3s", "--json"),
                                   cwd=self.folder, env=job, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.await_attempts(2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, summary(map(json.loads, out.splitlines()))["exit"]), (75, 75), out)
        resumed = attempts(self.lines("resume", expect=1))  # what was wrong stays so
        self.assertEqual([line["status"] for line in resumed], ["timeout", "ok"])

    def test_only_what_can_go_on_asks_to_be_started_again(self):
        process = subprocess.Popen(self.command("compare", "selftest_faults", "A:fault=none", "B:fault=hang", "--timeout", "20s", "--json"),
                                   cwd=self.folder, env={**self.environment(), "SLURM_JOB_ID": "7"}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.await_attempts(1)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3, told)

    def test_a_job_that_is_started_again_goes_on_with_its_own_part(self):
        part = ("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "2s", "--shard", "1/1", "--json")
        again = {**self.environment(), "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}

        def started(environment):
            process = subprocess.Popen(self.command(*part), cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            return process

        first = started({**self.environment(), "SLURM_JOB_ID": "7"})
        first.stdout.readline()
        self.await_an_attempt()
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
        self.assertEqual(first.returncode, 75)
        second = started(again)
        out, told = second.communicate(timeout=60)
        self.assertEqual(second.returncode, 3, told)  # the hang is found, and nothing is left to requeue for
        self.assertEqual([line["status"] for line in attempts([json.loads(line) for line in out.splitlines()])], ["timeout", "ok"])
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])
        # What is whole is not gone on with: the same command is then a run of its own.
        third = started(again)
        third.communicate(timeout=60)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(2,)])

    def test_a_batch_job_of_pbs_goes_on_with_what_it_had_begun_and_an_interactive_one_begins_anew(self):
        def started(name, kind):
            job = {**self.environment(), "PBS_JOBID": name, "PBS_ENVIRONMENT": kind}
            process = subprocess.Popen(self.command("run", "selftest_faults", "-a", "fault=hang", "--timeout", "2s", "--json"), cwd=self.folder,
                                       env=job, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return process, json.loads(process.stdout.readline())["run"]

        first, run = started("7[3].server", "PBS_BATCH")
        self.await_an_attempt()
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
        self.assertEqual(first.returncode, 75)
        kept, self.db = self.db, self.folder / "copy.db"
        shutil.copy(kept, self.db)
        for name, kind in (("7[4].server", "PBS_BATCH"), ("7[3].server", "PBS_INTERACTIVE")):
            process, its_run = started(name, kind)
            process.kill()
            process.communicate()
            with self.subTest(name, kind=kind):
                self.assertNotEqual(its_run, run)
        self.db = kept
        again, its_run = started("7[3].server", "PBS_BATCH")
        _, told = again.communicate(timeout=60)
        self.assertEqual((again.returncode, its_run), (3, run), told)

    def test_a_job_that_is_started_again_takes_no_other_jobs_run_nor_one_at_work(self):
        part = ("run", "selftest_faults", "-a", "fault=hang,none", "--timeout", "60s", "--json")

        def started(**job):
            process = subprocess.Popen(self.command(*part), cwd=self.folder, env={**self.environment(), **job}, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return process, json.loads(process.stdout.readline())["run"]

        first, run = started(SLURM_JOB_ID="7")
        self.await_an_attempt()
        beside, its_run = started(SLURM_JOB_ID="7", SLURM_RESTART_COUNT="1")  # another step, while the first is at work
        self.assertNotEqual(its_run, run)
        known = {run, its_run}
        for process in (first, beside):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, 75)
        for job in ({"SLURM_JOB_ID": "8", "SLURM_RESTART_COUNT": "1"}, {"LSB_JOBID": "7", "LSB_RESTART": "Y"}):
            process, its_run = started(**job)
            process.kill()
            process.communicate()
            with self.subTest(job):
                self.assertNotIn(its_run, known)
        # Merged from elsewhere, it is nobody's of this machine.
        merged = self.folder / "merged.db"
        self.syslab("--db", merged, "merge", self.db)
        self.db = merged
        process, its_run = started(SLURM_JOB_ID="7", SLURM_RESTART_COUNT="1")
        process.kill()
        process.communicate()
        self.assertNotIn(its_run, known)

    def test_folders_of_a_killed_run_go_with_the_next_and_a_living_ones_stay(self):
        temporary = self.folder / "temporary"
        temporary.mkdir()
        environment = {**self.environment(), "TMPDIR": str(temporary)}
        process = subprocess.Popen(self.command("run", "selftest_ranks", "-a", "world_size=2"), cwd=self.folder,
                                   env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not list(temporary.glob("syslab-*")) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
        process.wait()
        left = list(temporary.glob("syslab-*"))
        self.assertEqual(len(left), 1)
        living = temporary / "syslab-held-living"
        living.mkdir()
        held = os.open(living, os.O_RDONLY)
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        following = subprocess.run(self.command("run", "selftest_empty"), cwd=self.folder, env=environment, text=True,
                                   capture_output=True, timeout=60)
        self.assertEqual(following.returncode, 0)
        self.assertIn("1 temporary folder of a killed run removed", following.stdout + following.stderr)
        self.assertEqual(list(temporary.iterdir()), [living])


if __name__ == "__main__":
    unittest.main()
