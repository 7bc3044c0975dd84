"""A program of --command that leaves its answer for its next start, by whatever outlives a process (test_commands.py).

    python3 passes_on.py WAY NAME

It takes 60 ms, unless it finds the mark NAME of an earlier start. It prints what it took.
"""
import ctypes
import fcntl
import os
import pathlib
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE, CLONE_PARENT, CHILD_ENDED = 56, 0x8000, 17  # x86-64
NAME_OF_THREAD = 15
SET_HINT, GET_HINT = 1036, 1035
OWN = pathlib.Path(__file__)


def named(name):
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "comm").read_text().strip() == name:
                return True
        except OSError:
            pass
    return False


def live_on(seconds):
    for stream in range(3):
        os.close(stream)
    time.sleep(seconds)
    os._exit(0)


def leave(name, child, seconds):
    if child == 0:
        LIBC.prctl(NAME_OF_THREAD, name.encode(), 0, 0, 0)
        live_on(seconds)
    time.sleep(0.01)


def zombie(name):
    leave(name, os.fork(), 0)


def session(name):
    child = os.fork()
    if child == 0:
        LIBC.setsid()
        LIBC.setpgid(0, 0)
    leave(name, child, 5)


def orphan(name):
    child = os.fork()
    if child == 0 and os.fork():
        os._exit(0)
    leave(name, child, 5)


def clone(flags):
    return LIBC.syscall(ctypes.c_long(CLONE), ctypes.c_long(flags), None, None, None, None)


def sibling(name):
    """A child of the parent."""
    leave(name, clone(CLONE_PARENT | CHILD_ENDED), 5)


def unheard(name):
    """The end of the child sends no signal, so that a plain wait does not see it."""
    leave(name, clone(0), 0)


def hops(name):
    """A process that is another one every moment."""
    child = os.fork()
    if child == 0:
        LIBC.prctl(NAME_OF_THREAD, name.encode(), 0, 0, 0)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            if os.fork():
                os._exit(0)
        os._exit(0)
    time.sleep(0.01)


def lock(name):
    file = os.open(OWN, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)
    leave(name, os.fork(), 5)


def hint(_):
    file = os.open(OWN, os.O_RDONLY)
    LIBC.fcntl(file, SET_HINT, ctypes.byref(ctypes.c_uint64(4)))


def finds(way, name):
    if way == "lock":
        return f":{OWN.stat().st_ino} " in pathlib.Path("/proc/locks").read_text()
    if way == "hint":
        found = ctypes.c_uint64()
        LIBC.fcntl(os.open(OWN, os.O_RDONLY), GET_HINT, ctypes.byref(found))
        return found.value == 4
    return named(name)


if __name__ == "__main__":
    began = time.perf_counter()
    if not finds(*sys.argv[1:]):
        time.sleep(0.06)
        globals()[sys.argv[1]](sys.argv[2])
    print(f"took {1e3 * (time.perf_counter() - began):.3f} ms")
