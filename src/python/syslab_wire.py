"""Frames of the worker's wire format (docs/worker-wire.md), version 1, between syslab and one of its Python processes.

Needs the standard library alone.
"""
from __future__ import annotations

import codecs
import io
import json
import os
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Message = dict[str, Any]

PROTOCOL = 1
MAX_FRAME_BYTES = 64 << 20


def spelled_out(error: Any) -> tuple[str, int]:
    return "".join(f"\\\\u{ord(sign):04x}" for sign in error.object[error.start:error.end]), error.end


codecs.register_error("syslab_spelled_out", spelled_out)


def json_bytes(message: Message) -> bytes:
    """In UTF-8. Half a pair of surrogates, which no JSON may hold, becomes the six letters of its escape."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "syslab_spelled_out")


def without_nulls(message: Message) -> Message:
    """A field that is null is one that is not there."""
    return {name: value for name, value in message.items() if value is not None}


class Pipe:
    """Frames on what were standard input and output; prints of the user's code go to standard error."""

    def __init__(self) -> None:
        self.input = os.fdopen(os.dup(0), "rb")
        self.output = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        assert isinstance(sys.stdout, io.TextIOWrapper)  # nothing has replaced it yet
        sys.stdout.reconfigure(line_buffering=True)

    def read(self) -> Message | None:
        """The next message, or None at the end of the pipe."""
        header = self.input.read(4)
        if len(header) < 4:
            return None
        (length,) = struct.unpack("<I", header)
        if length > MAX_FRAME_BYTES:
            raise ValueError(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
        body = self.input.read(length)
        return without_nulls(json.loads(body)) if len(body) == length else None

    def write(self, message: Message) -> None:
        body = json_bytes(message)
        self.output.write(struct.pack("<I", len(body)) + body)
        self.output.flush()
