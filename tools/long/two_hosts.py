"""A launch on two hosts with a slow and then a lost link between them, emulated on one: network, process and name
spaces; as root:

    sudo python3 tools/long/two_hosts.py build/syslab [--rounds N]      (iproute2, util-linux)

Each "host" has a network of its own, joined by a pair of virtual devices between which this script carries each packet
40 ms late, a hostname and process numbers of its own; files, processors and kernel are the same. A case of two ranks,
one on each, has to end ok; one whose second rank crashes or is stopped, at the start or later, and one whose link is
lost has to name that rank within the limit and 3 s, and to leave no process on either side; an agent whose lab is
stopped has to end. The last line is a row for reports/ledger/lab.md. Exit code 77: not root, or no such spaces here; 1:
something was told wrong, late, or left.
"""
import argparse
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import random
import secrets
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

DELAY = 0.040  # seconds, each way
LIMIT = 2.0  # seconds that a rank waits for another
GRACE = 3.0
LONGEST = 90


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Link(threading.Thread):
    """Carries packets between two TUN devices, each 40 ms late, or loses them. (`tc netem`, where the kernel has it,
    does no more.)"""

    def __init__(self, devices):
        super().__init__(daemon=True)
        self.ends = [self.open(device) for device in devices]
        self.lost = self.ending = False

    @staticmethod
    def open(device):
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        # TUNSETIFF: a TUN device, bare packets.
        fcntl.ioctl(end, 0x400454CA, struct.pack("16sH22x", device.encode(), 0x1001))
        return end

    def run(self):
        under_way: collections.deque = collections.deque()
        while not self.ending:
            wait = 0.2 if not under_way else max(0.0, under_way[0][0] - time.monotonic())
            for end in select.select(self.ends, [], [], wait)[0]:
                with contextlib.suppress(OSError):
                    packet = os.read(end, 1 << 16)
                    if not self.lost:
                        under_way.append((time.monotonic() + DELAY, self.ends[1 - self.ends.index(end)], packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, to, packet = under_way.popleft()
                with contextlib.suppress(OSError):
                    if not self.lost:
                        os.write(to, packet)


class Hosts:
    def __init__(self):
        tag = f"{os.getpid() % 10000:04d}"
        self.names = [f"syslab-{side}-{tag}" for side in "ab"]
        self.devices = [f"sl{side}{tag}" for side in "ab"]
        self.addresses = [f"10.213.{os.getpid() % 250}.{last}" for last in (1, 2)]

    def __enter__(self):
        try:
            self.link = Link(self.devices)
            for name, device, address in zip(self.names, self.devices, self.addresses):
                ip("netns", "add", name)
                ip("link", "set", device, "netns", name)
                ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", device, "up")
        except (subprocess.CalledProcessError, OSError) as error:
            self.remove()
            print(f"no such networks here: {getattr(error, 'stderr', error)}")
            sys.exit(77)
        self.link.start()
        return self

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def __exit__(self, *_):
        self.link.ending = True
        self.link.join()
        self.remove()


class Launch:
    """The program once on each host, as torchrun starts it."""

    def __init__(self, syslab, hosts, folder, arguments):
        self.folder, self.began = folder, time.monotonic()
        port, key = random.randint(20_000, 30_000), secrets.token_hex(32)
        self.processes = []
        for rank in (0, 1):
            own = pathlib.Path(tempfile.mkdtemp(dir=folder))
            environment = {"PATH": os.environ["PATH"], "TMPDIR": str(own), "XDG_STATE_HOME": str(own / "state"),
                           "SYSLAB_LAUNCH_SECRET": key,
                           "SYSLAB_LAUNCH_LIMIT": "30s", "SYSLAB_HOST": hosts.addresses[rank], "RANK": str(rank),
                           "WORLD_SIZE": "2",
                           "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": hosts.addresses[0],
                           "MASTER_PORT": str(port),
                           "OMP_NUM_THREADS": "1"}
            inside = f"hostname host-{rank}; exec \"$@\""
            command = ["ip", "netns", "exec", hosts.names[rank], "unshare", "--pid", "--fork", "--kill-child",
                       "--mount-proc", "--uts", "sh", "-c",
                       inside, "sh", syslab, *arguments, "--json", "--db", str(folder / "lab.db")]
            self.processes.append(subprocess.Popen(command, env=environment, text=True, start_new_session=True,
                                                   stdout=subprocess.PIPE, stderr=open(own / "errors", "w")))

    def found(self):
        """All workers of this launch, by our process numbers."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or str(self.folder).encode() not in (entry / "environ").read_bytes():
                    continue
                if (entry / "cmdline").read_bytes().endswith(b"\0worker\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def attempt(self):
        """The attempt's line, and when it came."""
        for line in self.processes[0].stdout or ():
            said = json.loads(line)
            if said.get("type") == "attempt":
                return said, time.monotonic()
        return None, time.monotonic()

    def end(self):
        """How long the slower of both took to end by itself; those that do not are killed, which is a violation."""
        began, late = time.monotonic(), 0
        for process in self.processes:
            try:
                process.communicate(timeout=max(0.1, began + 45 - time.monotonic()))
            except subprocess.TimeoutExpired:
                late += 1
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        took = time.monotonic() - began
        deadline = time.monotonic() + GRACE
        while self.found() and time.monotonic() < deadline:
            time.sleep(0.01)
        return took, late + len(self.found())


def stop_one(launch, early):
    """The worker of rank 1, which the second host runs: stopped as soon as it is there, or a while later."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        for pid in launch.found():
            with contextlib.suppress(OSError):
                host = pathlib.Path(f"/proc/{inner(launch.processes[1].pid)}/ns/uts")
                if pathlib.Path(f"/proc/{pid}/ns/uts").readlink() == host.readlink():
                    time.sleep(random.uniform(0, 0.1) if early else random.uniform(1, 3))
                    os.kill(pid, signal.SIGSTOP)
                    return time.monotonic()
        time.sleep(0.001)
    sys.exit("the second host's worker did not come")


def inner(pid):
    """The program below `ip` and `unshare`."""
    while True:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children or b"unshare" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        pid = int(children[0])


KINDS = ("none", "crash", "stop at start", "stop later", "link lost", "lab stopped")
AGENT_ENDS = 45  # seconds, without its lab


def stop_lab(launch):
    """The agent ends by itself, and the lab tells of it when it goes on."""
    deadline = time.monotonic() + LONGEST
    while len(launch.found()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    lab = int(inner(launch.processes[0].pid))
    os.kill(lab, signal.SIGSTOP)
    try:
        launch.processes[1].wait(AGENT_ENDS)
        return []
    except subprocess.TimeoutExpired:
        return ["the agent does not end without its lab"]
    finally:
        os.kill(lab, signal.SIGCONT)


def one_round(syslab, hosts, kind):
    """(what was wrong, seconds from the fault to the attempt's line, seconds until both sides had ended)."""
    with tempfile.TemporaryDirectory(prefix="syslab_two_hosts_") as name:
        folder = pathlib.Path(name)
        fault = kind if kind in ("none", "crash") else "none"
        steps = 6 if fault == kind else 2000
        launch = Launch(syslab, hosts, folder, ["run", "selftest_ranks", "-a", f"fault={fault}", "-a", "world_size=2",
                                                "-a", f"steps={steps}",
                                                "-a", f"limit_ms={int(LIMIT * 1000)}"])
        struck = None
        if kind.startswith("stop"):
            struck = stop_one(launch, kind.endswith("start"))
        if kind == "link lost":
            deadline = time.monotonic() + LONGEST
            while len(launch.found()) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(random.uniform(1, 4))
            hosts.link.lost = True
            struck = time.monotonic()
        wrong = []
        if kind == "lab stopped":
            wrong += stop_lab(launch)
        said, at = launch.attempt()
        ended, left = launch.end()
        hosts.link.lost = False
        detail = said["detail"] if said else "no attempt was told"
        if kind == "none" and (not said or said["status"] != "ok"):
            wrong.append(f"not ok: {detail[:300]}")
        if kind != "none" and not detail.startswith("rank 1"):
            wrong.append(f"rank 1 is not named: {detail[:300]}")
        took = at - struck if struck else None
        if took and took > LIMIT + GRACE:
            wrong.append(f"told after {took:.2f} s")
        if left:
            wrong.append(f"{left} processes did not end or are left")
        return wrong, took, ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("syslab", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare"))):
        print("needs root, ip and unshare")
        sys.exit(77)
    failed, rounds = 0, 0
    told: dict = {}
    slowest: dict = {}
    with Hosts() as hosts:
        for _ in range(arguments.rounds):
            for kind in KINDS:
                wrong, took, ended = one_round(arguments.syslab, hosts, kind)
                rounds += 1
                failed += bool(wrong)
                if took:
                    told[kind] = max(told.get(kind, 0), took)
                slowest[kind] = max(slowest.get(kind, 0), ended)
                print(f"{kind:14} {'told after %.2f s' % took if took else '':20} both ended {ended:5.1f} s later   "
                      f"{'; '.join(wrong) or 'well'}", flush=True)
    latest = ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in told.items())
    print(f"for the ledger: | two hosts, emulated: {1000 * DELAY:.0f} ms of delay each way, ranks crashed and stopped, "
          f"the link lost | `sudo python3 tools/long/two_hosts.py build/syslab --rounds {arguments.rounds}` | named "
          f"within limit ({LIMIT:.0f} s) + 3 s, 0 left / – | {rounds - failed} of {rounds} rounds as promised; told at "
          f"most after: {latest}; both sides ended at most {max(slowest.values()):.1f} s later |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
