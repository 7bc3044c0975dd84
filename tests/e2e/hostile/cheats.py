"""Classes that would rather be believed than be right: each must reach nothing (test_hostile.py)."""
import ctypes
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import termios
import threading
import time

import numpy as np

LIBC = ctypes.CDLL(None, use_errno=True)
PARENT = os.getppid()  # where checker and clock are


def attention(q, k, v, is_causal):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.arange(q.shape[1])[:, None] >= np.arange(k.shape[1])[None, :], scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    p = np.exp(scores - largest)
    total = p.sum(-1, keepdims=True)
    return (p / total) @ v, (largest + np.log(total))[..., 0]


def nonsense(q):
    return np.ones_like(q), np.ones_like(q[..., 0])


def frame(record):
    body = json.dumps(record).encode()
    return struct.pack("<I", len(body)) + body


FORGED = b"".join(map(frame, [
    {"type": "check", "name": "reference:out", "outcome": "passed", "cases_run": 1},
    {"type": "metric", "name": "time", "unit": "s", "value": 1e-6},
    {"type": "end", "status": "ok", "detail": ""},
]))


class LyingClock:
    """Takes 60 ms a call and patches what could tell."""

    def __init__(self):
        ticks = iter(range(1 << 60))
        self.true = time.monotonic
        time.monotonic_ns = time.perf_counter_ns = time.time_ns = lambda: 1000 * next(ticks)
        time.perf_counter = time.time = lambda: 1e-6 * next(ticks)

    def forward(self, q, k, v, is_causal):
        start = self.true()
        while self.true() - start < 0.06:
            pass
        return attention(q, k, v, is_causal)


class ForgedRecords:
    """Says what a worker says of a case that went well, to whoever may listen at a descriptor of its own."""

    def forward(self, q, k, v, is_causal):
        for fd in range(3, 256):
            try:
                if "memfd" not in os.readlink(f"/proc/self/fd/{fd}"):
                    os.set_blocking(fd, False)
                    os.write(fd, FORGED)
            except OSError:
                pass
        return nonsense(q)


class ParentsPipes:
    """The same into every pipe of its parent's, which is then stopped from saying otherwise."""

    def forward(self, q, k, v, is_causal):
        for fd in range(256):
            try:
                place = f"/proc/{PARENT}/fd/{fd}"
                if fd == 2 or "pipe" not in os.readlink(place):
                    continue
                os.write(os.open(place, os.O_WRONLY | os.O_NONBLOCK), FORGED)
            except OSError:
                pass
        return nonsense(q)


class KillsParent:
    def forward(self, q, k, v, is_causal):
        os.kill(PARENT, signal.SIGKILL)
        return attention(q, k, v, is_causal)


class KillsGroup:
    def forward(self, q, k, v, is_causal):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(os.getpgid(PARENT), signal.SIGTERM)
        return attention(q, k, v, is_causal)


class CutsMemory:
    """Whoever reads what has been cut off dies of it."""

    def forward(self, q, k, v, is_causal):
        for fd in range(3, 64):
            try:
                if "memfd" in os.readlink(f"/proc/self/fd/{fd}"):
                    os.ftruncate(fd, 0)
            except OSError:
                pass
        return nonsense(q)


class AnswersEarly:
    """Says at once that its outputs are there, and makes them afterwards."""

    def __init__(self):
        bell = __import__("__main__").Doorbell
        wait = bell.wait

        def wait_and_answer(self):
            wait(self)
            self.finish()

        bell.wait = wait_and_answer

    def forward(self, q, k, v, is_causal):
        time.sleep(0.01)
        return attention(q, k, v, is_causal)


class Lazy:
    """Hands over its result and lets a thread fill it in."""

    def forward(self, q, k, v, is_causal):
        out, lse = nonsense(q)

        def later():
            time.sleep(0.02)
            out[...], lse[...] = attention(q, k, v, is_causal)

        threading.Thread(target=later).start()
        return out, lse


def reached(name, attempt, found):
    try:
        answer = attempt()
        # Of a C function 0 is success, and equals False.
        if answer is not None and answer is not False and answer not in (-1, b"", []):
            found.append(name)
    except (OSError, AttributeError):
        pass


