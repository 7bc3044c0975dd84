"""What tests of comparisons share: work of known length, and builds that differ where a test wants it."""
import os
import sqlite3
import stat
import subprocess
import sys

from lab import SYSLAB, Lab

TWO = ("A:slowdown=0", "B:slowdown=1")
WORK = ("selftest_compare", "--launches", "3", "--protocol", "quick", "-a", "steps=100000")

# A build that differs from this one where a test wants it to: its workers' cases are changed on their way in, its
# `describe` on the way out.
OTHER_BUILD = """\
#!{python}
import json, os, pathlib, struct, subprocess, sys, threading

SYSLAB = {syslab!r}
CHANGE = {change!r}     # parameters of selftest_compare
LAUNCHES = {launches!r} # that are changed: the first so many
VERSION = {version!r}   # of its experiments; None: as they are
PROTOCOL = {protocol!r} # of its workers, as it tells; None: as it is
BUSY = {busy!r}         # of its workers the first so many tell that handing a call over took so long, as on a busy machine
CODE = {code!r}         # what its workers say which machine code they ran, as those on a GPU do; None: nothing

def frame(stream):
    head = stream.read(4)
    return json.loads(stream.read(struct.unpack("<I", head)[0])) if len(head) == 4 else None

def tell(stream, busy):
    # `busy`: a fact beside those of its own, of a call of 50 ms a third, where 10 us would do.
    handover = {{"seconds": 0.015, "high": 0.015, "with_results": 0, "least": 1e-5, "least_with_results": 0, "share": 0.3,
                "share_with_results": 0, "empty_calls": 20}}
    while (message := frame(stream)) is not None:
        if message.get("type") == "fact" and CODE:
            message["facts"]["code"] = {{"digest": CODE}}
        for each in (message, {{"type": "fact", "facts": {{"handover": handover, "no_time": "under_resolution"}}}}):
            if each is message or busy and message.get("type") == "fact":
                body = json.dumps(each).encode()
                sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
        sys.stdout.buffer.flush()

if sys.argv[1] == "worker":
    count = pathlib.Path(__file__).with_suffix(".count")
    launches = int(count.read_text()) if count.exists() else 0
    count.write_text(str(launches + 1))
    busy = launches < BUSY
    worker = subprocess.Popen([SYSLAB, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE if busy or CODE else None)
    if busy or CODE:
        threading.Thread(target=tell, args=(worker.stdout, busy), daemon=False).start()
    while (message := frame(sys.stdin.buffer)) is not None:
        if message.get("type") == "case" and launches < LAUNCHES:
            message["params"].update(CHANGE)
        body = json.dumps(message).encode()
        worker.stdin.write(struct.pack("<I", len(body)) + body)
        worker.stdin.flush()
        if message.get("type") == "bye":
            break
    worker.stdin.close()
    sys.exit(worker.wait())
done = subprocess.run([SYSLAB, *sys.argv[1:]], stdout=subprocess.PIPE)
if sys.argv[1] == "describe" and VERSION is not None:
    experiment = json.loads(done.stdout)
    experiment["version"] = VERSION
    done.stdout = json.dumps(experiment).encode()
if sys.argv[1] == "env" and PROTOCOL is not None:
    done.stdout = json.dumps({{**json.loads(done.stdout), "worker_protocol": PROTOCOL, "measuring_version": 1}}).encode()
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""


class Comparing(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def comparisons(self, *arguments, **options):
        return [line for line in self.lines("compare", *arguments, **options) if line["type"] == "comparison"]

    def other_build(self, name="other", change=None, launches=10**6, version=None, protocol=None, busy=0, code=None):
        path = self.folder / name
        path.write_text(OTHER_BUILD.format(python=sys.executable, syslab=SYSLAB, change=change or {}, launches=launches,
                                           version=version, protocol=protocol, busy=busy, code=code))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def pinned(self, *arguments, name="base"):
        self.syslab("run", "selftest_compare", "--protocol", "quick", "--laws", "none", "-a", "steps=100000", *arguments)
        self.syslab("pin", name, "latest")

    def made_version_1(self):
        """All runs so far look as if they had been measured before protocols told their version."""
        connection = sqlite3.connect(self.db)
        trigger, = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'run_no_update'").fetchone()
        connection.execute("DROP TRIGGER run_no_update")
        connection.execute("UPDATE run SET protocol = json_remove(protocol, '$.version')")
        connection.execute(trigger)
        connection.commit()
        connection.close()

    def started(self, *arguments, launch=2):
        """A command that will go on for long, after so many launches."""
        process = subprocess.Popen(self.command(*arguments, "--launches", "500", "--json"), cwd=self.folder,
                                   env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if f"launch {launch} of" in line:
                return process
        self.fail("it ended by itself")


class Gating(Comparing):
    GATE = ("gate", "--against", "base", "--launches", "3")

    def gated(self, *arguments, expect):
        return [line for line in self.lines(*self.GATE, *arguments, expect=expect) if line["type"] == "comparison"]

    def change_stored_version(self):
        connection = sqlite3.connect(self.db)
        connection.execute("DROP TRIGGER case_def_no_update")
        connection.execute("UPDATE case_def SET version = '0'")
        connection.commit()
        connection.close()


class OnGithub(Comparing):
    """What a workflow sees, by the variables and files that GitHub Actions gives it."""

    def environment(self):
        return {**super().environment(), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self.folder),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}
