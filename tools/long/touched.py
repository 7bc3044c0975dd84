#!/usr/bin/env python3
"""What syslab writes to and whom it talks to, as strace(1) sees it: nothing outside the folder that each command is
given, and nobody.

    touched.py build/syslab

Runs a case of a rung, of a library, of a Python class and of several ranks, a report, an import and doctor, each with
database, temporary and state folder below one folder. Ends with 1 where anything else is written, made or removed, or
any address is used.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
WRITES = {"creat", "mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "symlink", "symlinkat",
          "link", "linkat",
          "mknod", "mknodat", "truncate", "chmod", "fchmodat", "chown", "fchownat", "utimensat", "rmdir", "setxattr",
          "removexattr"}
OPENS = {"open", "openat", "openat2"}
# Nobody keeps what is written there: nothing at all, the high-water mark of the process's own memory, and who it is in
# a namespace of its own.
KEPT_BY_NOBODY = {"/dev/null", "/proc/self/clear_refs", "/proc/self/setgroups", "/proc/self/uid_map",
                  "/proc/self/gid_map"}
ADDRESSES = {"connect", "bind", "sendto", "sendmsg", "sendmmsg", "listen"}


def path_of(folder, descriptor, path):
    """Where a path leads that may be relative to a descriptor (strace -y names it)."""
    if path.startswith("/"):
        return path
    base = re.search(r"<(.*)>", descriptor)
    return os.path.join(base[1] if base else str(folder), path)


def touched(folder, lines):
    found = set()
    for line in lines:
        call = CALL.match(line)
        if not call or int(call[3]) < 0:
            continue
        name, arguments = call[1], call[2]
        if name in ADDRESSES and "sa_family" in arguments:
            found.add(f"{name}: {arguments[:100]}")
        if name not in WRITES and not (name in OPENS and re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", arguments)):
            continue
        for descriptor, path in re.findall(r'(?:(AT_FDCWD<[^>]*>|\d+<[^>]*>), )?"([^"]*)"', arguments):
            place = os.path.normpath(path_of(folder, descriptor, path))
            if place not in KEPT_BY_NOBODY and not place.startswith(f"{folder}/"):
                found.add(f"{name}: {place}")
    return sorted(found)


def main():
    syslab = pathlib.Path(sys.argv[1]).resolve()
    tests = pathlib.Path(__file__).resolve().parents[2] / "tests"
    case = ["-a", "seq=32", "-a", "head_dim=16", "-a", "dtype=fp32", "--laws", "none", "--protocol", "quick",
            "--impl", "me"]
    library = syslab.parent / "tests/fixtures/plugins/naive_attention.so"
    commands = {
        "a rung": ["run", "weighted_sum", "--preset", "smoke", "--laws", "none"],
        "a library": ["run", "flash_forward", *case, "--mine", f"me={library}"],
        "a class": ["run", "flash_forward", *case, "--mine", f"me={tests}/worker/mine/plain.py:Naive"],
        "ranks": ["run", "selftest_ranks", "--preset", "smoke"],
        "a check": ["check", "flash_forward", "--mine", f"me={library}", "--impl", "me", "--cases", "3"],
        "a report": ["report", "-o", "report.md"],
        "doctor": ["doctor", "--db", "lab.db"],
    }
    bad = 0
    with tempfile.TemporaryDirectory(prefix="touched") as place:
        folder = pathlib.Path(place).resolve()
        for name in ("tmp", "state"):
            (folder / name).mkdir()
        environment = {**os.environ, "SYSLAB_DB": str(folder / "lab.db"), "TMPDIR": str(folder / "tmp"),
                       "XDG_STATE_HOME": str(folder / "state"),
                       "SYSLAB_PYTHON": os.environ.get("SYSLAB_PYTHON", sys.executable)}
        for what, words in commands.items():
            # A file a process: in one for all, calls that others interrupt would stand in two lines.
            done = subprocess.run(["strace", "-ff", "-y", "-qq", "-e", "trace=%file,%network", "-o", folder / "trace",
                                   syslab, *words],
                                  cwd=folder, env=environment, capture_output=True, text=True, check=False)
            lines = []
            for trace in folder.glob("trace.*"):
                lines += trace.read_text(errors="replace").splitlines()
                trace.unlink()
            if not lines or done.returncode not in (0, 1):
                sys.exit(f"{what}: exit code {done.returncode}\n{done.stderr[-2000:]}")
            found = touched(folder, lines)
            bad += len(found)
            print(f"{what}: {len(lines)} calls, {', '.join(found) or 'nothing outside, nobody'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
