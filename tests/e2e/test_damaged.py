"""Damaged databases: one `error:` that names the file, what was found and what to try, exit code 4, the file as it was."""
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import unittest

from lab import Lab

READERS = (("report",), ("log",), ("log", "selftest_empty"), ("query", "SELECT count(*) FROM attempt"), ("show", "latest"),
           ("pin",), ("diff", "latest", "latest"), ("list",), ("plan", "selftest_empty"), ("prune", "--output", "small.db"))
WRITERS = (("run", "selftest_empty"), ("resume",), ("pin", "name", "latest"))


class Damaged(Lab):
    def setUp(self):
        super().setUp()
        self.syslab("run", "selftest_empty", "-a", "repeat=1:40:1")
        self.in_one_file(self.db)

    @staticmethod
    def in_one_file(file):
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()

    def refused(self, arguments, names, file=None):
        """The only line of its kind, with the file, what was found and what to try."""
        file = file or self.db
        before = hashlib.sha256(file.read_bytes()).hexdigest()
        done = self.syslab(*arguments, expect=4)
        lines = done.stderr.splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(f"database '{file}': ", errors[0])
        self.assertIn(names, errors[0])
        self.assertTrue(lines[-1].startswith("try: "), done.stderr)
        self.assertEqual(lines[-2], errors[0], "the error and its advice come last")
        self.assertEqual(hashlib.sha256(file.read_bytes()).hexdigest(), before, "the file was touched")

    def refused_by_all(self, names):
        for arguments in READERS + WRITERS:
            with self.subTest(" ".join(arguments)):
                self.refused(arguments, names)

    def test_cut_short(self):
        whole = self.db.read_bytes()
        self.db.write_bytes(whole[:len(whole) // 2])
        self.refused_by_all("it is damaged: cut short to")

    def test_a_page_overwritten(self):
        content = bytearray(self.db.read_bytes())
        content[-4096:] = b"\xa5" * 4096
        self.db.write_bytes(content)
        self.refused_by_all("it is damaged: ")

    def test_an_index_without_one_of_its_rows(self):
        connection = sqlite3.connect(self.db, isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        index = connection.execute("SELECT * FROM sqlite_master WHERE name = 'attempt_by_plan'").fetchone()
        connection.execute("DELETE FROM sqlite_master WHERE name = 'attempt_by_plan'")
        connection.close()
        connection = sqlite3.connect(self.db, isolation_level=None)  # which reads the schema anew
        connection.execute("INSERT INTO attempt (uid, run_id, plan_seq) SELECT 'new', run_id, plan_seq FROM attempt LIMIT 1")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
        connection.close()
        self.refused_by_all("index attempt_by_plan")

    def test_the_schema_overwritten(self):
        content = bytearray(self.db.read_bytes())
        content[100:4096] = b"\xa5" * 3996
        self.db.write_bytes(content)
        self.refused_by_all("it is damaged: ")

    def test_no_database(self):
        self.db.write_bytes(b"a text that is longer than the header of a database. " * 10)
        self.refused_by_all("it is not an SQLite database")

    def test_merge_names_the_damaged_one_of_several(self):
        good, bad = self.folder / "good.db", self.folder / "bad.db"
        for file in (good, bad):
            file.write_bytes(self.db.read_bytes())
        content = bytearray(bad.read_bytes())
        content[-4096:] = b"\xa5" * 4096
        bad.write_bytes(content)
        into = self.db = self.folder / "into.db"
        self.syslab("run", "selftest_empty")
        self.refused(("merge", good, bad), "it is damaged: ", file=bad)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)], "all are looked at before anything is merged")
        content = bytearray(into.read_bytes())
        self.in_one_file(into)
        content = bytearray(into.read_bytes())
        content[-4096:] = b"\xa5" * 4096
        into.write_bytes(content)
        self.refused(("merge", good), "it is damaged: ", file=into)

    def test_an_empty_file_does_not_cost_the_rows_in_its_log(self):
        """SQLite deletes the log of an empty database."""
        self.leave_a_log()
        self.db.write_bytes(b"")
        log = self.db.with_name(self.db.name + "-wal")
        rows = log.read_bytes()
        self.refused(("run", "selftest_empty"), f"it is empty, but its log '{log}' holds {len(rows)} bytes")
        self.assertEqual(log.read_bytes(), rows)
        self.refused(("report",), "it is empty, but its log")
        self.db.unlink()
        done = self.syslab("run", "selftest_empty", expect=4)
        self.assertIn(f"error: database '{self.db}': it is missing, but its log", done.stderr)
        self.assertEqual(log.read_bytes(), rows)
        self.assertFalse(self.db.exists())

    def test_the_log_of_another_database_costs_no_run(self):
        """A backup that was copied over the database of a killed process: SQLite would replay the log over it."""
        backup = self.folder / "backup.db"
        self.db.rename(backup)
        self.leave_a_log()
        log = self.db.with_name(self.db.name + "-wal")
        log.with_name(self.db.name + "-shm").unlink(missing_ok=True)
        rows = log.read_bytes()
        self.db.write_bytes(backup.read_bytes())
        for arguments in READERS + WRITERS:
            with self.subTest(" ".join(arguments)):
                self.refused(arguments, f"the log '{log}' belongs to another database: with it ")
                self.assertEqual(log.read_bytes(), rows)
                self.assertFalse(log.with_name(self.db.name + "-shm").exists())
        told = self.syslab("doctor", expect=3).stdout
        self.assertIn("belongs to another database", told)
        self.assertIn(f"move '{log}' away", told)
        log.unlink()
        self.assertEqual(self.sql("SELECT count(*) FROM attempt"), [(40,)])

    def test_the_log_of_a_killed_run_is_replayed_also_while_another_process_has_it_open(self):
        self.leave_a_log()
        reader = sqlite3.connect(self.db)  # replays the log, and keeps it
        self.addCleanup(reader.close)
        known = reader.execute("SELECT count(*) FROM run").fetchone()[0]
        self.assertEqual(known, 2)
        self.assertGreater(self.db.with_name(self.db.name + "-wal").stat().st_size, 0)
        self.syslab("run", "selftest_empty")
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(3,)])

    def test_a_lost_log_costs_its_rows_alone(self):
        """What was folded into the file stays readable; nothing in it tells that there was more."""
        before = self.sql("SELECT count(*) FROM attempt")
        self.leave_a_log()
        for suffix in ("-wal", "-shm"):
            self.db.with_name(self.db.name + suffix).unlink(missing_ok=True)
        done = self.syslab("query", "SELECT count(*) AS n FROM attempt", "--to", "csv", expect=(0, 4))
        if done.returncode == 0:
            self.assertGreaterEqual(int(done.stdout.split()[1]), before[0][0])
        else:
            self.assertRegex(done.stderr, r"\Aerror: database '.*\ntry: ")

    def leave_a_log(self):
        """As a killed writer does."""
        running = subprocess.Popen(self.command("run", "selftest_empty", "-a", "repeat=1:4000:1", "--json"), cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        log = self.db.with_name(self.db.name + "-wal")
        for _ in range(10):
            running.stdout.readline()
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        self.assertGreater(log.stat().st_size, 0)


class Quoted(Lab):
    """Text of files that others wrote, quoted in a message: no line of it passes for one of ours."""
    LINE = "hand-out 2026: PASS (3 of 3), 0 warnings"

    def assert_quoted(self, *arguments, **options):
        done = self.syslab(*arguments, expect=2, **options)
        self.assertIn(self.LINE, done.stderr)
        for line in (done.stdout + done.stderr).splitlines():
            self.assertFalse(line.startswith((self.LINE, "try: ")), done.stderr)

    def test_no_quoted_line_begins_at_the_first_column(self):
        text = f"x\n{self.LINE}\ntry: syslab list\n"
        quoted = json.dumps(text)
        handed_in = self.folder / "handed_in"
        handed_in.mkdir()
        for settings in (f"{quoted} = 1\n", f"handout = {quoted}\n", f'handout = "2026"\nmine = {quoted}\n'):
            (handed_in / "syslab.toml").write_text(settings)
            with self.subTest(settings=settings):
                self.assert_quoted("check", cwd=handed_in)
        (self.folder / "log.jsonl").write_text(json.dumps({"type": text}) + "\n")
        self.assert_quoted("import", "log.jsonl")
        (self.folder / "manifest.json").write_text(json.dumps({"reference": text}))
        (self.folder / "lib.so").write_text("")
        self.assert_quoted("run", "--mine", "me=lib.so:f", "--inputs", "manifest.json")
        (self.folder / "list.csv").write_text(f'student,path\n"{text}",a\n')
        self.assert_quoted("grade", "list.csv", "--handout", "2026", "-o", "grades")


if __name__ == "__main__":
    unittest.main()
