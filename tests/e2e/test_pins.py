"""pin, diff, gate, doctor RUN, where no verdict hangs on what else the machine does: other tests run beside these."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import textwrap
import unittest

from comparing import Comparing, Gating, OnGithub
from lab import SYSLAB


class Pins(Comparing):
    def test_pins_are_never_moved(self):
        self.pinned("--label", "first")
        self.pinned("--label", "second")
        pins = self.json("pin")["pins"]
        self.assertEqual([(p["name"], p["current"]) for p in pins], [("base", True), ("base", False)])
        labels = dict(self.sql("SELECT uid, label FROM run"))
        self.assertEqual([labels[p["run"]] for p in pins], ["second", "first"])
        self.assertIn("before:", self.syslab("pin", "base").stdout)
        self.assertEqual(self.sql("SELECT count(*) FROM pin"), [(2,)])
        for name, run, expected in (("latest", "latest", "cannot be a pin"), ("cafe", "latest", "uid"),
                                    ("a b", "latest", "word"), ("fine", "nonsense", "no run")):
            self.assertIn(expected, self.refused("pin", name, run))
        self.assertIn("no pin", self.refused("pin", "other"))


class Diff(Comparing):
    def test_stored_runs_beside_each_other(self):
        self.pinned("-a", "slowdown=0,1", name="before")
        self.pinned("-a", "slowdown=1,2", name="after")
        found = self.json("diff", "before", "after")
        self.assertFalse(found["interleaved"])
        self.assertEqual([len(found[part]) for part in ("cases", "only_a", "only_b", "differing")], [1, 1, 1, 0])
        self.assertEqual(found["cases"][0]["verdict"], "unclear", "one launch each is no ground for more")
        text = self.syslab("diff", "before", "after").stdout
        for expected in ("not measured in turns", "No verdict on B against A", "Unclear (1)", "Only in A (1)", "Only in B (1)"):
            self.assertIn(expected, text)
        self.assertIn("no run and no pin", self.refused("diff", "before", "nowhere"))
        self.assertIn("are the same run", self.refused("diff", "latest", "after"))
        self.assertIn("above 0 %", self.refused("diff", "before", "after", "--delta", "-2%"))

    def test_an_imported_run_names_no_file_that_gate_could_measure(self):
        case = {"type": "case", "experiment": "weighted_sum", "implementation": "theirs", "language": "Rust",
                "params": {"rows": 1000, "dim": 100, "pass": "forward"}}
        lines: list[dict] = [
            {"type": "run", "author": "eve", "protocol": {"name": "do_bench"}}, case,
            {"type": "check", "name": "reference:y", "outcome": "passed", "worst_error": 1.2e-07, "tolerance": 3.1e-06},
            {"type": "sample", "series": "time", "unit": "s", "values": [1.01e-4, 1.03e-4, 1.02e-4]},
            {"type": "metric", "name": "time", "unit": "s", "value": 1.02e-4, "low": 1.01e-4, "high": 1.03e-4, "n": 3},
            {"type": "end", "status": "ok"}]
        (self.folder / "theirs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.syslab("import", "theirs.jsonl")
        said = self.syslab("gate", "--against", "latest", expect=None)
        self.assertIn(said.returncode, (2, 3))
        said = said.stdout + said.stderr
        self.assertIn("was imported and names no file for 'theirs'", said)
        self.assertIn("syslab run EXPERIMENT --mine theirs=FILE", said)
        self.assertNotIn("the file ''", said)

    def test_what_differs_in_the_conditions_is_listed(self):
        self.pinned(name="before")
        self.pinned("--data", "uniform", name="after")
        found = self.json("diff", "before", "after")
        self.assertEqual(found["cases"][0]["verdict"], "incomparable")
        self.assertEqual(found["differing"], ["protocol.data: A normal, B uniform"])

    def test_checks_that_changed_come_first(self):
        for fault in ("none", "check_failed"):
            self.syslab("run", "selftest_faults", "-a", f"fault={fault}", "--laws", "none", expect=None)
            self.syslab("pin", "run_" + fault, "latest")
        self.assertEqual(self.json("diff", "run_none", "run_check_failed")["checks"], [], "other cases, other checks")


class Workflow(Comparing):
    def test_the_example_for_github_gates_the_head_and_not_the_base_again(self):
        repository, page = self.folder / "head", pathlib.Path(__file__).parents[2] / "docs" / "gate-on-github.yml"
        repository.mkdir()

        def git(*words):
            return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=repository, check=True, text=True,
                                  capture_output=True).stdout.strip()

        git("init", "-q")
        (repository / "Makefile").write_text("bench: bench.sh\n\tcp bench.sh bench\n\tchmod +x bench\n")
        for took in (0.5, 0.9):
            (repository / "bench.sh").write_text(f"#!/bin/sh\necho took {took} ms\n")
            git("add", ".")
            git("commit", "-q", "-m", f"takes {took} ms")
        steps = [textwrap.dedent(step.split("\n\n")[0]) for step in page.read_text().split("        run: |\n")[1:]]
        self.assertEqual(len(steps), 2)
        script = "\n".join(steps).replace("${{ github.event.pull_request.base.sha }}", git("rev-parse", "HEAD~1"))
        for before, after in (("-a n=1k:16k", "-a n=1 --reads 'took {} ms' --protocol quick"), ("--launches 5", "--launches 3")):
            self.assertIn(before, script)
            script = script.replace(before, after)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "syslab").symlink_to(SYSLAB)
        environment = {**self.environment(), "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=repository, env=environment, text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
        self.assertIn("takes 80", done.stdout)


class Gate(Gating):
    def test_times_under_another_version_of_the_protocols_are_compared_with_none(self):
        self.pinned("--launches", "3")
        self.assertEqual(self.sql("SELECT DISTINCT protocol FROM v_latest WHERE metric = 'time'"), [("quick",)], "today's has no number")
        self.made_version_1()
        one, = self.gated("--delta", "900%", expect=5)
        self.assertEqual((one["verdict"], one["reason"]), ("incomparable", "protocol.version: A 1, B 2"))
        self.assertEqual(self.sql("SELECT count(*) FROM v_attempt t JOIN run r ON r.id = t.run_id WHERE r.verb = 'gate'"), [(0,)],
                         "nothing was measured")
        self.pinned(name="now")
        found = self.json("diff", "base", "now")
        self.assertEqual(found["differing"], ["protocol.version: A 1, B 2"])
        self.assertEqual([case["verdict"] for case in found["cases"]], ["incomparable"])
        self.assertEqual(sorted(self.sql("SELECT protocol FROM v_latest WHERE metric = 'time'")), [("quick",), ("quick, version 1",)])

    def test_a_table_tells_times_under_another_version_of_the_protocols_apart(self):
        smoke = ("run", "weighted_sum", "--preset", "smoke", "--laws", "none", "--impl", "naive")
        self.syslab(*smoke)
        self.made_version_1()
        self.syslab(*smoke)
        rows = [line for line in self.syslab("report", "weighted_sum").stdout.splitlines() if line.startswith(("| forward", "| backward"))]
        self.assertEqual(sorted(line.count("quick, version 1") for line in rows), [0] * (len(rows) // 2) + [1] * (len(rows) // 2), rows)

    def test_an_interrupted_gate_is_incomplete(self):
        self.pinned("--launches", "3")
        process = self.started("gate", "--against", "base", "--build", SYSLAB, launch=4)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, out)
        self.assert_intact()
        self.assertIn("interrupted", self.sql("SELECT reason FROM v_comparison")[0][0])
        process = self.started("gate", "--against", "base", launch=1)  # against stored values
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, out)
        self.assert_intact()
        self.assertEqual(self.sql("SELECT count(*) FROM v_attempt WHERE status = 'running'"), [(0,)])

    def test_a_self_reported_pin_is_called_so(self):
        self.pinned("--launches", "3")
        one, = self.gated("--delta", "900%", expect=0)
        self.assertFalse(one["pin"]["self_reported"])
        self.assertNotIn("self-reported", self.syslab(*self.GATE, "--delta", "900%").stdout)
        hers = self.folder / "hers.db"
        self.db.rename(hers)
        self.syslab("merge", hers)
        self.syslab("pin", "base", self.sql("SELECT uid FROM run WHERE verb = 'run'")[0][0])
        one, = self.gated("--delta", "900%", expect=0)
        self.assertEqual((one["pin"]["self_reported"], one["pin"]["how"], one["pin"]["source"]), (True, "merge", "hers.db"))
        self.assertIn("self-reported: it was merged from 'hers.db'", self.syslab(*self.GATE, "--delta", "900%").stdout)
        self.syslab("merge", hers, "--trust")
        self.assertFalse(self.gated("--delta", "900%", expect=0)[0]["pin"]["self_reported"])

    def test_a_case_that_is_gone_is_missing(self):
        self.pinned()
        self.change_stored_version()
        self.assertIn("missing: selftest_compare", self.syslab(*self.GATE, expect=3).stdout)

    def test_a_case_that_did_not_end_well_when_it_was_pinned_is_told_and_unclear(self):
        script = self.folder / "bench.sh"
        script.write_text("#!/bin/sh\ntest $1 = 2 && exit 3\necho took 0.5 ms\n")
        script.chmod(0o755)
        self.syslab("run", "--command", "me=./bench.sh {n}", "-a", "n=1,2", "--reads", "took {} ms", "--launches", "3", "--protocol", "quick", expect=3)
        self.syslab("pin", "base", "latest")
        script.write_text("#!/bin/sh\necho took 0.5 ms\n")
        gate = ("gate", "--against", "base", "--launches", "3")
        said = self.syslab(*gate, expect=5).stdout
        self.assertRegex(said, r"not gated: command .*n=2.*: it ended as error in the pinned run\n")
        told, = [line for line in self.lines(*gate, expect=5) if line["type"] == "not_gated"]
        self.assertEqual(told["reason"], "it ended as error in the pinned run")
        script.write_text("#!/bin/sh\necho took 0.9 ms\n")
        self.syslab(*gate, expect=6)

    def test_names_select_and_unknown_pins_are_refused(self):
        self.pinned()
        self.assertIn("measured none", self.refused(*self.GATE, "flash_forward"))
        self.assertIn("no run and no pin", self.refused("gate", "--against", "other"))

    def test_a_budget_against_stored_values_is_refused(self):
        self.pinned()
        self.assertIn("--launches says", self.refused("gate", "--against", "base", "--budget", "1m"))

    def test_a_program_that_did_not_make_the_pin_is_refused(self):
        self.pinned()
        connection = sqlite3.connect(self.db)
        connection.execute("DROP TRIGGER build_no_update")
        connection.execute("UPDATE build SET facts = json_set(facts, '$.git_sha', 'deadbeef')")
        connection.commit()
        connection.close()
        self.assertIn("made by deadbeef", self.refused(*self.GATE, "--build", SYSLAB))

    def test_my_kernel_as_it_stands_now(self):
        """A Python kernel that is pinned, then broken: the gate takes the file that lies there now."""
        source = self.folder / "mine.py"
        original = pathlib.Path(os.environ["SYSLAB_MINE"], "plain.py").read_text(encoding="utf-8")
        source.write_text(original, encoding="utf-8")
        self.syslab("run", "flash_forward", "--mine", f"me={source}:Naive", "--impl", "me", "--preset", "smoke", "--laws",
                    "none", "-a", "seq=512", "-a", "causal=false", "-a", "dtype=fp32", "--launches", "3")
        self.syslab("pin", "base", "latest")
        source.write_text(original + textwrap.dedent("""
            def broken(*arguments, **named):
                raise RuntimeError("broken on purpose")
            Naive.forward = broken
            """), encoding="utf-8")
        self.assertIn("me, '%s:Naive', had digest" % source, self.refused(*self.GATE, "--build", SYSLAB))
        lines = self.gated(expect=3)
        self.assertTrue(all(line["verdict"] == "incomparable" for line in lines))
        source.write_text(original + textwrap.dedent("""
            right = Naive.forward
            def doubled(*arguments, **named):
                out, lse = right(*arguments, **named)
                return 2 * out, lse
            Naive.forward = doubled
            """), encoding="utf-8")
        lines = self.gated(expect=1)
        self.assertTrue(all("check_failed" in line["reason"] for line in lines))


class Github(OnGithub):
    def bench(self, tenths):
        script = self.folder / "bench.sh"
        script.write_text(f"#!/bin/sh\necho 0.{tenths} ms\n", encoding="utf-8")
        script.chmod(0o755)

    def test_a_summary_and_annotations(self):
        self.bench(5)
        self.syslab("run", "--command", "me=./bench.sh {n}", "-a", "n=1,2", "--reads", "{} ms", "--launches", "3", "--protocol", "quick")
        self.syslab("pin", "base", "latest")
        gate = ("gate", "--against", "base", "--launches", "3", "--github")
        self.assertNotIn("::", self.syslab(*gate, expect=0).stdout)
        self.bench(7)
        slower = [line for line in self.syslab(*gate, expect=6).stdout.splitlines() if line.startswith("::")]
        self.assertEqual(len(slower), 2, slower)
        self.assertTrue(slower[0].startswith("::error file=bench.sh,title=command me n=1"), slower)
        self.assertIn("slower::now takes 40.0 %25 more time than pinned", slower[0])
        self.assertIn("::error file=bench.sh", self.syslab(*gate, "--json", expect=6).stderr)
        well, ill, _ = (self.folder / "summary.md").read_text(encoding="utf-8").split("### Gate against base\n")[1:]
        self.assertIn("2 cases: 0 slower or wrong", well)
        self.assertIn("2 cases: 2 slower or wrong", ill)
        self.assertIn("| ❌ | command me n=1", ill)
        self.assertIn("| +40.0 % |", ill)

    def test_build_compares_programs_and_refuses_a_file_that_changed(self):
        self.bench(5)
        self.syslab("run", "--command", "me=./bench.sh {n}", "-a", "n=1", "--reads", "{} ms", "--launches", "3", "--protocol", "quick")
        self.syslab("pin", "base", "latest")
        gate = ("gate", "--against", "base", "--launches", "3")
        self.assertIn("`--build` names the program", self.syslab(*gate, expect=0).stdout)
        said = self.syslab(*gate, "--build", SYSLAB, expect=0).stdout
        self.assertIn("Both programs measure me as pinned", said)
        self.assertIn("nor are files that a place such as {n} or the text of sh -c names", said)
        self.bench(7)
        before = self.sql("SELECT count(*) FROM run")
        refused = self.refused(*gate, "--build", SYSLAB)
        self.assertIn("me, the command './bench.sh {n}' with the files that its words name, had digest", refused)
        self.assertIn("A:mine=old B:mine=new", refused)
        self.assertEqual(self.sql("SELECT count(*) FROM run"), before, "nothing was measured")
        slower = self.syslab(*gate, expect=6).stdout
        self.assertIn("me is not what was pinned", slower)
        self.assertNotIn("--build", slower)

    def test_build_refuses_a_changed_file_behind_an_equals_sign(self):
        self.bench(5)
        data = self.folder / "data.txt"
        data.write_text("a")
        self.syslab("run", "--command", "me=./bench.sh --data=data.txt {n}", "-a", "n=1", "--reads", "{} ms", "--launches", "3", "--protocol", "quick")
        self.syslab("pin", "base", "latest")
        data.write_text("b")
        self.assertIn("had digest", self.refused("gate", "--against", "base", "--launches", "3", "--build", SYSLAB))

    def test_behind_what_is_unclear_stands_what_would_tell(self):
        self.bench("$(date +%N)")  # anything between 0 and 1
        self.syslab("run", "--command", "me=./bench.sh {n}", "-a", "n=1,2", "--reads", "{} ms", "--launches", "3", "--protocol", "quick")
        self.syslab("pin", "base", "latest")
        said = self.syslab("gate", "--against", "base", "--launches", "3", "--delta", "0.1%", expect=None).stdout
        self.assertIn("What is unclear is told by more launches of both sides", said)

    def test_without_a_file_for_the_summary_nothing_is_measured(self):
        self.pinned()
        (self.folder / "summary.md").mkdir()
        self.assertIn("cannot be written to", self.refused("gate", "--against", "base", "--github"))
        self.assertEqual(self.sql("SELECT count(*) FROM run"), [(1,)])


class Fitness(Comparing):
    def test_a_quick_run_of_one_launch_is_not_fit(self):
        self.pinned()
        findings = json.loads(self.syslab("doctor", "base", "--json", expect=3).stdout)["findings"]
        levels = {f["subject"]: f["level"] for f in findings}
        self.assertEqual((levels["protocol"], levels["launches"]), ("bad", "bad"))
        self.assertEqual((levels["checks"], levels["cases"]), ("fine", "fine"))
        self.assertIn("not fit to publish", self.syslab("doctor", "base", expect=3).stdout)

    def test_noise_of_this_machine(self):
        done = self.syslab("doctor", "--noise", "--budget", "3s", "--json", expect=None, timeout=600)
        noise = json.loads(done.stdout)["noise"]
        chain = next(n for n in noise if "selftest_compare" in n["case"])
        self.assertGreaterEqual(chain["launches"], 3)
        self.assertGreater(chain["between_blocks"], 0)
        self.assertTrue(all(value > 0 for value in chain["smallest_detectable"].values()))
        self.assertIn("ask for one", self.refused("doctor", "latest", "--noise"))


if __name__ == "__main__":
    unittest.main()
