"""Classes that would work while the other side of a comparison is timed, when they ought to stand still (test_sleepless.py)."""
import ctypes
import mmap
import os
import signal
import threading
import time

from cheats import LIBC, attention, reached

LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
LIBC.syscall.restype = ctypes.c_long
READ_WRITE, PRIVATE = 3, 0x22  # of memory without a file
POPULATE, LOCKED = 0x8000, 0x2000
FAILED = ctypes.c_void_p(-1).value
CLONE, CLONE3 = 56, 435
SET_DEATH_SIGNAL, GET_DEATH_SIGNAL = 1, 2


def mapped(size, flags=0):
    at = LIBC.mmap(None, size, READ_WRITE, PRIVATE | flags, -1, 0)
    return None if at in (None, FAILED) else at


def clone(signal_of_its_end):
    """As fork(), with another signal for the parent."""
    return LIBC.syscall(CLONE, ctypes.c_long(signal_of_its_end), None, None, None, None)


def death_signal():
    found = ctypes.c_int()
    LIBC.prctl(GET_DEATH_SIGNAL, ctypes.byref(found), 0, 0, 0)
    return found.value


class Wakes:
    """Whatever would wake it, or keep it at work, in spite of a SIGSTOP."""

    def forward(self, q, k, v, is_causal):
        found: list[str] = []

        def child_that_wakes():
            child = clone(signal.SIGCONT)
            if child == 0:
                os._exit(0)
            if child < 0:
                return False
            os.waitpid(child, 0x40000000)  # __WALL: of whatever signal
            return True

        def new_clone():
            flags = (ctypes.c_uint64 * 8)(0, 0, 0, 0, signal.SIGCONT)
            child = LIBC.syscall(CLONE3, flags, 64)
            if child == 0:
                os._exit(0)
            return child > 0

        def death_of_the_parent():
            LIBC.prctl(SET_DEATH_SIGNAL, signal.SIGCONT, 0, 0, 0)
            return death_signal() == signal.SIGCONT

        def locked_pages():
            """The call succeeds behind the walls; what it fills counts."""
            fresh, resident = mapped(4096), ctypes.create_string_buffer(1)
            LIBC.mlock(fresh, 4096)
            return LIBC.mincore(fresh, 4096, resident) == 0 and resident.raw[0] & 1 == 1

        at = mapped(1 << 20)
        reached("signal of a child's end", child_that_wakes, found)
        reached("signal of a child's end by clone3", new_clone, found)
        reached("signal of the parent's end", death_of_the_parent, found)
        reached("populated memory", lambda: mapped(1 << 16, POPULATE) is not None, found)
        reached("locked memory", lambda: mapped(1 << 16, LOCKED) is not None or locked_pages(), found)
        reached("populated pages", lambda: LIBC.madvise(at, 1 << 16, 22) == 0 or LIBC.madvise(at, 1 << 16, 23) == 0, found)
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")


class KeepsSpawning:
    """What torch's spawn does: asks to be told of the parent's end, and takes a failure badly."""

    def forward(self, q, k, v, is_causal):
        if LIBC.prctl(SET_DEATH_SIGNAL, signal.SIGINT, 0, 0, 0) != 0:
            raise RuntimeError("prctl failed")
        return attention(q, k, v, is_causal)


class Sleepless:
    """From its first call on it is busy in system calls that end late."""

    def __init__(self):
        self.begun = False

    def forward(self, q, k, v, is_causal):
        if not self.begun:
            self.begun = True
            threading.Thread(target=self.works, daemon=True).start()
        return attention(q, k, v, is_causal)

    def works(self):
        raise NotImplementedError


class Populates(Sleepless):
    def works(self):
        while True:
            at = mapped(1 << 30, POPULATE)
            if at is None:
                return
            LIBC.munmap(at, 1 << 30)


class Copies(Sleepless):
    """Reading a file of a gigabyte is one call, too, and no filter knows for how long it goes on."""

    def works(self):
        memory = os.memfd_create("copied")
        os.ftruncate(memory, 1 << 30)
        os.posix_fallocate(memory, 0, 1 << 30)
        into = mmap.mmap(-1, 1 << 30)
        while True:
            os.preadv(memory, [into], 0)


class WokenByChildren(Sleepless):
    """A process with much memory takes long to end, and then wakes its parent, which starts the next."""

    def works(self):
        mapped(1 << 29, POPULATE) or ctypes.memset(mapped(1 << 29), 1, 1 << 29)
        while True:
            child = clone(signal.SIGCONT)
            if child == 0:
                memory = mapped(1 << 28)
                ctypes.memset(memory, 1, 1 << 28)
                os._exit(0)
            if child < 0:
                return
            time.sleep(0.05)
