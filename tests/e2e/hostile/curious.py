"""Classes that look for what is hidden by its other names, and take more memory than they were given (test_other_names.py)."""
import os
import resource

from cheats import attention, reached


def bytes_of(path):
    with open(path, "rb") as file:
        return len(file.read())


class Reads:
    """Each of the paths in PATHS."""

    def forward(self, q, k, v, is_causal):
        found: list[str] = []
        for path in os.environ["PATHS"].split(os.pathsep):
            reached(path, lambda: bytes_of(path) >= 0, found)
        raise RuntimeError(f"reached: {', '.join(found) or 'nothing'}")


class SeesTheLists:
    """What is hidden would be told by its own environment."""

    def forward(self, q, k, v, is_causal):
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().decode(errors="replace").split("\0")
        told = [entry for entry in entries if entry.startswith(("SYSLAB_WALLS_", "SYSLAB_LAUNCH_SECRET")) and not entry.endswith("=")]
        raise RuntimeError(f"told: {' '.join(told) or 'nothing'}")


class FillsSharedMemory:
    """Up to a gigabyte, in files and in their names."""

    def forward(self, q, k, v, is_causal):
        piece, held, names = bytes(1 << 20), 0, 0
        try:
            with open("/dev/shm/filled", "wb", buffering=0) as file:
                while held < 1 << 30:
                    held += file.write(piece)
        except OSError:
            pass
        try:
            while names < 100_000:
                open(f"/dev/shm/{names}", "w").close()
                names += 1
        except OSError:
            pass
        raise RuntimeError(f"held: {held >> 20} MiB and {names} names")


class LiftsItsLimit:
    def forward(self, q, k, v, is_causal):
        for most in (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1]):
            try:
                resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
            except (OSError, ValueError):
                pass
        try:
            held = bytearray(3 << 30)
            raise RuntimeError(f"took {len(held) >> 30} GiB")
        except MemoryError:
            return attention(q, k, v, is_causal)
