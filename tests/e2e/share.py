"""Runs the end-to-end tests of one program, or a share of them:

    share.py TEST.py [names and options of unittest]

All of them take most of an hour on two processors. SYSLAB_SHARE=today runs today's sixth, and SYSLAB_SHARE=3 the turn
with that number, counted from 0. Without it all tests run, and a test that is named always runs. Exits 77 if the turn
has no test of this program.
"""
import datetime
import importlib
import os
import pathlib
import re
import sys
import unittest
import zlib

TURNS = 6


def turn():
    """The turn that is asked for; None: all are."""
    asked = os.environ.get("SYSLAB_SHARE", "")
    if asked in ("", "all"):
        return None
    if asked == "today":
        return datetime.datetime.now(datetime.timezone.utc).date().toordinal() % TURNS
    if not asked.isdecimal() or int(asked) >= TURNS:
        sys.exit(f"SYSLAB_SHARE is '{asked}'; expected all, today, or a turn from 0 to {TURNS - 1}")
    return int(asked)


def is_in_turn(name):
    return turn() in (None, zlib.crc32(name.encode()) % TURNS)


class Loader(unittest.TestLoader):
    def __init__(self):
        super().__init__()
        self.of_all = [0, 0]  # in turn, all

    def getTestCaseNames(self, case):
        names = super().getTestCaseNames(case)
        # Tests with numbers need each other's results: they have one turn.
        together = any(re.match(r"test_\d", name) for name in names)
        chosen = [name for name in names if is_in_turn(case.__name__ if together else f"{case.__name__}.{name}")]
        self.of_all = [self.of_all[0] + len(chosen), self.of_all[1] + len(names)]
        return chosen


def main():
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    sys.path.insert(0, str(program.parent))
    module = importlib.import_module(program.stem)
    loader = Loader()
    ran = unittest.main(module, testLoader=loader, exit=False)
    if turn() is not None and loader.of_all[1]:
        print(f"{loader.of_all[0]} of {loader.of_all[1]} tests: turn {turn()} of {TURNS}; SYSLAB_SHARE=all runs all")
        if loader.of_all[0] == 0:
            return 77
    return 0 if ran.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
