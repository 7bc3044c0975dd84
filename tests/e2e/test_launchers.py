"""Several processes that a launcher started, as one lab: Open MPI's mpirun, and what torchrun and srun tell theirs.

    test_launchers.py Imitated     launchers imitated by their variables
    test_launchers.py OpenMpi      mpirun itself; exits 77 where it is not installed
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from lab import SYSLAB, asked_again, attempts
from launched import LIMIT, Launched, Together, srun, torchrun


class Imitated(Launched):
    def test_torchrun_and_srun_make_one_lab_with_one_run(self):
        for launcher in (torchrun, srun):
            with self.subTest(launcher=launcher.__name__):
                lines = self.ran(launcher, "run", "selftest_ranks", "-a", "world_size=1,2,3", *LIMIT)
                self.assertEqual([(line["world_size"], line["status"], line["detail"]) for line in attempts(lines)],
                                 [(1, "ok", ""), (2, "ok", ""), (3, "unsupported", "needs 3 ranks")])
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(2,)])
        self.assertEqual(self.sql("SELECT facts -> '$.needs' FROM v_attempt WHERE status = 'unsupported'"), [('{"ranks":3}',)] * 2)
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
        def hosts(rank):
            return {"SYSLAB_HOST": ("127.0.0.1", "elsewhere")[rank % 2]}

        lines = self.ran(torchrun, "run", "selftest_ranks", "-a", "world_size=4", *LIMIT, size=4, each=hosts)
        (line,) = attempts(lines)
        self.assertEqual(line["status"], "ok", line["detail"])
        (facts,) = self.facts()
        self.assertEqual([(rank["host"], rank["met_at"]) for rank in facts["ranks"]],
                         [("127.0.0.1", "tcp"), ("elsewhere", "tcp")] * 2)
        lines = self.ran(torchrun, "run", "selftest_ranks", "-a", "world_size=2", "-a", "fault=throw", *LIMIT, each=hosts,
                         expect=3)
        self.assertIn("rank 1: device: the fault", attempts(lines)[0]["detail"])

    @asked_again
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

    def test_an_agent_that_is_killed_is_named_and_the_sweep_goes_on(self):
        self.start(torchrun, "run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2", "-a", "steps=8,9", "--json")
        self.await_workers(2)
        time.sleep(1)  # until both have greeted and begun: nothing tells so from outside
        began = time.monotonic()
        self.ranks[1].kill()
        (code, out, err), _ = self.ended(timeout=60)
        self.assertLess(time.monotonic() - began, 30)  # a grace of 2 s, a busy machine
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
        _, (code, out, err) = self.ended(timeout=60)
        self.assertLess(time.monotonic() - began, 30)
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
