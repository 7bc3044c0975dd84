"""How much memory a process that serves calls may map.

Needs the standard library alone.
"""
from __future__ import annotations

import pathlib
import resource


def lift_memory_limit() -> None:
    """To what the system allows: the host's own limit leaves no room for a framework."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def limit_memory(limit_bytes: int) -> None:
    """The case's allowance on top of what the libraries have mapped by now, for good: what is judged cannot lift it."""
    if limit_bytes:
        mapped = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = mapped + limit_bytes if hard == resource.RLIM_INFINITY else min(mapped + limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
