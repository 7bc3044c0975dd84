"""bisect, log EXPERIMENT and compare A:build=REVISION where no verdict hangs on what else the machine does: other tests run beside these."""
import fcntl
import json
import signal
import sqlite3
import subprocess
import unittest

from revisions import MESON, CourseOfPrograms, Programs, Repository


class Bisect(Repository):
    def test_what_is_wrong_is_said_at_once(self):
        self.history(last=1)
        for words, what in ((("nowhere", "main", "--", "selftest_compare"), "no revision of"),
                            (("main", "main", "--", "selftest_compare"), "same commit"),
                            (("main", self.commits[0], "--", "selftest_compare"), "must be an ancestor"),
                            (("--mine", "me=/etc/passwd:fn", self.commits[0], "main"), "no git repository")):
            with self.subTest(words):
                self.assertIn(what, self.syslab("bisect", *words, cwd=self.repository, expect=2).stderr)


class BuildOfARevision(Programs):
    def test_a_build_and_the_wait_for_one_have_an_end(self):
        self.commit("endless", {"meson.build": MESON.replace("'sed ", "'sleep 60; sed ")})
        words = ("compare", "selftest_compare", f"A:build={self.commits[-1]}", "-a", "steps=1000")
        self.longest = "1s"
        told = self.syslab(*words, cwd=self.repository, expect=2)
        self.assertRegex(told.stderr, r"revision \w+ takes longer than 1.00 s to build \(SYSLAB_BUILDS_TIMEOUT; .*log\)")
        recipe, = (self.folder / "builds" / "syslab-builds").glob("*/tree")
        with open(recipe.parent / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = self.syslab(*words, cwd=self.repository, expect=2)
        self.assertIn("another process has been building in", told.stderr)
        self.longest = "30m"
        # What a checkout that was ended has left is no obstacle.
        (self.repository / ".git" / "worktrees" / "tree" / "index.lock").write_text("")
        self.syslab("compare", "selftest_compare", f"A:build={self.commits[0]}", "-a", "steps=1000", "--launches", "3", "--protocol", "quick",
                    cwd=self.repository, expect=None)
        self.assertEqual(self.sql("SELECT count(*) FROM comparison"), [(1,)])

    def test_programs_of_others_are_not_run(self):
        builds = self.folder / "builds"
        builds.mkdir(mode=0o755)
        for make in (lambda own: (own.mkdir(), own.chmod(0o770)), lambda own: own.symlink_to(self.folder)):
            own = builds / "syslab-builds"
            make(own)
            refused = self.syslab("compare", *self.options, "A:build=main~2", cwd=self.repository, expect=2).stderr
            self.assertIn("you alone can enter", refused)
            own.unlink() if own.is_symlink() else own.rmdir()
        self.assertEqual(builds.stat().st_mode & 0o777, 0o755, "what the user names stays as it is")


class Course(CourseOfPrograms):
    def test_what_cannot_be_confirmed_is_said_and_the_rest_is_told(self):
        nowhere = 40 * "0"
        self.measured_at((nowhere, 1), (self.commits[1], 1.4))
        told = self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository)
        self.assertIn(f"no such revision of {self.repository}", told.stderr)
        self.assertIn("not a finding", told.stdout)
        connection = sqlite3.connect(self.db)
        connection.execute("DROP TRIGGER environment_no_update")
        connection.execute("UPDATE environment SET comparability_key = 'of another machine'")
        connection.commit()
        connection.close()
        told = self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository)
        self.assertIn("is another machine", told.stderr)

    def test_an_interruption_ends_all_and_what_is_known_is_told(self):
        self.measured_at((self.commits[0], 1), (self.commits[1], 1.4), (self.commits[2], 1))
        process = subprocess.Popen(self.command("log", "selftest_compare", "--confirm", "--budget", "1m"), cwd=self.repository,
                                   env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if "launch 1 of" in line:
                process.send_signal(signal.SIGINT)
                break
        said, more = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, said)
        self.assertNotIn("launch 1 of", more)
        self.assertIn("▁█▁", said)

    def test_a_database_names_no_program_and_no_words_of_a_shell(self):
        self.trap("run.sh")
        self.measured_at(("./run.sh", 1), ("$(rm -r ~)", 1.4))
        self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository, expect=None)
        self.assertFalse((self.folder / "sprung").exists())
        (change,), = [one["changes"] for one in self.json("log", "selftest_compare", cwd=self.repository)["series"]]
        self.assertEqual(change["in_turns"], None)
        self.assertNotIn("syslab compare", change["text"])

    def test_the_same_kernels_are_told_of_a_suspicion(self):
        self.measured_at((self.commits[0], 1), (self.commits[1], 1.4))
        for codes, same in (((40 * "a", 40 * "a"), True), ((40 * "a", 40 * "b"), False), ((40 * "a", None), False), ((None, None), False)):
            connection = sqlite3.connect(self.db)
            connection.execute("DROP TRIGGER IF EXISTS attempt_facts_no_update")
            for number, code in enumerate(codes):
                connection.execute("UPDATE attempt_facts SET facts = json_set(facts, '$.code', json(?)) WHERE attempt_id = (SELECT a.id FROM attempt a"
                                   " JOIN run r ON r.id = a.run_id ORDER BY r.uid LIMIT 1 OFFSET ?)",
                                   (json.dumps({"digest": code} if code else {"why": "no CUPTI"}), number))
            connection.commit()
            connection.close()
            (change,), = [one["changes"] for one in self.json("log", "selftest_compare", cwd=self.repository)["series"]]
            self.assertEqual(change["same_kernels"], same)
            self.assertEqual(", with the same kernels on the GPU; not a finding" in change["text"], same)
        self.assertEqual(self.sql("SELECT kernel_code, no_kernel_code FROM v_provenance"), [(None, "no CUPTI")] * 2)

    def test_every_attempt_has_its_provenance(self):
        self.syslab("run", "selftest_compare", "--protocol", "quick", "--laws", "none", "-a", "steps=1000")
        row, = self.sql("SELECT git_sha, implementation_digest, processor, celsius_before, held_down_after, status, load_average FROM v_provenance")
        self.assertEqual(row[0], self.json("env")["build"]["git_sha"])
        self.assertTrue(row[1] and row[2])
        self.assertEqual(row[3:6], (None, None, "ok"))
        self.assertGreaterEqual(row[6], 0)


if __name__ == "__main__":
    unittest.main()
