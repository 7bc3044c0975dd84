"""Classes that are judged on a GPU (tests/e2e/gpu_lab.py): weighted sums that take a millisecond and would like to be seen for less."""
import gc
import os
import socket
import threading
import time

import torch

CYCLES = 2_000_000  # about a millisecond


class Honest:
    def forward(self, x, w):
        torch.cuda._sleep(CYCLES)
        return (x * w).sum(-1)


class Quick:
    def forward(self, x, w):
        return (x * w).sum(-1)


class ForgesItsEvents(Honest):
    """A tenth of a millisecond, whatever happened."""

    def __init__(self):
        torch.cuda.Event.elapsed_time = lambda self, end: 0.1
        time.monotonic_ns = time.perf_counter_ns = lambda: 0


def memory_of_the_lab():
    return next(thing for thing in gc.get_objects() if type(thing).__name__ == "LabMemory")


class SaysDoneAtOnce(Honest):
    """And for ever: by the word that its stream would write."""

    def forward(self, x, w):
        memory_of_the_lab().words[16] = 1 << 30
        return super().forward(x, w)


class WritesLate(Quick):
    """Returns memory that another stream fills, which nothing waits for."""

    def forward(self, x, w):
        y = torch.empty(x.shape[:-1], device="cuda")

        def later():
            time.sleep(0.02)
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.sum(x * w, -1, out=y)

        threading.Thread(target=later).start()
        torch.cuda._sleep(1000)
        return y


class ReplaysTheLast(Quick):
    calls, last = 0, None

    def forward(self, x, w):
        self.calls += 1
        if self.last is None or self.calls < 4:
            self.last = super().forward(x, w)
        else:
            torch.cuda._sleep(100_000)
        return self.last


class LeavesWithZero(Quick):
    def forward(self, x, w):
        os._exit(0)


class Reaches(Quick):
    """Tells by its failure what it reached of the process that judges it, and around it."""

    def forward(self, x, w):
        parent = os.getppid()
        tries = {
            "memory": lambda: open(f"/proc/{parent}/mem", "rb").close(),
            "environment": lambda: open(f"/proc/{parent}/environ", "rb").read(),
            "a name of its thread": lambda: open(f"/proc/{parent}/comm", "w").close(),
            "signal": lambda: os.kill(parent, 0),
            "file": lambda: open("/var/tmp/syslab-reached", "w").close(),
            "stream socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
            "internet": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
            "service": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect("\0syslab"),
        }
        reached = []
        for name, attempt in tries.items():
            try:
                attempt()
                reached.append(name)
            except OSError:
                pass
        if "file" in reached:
            os.remove("/var/tmp/syslab-reached")
        raise RuntimeError(f"reached: {', '.join(reached) or 'nothing'}.")
