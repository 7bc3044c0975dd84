"""Several processes that a launcher started, as one lab: Open MPI's mpirun, and what torchrun and srun tell theirs.

    test_launchers.py Launched     launchers imitated by their variables
    test_launchers.py OpenMpi      mpirun itself; exits 77 where it is not installed
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from lab import SYSLAB, Lab, attempts

LIMIT = ("-a", "limit_ms=3000")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun(rank, size, port):
    """What torchrun --no-python tells rank `rank`, all on one host."""
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": f"e2e-{port}", "TORCHELASTIC_RESTART_COUNT": 0,
            "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_USE_AGENT_STORE": "True", "OMP_NUM_THREADS": 1}


def srun(rank, size, port):
    return {"SLURM_JOB_ID": port, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NODEID": 0,
            "SLURM_STEP_NUM_TASKS": size, "SLURM_NTASKS": size, "SLURM_STEP_NODELIST": "localhost",
            "SLURM_STEP_TASKS_PER_NODE": size}


class Together(Lab):
    def setUp(self):
        super().setUp()
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()

    def environment(self):
        # As little as a launcher would give: whatever runs the tests may itself have been launched.
        kept = {name: value for name, value in super().environment().items()
                if not name.startswith(("OMPI_", "PMI_", "PMIX_", "SLURM_", "TORCHELASTIC_")) and name not in
                ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        return {**kept, "TMPDIR": str(self.scratch), "SYSLAB_LAUNCH_LIMIT": "30s"}

    def tearDown(self):
        # Whoever was ended is gone with all that it started.
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [], "a process was left")

    def processes(self):
        """(pid, command line) of those whose environment names our folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"TMPDIR={self.scratch}".encode() in (entry / "environ").read_bytes():
                    found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
            except OSError:
                pass
        return found

    def workers(self):
        return [pid for pid, line in self.processes() if line.rstrip().endswith(" worker")]

    def await_workers(self, count):
        deadline = time.monotonic() + 30
        while len(self.workers()) < count:
            self.assertLess(time.monotonic(), deadline, "the workers did not start")
            time.sleep(0.02)

    def facts(self):
        return [json.loads(text) for (text,) in self.sql("SELECT facts FROM attempt_facts WHERE facts LIKE '%\"ranks\"%'")]


