"""Databases and claims that somebody else wrote choose no file to read or write, and what is written here is private."""
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest
from unittest import mock

from lab import Lab, attempts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from claim_seal import sealed  # noqa: E402

PLUGINS = os.environ["SYSLAB_PLUGINS"]
TRAIN = ("train_lm", "--preset", "smoke", "--impl", "host_eager", "--device", "cpu")
UNFINISHED = ("DELETE FROM check_result", "DELETE FROM metric", "DELETE FROM sample", "DELETE FROM series",
              "DELETE FROM attempt_facts", "UPDATE attempt_event SET status = 'aborted', detail = NULL WHERE status <> 'started'")


def change(db, *statements):
    """Past syslab, which finds its own triggers again."""
    connection = sqlite3.connect(db)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.commit()
    connection.close()


class MergedFiles(Lab):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.secret = self.folder / "secret.txt"
        self.secret.write_text("what only its owner may read; " * 500, encoding="utf-8")
        self.secret.chmod(0o600)
        self.out = self.folder / "out.safetensors"

    def environment(self):
        return {**super().environment(), "XDG_STATE_HOME": str(self.state)}

    def hers(self, *statements, more=("-a", "checkpoint=out.safetensors")):
        """A database of somebody else, whose only run reads the secret and writes a file."""
        db = self.folder / "hers.db"
        mine, self.state = self.state, self.folder / "her_state"
        self.syslab("run", *TRAIN, "-a", f"text={self.secret}", *more, "--db", db)
        self.state = mine
        self.out.unlink(missing_ok=True)
        change(db, *statements)
        return db

    def assert_refused(self, *command, expect=2):
        said = self.syslab(*command, expect=expect)
        self.assertFalse(self.out.exists(), command)
        return said.stdout + said.stderr

    def test_what_is_merged_reads_and_writes_no_file_when_it_is_resumed(self):
        hers = self.hers(*UNFINISHED)
        for trust in ((), ("--trust",)):
            with self.subTest(trust=trust):
                self.syslab("merge", hers, *trust)
                self.assertIn(str(self.secret), self.assert_refused("resume"))
        self.assert_refused("resume", "--db", hers)  # used in place, too

    def test_gate_and_replay_ask_for_the_proof_as_well(self):
        hers = self.hers(more=("--launches", "3"))
        self.syslab("merge", hers)
        self.assertEqual(self.json("show", "latest")["run"]["measured_here"], 0)
        lines = self.lines("gate", "--against", "latest", "--launches", "3", expect=3)
        self.assertEqual([line["type"] for line in lines], ["missing"])
        [(check,)] = self.sql("SELECT min(uid) FROM check_result")
        self.assert_refused("replay", check)

    def test_somebody_elses_proof_and_changed_parameters_are_none(self):
        self.syslab("run", *TRAIN, "-a", f"text={self.secret}", "-a", f"checkpoint={self.folder}/mine.safetensors")
        change(self.db, *UNFINISHED)
        copy = self.folder / "copy.db"
        shutil.copy(self.db, copy)
        (self.folder / "mine.safetensors").unlink()
        change(copy, f"UPDATE case_def SET params = json_set(params, '$.checkpoint', '{self.out}')")
        self.assert_refused("resume", "--db", copy)
        self.assertEqual([one["status"] for one in attempts(self.lines("resume"))], ["ok"])
        self.assertTrue((self.folder / "mine.safetensors").exists(), "one's own run goes on with its own files")

    def test_a_case_under_anothers_name_is_not_merged(self):
        hers = self.hers("UPDATE case_def SET params = json_set(params, '$.steps', 31)")
        self.assertIn("not what its SHA-256 says", self.assert_refused("merge", hers, expect=4))
        self.assertEqual(self.sql("SELECT count(*) FROM case_def"), [(0,)])

    def test_a_time_that_does_not_exist_is_not_merged(self):
        hers = self.hers("UPDATE run SET started_at = '2026-02-30T25:61:00Z'")
        for trust in ((), ("--trust",)):
            said = self.assert_refused("merge", hers, *trust, expect=4)
            self.assertRegex(said, r"cannot merge '.*hers.db': run [0-9a-f-]{36}: started_at is '2026-02-30T25:61:00Z'; "
                                   r"expected a time in UTC that exists, such as .*; nothing of it was merged\ntry: ")
            self.assertEqual(self.sql("SELECT count(*) FROM run"), [(0,)])
        self.assertIn("a time that does not exist", self.syslab("doctor", "--db", hers, expect=None).stdout)

    def test_what_no_measurement_says_is_not_merged(self):
        for change_it, fault in (
                ("UPDATE metric SET value = -1 WHERE name = 'time'", r"attempt [0-9a-f-]{36}: 'time' took -1 s"),
                ("UPDATE sample SET value = 9e999", r"attempt [0-9a-f-]{36}: 'step' took Inf s"),
                ("UPDATE metric SET ci_low = value + 1, ci_high = value + 2 WHERE name = 'time'",
                 r"attempt [0-9a-f-]{36}: 'time' is [0-9.e-]+, outside its interval from 1[0-9.]* to 2[0-9.]*"),
                ("UPDATE metric SET n = -3 WHERE name = 'time'", "'time' has -3 samples of rank -?[0-9], and the case has 1 ranks"),
                ("UPDATE metric SET rank = 7 WHERE name = 'time'", "'time' has [0-9]+ samples of rank 7, and the case has 1 ranks"),
                ("UPDATE check_result SET fraction_checked = 7", r"check [0-9a-f-]{36}: [0-9]+ tries, and 7 of the result was compared")):
            hers = self.hers(change_it)
            self.assertRegex(self.assert_refused("merge", hers, expect=4), fault + "; expected what a measurement can say; "
                             "nothing of it was merged\n")
            self.assertRegex(self.syslab("doctor", "--db", hers, expect=None).stdout, fault + ", which no measurement says")
            hers.unlink()
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(0,)])

    def test_another_machine_under_the_key_of_this_one_is_not_merged(self):
        hers = self.hers()
        [(uid, key, facts)] = sqlite3.connect(hers).execute("SELECT uid, comparability_key, facts FROM environment").fetchall()
        for found in ({}, {**json.loads(facts), "cpu": {"model": "AMD EPYC 9999", "cores": 8}}):
            shutil.copy(hers, self.folder / "changed.db")
            text = json.dumps(found, separators=(",", ":"), sort_keys=True)
            change(self.folder / "changed.db", f"UPDATE environment SET facts = '{text}', uid = "
                   f"'{hashlib.sha256(f'{key}{chr(10)}{text}'.encode()).hexdigest()}'")
            if not found:  # a machine without a description, under the key of one that is described here
                self.syslab("run", *TRAIN)
            self.assertIn("its facts say: found the comparability_key " + key,
                          self.assert_refused("merge", self.folder / "changed.db", expect=4))
        self.syslab("merge", hers)

    def test_what_was_not_measured_here_stays_apart(self):
        for milliseconds in (1, 3):
            self.syslab("run", f"--command=me=echo took {milliseconds} ms", "--reads", "took {} ms", "--protocol", "quick")
            if milliseconds == 1:
                hers = self.db.rename(self.folder / "hers.db")
        self.syslab("compare", "--command", "a=echo took 1 ms", "--command", "b=echo took 2 ms", "--reads", "took {} ms", "--launches", "3",
                    "--db", hers, expect=None)
        self.assertNotIn("(self-reported)", self.syslab("log", "command", "--db", hers).stdout + self.syslab("report", "command", "--db", hers).stdout)
        self.syslab("merge", hers)
        series = [one for one in self.json("log", "command")["series"] if one["implementation"] == "me"]
        self.assertEqual(sorted((one["measured_here"], [point["seconds"] for point in one["points"]]) for one in series),
                         [(False, [0.001]), (True, [0.003])])
        self.assertIn("me (self-reported)", self.syslab("log", "command").stdout)
        self.assertEqual(sorted(run["measured_here"] for run in self.json("log")["runs"]), [False, False, True])
        self.assertEqual(self.syslab("log").stdout.count("self-reported"), 2)
        [(comparison,)] = self.sql("SELECT uid FROM comparison")
        self.assertEqual(self.json("show", comparison)["comparison"]["measured_here"], 0)
        report = self.syslab("report", "command", "--no-figures").stdout
        self.assertIn("| `a (self-reported)` | `b (self-reported)` |", report)
        self.assertIn("elf-reported: 2 of 3 runs.", report)
        self.assertRegex(report, r"[Ss]elf-reported\.\n\n<sub>every row: δ")  # below the table of comparisons, all of it
        self.assertEqual(report.count("| compare (self-reported) |") + report.count("| run (self-reported) |"), 2)
        self.assertIn("2 of 3 runs are self-reported.", self.syslab("report", "--handout", "2026", "--no-figures").stdout)
        [(hers_run,)] = self.sql("SELECT run_uid FROM arrival LIMIT 1")
        self.assertIn("is self-reported: merge of 'hers.db', not measured here", self.syslab("pin", "base", hers_run).stderr)
        self.assertIn("self-reported: it was merged or imported, and not measured here", self.syslab("doctor", hers_run, expect=None).stdout)
        self.syslab("merge", "--trust", hers)
        self.assertNotIn("self-reported", self.syslab("log").stdout + self.syslab("log", "command").stdout)

    def test_a_law_that_somebody_else_says_passed_hides_no_failure(self):
        check = ("check", "flash_forward", "--mine", f"me={PLUGINS}/faulty_attention.so", "--cases", "3", "-k", "equals_oracle",
                 "--contract", "handout")
        self.syslab(*check, expect=1)
        hers = self.folder / "hers.db"
        shutil.copy(self.db, hers)
        change(hers, *(f"UPDATE {table} SET uid = substr(uid, 1, 24) || printf('%012x', id)" for table in ("run", "attempt", "check_result", "artifact")),
               "UPDATE attempt_event SET status = 'ok', detail = NULL WHERE status = 'check_failed'", "DELETE FROM run_mac",
               "UPDATE check_result SET outcome = 'passed', worst_error = 1e-6, message = NULL, counterexample = NULL")
        self.syslab("merge", hers)
        self.assertEqual(self.sql("SELECT DISTINCT outcome FROM v_coverage WHERE measured_here AND law = 'attention.equals_oracle'"),
                         [("falsified",)])
        laws = self.syslab("report", "flash_forward", "--no-figures").stdout
        self.assertIn("| `attention.equals_oracle` | `me` | handout | **falsified** |", laws)
        self.assertIn("| `attention.equals_oracle` | `me (self-reported)` | handout | passed |", laws)
        self.assertEqual(self.lines(*check, "--last-failed", expect=1)[-1]["chosen_by"], "-k equals_oracle and --last-failed")

    def test_a_comparison_from_elsewhere_takes_no_place_of_one_that_was_made_here(self):
        compare = ("compare", "--command", "a=echo took 1 ms", "--command", "b=echo took 2 ms", "--reads", "took {} ms", "--launches", "3")
        self.syslab(*compare, expect=None)
        hers = self.folder / "hers.db"
        self.syslab(*compare, "--db", hers, expect=None)
        [(mine,)] = self.sql("SELECT uid FROM comparison")
        change(hers, f"UPDATE comparison SET confirms = '{mine}'")
        self.syslab("merge", hers)
        last = f"SELECT is_last FROM v_comparison WHERE comparison_uid = '{mine}'"
        self.assertEqual(self.sql(last), [(1,)])
        self.syslab("merge", "--trust", hers)
        self.assertEqual(self.sql(last), [(0,)])

    def test_sentences_and_ceilings_are_of_what_was_measured_here(self):
        hers = self.folder / "hers.db"
        self.syslab("run", "ceiling_gemm", "-a", "dtype=fp32", "-a", "size=1024", "-a", "device=cpu", "--impl", "openblas",
                    "--protocol", "kernel", "--db", hers)
        self.syslab("run", "weighted_sum", "-a", "rows=64", "-a", "dim=64", "-a", "dtype=fp32", "-a", "device=cpu", "--impl", "naive",
                    "--db", hers)
        self.syslab("merge", hers)
        ceilings = "SELECT count(*) FROM v_ceiling"
        self.assertEqual(self.sql(ceilings), [(0,)])
        self.assertRegex(self.syslab("report", "weighted_sum", "--no-figures").stdout, r"- \*Self-reported:\* .*`naive` reaches ")
        self.syslab("merge", "--trust", hers)
        self.assertEqual(self.sql(ceilings), [(1,)])
        self.assertNotIn("Self-reported", self.syslab("report", "weighted_sum", "--no-figures").stdout)

    def test_a_strangers_copy_that_is_three_times_as_fast_changes_no_answer(self):
        hers = self.folder / "hers.db"
        content = lzma.decompress((pathlib.Path(__file__).parents[2] / "reports/examples/handout.db.xz").read_bytes())
        for file in (self.db, hers):
            file.write_bytes(content)
        change(hers, *(f"UPDATE {table} SET uid = substr(uid, 1, 24) || printf('%012x', id)"
                       for table in ("run", "attempt", "check_result", "artifact", "comparison")),
               *(f"DELETE FROM {table}" for table in ("run_mac", "arrival", "pin", "run_submission")),
               "UPDATE metric SET value = value / 3, ci_low = ci_low / 3, ci_high = ci_high / 3 WHERE unit IN ('s', 'B')",
               "UPDATE metric SET value = value * 3, ci_low = ci_low * 3, ci_high = ci_high * 3 WHERE unit LIKE '%/s'",
               "UPDATE sample SET value = value / 3 WHERE series_id IN (SELECT id FROM series WHERE unit = 's')")

        def answers(year):
            text = self.syslab("report", "--handout", year, "--no-figures").stdout
            return [line.partition("Not passed: ")[0] for line in text.splitlines() if line.startswith("- **(")]

        before = {year: answers(year) for year in ("2025", "2026")}
        self.assertGreater(min(map(len, before.values())), 25)
        self.syslab("merge", hers)
        for year, told in before.items():
            self.assertEqual(answers(year), told)

    def laws_in(self, claim):
        said = json.loads((self.folder / claim).read_text(encoding="utf-8"))
        return [law for side in ("faster", "slower") for law in said[side].get("laws", [])]

    def test_a_claim_tells_laws_of_what_was_searched_here(self):
        mine = ("flash_forward", "--mine", f"me={PLUGINS}/naive_attention.so")
        hers = self.folder / "hers.db"
        self.syslab("check", *mine, "--cases", "1", "-k", "equals_oracle", "--contract", "handout", "--db", hers)
        self.syslab("merge", hers)
        claim = ("claim", "me >= 0.001 x naive", *mine, "-a", "seq=512", "-a", "head_dim=64", "-a", "heads=4", "-a", "dtype=fp32",
                 "-a", "causal=true", "--launches", "4", "-o", "x.claim")
        self.syslab(*claim)
        self.assertEqual(self.laws_in("x.claim"), [])
        self.syslab("merge", "--trust", hers)
        (self.folder / "x.claim").unlink()
        self.syslab(*claim)
        self.assertEqual([law["name"] for law in self.laws_in("x.claim")], ["attention.equals_oracle", "attention.lse_equals_oracle"])

    def test_a_claim_names_no_file_by_an_axis(self):
        self.syslab("claim", "slowdown=0 >= 2 x slowdown=900", "selftest_compare", "-a", "steps=100000", "--protocol", "quick",
                    "--launches", "4", "-o", "x.claim")
        claim = self.folder / "x.claim"
        said = json.loads(claim.read_text(encoding="utf-8"))
        said["claim"] = "build=/bin/false >= 2 x slowdown=900"
        said["faster"]["label"] = "build=/bin/false"
        claim.write_text(json.dumps(sealed(said)), encoding="utf-8")
        self.assertIn("another program", self.assert_refused("verify", claim))
        said["claim"] = "impl=host >= 2 x impl=host_eager"
        for side, name in (("faster", "host"), ("slower", "host_eager")):
            said[side].update(label=name, name=name)
        said["cases"][0].update(experiment="train_lm", title="train_lm")
        said["question"].update(experiments=["train_lm"], preset="smoke",
                                assignments=["device=cpu", f"text={self.secret}", f"checkpoint={self.out}"])
        claim.write_text(json.dumps(sealed(said)), encoding="utf-8")
        beside = self.folder / f"{self.out.name}.999999999.tmp"  # who writes a checkpoint there removes it
        beside.touch()
        self.assertIn("chooses no file", self.assert_refused("verify", claim))
        self.assertTrue(beside.exists())

    def test_every_axis_that_takes_any_text_is_known_to_name_files(self):
        open_texts = {f"{one['id']}.{axis['name']}": axis["names_files"]
                      for one in self.json("list", "all")["experiments"] for axis in one["axes"]
                      if not axis["closed"] and axis["values"] and isinstance(axis["values"][0], str)}
        self.assertEqual(open_texts, {"train_lm.text": True, "train_lm.checkpoint": True})

    def test_what_is_written_is_private_and_a_file_that_was_there_keeps_its_mode(self):
        def mode(path):
            return stat.S_IMODE(os.stat(path).st_mode)

        page, table = self.folder / "page.html", self.folder / "table.csv"
        table.touch()
        table.chmod(0o644)
        before = os.umask(0)
        try:
            self.syslab("run", *TRAIN, "-a", f"checkpoint={self.out}")
            self.syslab("report", "train_lm", "-o", page)
            self.syslab("query", "SELECT 1", "-o", table, expect=None)
            self.syslab("report", "train_lm", "-o", table)
        finally:
            os.umask(before)
        self.assertEqual([mode(path) for path in (self.db, self.out, page, table)], [0o600, 0o600, 0o600, 0o644])