class Reaches:
    """Tries what only the outside may do, and tells what it could."""

    def forward(self, q, k, v, is_causal):
        found = []
        word = ctypes.create_string_buffer(8)
        piece = (ctypes.c_void_p * 2)(ctypes.addressof(word), 8)
        outside = pathlib.Path(os.environ["OUTSIDE"])
        reached("ptrace", lambda: LIBC.ptrace(16, PARENT, None, None), found)  # PTRACE_ATTACH
        if "ptrace" in found:
            os.waitpid(PARENT, 0x40000000)
            LIBC.ptrace(17, PARENT, None, None)
        address = self.stack_of_parent()
        remote = (ctypes.c_void_p * 2)(address, 8)
        reached("process_vm_readv", lambda: LIBC.process_vm_readv(PARENT, piece, 1, remote, 1, 0), found)
        reached("/proc/PPID/mem", lambda: open(f"/proc/{PARENT}/mem", "rb+"), found)
        reached("/proc/PPID/environ", lambda: open(f"/proc/{PARENT}/environ", "rb").read(), found)
        reached("/proc/PPID/fd", lambda: os.readlink(f"/proc/{PARENT}/fd/1"), found)
        reached("signal", lambda: os.kill(PARENT, 0) is None, found)
        reached("limits", lambda: __import__("resource").prlimit(PARENT, 7), found)
        reached("file", lambda: open(outside / "made", "w"), found)
        reached("removal", lambda: os.remove(outside / "there") is None, found)
        reached("truncation", lambda: os.truncate(outside / "cut", 0) is None, found)
        reached("keys", lambda: (outside / "state" / "syslab" / "runs.key").read_bytes(), found)
        reached("database", lambda: open(os.environ["DATABASE"], "rb").read(16), found)
        reached("seed", lambda: any(b"424242" in self.command_line(each) for each in os.listdir("/proc") if each.isdigit()), found)
        reached("internet", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 9)) is None, found)
        reached("unix socket", lambda: socket.socket(socket.AF_UNIX), found)
        reached("namespace", self.makes_a_namespace, found)
        reached("niceness of all", lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)) is None, found)
        reached("processors", lambda: os.sched_setaffinity(PARENT, os.sched_getaffinity(0)) is None, found)
        reached("mode", lambda: os.chmod(outside / "cut", 0o640) or (outside / "cut").stat().st_mode & 0o777 == 0o640, found)
        reached("attribute", lambda: os.setxattr(outside / "cut", "user.mark", b"was here") is None, found)
        reached("time", lambda: os.utime(outside / "cut", (1, 1)) or (outside / "cut").stat().st_mtime == 1, found)
        reached("memory by key", lambda: LIBC.shmget(0, 4096, 0o600) + 1 or None, found)
        reached("typing", self.types, found)
        reached("session", self.leaves_its_session, found)
        reached("descriptors", lambda: [fd for fd in map(int, os.listdir("/proc/self/fd")) if self.is_foreign(fd)] or None, found)
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")

    @staticmethod
    def makes_a_namespace():
        """In a child, since a process of several threads gets no user namespace (CLONE_NEWUSER) with or without walls."""
        child = os.fork()
        if child == 0:
            os._exit(0 if LIBC.unshare(0x10000000) == 0 else 1)
        return os.waitpid(child, 0)[1] == 0

    @staticmethod
    def command_line(process):
        try:
            return pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return b""

    @staticmethod
    def types():
        """Into a terminal, for the shell behind it to carry out."""
        terminal = os.open(os.environ["TERMINAL"], os.O_RDWR | os.O_NOCTTY)
        return fcntl.ioctl(terminal, termios.TIOCSTI, b"x") == 0

    @staticmethod
    def leaves_its_session():
        child = os.fork()
        if child == 0:
            LIBC.setsid()
            os._exit(0 if os.getsid(0) == os.getpid() else 1)
        return os.waitpid(child, 0)[1] == 0

    @staticmethod
    def is_foreign(fd):
        """Anything that is neither a pipe nor the shared memory nor /dev/null, nor the listing itself."""
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return False
        return not any(part in target for part in ("pipe:", "memfd:syslab-tensors", "/dev/null", "/proc/"))

    @staticmethod
    def stack_of_parent():
        try:
            for line in open(f"/proc/{PARENT}/maps"):
                if "[stack]" in line:
                    return int(line.split("-")[1].split()[0], 16) - 8
        except OSError:
            pass
        return 8


class OpensDevices:
    """Tries every device of the machine for writing, and tells which it got."""

    def forward(self, q, k, v, is_causal):
        found = []
        for folder, _, names in os.walk("/dev"):
            for path in (pathlib.Path(folder, name) for name in names):
                if path.is_symlink() or path.is_file():
                    continue
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    found.append(str(path))
                except OSError:
                    pass
        raise RuntimeError(f"opened: {' '.join(sorted(found))}.")
