"""What the end-to-end tests share: the built binary, a folder of their own, and the database seen by another eye."""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
import unittest
from unittest import mock

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background, and so would syslab

# Of a run whose calls are so short that a busy machine has no time for them: they are right all the same.
RIGHT = (0, 5)
SYSLAB = os.environ["SYSLAB_BINARY"]
ENDED = ("ok", "check_failed", "unsupported", "skipped", "oom", "timeout", "crashed", "error", "aborted")


@functools.cache
def multiplies_in_fp16():
    """Whether the torch that syslab's judged Python imports multiplies in fp16 on a CPU; 2.1 is the first that does."""
    product = "import torch; torch.ones(2, 2, dtype=torch.float16) @ torch.ones(2, 2, dtype=torch.float16)"
    return subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", product], capture_output=True, timeout=120).returncode == 0


@functools.cache
def torch_is_older(locked=(2, 11)):
    """Whether the torch that syslab's judged Python imports is older than that of a hand-out's lock file: of 2026, unless told."""
    asked = subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, timeout=120)
    return tuple(map(int, re.findall(r"\d+", asked.stdout)[:2])) < locked


def asked_again(test):
    """For a test of measured times, whose meaning stays the same when it is repeated: at most three tries, each from its start.

    Other work of the machine can move a number or make a verdict unclear in one try; a fault of the program fails all three. A failed try
    is printed on stderr. `self.tried` counts them, so that the next one may make longer calls. A test that measures nothing, or whose
    fault shows only now and then, does not get this."""
    @functools.wraps(test)
    def asked(self):
        before = dict(vars(self))
        while self.tried < 2:
            try:
                with mock.patch.object(self, "subTest", lambda *_, **__: contextlib.nullcontext()):  # it would keep the failure from here
                    return test(self)
            except unittest.SkipTest:
                raise
            except Exception:  # what a test reads of an answer that is unclear may not be there
                print(f"{test.__name__} is asked again, since it failed:\n{traceback.format_exc()}", file=sys.stderr)
            tried = self.tried + 1
            self.tearDown()  # what it finds is final
            self.doCleanups()
            vars(self).clear()
            vars(self).update(before, tried=tried)
            self.setUp()
        return test(self)
    return asked


def make_views(connection):
    """The views of db/views, as syslab makes them: a file holds none."""
    for path in (pathlib.Path(__file__).parents[2] / "db" / "views").glob("*.sql"):
        connection.execute(path.read_text(encoding="utf-8").replace("CREATE VIEW", "CREATE TEMP VIEW", 1))


class Lab(unittest.TestCase):
    """A temporary folder with a database; syslab is run in it."""

    tried = 0  # how many tries of `asked_again` have failed

    @property
    def longer(self):
        """How many times longer a call, or a limit, is in this try. Foreign calls must be long: handing one over may take a tenth of it, and
        takes up to 16 ms on a machine with more work than processors."""
        return 3 ** self.tried

    def with_longer_calls(self, file):
        """A copy of a Python file in this folder, in which `longer` stands at its line LONGER."""
        copy = self.folder / "longer" / pathlib.Path(file).name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(pathlib.Path(file).read_text(encoding="utf-8").replace("\nLONGER = 1 ", f"\nLONGER = {self.longer} "), encoding="utf-8")
        return copy

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syslab_e2e_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.db = self.folder / "lab.db"

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SYSLAB_")}
        return {**kept, "SYSLAB_DB": str(self.db), "NO_COLOR": "1", "XDG_STATE_HOME": str(self.folder / "state")}

    def command(self, *arguments):
        return [SYSLAB, *map(str, arguments)]

    def syslab(self, *arguments, expect=0, timeout=600, cwd=None, **options):
        """Runs to the end; fails unless the exit code is `expect`, or one of them (None: any). The limit ends what hangs: at load 20 a check took minutes."""
        done = subprocess.run(self.command(*arguments), cwd=cwd or self.folder, env=self.environment(), text=True,
                              capture_output=True, timeout=timeout, **options)
        if expect is not None:
            self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,),
                          f"syslab {' '.join(map(str, arguments))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done

    def json(self, *arguments, **options):
        return json.loads(self.syslab(*arguments, "--json", **options).stdout)

    def refused(self, *arguments, expect=2, **options):
        """The message of a verb that refuses its words, which is one JSON document."""
        return self.json(*arguments, expect=expect, **options)["error"]["message"]

    def table(self, experiment, name):
        return next(table for table in self.json("report", experiment) if table["id"] == name)

    def lines(self, *arguments, **options):
        """The JSON lines of a verb that runs cases."""
        return [json.loads(line) for line in self.syslab(*arguments, "--json", **options).stdout.splitlines()]

    def sql(self, statement, *parameters, db=None):
        """Past syslab, by Python's own SQLite, over the views of this tree."""
        connection = sqlite3.connect(f"file:{db or self.db}?mode=ro", uri=True)
        make_views(connection)
        try:
            return connection.execute(statement, parameters).fetchall()
        finally:
            connection.close()

    def assert_intact(self, db=None):
        self.assertEqual(self.sql("PRAGMA integrity_check", db=db), [("ok",)])
        self.assertEqual(self.sql("PRAGMA foreign_key_check", db=db), [])

    def ended_attempts(self, run_uid):
        """(plan_seq, status, attempt uid) of every ended attempt of a run."""
        marks = ",".join("?" * len(ENDED))
        return self.sql(
            "SELECT a.plan_seq, e.status, a.uid FROM attempt a JOIN run r ON r.id = a.run_id"
            f" JOIN attempt_event e ON e.attempt_id = a.id AND e.status IN ({marks}) WHERE r.uid = ?", *ENDED, run_uid)


def attempts(lines):
    return [line for line in lines if line.get("type") == "attempt"]


def summary(lines):
    return next(line for line in lines if line.get("type") == "summary")
