"""Databases that were handed in or merged are data: they choose no file to load, and nothing in them is evaluated."""
import os
import pathlib
import re
import shutil
import sqlite3
import unittest

from lab import RIGHT, Lab

MINE = os.environ["SYSLAB_MINE"]
PLUGINS = os.environ["SYSLAB_PLUGINS"]
CASES = ("-a", "seq=32,48", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "-a", "dtype=fp32", "--impl", "me",
         "--laws", "none", "--protocol", "quick", "--device", "cpu")
LEAVES_A_MARK = "import os\nopen(os.environ['LEAVES_A_MARK'], 'w').close()\n"


class HandedIn(Lab):
    def setUp(self):
        super().setUp()
        self.mark = self.folder / "mark"
        self.state = self.folder / "state"
        self.library = self.folder / "kernel.so"
        shutil.copy(f"{PLUGINS}/marking_attention.so", self.library)
        self.source = self.folder / "flash.py"
        self.source.write_text(LEAVES_A_MARK + pathlib.Path(MINE, "plain.py").read_text(encoding="utf-8"), encoding="utf-8")
        self.files = {"library": str(self.library), "Python file": f"{self.source}:Naive"}

    def environment(self):
        # Without walls, behind which no mark could be left.
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "LEAVES_A_MARK": str(self.mark),
                "XDG_STATE_HOME": str(self.state), "SYSLAB_WALLS": "none"}

    def run_halfway(self, file, db):
        """A run of one case that is done and one that is missing; its uid and that of a check."""
        self.syslab("run", "flash_forward", *CASES, "--mine", f"me={file}", "--db", db, expect=RIGHT)
        self.change(db, "DELETE FROM attempt_event WHERE status = 'ok' AND attempt_id = (SELECT max(id) FROM attempt)")
        [(run, check)] = self.sql("SELECT r.uid, (SELECT min(uid) FROM check_result) FROM run r", db=db)
        self.mark.unlink()
        return run, check

    def somebody_elses(self, file, db):
        mine, self.state = self.state, self.folder / "her_state"
        try:
            return self.run_halfway(file, db)
        finally:
            self.state = mine

    def change(self, db, *statements):
        """Past syslab: without the triggers of the tables that are changed."""
        connection = sqlite3.connect(db)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    def refused(self, *command, expect=2):
        self.mark.unlink(missing_ok=True)
        said = self.syslab(*command, expect=expect)
        self.assertFalse(self.mark.exists(), f"{command} loaded a file that the database named")
        return said.stdout + said.stderr

    def test_no_file_that_a_merged_database_names_is_loaded(self):
        for kind, file in self.files.items():
            with self.subTest(kind):
                self.db, theirs = self.folder / f"{kind}.db", self.folder / f"{kind} of hers.db"
                run, check = self.somebody_elses(file, theirs)
                self.syslab("merge", theirs)
                for trusted in ((), ("--trust",)):  # who vouches for numbers vouches for no file
                    self.syslab("merge", theirs, *trusted)
                    for db in (self.db, theirs):
                        for command in (("resume", run), ("replay", check)):
                            said = self.refused(*command, "--db", db)
                            self.assertRegex(said, f"`syslab {command[0]} {command[1]} --db .*{re.escape(db.name)}'? --mine me=FILE`")
                self.assertIn("--mine me=FILE", self.refused("gate", "--against", run, expect=3))
                # Named on this command line it is the user's own choice.
                self.syslab("replay", check, "--mine", f"me={file}")
                self.assertTrue(self.mark.exists())
                self.mark.unlink()
                self.syslab("resume", run, "--mine", f"me={file}", expect=RIGHT)
                self.assertTrue(self.mark.exists())

    def test_an_own_run_goes_on_and_is_replayed_bare(self):
        for kind, file in self.files.items():
            with self.subTest(kind):
                self.db, other = self.folder / f"{kind}.db", self.folder / f"{kind} merged.db"
                run, check = self.run_halfway(file, self.db)
                self.syslab("--db", other, "merge", self.db)  # still the user's own, wherever it lies
                self.syslab("prune", "-o", f"{kind} pruned.db")
                for db in (self.folder / f"{kind} pruned.db", other, self.db):
                    self.syslab("replay", check, "--db", db)
                    self.syslab("resume", run, "--db", db, expect=RIGHT)
                    self.assertTrue(self.mark.exists())

    def test_an_own_file_that_has_changed_is_not_loaded_unasked(self):
        for kind, file in self.files.items():
            with self.subTest(kind):
                self.db = self.folder / f"{kind}.db"
                run, check = self.run_halfway(file, self.db)
                path = self.library if kind == "library" else self.source
                path.write_bytes(path.read_bytes() + b"\n")
                self.assertIn("has changed", self.refused("replay", check))
                self.assertIn("not the file that the run was made with", self.refused("resume", run))
                self.assertIn("make a new run", self.refused("resume", run, "--mine", f"me={file}"))
                self.assertIn("no implementation", self.refused("replay", check, "--mine", f"you={file}"))
                self.assertIn("not what was checked then", self.syslab("replay", check, "--mine", f"me={file}").stderr)

    def test_the_proof_of_one_run_proves_nothing_else(self):
        _, check = self.run_halfway(self.library, self.db)
        other = self.folder / "other.so"
        shutil.copy(self.library, other)
        for name, statement in {
                "another path": f"UPDATE plan_case SET mine_path = '{other}'",
                "another digest": "UPDATE implementation SET digest = replace(digest, substr(digest, 1, 1), 'x') WHERE is_mine",
                "another run": "UPDATE run SET uid = '019ddd00-0000-7000-8000-000000000001'; UPDATE run_mac SET run_uid ="
                               " '019ddd00-0000-7000-8000-000000000001'",
                "another proof": "UPDATE run_mac SET mac = zeroblob(32)",
                "one more file": "INSERT INTO plan_case SELECT run_id, 99, case_id, implementation_id, role, world_size, task,"
                                 f" law, seed, skip_reason, '{other}' FROM plan_case LIMIT 1"}.items():
            with self.subTest(name):
                changed = self.folder / f"{name}.db"
                shutil.copy(self.db, changed)
                self.change(changed, *statement.split("; "))
                for command in (("resume", "latest"), ("replay", check)):
                    self.assertIn("nothing proves", self.refused(*command, "--db", changed))

    def test_a_key_that_cannot_be_had_stops_no_run(self):
        self.state.write_text("no folder")
        said = self.syslab("run", "flash_forward", *CASES, "--mine", f"me={self.library}", expect=RIGHT).stderr
        self.assertIn("will not use the files", said)
        check = self.sql("SELECT min(uid) FROM check_result")[0][0]
        self.assertIn("--mine me=FILE", self.refused("replay", check))

    PLANTED = {
        "trigger": "CREATE TRIGGER planted AFTER INSERT ON main.run BEGIN SELECT 1; END",
        "view": "CREATE VIEW planted AS SELECT 1",
        "view in the place of ours": "CREATE VIEW v_result AS SELECT 1",
        "table": "CREATE TABLE planted (x)",
        "generated column": "ALTER TABLE pin ADD COLUMN planted TEXT AS (upper(name))",
        "index expression": "CREATE INDEX planted ON run (upper(label))",
        "virtual table": "CREATE VIRTUAL TABLE planted USING fts5(x)",
        "trigger in the place of ours": "CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT 1; END",
    }

    def test_what_no_migration_made_refuses_the_file(self):
        self.syslab("run", "selftest_empty")
        for name, statement in self.PLANTED.items():
            with self.subTest(name):
                theirs = self.folder / f"{name}.db"
                shutil.copy(self.db, theirs)
                connection = sqlite3.connect(theirs)
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("DROP TRIGGER run_no_update")
                connection.execute(statement)
                connection.commit()
                connection.close()
                before = theirs.read_bytes()
                told = next(word for word in ("TABLE pin", "v_result", "run_no_update", "planted") if word in statement).split()[-1]
                for command, code in ((("merge", theirs), 2), (("--db", theirs, "query", "SELECT 1"), 4),
                                      (("--db", theirs, "report", "--no-figures"), 4), (("--db", theirs, "resume"), 4),
                                      (("--db", theirs, "run", "selftest_empty"), 4)):
                    said = self.syslab(*command, expect=code).stderr
                    self.assertIn("is not syslab's own", said, command)
                    self.assertIn(f"'{told}'", said)
                    self.assertIn(theirs.name, said)
                self.assertEqual(theirs.read_bytes(), before)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])


if __name__ == "__main__":
    unittest.main()
