"""A function whose process says that it has loaded nothing (test_times.py)."""
import sys
import time

from shared import exponential

if "syslab_implementation" in sys.modules:
    setattr(sys.modules["syslab_implementation"], "own_files", lambda *_: [])


def fast(x):
    time.sleep(0.003)
    return exponential(x)
