"""Several processes that a launcher started, as one lab: what the tests of launches share."""
import contextlib
import json
import pathlib
import random
import socket
import subprocess
import time

from lab import Lab

LIMIT = ("-a", "limit_ms=3000")


BLOCK = 32  # ports of a launch: the launcher's own, and those behind it at which ranks look for each other


def free_port():
    """The first of BLOCK ports of which nobody listens at any. The kernel gives none of them to whoever asks for any port: it would
    give one away between this look and the launch, or while a test holds it free for a stranger."""
    given_away = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for first in random.sample(range(10_000, max(given_away, 20_000) - BLOCK, BLOCK), 200):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + BLOCK):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise RuntimeError("no free ports below those that the kernel gives away")


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
        deadline = time.monotonic() + 30
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
        deadline = time.monotonic() + 60
        while len(self.workers()) < count:
            self.assertLess(time.monotonic(), deadline, "the workers did not start")
            time.sleep(0.02)

    def facts(self):
        return [json.loads(text) for (text,) in self.sql("SELECT facts FROM attempt_facts WHERE facts -> '$.ranks' IS NOT NULL")]


class Launched(Together):
    """Processes with a launcher's variables."""

    def start(self, launcher, *arguments, size=2, each=None, between=None):
        """A process a rank, with the variables that `launcher` gives it and those of `each(rank)`. `between` is called once
        rank 0 is started."""
        port = free_port()
        self.ranks = []
        for rank in range(size):
            if rank == 1 and between:
                between()
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

    def hang(self, *more):
        self.start(torchrun, "run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2", "--json", *more)
        self.await_workers(2)
        time.sleep(0.3)