class Launched(Together):
    def start(self, launcher, *arguments, size=2, each=None):
        """A process a rank, with the variables that `launcher` gives it and those of `each(rank)`."""
        port = free_port()
        self.ranks = []
        for rank in range(size):
            variables = {name: str(value) for name, value in launcher(rank, size, port).items()}
            own = each(rank) if each else {}
            self.ranks.append(subprocess.Popen(self.command(*arguments, *own.pop("arguments", [])), cwd=self.folder,
                                               env={**self.environment(), **variables, **own}, text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.ranks:
            process.kill()
            process.communicate()

    def ended(self, timeout=60):
        """(exit code, standard output, standard error) by rank."""
        deadline = time.monotonic() + timeout
        said = [process.communicate(timeout=max(deadline - time.monotonic(), 0.1)) for process in self.ranks]
        return [(process.returncode, *texts) for process, texts in zip(self.ranks, said)]

    def ran(self, launcher, *arguments, expect=0, **how):
        """The JSON lines of rank 0, of whom alone anybody hears anything."""
        self.start(launcher, *arguments, "--json", **how)
        (code, out, err), *agents = self.ended()
        self.assertEqual(code, expect, err)
        self.assertEqual([(code, out, err) for code, out, err in agents], [(0, "", "")] * len(agents))
        return [json.loads(line) for line in out.splitlines()]

    def test_torchrun_and_srun_make_one_lab_with_one_run(self):
        for launcher in (torchrun, srun):
            with self.subTest(launcher=launcher.__name__):
                lines = self.ran(launcher, "run", "selftest_ranks", "-a", "world_size=1,2,3", *LIMIT)
                self.assertEqual([(line["world_size"], line["status"], line["detail"]) for line in attempts(lines)],
                                 [(1, "ok", ""), (2, "ok", ""), (3, "unsupported", "needs 3 ranks")])
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(2,)])
        self.assertEqual(self.sql("SELECT DISTINCT rank, value FROM metric WHERE name = 'answer' ORDER BY 1"),
                         [(0, 1.0), (1, 2.0)])
        host = socket.gethostname()
        for facts in self.facts():
            self.assertEqual([(rank["host"], rank["met_at"]) for rank in facts["ranks"]], [(host, "file")] * 2)
        # torchrun has said how many threads; the other ranks of Slurm's share the processors they may use.
        shared = str(max(1, len(os.sched_getaffinity(0)) // 2))
        self.assertEqual([[rank["threads"] for rank in facts["ranks"]] for facts in self.facts()],
                         [["1", "1"], [shared, shared]])

    def test_ranks_on_two_hosts_meet_by_an_address(self):
        hosts = lambda rank: {"SYSLAB_HOST": ("127.0.0.1", "elsewhere")[rank % 2]}
        lines = self.ran(torchrun, "run", "selftest_ranks", "-a", "world_size=4", *LIMIT, size=4, each=hosts)
        (line,) = attempts(lines)
        self.assertEqual(line["status"], "ok", line["detail"])
        (facts,) = self.facts()
        self.assertEqual([(rank["host"], rank["met_at"]) for rank in facts["ranks"]],
                         [("127.0.0.1", "tcp"), ("elsewhere", "tcp")] * 2)
        lines = self.ran(torchrun, "run", "selftest_ranks", "-a", "world_size=2", "-a", "fault=throw", *LIMIT, each=hosts,
                         expect=3)
        self.assertIn("rank 1: device: the fault", attempts(lines)[0]["detail"])

    def test_sides_of_several_ranks_are_compared(self):
        self.ran(srun, "compare", "selftest_ranks", "A:share_us=500", "B:share_us=5000", "-a", "world_size=2",
                 "--launches", "3", expect=6)
        self.assertEqual(self.sql("SELECT verdict FROM comparison"), [("slower",)])

    def test_contradictions_are_errors_before_any_work(self):
        self.start(lambda rank, size, port: {"RANK": 0, "WORLD_SIZE": 2, "OMPI_COMM_WORLD_RANK": 1, "OMPI_COMM_WORLD_SIZE": 2},
                   "run", "selftest_ranks", size=1)
        ((code, _, err),) = self.ended()
        self.assertEqual(code, 2, err)
        self.assertIn("RANK=0 and OMPI_COMM_WORLD_RANK=1 (Open MPI) contradict each other", err)

        self.start(torchrun, "run", "selftest_ranks", each=lambda rank: {"arguments": ["--label", f"rank{rank}"]})
        for code, _, err in self.ended():
            self.assertNotEqual(code, 0)
            self.assertIn("rank 1 differs in 'command line'", err)

        self.start(lambda rank, size, port: {**torchrun(rank, 2, port), "SYSLAB_LAUNCH_LIMIT": "1s"}, "run", "selftest_ranks",
                   size=1)
        ((code, _, err),) = self.ended()
        self.assertNotEqual(code, 0)
        self.assertIn("rank 1 of 2 did not come", err)
        self.assertFalse(self.db.exists())

    def test_what_runs_nothing_is_each_process_own_affair(self):
        self.start(torchrun, "describe", "selftest_ranks")
        for code, out, err in self.ended():
            self.assertEqual((code, err), (0, ""))
            self.assertIn("selftest_ranks", out)
        # A script that was given many tasks and starts one thing; a shell that names a size for others.
        self.start(lambda rank, size, port: {"SLURM_NTASKS": 2, "WORLD_SIZE": 2, "SLURM_STEP_NUM_TASKS": 1, "SLURM_PROCID": 0},
                   "run", "selftest_ranks", "-a", "world_size=2", size=1)
        ((code, _, err),) = self.ended()
        self.assertEqual(code, 0, err)

    def hang(self, *more):
        self.start(torchrun, "run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2", "--json", *more)
        self.await_workers(2)
        time.sleep(0.3)

    def test_an_agent_that_is_killed_is_named_and_the_sweep_goes_on(self):
        self.start(torchrun, "run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2", "-a", "steps=8,9", "--json")
        self.await_workers(2)
        began = time.monotonic()
        self.ranks[1].kill()
        (code, out, err), _ = self.ended(timeout=20)
        self.assertLess(time.monotonic() - began, 12)  # a grace of 3 s, a busy machine
        self.assertEqual(code, 3, err)
        first, second = attempts([json.loads(line) for line in out.splitlines()])
        self.assertEqual(first["status"], "crashed")
        self.assertIn(f"rank 1: the agent of rank 1 on {socket.gethostname()} has ended", first["detail"])
        self.assertEqual(second["status"], "error")
        self.assertIn("rank 1: the agent of rank 1", second["detail"])

    def test_agents_end_with_a_lab_that_is_killed(self):
        self.hang()
        began = time.monotonic()
        self.ranks[0].kill()
        _, (code, out, err) = self.ended(timeout=20)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual((code, out), (3, ""))
        self.assertIn("the lab, rank 0 on 127.0.0.1, is gone", err)
        for folder in self.scratch.iterdir():  # nobody was left to remove it
            shutil.rmtree(folder)

    def test_a_signal_to_all_is_an_aborted_case(self):
        self.hang()
        for process in self.ranks:
            process.send_signal(signal.SIGTERM)
        (_, out, _), (code, _, err) = self.ended(timeout=20)
        self.assertEqual([line["status"] for line in attempts([json.loads(line) for line in out.splitlines()])], ["aborted"])
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(list(self.scratch.iterdir()), [])


class OpenMpi(Together):
    def mpirun(self, *arguments, expect=0, ranks=2):
        # Containers run tests as root, and on fewer processors than ranks.
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), SYSLAB, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def lines_of(self, *arguments, **how):
        return [json.loads(line) for line in self.mpirun(*arguments, "--json", **how).stdout.splitlines()]

    def test_mpirun_makes_one_lab_with_one_run(self):
        lines = self.lines_of("run", "selftest_ranks", "-a", "world_size=1,2,3", *LIMIT)
        self.assertEqual([(line["world_size"], line["status"]) for line in attempts(lines)],
                         [(1, "ok"), (2, "ok"), (3, "unsupported")])
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])
        self.assertEqual(self.sql("SELECT rank, value FROM metric WHERE name = 'answer' AND note = '' ORDER BY 1"), [])
        self.assertEqual(list(self.scratch.glob("syslab*")), [])

    def test_communicators_work_between_ranks_that_mpirun_placed(self):
        lines = self.lines_of("run", "distributed_communication_single_node", "--preset", "smoke", "--laws", "none",
                              "-a", "world_size=2", "-a", "bytes=1048576")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"}, lines)

    def test_the_exit_code_is_the_labs(self):
        done = self.mpirun("run", "selftest_ranks", "-a", "world_size=2", "-a", "fault=wrong", *LIMIT, expect=1)
        self.assertIn("started by Open MPI", done.stderr)
        self.assertEqual(self.sql("SELECT status FROM v_attempt"), [("check_failed",)])


if __name__ == "__main__":
    if sys.argv[1:] == ["OpenMpi"] and shutil.which("mpirun") is None:
        print("SKIP: mpirun is not installed")
        sys.exit(77)
    unittest.main(defaultTest=sys.argv[1:2])
