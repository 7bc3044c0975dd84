"""Pages behind a call's tensors that nobody may touch, and the line that names the tensor where somebody does.

For a Python class on the CPU. What reads or writes there, such as an extension or a strided view of its own, ends the
process by a signal; before that standard error gets "a read past the end of 'k', 192 bytes behind its last", with the
place in the user's file.

Needs the standard library and Linux.
"""
from __future__ import annotations

import ctypes
import mmap
import os
import platform
import signal
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING, READ_AND_WRITE = 0, 3  # of mprotect
ROUNDED_UP_TO = 256  # bytes: docs/worker-wire.md, `guarded`


class SignalAction(ctypes.Structure):
    """struct sigaction of glibc and musl."""

    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]


SIGINFO, NODEFER, RESETHAND = 0x4, 0x40000000, 0x80000000 - (1 << 32)
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


READ_PAST_THE_END, WROTE_PAST_THE_END = 91, 92  # exit codes: docs/worker-wire.md, `guarded`


def access_of(context: int) -> tuple[str, int | None]:
    """What the processor was doing, of the ucontext_t that a handler gets, and the exit code of it; None: it does not
    tell."""
    if platform.machine() != "x86_64":
        return "an access", None
    error = ctypes.c_uint64.from_address(context + 40 + 8 * 19).value  # uc_mcontext.gregs[REG_ERR]
    return ("a write", WROTE_PAST_THE_END) if error & 2 else ("a read", READ_PAST_THE_END)


def place_in(path: str) -> str:
    """" (flash.py:12, in forward)": where the thread that runs the user's file is."""
    frames = sys._current_frames().values()
    for top in (sys._getframe(), *frames):
        frame: types.FrameType | None = top
        while frame is not None:
            if os.path.realpath(frame.f_code.co_filename) == path:
                return f" ({os.path.basename(path)}:{frame.f_lineno}, in {frame.f_code.co_name})"
            frame = frame.f_back
    return ""


class GuardPages:
    """Puts a page behind each of a call's tensors, and takes away those of the call before."""

    def __init__(self, user_file: str) -> None:
        self.user_file, self.libc = user_file, ctypes.CDLL(None, use_errno=True)
        self.pages: list[tuple[int, int, str]] = []  # (address, bytes from the tensor's last element to it, name)
        self.memory: mmap.mmap | None = None
        self.handler = HANDLER(self.tell)

    def put(self, memory: mmap.mmap, tensors: Sequence[tuple[str, int, int]]) -> None:
        """`memory`: the mapping; `tensors`: (name, offset, bytes) of each, none to take all pages away."""
        if self.memory is not None:  # an old mapping that tensors still lie on keeps its pages open
            for address, _, _ in self.pages:
                self.protect(address, READ_AND_WRITE)
        self.pages, self.memory = [], memory
        if not tensors:
            return
        self.listen()
        first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for name, offset, size in tensors:
            page = offset + (size + ROUNDED_UP_TO - 1) // ROUNDED_UP_TO * ROUNDED_UP_TO
            self.protect(first + page, NOTHING)
            self.pages.append((first + page, page - offset - size, name))

    def protect(self, address: int, allowed: int) -> None:
        if self.libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), allowed) != 0:
            raise OSError(ctypes.get_errno(), "guard the end of a tensor")

    def listen(self) -> None:
        """For each call: a class may have set a handler of its own meanwhile, and a handler that ran is gone."""
        action = SignalAction(handler=ctypes.cast(self.handler, ctypes.c_void_p).value,
                              flags=SIGINFO | NODEFER | RESETHAND)
        for number in (signal.SIGSEGV, signal.SIGBUS):
            self.libc.sigaction(int(number), ctypes.byref(action), None)

    def tell(self, _number: int, info: int, context: int) -> None:
        """In the thread that touched a page. What touched one ends the process: by its code, or by the signal when this
        returns and it touches it again."""
        at = ctypes.c_uint64.from_address(info + 16).value  # si_addr
        for address, behind, name in self.pages:
            if address <= at < address + mmap.PAGESIZE:
                access, code = access_of(context)
                line = (f"{access} past the end of '{name}', {at - address + behind} bytes behind its last"
                        f"{place_in(self.user_file)}\n")
                os.write(2, line.encode())
                if code is not None:
                    os._exit(code)
