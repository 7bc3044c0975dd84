"""bisect, log EXPERIMENT and compare A:build=REVISION: other tests run beside these, so that verdicts are of work of known length,
1.4 times as long where it differs."""
import fcntl
import json
import shlex
import signal
import sqlite3
import subprocess
import unittest

from lab import asked_again
from revisions import MESON, CourseOfPrograms, Programs, Repository


class Bisect(Repository):
    def test_what_is_wrong_is_said_at_once(self):
        self.history(last=1)
        for words, what in ((("nowhere", "main", "--", "selftest_compare"), "is not a revision of"),
                            (("main", "main", "--", "selftest_compare"), "are the same commit; expected two"),
                            (("main", self.commits[0], "--", "selftest_compare"), "must be an ancestor"),
                            (("--mine", "me=/etc/passwd:fn", self.commits[0], "main"), "not in a git repository"),
                            (("--mine", "me=lib/work.py:", self.commits[0], "main"), "--mine 'me=lib/work.py:': names no class")):
            with self.subTest(words):
                self.assertIn(what, self.refused("bisect", *words, cwd=self.repository))


class IntoABranch(Repository):
    def test_a_merge_that_is_found_is_followed_by_the_command_that_searches_its_branch(self):
        """First parents: the merge is one commit. The slow one came with its branch."""
        self.commit("first", {"lib/work.py": self.work(400)})
        self.git("switch", "--quiet", "-c", "side")
        self.commit("harmless", {"note": "1"})
        self.commit("slow", {"lib/work.py": self.work(1200)})
        self.git("switch", "--quiet", "main")
        self.git("-c", "commit.gpgsign=false", "merge", "--quiet", "--no-ff", "-m", "merge side", "side")
        start, _, slow = self.commits
        case = ("--mine", "me=lib/work.py:fn", "--reference", "lib/work.py:reference", "--inputs", "lib/work.py:cases")
        words = ("--delta", "20%", "--launches", "5", "--protocol", "quick")
        said = self.syslab("bisect", start, "main", *words, "--", *case, cwd=self.repository).stdout
        self.assertIn("merge side", said)
        last = said.splitlines()[-1]
        self.assertEqual(last, f"next: syslab bisect {start[:10]} {slow[:10]} {' '.join((*words, '--', *case))}")
        said = self.syslab(*shlex.split(last)[2:], cwd=self.repository).stdout
        self.assertIn(f"found: {slow[:10]} slow", said)
        self.assertNotIn("next: ", said)


class BuildOfARevision(Programs):
    def test_what_a_partial_clone_lacks_is_not_fetched(self):
        mark, program = self.folder / "started", self.folder / "program"
        program.write_text(f"#!/bin/sh\ntouch '{mark}'\n", encoding="utf-8")
        program.chmod(0o755)
        for name, value in (("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"), ("protocol.ext.allow", "always"),
                            ("remote.origin.url", f"ext::{program}"), ("remote.origin.promisor", "true")):
            self.git("config", name, value)
        lacks = self.git("rev-parse", "main~1:other.py").strip()
        (self.repository / ".git" / "objects" / lacks[:2] / lacks[2:]).unlink()
        self.assertRegex(self.refused("compare", "selftest_compare", "A:build=main~1", "-a", "steps=1000", cwd=self.repository),
                         r"cannot be checked out \([^\n]*; in this partial clone nothing is fetched here")
        self.assertFalse(mark.exists())

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
            refused = self.refused("compare", *self.options, "A:build=main~2", cwd=self.repository)
            self.assertIn("you alone can enter", refused)
            own.unlink() if own.is_symlink() else own.rmdir()
        self.assertEqual(builds.stat().st_mode & 0o777, 0o755, "what the user names stays as it is")


