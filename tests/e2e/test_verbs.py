"""Every verb on real cases: what it prints is JSON when asked, and what it stores is found again."""
import csv
import io
import json
import shutil
import subprocess
import unittest

from lab import Lab, attempts, summary


class Verbs(Lab):
    def test_list_describe_plan(self):
        experiments = {e["id"]: e for e in self.json("list")["experiments"]}
        self.assertIn("flash_forward", experiments)
        self.assertNotIn("selftest_empty", experiments)
        self.assertIn("flash_forward", self.syslab("list").stdout)
        listed = self.syslab("list").stdout
        headings = [line for line in listed.splitlines() if line.startswith(("Hand-out", "Of no"))]
        self.assertEqual(headings, ["Hand-outs 2025 and 2026", "Hand-out 2026", "Hand-out 2025", "Of no hand-out"])
        self.assertRegex(listed, r"\nflash_forward +15 +- +\d+ +\d+  ")  # there is no database: nothing is told of what is answered
        self.assertEqual(self.json("describe", "flash_forward"), experiments["flash_forward"])
        text = self.syslab("describe", "flash_forward").stdout
        for axis in experiments["flash_forward"]["axes"]:
            self.assertIn(axis["name"], text)
        for law in experiments["flash_forward"]["laws"]:
            self.assertIn(law["id"], text)
        plan = self.json("plan", "flash_forward", "-a", "seq=pow2:4:6", "-a", "causal=true", "--impl", "naive")
        self.assertEqual([c["params"]["seq"] for c in plan["cases"]], [16, 32, 64])
        self.assertEqual(plan["to_run"], 3)
        self.assertEqual(self.json("list", "--tag", "attention"), self.json("list", "tag:attention"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_completion_in_each_shell_that_is_here(self):
        asked = {"syslab che": ["check"], "syslab check flash_": ["flash_backward", "flash_benchmarking", "flash_forward"],
                 "syslab run --laws ": ["full", "none", "quick"], "syslab completion ": ["bash", "fish", "zsh"]}
        bash = self.folder / "syslab.bash"
        bash.write_text(self.syslab("completion", "bash").stdout)
        for line, wanted in asked.items():
            words = line.split(" ")
            script = (f'source {bash}; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; _syslab; printf "%s\\n" "${{COMPREPLY[@]}}"')
            told = subprocess.run(["bash", "-euc", script, "bash", *words], capture_output=True, text=True, check=True)
            self.assertEqual(sorted(told.stdout.split()), wanted, line)
        for shell in ("zsh", "fish"):
            script = self.folder / f"syslab.{shell}"
            script.write_text(self.syslab("completion", shell).stdout)
            self.assertIn("flash_forward", script.read_text())
            if shutil.which(shell):
                subprocess.run([shell, "-n", script], check=True)
        if shutil.which("fish"):
            for line, wanted in asked.items():
                told = subprocess.run(["fish", "-c", f"source {self.folder / 'syslab.fish'}; complete -C '{line}'"],
                                      capture_output=True, text=True, check=True)
                self.assertEqual([one.split("\t")[0] for one in told.stdout.splitlines()], wanted, line)
        self.assertIn("tcsh", self.refused("completion", "tcsh"))

    def test_run_stores_what_it_prints(self):
        lines = self.lines("run", "flash_forward", "-a", "seq=32", "-a", "heads=1", "--impl", "naive", "--protocol", "quick",
                           "--laws", "none", "--label", "an e2e run")
        run = lines[0]["run"]
        done = attempts(lines)
        self.assertTrue(done)
        self.assertEqual(summary(lines)["counts"], {"ok": len(done)})
        self.assertEqual(summary(lines)["exit"], 0)
        self.assertEqual(self.sql("SELECT uid, verb, label FROM run"), [(run, "run", "an e2e run")])
        stored = dict((uid, (seq, status)) for seq, status, uid in self.ended_attempts(run))
        for line in done:
            self.assertEqual(stored.pop(line["attempt"]), (line["index"], line["status"]))
            self.assertGreater(line["metrics"]["time"], 0)
        self.assertEqual(stored, {})
        self.assertEqual(self.sql("SELECT count(*) FROM check_result WHERE outcome = 'passed' AND name LIKE 'reference:%'")[0][0],
                         2 * len(done))
        self.assert_intact()

        # Verbs that read: every format, and the same numbers.
        rows = self.json("query", "SELECT uid, plan_seq FROM attempt ORDER BY uid")
        self.assertIn(done[0]["attempt"], json.dumps(rows))
        table = self.syslab("query", "SELECT uid, plan_seq FROM attempt ORDER BY uid", "--to", "csv").stdout
        self.assertEqual([row["uid"] for row in csv.DictReader(io.StringIO(table))], sorted(d["attempt"] for d in done))
        report = self.syslab("report", "flash_forward", "--no-figures").stdout
        self.assertIn("naive", report)
        self.syslab("report", "flash_forward", "--no-figures", "-o", "report.md")
        self.assertEqual((self.folder / "report.md").read_text(), report)
        link = self.folder / "link.md"
        link.symlink_to("linked.md")
        self.syslab("report", "flash_forward", "--no-figures", "-o", "link.md")
        self.assertTrue(link.is_symlink(), "a link is written through, as a device must be")
        self.assertEqual((self.folder / "linked.md").read_text(), report)
        self.json("report", "flash_forward")
        self.syslab("report", "--to", "csv")
        resumed = self.lines("resume")
        self.assertEqual((resumed[0]["run"], resumed[0]["missing"]), (run, 0))

    def test_run_for_people(self):
        done = self.syslab("run", "selftest_empty", "-a", "repeat=1:3:1")
        self.assertIn("3 cases", done.stdout)
        self.assertIn("next: syslab report", done.stdout)
        self.assertEqual(len(done.stderr.strip().splitlines()), 3, "a plain line a case off a terminal")
        quiet = self.syslab("run", "selftest_empty", "--quiet")
        self.assertEqual((quiet.stdout, quiet.stderr), ("", ""))

    def test_laws_run_before_cases(self):
        lines = attempts(self.lines("run", "weighted_sum", "--preset", "smoke"))
        tasks = [line["task"] for line in lines]
        self.assertEqual(tasks, sorted(tasks), "laws come first")
        self.assertIn("law", tasks)
        self.assertIn("measure", tasks)
        self.assertTrue(all(line["status"] == "ok" or line["status"] in ("skipped", "unsupported") for line in lines))

    def test_env_and_doctor(self):
        facts = self.json("env")
        self.assertEqual(len(facts["comparability_key"]), 64)
        self.assertIn("version", facts["build"])
        self.assertIn("cpu", self.syslab("env").stdout)
        done = self.syslab("doctor", "--json", expect=None)
        findings = json.loads(done.stdout)["findings"]
        self.assertTrue(all(f["level"] in ("fine", "doubtful", "bad") for f in findings))
        self.assertTrue(all(f["remedy"] for f in findings if f["level"] != "fine"))
        self.assertEqual(done.returncode, 3 if any(f["level"] == "bad" for f in findings) else 0)

    def test_merge_unites_and_repeats_without_effect(self):
        others = []
        for name in ("a.db", "b.db"):
            self.db = self.folder / name
            self.syslab("run", "selftest_empty", "-a", "repeat=1:4:1")
            others.append(self.db)
        self.db = self.folder / "lab.db"
        merged = self.json("merge", *others)["merged"]
        self.assertEqual([(m["runs"], m["attempts"]) for m in merged], [(1, 4), (1, 4)])
        self.assertEqual(self.sql("SELECT count(*), count(DISTINCT run_id) FROM attempt"), [(8, 2)])
        self.assertEqual(self.sql("SELECT count(*) FROM case_def"), [(4,)], "equal cases unite")
        again = self.json("merge", *others)["merged"]
        self.assertEqual([(m["runs"], m["attempts"]) for m in again], [(0, 0), (0, 0)])
        self.assertEqual(self.sql("SELECT count(*) FROM attempt"), [(8,)])
        self.assert_intact()
        self.assertIn("no database", self.refused("merge", "none.db"))
        (self.folder / "README.md").write_text("no database at all, but more than a hundred bytes long: " + "x" * 100)
        refused = self.syslab("merge", "README.md", expect=4).stderr
        self.assertIn("it is not an SQLite database", refused)
        self.assertNotIn("--db", refused, "that names the database that is merged into, not the file that is refused")

    def test_two_at_once_on_one_file(self):
        command = self.command("run", "selftest_empty", "-a", "repeat=1:15:1", "--json")
        both = [subprocess.Popen(command, cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for _ in range(2)]
        for process in both:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(summary(map(json.loads, out.splitlines()))["counts"], {"ok": 15})
        self.assertEqual(self.sql("SELECT count(*), count(DISTINCT run_id) FROM attempt"), [(30, 2)])
        self.assert_intact()


if __name__ == "__main__":
    unittest.main()
