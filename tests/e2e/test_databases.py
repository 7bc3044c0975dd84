"""Files that are not a database of ours, or not to be written: told with the reason, and left as they are."""
import hashlib
import os
import resource
import shutil
import sqlite3
import unittest

import lab
from lab import Lab, attempts, summary


class Databases(Lab):
    def refused(self, *arguments, names):
        before = hashlib.sha256(self.db.read_bytes()).hexdigest()
        done = self.syslab(*arguments, expect=4)
        self.assertIn(str(self.db), done.stderr)
        self.assertIn(names, done.stderr)
        self.assertEqual(hashlib.sha256(self.db.read_bytes()).hexdigest(), before, "the file was touched")
        self.assertEqual([p.name for p in self.folder.iterdir()], [self.db.name])

    def refused_everywhere(self, names):
        for arguments in (("run", "selftest_empty"), ("report",), ("query", "SELECT 1"), ("resume",)):
            self.refused(*arguments, names=names)

    def test_no_database_at_all(self):
        self.db.write_bytes(os.urandom(20000))
        self.refused_everywhere("not a")

    def test_somebody_elses(self):
        with sqlite3.connect(self.db) as connection:
            connection.execute("CREATE TABLE songs (title TEXT)")
        connection.close()
        self.refused_everywhere("syslab")

    def test_of_a_newer_syslab(self):
        self.syslab("run", "selftest_empty")
        connection = sqlite3.connect(self.db)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA user_version = 999")
        connection.close()
        self.refused_everywhere("999")

    def test_damaged(self):
        self.syslab("run", "selftest_empty", "-a", "repeat=1:40:1")
        connection = sqlite3.connect(self.db)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        content = bytearray(self.db.read_bytes())
        content[4096:8192] = b"\xa5" * 4096
        self.db.write_bytes(content)
        done = self.syslab("run", "selftest_empty", expect=4)
        self.assertIn(str(self.db), done.stderr)
        self.assertEqual(self.db.read_bytes(), bytes(content), "the file was touched")

    def test_a_folder(self):
        self.db.mkdir()
        self.assertIn(str(self.db), self.syslab("run", "selftest_empty", expect=4).stderr)

    def test_read_only_serves_query_and_report(self):
        self.syslab("run", "selftest_empty")
        binary = shutil.copy(lab.SYSLAB, self.folder / "syslab")
        self.db.chmod(0o444)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        before = self.db.read_bytes()

        def become_nobody():  # root may write anything
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)

        self.command = lambda *arguments: [binary, *map(str, arguments)]
        done = self.syslab("run", "selftest_empty", expect=4, preexec_fn=become_nobody)
        self.assertIn(str(self.db), done.stderr)
        found = self.syslab("query", "SELECT count(*) AS n FROM attempt", "--to", "csv", preexec_fn=become_nobody)
        self.assertEqual(found.stdout.split(), ["n", "1"])
        self.syslab("report", preexec_fn=become_nobody)
        self.assertEqual(self.db.read_bytes(), before)

    def test_a_folder_that_may_not_be_written_is_named(self):
        binary = shutil.copy(lab.SYSLAB, self.folder / "syslab")
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        self.folder.chmod(0o755)  # where a user who is not root may look

        def become_nobody():
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)

        self.command = lambda *arguments: [binary, *map(str, arguments)]
        said = self.syslab("run", "selftest_empty", "--db", closed / "new.db", expect=4, preexec_fn=become_nobody).stderr
        self.assertIn(f"the folder '{closed}' may not be written", said)
        self.assertIn("--db", said)

    def test_doctor_reads_a_database_whole(self):
        self.syslab("run", "selftest_empty", "-a", "repeat=1:40:1")
        self.assertIn("is whole", self.database_finding()["found"])
        for what, statement, told in (
                ("a trigger", "SELECT 1", "the trigger 'run_"),
                ("an index", "DROP INDEX plan_case_by_case", "the index 'plan_case_by_case' is missing"),
                ("a fact", "UPDATE build SET facts = json_set(facts, '$.git_sha', 'feed')", "the build"),
                ("a reference", "UPDATE plan_case SET implementation_id = 77", "refer to rows of implementation")):
            with self.subTest(what):
                whole = self.db.read_bytes()
                connection = sqlite3.connect(self.db)
                connection.execute("PRAGMA journal_mode = DELETE")
                for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                    connection.execute(f"DROP TRIGGER {name}")
                connection.execute(statement)
                connection.commit()
                connection.close()
                finding = self.database_finding()
                self.assertEqual(finding["level"], "bad")
                self.assertIn(told, finding["found"])
                self.db.write_bytes(whole)

    def database_finding(self):
        findings = lab.json.loads(self.syslab("doctor", "--json", expect=None).stdout)["findings"]
        return next(finding for finding in findings if finding["subject"] == "database")

    def test_a_full_disk(self):
        self.syslab("run", "selftest_empty")
        before = self.sql("SELECT count(*) FROM attempt")[0][0]
        limit = self.db.stat().st_size + 40_000

        def small_disk():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = self.syslab("run", "selftest_empty", "-a", "repeat=1:400:1", "--json", expect=4, preexec_fn=small_disk)
        self.assertIn(str(self.db), done.stderr)
        lines = [lab.json.loads(line) for line in done.stdout.splitlines()]
        acknowledged = {line["attempt"] for line in attempts(lines)}
        self.assert_intact()
        stored = {uid for (uid,) in self.sql("SELECT a.uid FROM attempt a JOIN attempt_event e ON e.attempt_id = a.id"
                                             " AND e.status = 'ok'")}
        self.assertGreaterEqual(stored, acknowledged)
        self.assertGreaterEqual(len(stored), before)
        if any(line.get("type") == "run" for line in lines):  # room came back
            self.assertEqual(summary(self.lines("resume"))["exit"], 0)
            self.assertEqual(self.sql("SELECT count(DISTINCT plan_seq) FROM attempt WHERE run_id = (SELECT max(id) FROM run)"),
                             [(400,)])


if __name__ == "__main__":
    unittest.main()
