"""What tests of revisions share: a small repository, programs that differ from commit to commit, and runs that look as if these had made them."""
import hashlib
import json
import sqlite3
import subprocess
import sys

from comparing import OTHER_BUILD, Comparing
from lab import SYSLAB

# A function whose time is mostly that of a sleep of `tenths` of a millisecond, which hardly differs from launch to launch
# whatever the machine does: two that computed were told apart, or the same, by chance. A commit changes the number.
WORK = """\
import time

import numpy as np


def fn(x):
    time.sleep(({tenths}) * {longer} * 1e-4)
    return np.tanh(x @ x / 64)


def steady(x):
    time.sleep(0.04 * {longer})
    return np.tanh(x @ x / 64)


def reference(x):
    return np.tanh(x @ x / 64)


def cases():
    def arguments(seed):
        return {{"x": np.random.default_rng(seed).standard_normal((64, 64), dtype=np.float32)}}

    yield {{"axes": {{"n": 64}}, "arguments": arguments, "rtol": 1e-3, "atol": 1e-3}}
"""

# Makes a "syslab" out of the checkout's other.py, with Meson and Ninja, as the real one is made.
MESON = """\
project('syslab')
custom_target('syslab', input: 'other.py', output: 'syslab', build_by_default: true,
              command: ['sh', '-c', 'sed "s/REVISION/$SYSLAB_REVISION/" "$0" > "$1" && chmod +x "$1"', '@INPUT@', '@OUTPUT@'])
"""


class Repository(Comparing):
    longest = "30m"

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.git("init", "--quiet", "--initial-branch=main", ".")
        self.commits = []

    def environment(self):
        who = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return {**super().environment(), **who, "SYSLAB_BUILDS": str(self.folder / "builds"), "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1", "SYSLAB_BUILDS_TIMEOUT": self.longest}

    def git(self, *words, **variables):
        self.repository.mkdir(exist_ok=True)
        return subprocess.run(["git", *words], cwd=self.repository, env={**self.environment(), **variables}, check=True, text=True,
                              capture_output=True).stdout.strip()

    def commit(self, message, files):
        for name, text in files.items():
            path = self.repository / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        date = f"2026-01-{len(self.commits) + 1:02}T00:00:00Z"
        self.git("-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "-m", message, GIT_COMMITTER_DATE=date)
        self.commits.append(self.git("rev-parse", "HEAD"))

    def work(self, tenths):
        return WORK.format(tenths=tenths, longer=self.longer)

    def history(self, slow=2, last=4, tenths=(400, 1200), broken=()):
        for index in range(last + 1):
            self.commit(f"change {index}", {"lib/work.py": self.work(tenths[index >= slow]), "note": str(index),
                                            "state": "broken" if index in broken else "whole"})


class Programs(Repository):
    """Three commits, each a program; the second and the third take 1.4 times as long. `busy`: of their launches, the first so many."""
    busy = 0

    def setUp(self):
        super().setUp()
        for index, slowdown in enumerate((0.0, 40.0, 40.0)):
            other = OTHER_BUILD.format(python=sys.executable, syslab=SYSLAB, change={"slowdown": slowdown}, launches=10**6, version=None,
                                       protocol=None, busy=self.busy if index else 0, code=None)
            # It tells its own revision, as a program that Meson built there does.
            other = other.replace('if sys.argv[1] == "env" and PROTOCOL', 'if sys.argv[1] == "env":\n    told = json.loads(done.stdout)\n'
                                  '    told["build"]["git_sha"], told["build"]["git_dirty"] = "REVISION", False\n'
                                  '    done.stdout = json.dumps(told).encode()\nif sys.argv[1] == "env" and PROTOCOL')
            self.commit(f"slowdown {slowdown} {index}", {"meson.build": MESON, "other.py": other, "note": str(index)})
        self.options = ("selftest_compare", "--launches", "3", "--protocol", "quick", "-a", "steps=100000")

    def compared(self, a, b, expect):
        line = self.lines("compare", *self.options, f"A:build={a}", f"B:build={b}", "-a", "slowdown=0", cwd=self.repository, expect=expect)[-1]
        return line


class CourseOfPrograms(Programs):
    """What `log EXPERIMENT` is asked about."""

    def measured_at(self, *points):
        """Runs that look as if programs of these revisions had made them, each so many times as slow."""
        for _ in points:
            self.syslab("run", "selftest_compare", "--protocol", "quick", "--laws", "none", "-a", "steps=100000")
        connection = sqlite3.connect(self.db)
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE name IN ('run_no_update', 'metric_no_update')").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        facts, = connection.execute("SELECT facts FROM build").fetchone()
        run_ids = [each for each, in connection.execute("SELECT id FROM run ORDER BY uid")]
        for run, (revision, factor) in zip(run_ids, points, strict=True):
            made = json.dumps({**json.loads(facts), "git_sha": revision, "git_dirty": False})
            connection.execute("INSERT OR IGNORE INTO build (uid, facts) VALUES (?, ?)", (hashlib.sha256(made.encode()).hexdigest(), made))
            connection.execute("UPDATE run SET build_id = (SELECT id FROM build WHERE facts = ?) WHERE id = ?", (made, run))
            connection.execute("UPDATE metric SET value = 1e-4 * ? WHERE name = 'time' AND attempt_id IN"
                               " (SELECT id FROM attempt WHERE run_id = ?)", (factor, run))
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
        connection.close()

    def trap(self, name):
        path = self.repository / name
        path.write_text(f"#!/bin/sh\ntouch {self.folder}/sprung\n")
        path.chmod(0o755)
