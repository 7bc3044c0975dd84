"""By somebody who had read SECURITY.md and its manuals alone, and tried what neither names (test_outsiders.py)."""
import atexit
import ctypes
import os
import signal
import threading
import time

from cheats import LIBC, attention, nonsense, reached

SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR = 463, 466, 469  # on every architecture
HERE = -100  # AT_FDCWD


class Attribute(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64), ("size", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


def call(number, *arguments):
    LIBC.syscall.restype = ctypes.c_long
    return LIBC.syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in (number, *arguments)))


def memory():
    """The descriptor of the tensors' memory."""
    for fd in range(3, 64):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{fd}"):
                return fd
        except OSError:
            pass
    return -1


class Watches:
    """What is told of a folder to whoever may not list it; and calls that are newer than whoever drew up the list of the denied."""

    def forward(self, q, k, v, is_causal):
        found: list[str] = []
        outside = os.environ["OUTSIDE"]
        reached("names", lambda: LIBC.inotify_add_watch(LIBC.inotify_init1(0), (outside + "/state").encode(), 0xFFF), found)
        reached("names of a file system", lambda: call(300, 0xC00, 0), found)  # fanotify_init
        value = ctypes.create_string_buffer(b"was here")
        mark = Attribute(ctypes.addressof(value), 8, 0)
        file = (outside + "/cut").encode()
        reached("attribute", lambda: call(SETXATTRAT, HERE, file, 0, b"user.mark", ctypes.byref(mark), 16) == 0
                and call(REMOVEXATTRAT, HERE, file, 0, b"user.mark") == 0, found)
        flags = (ctypes.c_uint64 * 3)(0x80)  # FS_XFLAG_NODUMP
        reached("flags", lambda: call(FILE_SETATTR, HERE, file, flags, 24, 0) == 0
                and call(FILE_SETATTR, HERE, file, (ctypes.c_uint64 * 3)(), 24, 0) == 0, found)
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")


class PunchesHoles:
    """Takes pages out of the memory while the outputs are compared: zeros on both sides would be equal."""

    def forward(self, q, k, v, is_causal):
        fd = memory()
        size = os.fstat(fd).st_size

        def punches():
            until = time.monotonic() + 1
            while time.monotonic() < until:
                LIBC.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(size))

        threading.Thread(target=punches, daemon=True).start()
        return nonsense(q)


class GrowsMemory:
    """Makes the memory so long that nobody could map it."""

    def forward(self, q, k, v, is_causal):
        os.ftruncate(memory(), 1 << 60)
        return nonsense(q)


class StaysAround:
    """Children of its parent, and theirs, without an environment, deaf to signals; folders that cannot be entered; an end that never comes."""

    def __init__(self):
        self.begun = False

    def forward(self, q, k, v, is_causal):
        if not self.begun:
            self.begun = True
            self.fills(os.environ["TMPDIR"])
            if call(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:  # clone, CLONE_PARENT: a sibling
                self.stays()
            if os.fork() == 0:
                LIBC.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
                os.fork()
                self.stays()
            atexit.register(time.sleep, 1000)
        return attention(q, k, v, is_causal)

    @staticmethod
    def fills(folder):
        try:
            os.chdir(folder)
            for _ in range(200):
                os.mkdir("d" * 100)
                os.chdir("d" * 100)
            mask = os.umask(0o777)
            os.mkdir("closed")
            os.umask(mask)
            os.mkdir("a\nb", 0o100)
            os.symlink(os.environ["OUTSIDE"], "away")
        except OSError:
            pass

    @staticmethod
    def stays():
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        os.chdir("/")
        os.closerange(0, 64)
        os.execve("/bin/sleep", ["sleep", "1000.731"], dict[str, str]())


class Commands:
    """Fails with lines that GitHub's runner would take for commands: no annotation would be shown behind the first."""

    def forward(self, q, k, v, is_causal):
        raise RuntimeError("said ##[add-mask]wrong\n::stop-commands::no-more\n\u3000::error title=forged::all is well")
