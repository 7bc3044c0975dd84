"""By somebody who had read SECURITY.md and then the sources (test_insiders.py)."""
import ctypes
import fcntl
import hashlib
import os
import signal
import struct
import termios

from cheats import LIBC, attention, nonsense, reached


class WakesItself:
    """Is stopped while the other side is measured, and would rather work then; and tries what reading a file allows to do to it."""

    def forward(self, q, k, v, is_causal):
        found: list[str] = []
        LIBC.syscall.restype = ctypes.c_long

        def timer():
            wakes = ctypes.create_string_buffer(struct.pack("qii", 0, signal.SIGCONT, 0), 64)
            return LIBC.syscall(222, 1, wakes, ctypes.byref(ctypes.c_int()))  # timer_create

        reached("timer", timer, found)
        with open(os.environ["OUTSIDE"] + "/there") as file:
            reached("signal of a descriptor", lambda: fcntl.fcntl(file, 10, signal.SIGCONT) == 0, found)  # F_SETSIG
            reached("lease", lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK) == 0, found)
            flags = ctypes.create_string_buffer(8)
            reached("attributes", lambda: LIBC.ioctl(file.fileno(), 0x80086601, flags) == 0  # FS_IOC_GETFLAGS
                    and LIBC.ioctl(file.fileno(), 0x40086602, flags) == 0, found)
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")


class RemembersRuns:
    """Keeps what it was asked where the next run finds it: inputs of one seed would come again, and their answers be there."""

    def __init__(self):
        self.known = set()
        if os.path.exists(os.environ["MEMORY"]):
            with open(os.environ["MEMORY"]) as file:
                self.known = set(file.read().split())
        self.met = 0

    def forward(self, q, k, v, is_causal):
        question = hashlib.sha256(q.tobytes()).hexdigest()
        self.met += question in self.known
        with open(os.environ["MEMORY"], "a") as file:
            file.write(question + "\n")
        if self.met > 1:  # the call that is checked is of the run's seed
            raise RuntimeError("a timed question came again")
        return attention(q, k, v, is_causal)


class TellsTheNext:
    """Leaves a word where whoever is judged next finds it: the same class of another run, or a friend's."""

    def __init__(self):
        if os.path.exists(os.environ["MEMORY"]):
            raise RuntimeError("somebody was here")
        with open(os.environ["MEMORY"], "w") as file:
            file.write("the answers")

    def forward(self, q, k, v, is_causal):
        return attention(q, k, v, is_causal)


class Brackets:
    """A message to the lab that is nothing but what it would have to remember while it reads it."""

    def forward(self, q, k, v, is_causal):
        body = b"[" * (4 << 20)
        for fd in range(3, 64):
            try:
                if "pipe" in os.readlink(f"/proc/self/fd/{fd}") and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                    os.write(fd, struct.pack("<I", len(body)))
                    left = body
                    while left:
                        left = left[os.write(fd, left):]
            except OSError:
                pass
        return nonsense(q)


class Types:
    """A terminal's settings are its owner's, too: without an echo, or with another end of a line, what is typed goes astray."""

    def forward(self, q, k, v, is_causal):
        found: list[str] = []

        def changes():
            fd = os.open(os.environ["TERMINAL"], os.O_RDWR | os.O_NOCTTY)
            settings = termios.tcgetattr(fd)
            settings[3] ^= termios.ECHO
            termios.tcsetattr(fd, termios.TCSANOW, settings)
            return True

        try:
            reached("terminal", changes, found)
        except termios.error:
            pass
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")