class Course(CourseOfPrograms):
    def test_what_cannot_be_confirmed_is_said_and_the_rest_is_told(self):
        nowhere = 40 * "0"
        self.measured_at((nowhere, 1), (self.commits[1], 1.4))
        told = self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository)
        self.assertIn(f"no such revision of {self.repository}", told.stderr)
        self.assertIn(" (40.0 % more time); not a finding", told.stdout)
        self.assertIn(f": perhaps slower since {self.commits[1][:10]} (", told.stdout)
        connection = sqlite3.connect(self.db)
        connection.execute("DROP TRIGGER environment_no_update")
        connection.execute("UPDATE environment SET comparability_key = 'of another machine'")
        connection.commit()
        connection.close()
        told = self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository)
        self.assertIn("is another machine", told.stderr)

    def test_an_interruption_ends_all_and_what_is_known_is_told(self):
        self.measured_at((self.commits[0], 1), (self.commits[1], 1.4), (self.commits[2], 20))
        process = subprocess.Popen(self.command("log", "selftest_compare", "--confirm", "--budget", "1m"), cwd=self.repository,
                                   env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if "launch 1 of" in line:
                process.send_signal(signal.SIGINT)
                break
        said, more = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, said)
        self.assertNotIn("launch 1 of", more)
        self.assertIn("▁▁█", said)

    def test_a_database_names_no_program_and_no_words_of_a_shell(self):
        self.trap("run.sh")
        self.measured_at(("./run.sh", 1), ("$(rm -r ~)", 1.4))
        self.syslab("log", "selftest_compare", "--confirm", "--budget", "1s", cwd=self.repository, expect=None)
        self.assertFalse((self.folder / "sprung").exists())
        (change,), = [one["changes"] for one in self.json("log", "selftest_compare", cwd=self.repository)["series"]]
        self.assertEqual(change["in_turns"], None)
        self.assertNotIn("syslab compare", change["text"])

    def test_the_command_that_confirms_measures_by_the_same_protocol_and_data(self):
        self.measured_at((self.commits[0], 1), (self.commits[1], 1.4))
        for changes, protocol, options in (("'$.data', 'normal'", "quick", "--protocol quick"),
                                           ("'$.version', 1", "quick, version 1", "--protocol quick"),
                                           ("'$.data', 'zeros'", "quick, zeros inputs, version 1", "--protocol quick --data zeros")):
            connection = sqlite3.connect(self.db)
            connection.execute("DROP TRIGGER IF EXISTS run_no_update")
            connection.execute(f"UPDATE run SET protocol = json_set(protocol, {changes})")
            connection.commit()
            connection.close()
            series, = self.json("log", "selftest_compare", cwd=self.repository)["series"]
            self.assertEqual(series["protocol"], protocol)
            change, = series["changes"]
            self.assertTrue(change["text"].endswith(f" {options}"), change["text"])

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


class MeasuredBuild(Programs):
    def signed(self, commit):
        """The same commit with a signature, which `git log` shows where the configuration says so."""
        head, _, body = self.git("cat-file", "commit", commit).partition("\n\n")
        signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----"
        return subprocess.run(["git", "hash-object", "-t", "commit", "-w", "--stdin"], cwd=self.repository, check=True,
                              input=f"{head}\n{signature}\n\n{body}\n", capture_output=True, text=True).stdout.strip()

    @asked_again
    def test_it_is_built_once_kept_and_measured_as_a_program_is(self):
        mark = self.folder / "started"  # by what the repository names to be started at a checkout
        for name in ("post-checkout", "reference-transaction", "monitor"):
            program = self.repository / ".git" / "hooks" / name
            program.write_text(f"#!/bin/sh\ntouch '{mark}'\n", encoding="utf-8")
            program.chmod(0o755)
        self.git("config", "core.fsmonitor", str(program))
        self.git("config", "log.showSignature", "true")
        self.git("config", "gpg.program", str(program))
        self.commits[1] = self.signed(self.commits[1])
        mark.unlink(missing_ok=True)
        one = self.compared("main~2", self.commits[1], 6)
        self.assertEqual(one["verdict"], "slower")
        self.assertEqual([one[side]["build"]["facts"]["git_sha"] for side in ("side_a", "side_b")], self.commits[:2])
        kept = sorted(path for path in (self.folder / "builds" / "syslab-builds").glob("*/*/syslab"))
        self.assertEqual(sorted(path.parent.name for path in kept), sorted(self.commits[:2]))
        made = {path: path.stat().st_mtime_ns for path in kept}
        self.syslab("compare", *self.options, "A:build=main~2", f"B:build={self.commits[1]}", "-a", "slowdown=0", cwd=self.repository, expect=6)
        self.assertEqual({path: path.stat().st_mtime_ns for path in kept}, made)
        self.assertFalse(mark.exists())
        self.assertEqual(self.git("-c", "core.fsmonitor=false", "status", "--porcelain"), "", "the checkout is untouched")
        self.assertIn("no such revision", self.refused("compare", *self.options, "A:build=nowhere", cwd=self.repository))

    @asked_again
    def test_old_builds_make_room(self):
        self.compared("main~2", "main~1", 6)
        of_others = [self.folder / "builds" / "photos" / "2025", self.folder / "builds" / "syslab-builds" / "photos" / "2025"]
        for folder in of_others:
            folder.mkdir(parents=True)
            (folder / "done").write_text("")
        # Checkouts: of a build that did not end, of one in which somebody is, and that in which another history builds.
        recipe, = (self.folder / "builds" / "syslab-builds").glob("*/tree")
        late, busy, another = recipe.parent / ("a" * 40), recipe.parent / ("b" * 40), recipe.parent.parent / ("c" * 12)
        for folder in (late, busy, another):
            (folder / "tree").mkdir(parents=True)
            (folder / "tree" / "file").write_bytes(bytes(10_000))
        (another / "lock").write_text("")
        environment = self.environment
        self.environment = lambda: {**environment(), "SYSLAB_BUILDS_LIMIT": "1K"}

        def kept():
            return sorted(path.parent.name for path in (self.folder / "builds" / "syslab-builds").glob("*/*/syslab"))

        lock, = (self.folder / "builds" / "syslab-builds").glob(f"*/{self.commits[1]}.lock")
        with open(lock) as other_process, open(f"{busy}.lock", "w") as one_more:
            fcntl.flock(other_process, fcntl.LOCK_SH)
            fcntl.flock(one_more, fcntl.LOCK_SH)
            self.compared("main~2", "main", 6)
            self.assertEqual(kept(), sorted(self.commits), "what another process may run stays, whatever the limit")
            self.assertEqual([(folder / "tree").exists() for folder in (late, busy, another, recipe.parent)], [False, True, False, True])
        self.commit("one more", {"note": "one more"})
        self.compared("main~3", "main", 6)
        self.assertEqual(kept(), sorted((self.commits[0], self.commits[3])), "what is in use stays, whatever the limit")
        self.assertTrue(all(folder.exists() for folder in of_others), "what is no build stays, too")

    @asked_again
    def test_bisect_finds_it_among_programs(self):
        *steps, end = self.lines("bisect", "main~2", "main", *self.options[1:], "--", self.options[0], "-a", "slowdown=0", cwd=self.repository)
        self.assertEqual((end["verdict"], end["commit"]), ("found", self.commits[1]))


