"""What a command line names to be written or read: a database is never replaced, and nothing makes syslab wait."""
import os
import unittest

from lab import Lab


class UserFiles(Lab):
    def test_an_output_never_destroys_a_database(self):
        self.syslab("run", "selftest_empty")
        os.link(self.db, self.folder / "again.md")
        (self.folder / "link.md").symlink_to(self.db)
        other = self.folder / "other.db"
        self.syslab("run", "selftest_empty", "--db", other)
        before = {path: path.read_bytes() for path in (self.db, other)}
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "link.db").symlink_to(self.db)
        for output in (self.db, "again.md", "link.md", other, f"{self.db}-wal", f"{self.db}-journal"):
            for database in (self.db, "elsewhere/link.db"):
                for command in (["report", "--no-figures", "--to", "md"], ["query", "SELECT 1", "--to", "csv"]):
                    said = self.syslab(*command, "-o", output, "--db", database, expect=2).stderr
                    self.assertIn("database", said, output)
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        self.assert_intact()

    def test_an_output_is_a_plain_file(self):
        self.syslab("run", "selftest_empty")
        os.mkfifo(self.folder / "fifo")
        for output, kind in (("fifo", "a FIFO"), ("/dev/null", "a device"), (self.folder, "a folder")):
            self.assertIn(f"it is {kind}", self.syslab("query", "SELECT 1", "--to", "csv", "-o", output, expect=2).stderr)
        self.assertTrue((self.folder / "fifo").is_fifo())

    def test_prune_removes_only_what_it_made(self):
        self.syslab("run", "selftest_empty")
        kept = self.folder / "small.db.partial"
        kept.write_text("mine")
        self.syslab("prune", "-o", "small.db")
        self.assertEqual(kept.read_text(), "mine")
        (self.folder / "dangling.db").symlink_to("nowhere.db")
        self.assertIn("is there already", self.syslab("prune", "-o", "dangling.db", expect=2).stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if "partial" in path.name), [kept.name])

    def test_a_fifo_or_an_endless_device_is_not_read(self):
        self.syslab("run", "selftest_empty")
        fifo = self.folder / "fifo.sql"
        os.mkfifo(fifo)
        zero = self.folder / "zero.sql"
        zero.symlink_to("/dev/zero")
        for name, kind in ((fifo, "a FIFO"), (zero, "a device")):
            self.assertIn(kind, self.syslab("query", name, expect=2, timeout=20).stderr)
            self.assertIn(kind, self.syslab("import", name, expect=2, timeout=20).stderr)
            for command in (["query", "SELECT 1"], ["report"], ["run", "selftest_empty"]):
                self.assertIn(kind, self.syslab("--db", name, *command, expect=4, timeout=20).stderr)
            said = self.syslab("run", "train_lm", "-a", f"text={name}", "--laws", "none", expect=None, timeout=60)
            self.assertIn("it is no plain file", said.stdout + said.stderr)

    def test_what_is_too_large_is_told_with_its_limit(self):
        self.syslab("run", "selftest_empty")
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i AS "
        self.assertIn("shorter names", self.syslab("query", many + "n" * 2000 + " FROM n", "--to", "json", expect=2).stderr)
        self.syslab("query", many + "n FROM n", "--to", "json")
        with open(self.folder / "large.sql", "wb") as large:
            large.truncate(2 << 20)
        self.assertIn("more than the 1.00 MiB", self.syslab("query", "large.sql", expect=2).stderr)
        with open(self.folder / "large.log", "wb") as large:
            large.truncate(300 << 20)
        self.assertIn("more than the 256.00 MiB", self.syslab("import", "large.log", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
