"""No table, sentence or figure shows a number of an attempt that ended with an error: with other numbers all say the same."""
import lzma
import pathlib
import sqlite3
import tempfile
import unittest

from lab import make_views

ROOT = pathlib.Path(__file__).parents[2]


def queries():
    """(file, experiment, SQL) of everything that a report asks; what borrows another's query is asked with that one."""
    for path in sorted((ROOT / "experiments").rglob("*.sql")) + sorted((ROOT / "reports").rglob("*.sql")):
        text = path.read_text(encoding="utf-8")
        header = [line for line in text.splitlines() if line.startswith("-- ")]
        if any(line.startswith(("-- like:", "-- with:")) for line in header):
            continue
        own = [line.split(": ")[1] for line in header if line.startswith("-- experiment: ")]
        yield path.relative_to(ROOT), own[0] if own and own[0] != "*" else "flash_benchmarking", text


class ErrorNumbers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="syslab_e2e_")
        self.addCleanup(folder.cleanup)
        self.db = pathlib.Path(folder.name) / "handout.db"
        self.db.write_bytes(lzma.open(ROOT / "reports/examples/handout.db.xz").read())
        self.connection = sqlite3.connect(self.db)
        self.addCleanup(self.connection.close)
        for (name,) in self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            self.connection.execute(f"DROP TRIGGER {name}")

    def answers(self):
        """With the views of attempts computed once, as a report has them."""
        self.connection.commit()
        reader = sqlite3.connect(self.db)
        make_views(reader)
        for view, index in (("v_attempt", "attempt_id"), ("v_newest", "experiment"), ("v_measured", "experiment")):
            reader.execute(f"CREATE TEMP TABLE kept_{view} AS SELECT * FROM {view}")
            reader.execute(f"CREATE INDEX temp.by_{view} ON kept_{view} ({index})")
            reader.execute(f"DROP VIEW temp.{view}")
            reader.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM temp.kept_{view}")
        found = {}
        for path, experiment, text in queries():
            parameters = [experiment, "[]"][:2 if "?2" in text else 1 if "?1" in text else 0]
            found[path] = reader.execute(text, parameters).fetchall()
        reader.close()
        return found

    def change_numbers(self):
        self.connection.execute("UPDATE metric SET value = 3 * value, ci_low = 3 * ci_low, ci_high = 3 * ci_high")
        self.connection.execute("UPDATE check_result SET worst_error = 3 * worst_error, tolerance = 2 * tolerance")

    def test_none_is_shown(self):
        self.connection.execute("UPDATE attempt_event SET status = 'error' WHERE status IN ('ok', 'check_failed')")
        self.connection.execute("UPDATE check_result SET outcome = 'error'")
        before = self.answers()
        self.assertGreater(len(before), 100)
        self.change_numbers()
        differing = [str(path) for path, rows in self.answers().items() if rows != before[path]]
        self.assertEqual(differing, [])

    def test_other_numbers_are_seen_where_attempts_are_ok(self):
        before = self.answers()
        self.change_numbers()
        self.assertGreater(sum(rows != before[path] for path, rows in self.answers().items()), 50)


if __name__ == "__main__":
    unittest.main()