class MeasuredCourse(CourseOfPrograms):
    @asked_again
    def test_a_step_is_a_suspicion_until_both_were_measured_in_turns(self):
        self.measured_at((self.commits[1], 1.4), (self.commits[0], 1), (self.commits[0], 1.002))
        series, = self.json("log", "selftest_compare", cwd=self.repository)["series"]
        self.assertEqual([(point["revision"], point["attempts"]) for point in series["points"]],
                         [(self.commits[0], 2), (self.commits[1], 1)], "in the order of commits, not of runs")
        change, = series["changes"]
        self.assertEqual((change["before"], change["revision"], change["in_turns"]), (self.commits[0], self.commits[1], None))
        self.assertIn("not a finding", change["text"])
        self.assertIn(f"syslab compare selftest_compare A:build={self.commits[0]} B:build={self.commits[1]} -a", change["text"])
        said = self.syslab("log", "selftest_compare", "-o", "course.svg", "-a", "steps=100000", cwd=self.repository).stdout
        self.assertIn("▁█", said)
        drawn = (self.repository / "course.svg").read_text()
        self.assertEqual((drawn.count("<polyline"), drawn.count("<circle"), drawn.count("stroke-dasharray")), (1, 2, 1))
        self.assertEqual(self.json("log", "selftest_compare", "-a", "steps=1")["series"], [])
        self.trap(self.commits[1])  # a file that is called like a commit is none
        said = self.json("log", "selftest_compare", "--confirm", "--budget", "6s", cwd=self.repository)  # a document, and nothing else
        self.assertFalse((self.folder / "sprung").exists())
        (change,), = [one["changes"] for one in said["series"]]
        self.assertEqual(change["in_turns"], "slower")
        self.assertRegex(change["text"], r", measured in turns: .* (more time|times the time) \(95 %: ")

    @asked_again
    def test_what_only_the_machine_did_is_told_as_that(self):
        self.measured_at((self.commits[1], 1), (self.commits[2], 1.4))  # both take the same
        self.syslab("compare", "selftest_compare", f"A:build={self.commits[2]}", f"B:build={self.commits[1]}", "--launches", "3",
                    "--protocol", "quick", "-a", "steps=100000", "--delta", "30%", cwd=self.repository)
        (change,), = [one["changes"] for one in self.json("log", "selftest_compare", cwd=self.repository)["series"]]
        self.assertEqual(change["in_turns"], "same")
        connection = sqlite3.connect(self.db)
        for table in ("comparison", "run"):
            connection.execute(f"DROP TRIGGER {table}_no_update")
        for table, column, place, other in (("comparison", "side_b", "build.facts.git_dirty", "json('true')"),
                                            ("comparison", "side_b", "world_size", "2"), ("run", "protocol", "of.name", "'kernel'")):
            with self.subTest("a comparison of something else", place=place):
                kept = connection.execute(f"SELECT id, {column} FROM {table}").fetchall()
                connection.execute(f"UPDATE {table} SET {column} = json_set({column}, '$.{place}', {other})")
                connection.commit()
                (one,), = [one["changes"] for one in self.json("log", "selftest_compare", cwd=self.repository)["series"]]
                self.assertEqual(one["in_turns"], None)
                connection.executemany(f"UPDATE {table} SET {column} = ?2 WHERE id = ?1", kept)
        connection.close()
        self.assertIn("what moved by +40", change["text"])


if __name__ == "__main__":
    unittest.main()
