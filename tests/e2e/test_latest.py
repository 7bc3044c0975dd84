"""A run that is dated in the future, because a clock was wrong: it is the newest of nothing, and that is said."""
import sqlite3
import unittest

from lab import Lab


class InTheFuture(Lab):
    """A run whose clock was wrong owns neither `latest` nor a table."""
    WARNING = "warning: one run is dated in the future; every other run counts as newer"

    def setUp(self):
        super().setUp()
        for label in ("first", "wrong", "second"):
            self.syslab("run", "selftest_empty", "--label", label)
        self.uids = dict(self.sql("SELECT label, uid FROM run"))
        connection = sqlite3.connect(self.db)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE run SET started_at = '2099-01-01T00:00:00.000Z' WHERE label = 'wrong'")
        connection.commit()
        connection.close()

    def test_latest(self):
        self.assertEqual(self.json("show", "latest")["run"]["run"], self.uids["second"])
        for arguments in (("show", "latest"), ("log",), ("log", "selftest_empty"), ("report",), ("pin", "name", "latest")):
            with self.subTest(" ".join(arguments)):
                self.assertEqual(self.syslab(*arguments).stderr.splitlines().count(self.WARNING), 1)
        self.assertEqual(self.json("pin")["pins"][0]["run"], self.uids["second"])

    def test_log_lists_it_last(self):
        self.assertEqual([run["run"] for run in self.json("log")["runs"]], [self.uids[label] for label in ("second", "first", "wrong")])

    def test_tables_take_the_newest_of_the_others(self):
        for view in ("v_newest", "v_latest", "v_measured"):
            self.assertEqual({uid for (uid,) in self.sql(f"SELECT run_uid FROM {view}")}, {self.uids["second"]}, view)

    def test_resume_takes_another(self):
        self.assertIn(self.uids["second"], self.syslab("resume").stdout)

    def test_alone_it_is_the_latest(self):
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE run SET started_at = '2098-01-01T00:00:00.000Z' WHERE label <> 'wrong'")
        connection.commit()
        connection.close()
        self.assertEqual(self.json("show", "latest")["run"]["run"], self.uids["wrong"])


if __name__ == "__main__":
    unittest.main()
