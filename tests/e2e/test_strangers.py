"""Launches over TCP among strangers: whoever does not know the secret is told nothing, starts nothing, delays nobody."""
import contextlib
import os
import pathlib
import signal
import socket
import stat
import threading
import time
import unittest

from lab import asked_again
from launched import LIMIT, Launched, free_port, torchrun

MAGIC = b"syslab\x02\n"
NONCE = 32
SLACK = 1.0  # seconds by which a launch may be late


def listening_ports(pid):
    """TCP ports on which a process listens."""
    inodes = set()
    with contextlib.suppress(OSError):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(entry)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def listening_addresses(pid):
    """Of these, as the kernel's table has them."""
    ports = {f"{port:04X}" for port in listening_ports(pid)}
    return {line.split()[1].rpartition(":")[0] for table in ("tcp", "tcp6")
            for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].rpartition(":")[2] in ports}


class Squatter:
    """Holds a port before rank 0 does, plays the server as well as it can without the secret, and keeps what it is told."""

    def __init__(self, port, answer=b""):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.answer = answer
        self.told = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        self.listener.settimeout(0.05)
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                client, _ = self.listener.accept()
                self.threads.append(threading.Thread(target=self.talk, args=(client,)))
                self.threads[-1].start()

    def talk(self, client):
        words = b""
        with client, contextlib.suppress(OSError):
            client.settimeout(0.05)
            client.sendall(self.answer)
            while not self.stop.is_set():
                with contextlib.suppress(TimeoutError):
                    more = client.recv(1 << 16)
                    words += more
                    if not more:
                        break
        self.told.append(words)

    def close(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self.listener.close()


class Nuisance:
    """Knocks at every port on which rank 0's process listens, some fifty times a second at each, until it is closed."""

    def __init__(self, process, act):
        self.process, self.act = process, act
        self.knocked = 0
        self.stop = threading.Event()
        self.held = []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.wait(0.02):
            for port in listening_ports(self.process.pid):
                with contextlib.suppress(OSError):
                    one = socket.create_connection(("127.0.0.1", port), timeout=1)
                    self.held.append(one)
                    self.knocked += 1
                    self.act(self, one)

    def close(self):
        self.stop.set()
        self.thread.join()
        for one in self.held:
            one.close()


def idle(_, __):
    pass


def slow(nuisance, _):
    for one in nuisance.held[-40:]:
        with contextlib.suppress(OSError):
            one.send((MAGIC + bytes(NONCE))[nuisance.knocked % 40:][:1])


def hello_of_another_build(_, one):
    """As builds before this one greeted, with a rank 1 of another build, which they would have refused and all ended."""

    def text(words):
        return len(words).to_bytes(4, "little") + words

    def number(value):
        return value.to_bytes(8, "little")

    hello = number(0) + number(1) + text(b"e2e") + number(2) + number(1) + text(b"") * 2 + number(1) * 2 + text(b"other")
    one.sendall(b"syslab\x01\n" + text(hello))


def wrong_proof(_, one):
    one.sendall(MAGIC + bytes(2 * NONCE))


class Strangers(Launched):
    def setUp(self):
        super().setUp()
        self.port = free_port()  # MASTER_PORT; ranks meet at the ports behind it

    def at_port(self, rank, size, _):
        return torchrun(rank, size, self.port)

    def launch(self, *more, act=None):
        """Seconds of a launch of two ranks; `act` is what strangers do at rank 0's ports before rank 1 comes and from then on."""
        self.began = time.monotonic()
        nuisances = []

        def disturb():
            nuisances.append(Nuisance(self.ranks[0], act))
            while nuisances[0].knocked < 10:
                time.sleep(0.01)
            self.began = time.monotonic()

        try:
            self.start(self.at_port, "run", "selftest_ranks", "-a", "world_size=2", *LIMIT, "--json", *more,
                       between=disturb if act else None)
            (code, out, err), agent = self.ended()
        finally:
            for nuisance in nuisances:
                nuisance.close()
        self.assertEqual((code, agent), (0, (0, "", "")), err)
        return time.monotonic() - self.began

    def assert_prompt(self, launch, alone):
        """One of three launches: a busy machine makes some late, a stranger who can delay them makes all."""
        took = [launch()]
        while took[-1] >= alone + SLACK and len(took) < 3:
            took.append(launch())
        self.assertLess(took[-1], alone + SLACK)

    def test_a_squatter_on_the_first_port_is_told_nothing_and_passed_over(self):
        alone = self.launch()
        # One that says nothing; one that echoes the greeting and cannot prove a thing; one of older builds, whose answer
        # "accepted" ranks would once have believed.
        old = b"syslab\x01\n" + (8).to_bytes(4, "little") + bytes(8)
        for answer in (b"", MAGIC + bytes(2 * NONCE), old):
            with self.subTest(answer=answer[:8]):
                squatter = Squatter(self.port + 1, answer)
                try:
                    self.assert_prompt(self.launch, alone)
                finally:
                    squatter.close()
                self.assertTrue(squatter.told, "nobody came by")
                for words in squatter.told:
                    self.assertLessEqual(len(words), len(MAGIC) + NONCE)
                    self.assertTrue(words.startswith(MAGIC[:len(words)]))

    def test_strangers_at_the_door_neither_delay_nor_end_a_launch(self):
        alone = self.launch()
        for act in (idle, slow, hello_of_another_build, wrong_proof):
            with self.subTest(act=act.__name__):
                self.assert_prompt(lambda: self.launch(act=act), alone)

    def test_ranks_of_one_host_listen_on_its_loopback_alone(self):
        self.start(self.at_port, "run", "selftest_ranks", "-a", "fault=all_hang", "-a", "world_size=2", "--json")
        self.await_workers(2)
        addresses = listening_addresses(self.ranks[0].pid)
        self.kill_all()
        self.assertEqual(addresses, {"0100007F"})

    def test_a_rank_with_another_secret_is_no_rank_and_says_what_to_type(self):
        self.start(self.at_port, "run", "selftest_ranks",
                   each=lambda rank: {"SYSLAB_LAUNCH_SECRET": f"{rank:064x}", "SYSLAB_LAUNCH_LIMIT": "2s"})
        for code, _, err in self.ended():
            self.assertNotEqual(code, 0)
            self.assertIn("the secret of this launch", err)
            self.assertIn("export SYSLAB_LAUNCH_SECRET=$(od", err)
        self.assertFalse(self.db.exists())

    def test_the_secret_is_made_at_first_use_and_is_this_users_alone(self):
        self.launch()
        key = self.folder / "state" / "syslab" / "launch.key"
        self.assertEqual((stat.S_IMODE(key.stat().st_mode), key.stat().st_size), (0o600, 32))
        self.assertEqual(stat.S_IMODE(key.parent.stat().st_mode), 0o700)
        before = key.read_bytes()
        self.launch()
        self.assertEqual(key.read_bytes(), before)

    def test_hosts_that_share_no_home_share_what_was_exported(self):
        self.start(self.at_port, "run", "selftest_ranks", "-a", "world_size=2", *LIMIT,
                   each=lambda rank: {"SYSLAB_LAUNCH_SECRET": "0f" * 32, "XDG_STATE_HOME": str(self.folder / f"host{rank}")})
        for code, _, err in self.ended():
            self.assertEqual(code, 0, err)
        self.assertFalse((self.folder / "host0").exists() or (self.folder / "host1").exists())
        self.assertNotIn("0f" * 32, str(self.sql("SELECT facts FROM environment")))

    def interrupted(self, act=idle):
        """Seconds from SIGINT to rank 0's end, with strangers at its ports."""
        nuisance = Nuisance(self.ranks[0], act)
        try:
            time.sleep(1)
            began = time.monotonic()
            self.ranks[0].send_signal(signal.SIGINT)
            self.ranks[0].wait(timeout=20)
            return time.monotonic() - began
        finally:
            nuisance.close()

    @asked_again
    def test_sigint_is_answered_within_a_second_while_ranks_are_missing(self):
        self.start(lambda rank, size, _: torchrun(rank, 2, self.port), "run", "selftest_ranks", size=1)
        self.assertLess(self.interrupted(), self.longer)

    @asked_again
    def test_sigint_is_answered_within_a_second_while_a_case_runs(self):
        self.hang()
        self.assertLess(self.interrupted(), self.longer)

    @asked_again
    def test_sigint_is_answered_within_a_second_when_an_agent_is_stopped(self):
        self.hang()
        self.ranks[1].send_signal(signal.SIGSTOP)
        took = self.interrupted()
        self.ranks[1].kill()
        self.assertLess(took, self.longer)


if __name__ == "__main__":
    unittest.main()
