"""Which of the user's files this process has opened, by whichever way.

Needs the standard library alone.
"""
from __future__ import annotations

import os
import sys
from typing import Any

from syslab_loading import own_files

READ: list[str] = []  # Python files and libraries


def watch_reads() -> None:
    """From now on what is opened is known, so that a file counts that is run without being imported."""
    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith((".py", ".so")):
            READ.append(arguments[0])

    sys.addaudithook(heard)


def read_files() -> list[str]:
    return own_files([os.path.realpath(file) for file in READ])
