"""How a call may fail, and what is told of it: the kind, what was said, and where in the user's file it was raised.

Needs the standard library alone.
"""
from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

from syslab_lacks import claim

if TYPE_CHECKING:
    from typing import Any


class Unsupported(Exception):
    """The implementation cannot do this case; no fault of it."""


class WrongAnswer(Exception):
    """The function did what no result can be trusted after. `finding`: the kind of fault, a word of
    docs/worker-wire.md."""

    def __init__(self, message: str, finding: str = "wrong_value") -> None:
        super().__init__(message)
        self.finding = finding


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return (isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
            or (isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text
                                                     or "not enough memory" in text)))


def is_of_project(name: str, path: str) -> bool:
    """The user's file itself, or what lies beside it and below; of tests/adapters.py, in the project's root. No
    "<string>"."""
    root, name = os.path.dirname(path), name if name.startswith("<") else os.path.realpath(name)
    root = os.path.dirname(root) if os.path.basename(root) == "tests" else root
    return name == path or (name.startswith(root + os.sep) and "-packages" + os.sep not in name)


def failed(error: BaseException, path: str) -> dict[str, Any]:
    """The message for an exception, with where in the user's file it was raised."""
    if isinstance(error, WrongAnswer):
        return {"type": "failed", "kind": "check", "finding": error.finding, "message": str(error)}
    kind = "unsupported" if isinstance(error, Unsupported) else "oom" if is_out_of_memory(error) else "exception"
    frames: list[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    own = [index for index, frame in enumerate(frames) if is_of_project(frame.filename, path)]
    where = ""
    if own and kind != "unsupported":
        frame = frames[own[-1]]
        where = f" ({os.path.basename(frame.filename)}:{frame.lineno}, in {frame.name})"
        frames = frames[own[0]:]
    # "<string>" is the copy of these files inside syslab's binary, "<frozen ...>" the import system: neither is at
    # fault.
    frames = [frame for frame in frames if not frame.filename.startswith("<")]
    lines = "".join(traceback.format_list(frames[-6:])).splitlines()
    said = (str(error) if isinstance(error, Unsupported)
            else f"{type(error).__name__}{': ' if str(error) else ''}{error}")
    answer = {"type": "failed", "kind": kind, "message": f"{said}{where}", "traceback": "\n".join(lines[-12:])}
    lacks = claim(error) if kind == "exception" else None
    return {**answer, "lacks": lacks} if lacks else answer
