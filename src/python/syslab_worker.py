"""Serves a Python implementation to syslab: the worker's wire format (docs/worker-wire.md), version 1.

    python3 syslab_worker.py [--mine me=flash.py:Flash] [--function]

syslab starts this by itself for `--mine me=flash.py:Flash`, without --mine: the first message names the file and the
class, so that the command line is the same whichever side of a comparison the process serves. Flash is one of

  a subclass of torch.autograd.Function   called as Flash.apply(q, k, v, is_causal), as the hand-out's tests call it;
                                          the log-sum-exp is the one saved tensor of shape (batch, n_queries)
  a plain class                           forward(q, k, v, is_causal) -> (o, lse) and
                                          backward(q, k, v, o, lse, do, is_causal) -> (dq, dk, dv)

on tensors of shape (batch * heads, sequence, head_dim). For the weighted sum: Flash.apply(x, w), or forward(x, w) -> y
and backward(x, w, dy) -> (dx, dw). Every other operator is a method of a plain class with the function's name, such as
rms_norm_forward(x, w, eps, delta=None) (docs/operators-of-your-own.md). A plain class gets NumPy arrays, or torch
tensors if its file imports torch and not NumPy; a class attribute `tensors = "torch"` (or "numpy") decides otherwise.
Under `--device cuda` torch tensors are on the GPU; a class with an attribute `device = "cuda"` runs only there. In a
case of several ranks each has a process of this class; only one with an attribute `ranks = True` is called there,
because the others may rely on being alone.

A call is timed by syslab itself: from the moment at which it releases the call's inputs until all outputs are in the
memory that both see. The time that is taken here by the monotonic clock only spares it the waking up. On a GPU syslab's
own stream takes the time, and two events on torch's current stream only spare it the handing over (syslab_gpu.py). The
inputs are given once the call is launched, so that Python's part in launching does not count. Until then they hold NaN:
work on a stream of its own that does not wait for the current one reads these, and is found out. Where syslab cannot
share a GPU's memory, inputs come by the host's and the call's time is what these events say.

Needs the standard library and whichever of NumPy and torch the user's file imports.
"""
from __future__ import annotations

import argparse
import sys
from typing import Any

from syslab_failures import failed
from syslab_implementation import CallableImplementation, Implementation
from syslab_limits import lift_memory_limit, limit_memory
from syslab_loading import parse_mine
from syslab_wire import PROTOCOL, Pipe


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mine", metavar="NAME=FILE.py:CLASS", help="where the host's hello has no `implementation`")
    parser.add_argument("--function", action="store_true",
                        help="CLASS is anything that can be called, with any arguments")
    arguments = parser.parse_args()
    lift_memory_limit()

    pipe = Pipe()
    path, class_name = parse_mine(arguments.mine or "=")
    implementation: Any = None
    while (message := pipe.read()) is not None and message["type"] != "bye":
        if message["type"] == "hello":
            place = message.get("implementation") or (arguments.mine or "").partition("=")[2]
            try:
                path, class_name = parse_mine("=" + place)
                if message.get("loading"):
                    pipe.write({"type": "loading"})
                kind = CallableImplementation if arguments.function else Implementation
                implementation = kind(path, class_name, message.get("memory_fd", -1), message.get("device", "cpu"),
                                      message.get("world_size", 1))
                serves = ["call", "release", "empty"]
                if "gpu_memory_bytes" in message and implementation.share_gpu(message["gpu_memory_bytes"]):
                    serves.append("gpu_release")
                if message.get("device", "cpu") != "cpu" and kind is Implementation:
                    serves.append("kernels")
                limit_memory(message.get("memory_limit_bytes", 0))
            except BaseException as error:  # a sys.exit() in the user's file, too
                pipe.write(failed(error, path))
                return 1
            pipe.write({"type": "hello", "protocol": PROTOCOL, "name": place, "language": "Python",
                        "serves": serves, "domain": implementation.domain})
            if message["protocol"] != PROTOCOL:
                print(f"the host speaks version {message['protocol']} of the worker's wire format, this worker version "
                      f"{PROTOCOL}", file=sys.stderr)
                return 4
        elif message["type"] == "call" and implementation is not None:
            try:
                pipe.write(implementation.call(message, pipe))
            except BaseException as error:
                pipe.write(failed(error, path))
        else:
            pipe.write({"type": "failed", "kind": "protocol",
                        "message": f"this worker serves 'call' after 'hello', not '{message['type']}'"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
