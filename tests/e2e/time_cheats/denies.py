"""A function whose process says that it has loaded nothing (test_times.py)."""
import sys
import time

from shared import exponential

LONGER = 1  # times: lab.py writes a larger number here when a busy machine needs longer calls

if "syslab_implementation" in sys.modules:
    setattr(sys.modules["syslab_implementation"], "own_files", lambda *_: [])


def fast(x):
    time.sleep(0.03 * LONGER)
    return exponential(x)