class StrangersFolder(Lab):
    """What only looks (`doctor`, `log`) runs nothing of the folder in which it is called."""

    def setUp(self):
        super().setUp()
        self.mark = self.folder / "mark"
        self.strange = self.folder / "strange"
        self.strange.mkdir()

    def test_doctor_imports_no_module_of_the_folder(self):
        for name in ("platform", "numpy", "torch", "zipfile", "typing", "email", "csv", "sitecustomize"):
            (self.strange / f"{name}.py").write_text(f"open({str(self.mark)!r}, 'w').close()\n", encoding="utf-8")
        for path in ("", ":/nowhere", ".", "./:/nowhere"):
            with mock.patch.dict(os.environ, PYTHONPATH=path):
                self.assertRegex(self.syslab("doctor", cwd=self.strange, expect=None).stdout, r"Python +3\.")
            self.assertFalse(self.mark.exists(), path)

    def test_log_starts_nothing_that_the_configuration_of_its_repository_names(self):
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run([*git, "init", "-q", "."], cwd=self.strange, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=self.strange, check=True)
        program = self.strange / "program"
        program.write_text(f"#!/bin/sh\ntouch '{self.mark}'\n", encoding="utf-8")
        program.chmod(0o755)
        (self.strange / ".git" / "config").write_text(  # a partial clone, whose missing commits git would fetch
            f'[core]\n\trepositoryformatversion = 1\n\tfsmonitor = "{program}"\n[extensions]\n\tpartialClone = origin\n'
            f'[remote "origin"]\n\turl = "ext::{program}"\n\tpromisor = true\n[protocol "ext"]\n\tallow = always\n',
            encoding="utf-8")
        for revision in ("a" * 40, "b" * 40):
            self.syslab("run", "selftest_compare", "-a", "steps=20000", "--protocol", "quick", "--db", f"{revision}.db")
            connection = sqlite3.connect(self.folder / f"{revision}.db")
            facts = json.loads(connection.execute("SELECT facts FROM build").fetchone()[0])
            connection.close()
            text = json.dumps({**facts, "git_sha": revision, "git_dirty": False, "git_diff": ""}, sort_keys=True, separators=(",", ":"))
            change(self.folder / f"{revision}.db",
                   f"UPDATE build SET facts = '{text}', uid = '{hashlib.sha256(text.encode()).hexdigest()}'")
            self.syslab("merge", f"{revision}.db")
        [series] = json.loads(self.syslab("log", "selftest_compare", "--json", cwd=self.strange).stdout)["series"]
        self.assertEqual(len(series["points"]), 2, "both revisions are asked for")
        self.assertFalse(self.mark.exists())


if __name__ == "__main__":
    unittest.main()
