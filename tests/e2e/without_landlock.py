"""A kernel without Landlock, as far as a program and what it starts can see: a seccomp filter under which its calls are not there."""
import ctypes
import errno
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LANDLOCK_CALLS = (444, 445, 446)  # create_ruleset, add_rule, restrict_self: the same numbers on every architecture
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
ALLOW, FAIL = 0x7fff0000, 0x00050000 | errno.ENOSYS


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def take_landlock_away():
    """For `preexec_fn`."""
    steps = [(LOAD_NUMBER, 0, 0, 0)]
    for left, number in zip(range(len(LANDLOCK_CALLS), 0, -1), LANDLOCK_CALLS):
        steps.append((JUMP_IF_EQUAL, left, 0, number))
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = Program(len(steps), code)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter could be set")
