"""tools/gpu_rows on ranks of the CPU: that it measures what it plans, goes on where it stopped, and says what it cannot."""
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import unittest

from lab import SYSLAB, Lab

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/gpu_rows"
sys.path.insert(0, str(TOOL.parent))
from gpu_rows_pytorch import log_of  # noqa: E402
FAKE = """#!/bin/sh
if [ "$1" = env ]; then echo '{{"build": {{"cuda": true}}, "environment": {{"gpu": {gpus}}}}}'; else exec '{syslab}' "$@"; fi
"""


class GpuRows(Lab):
    def setUp(self):
        super().setUp()
        self.rows = self.folder / "rows"
        self.db = self.rows / "rows.db"

    def words(self, *arguments, syslab=SYSLAB):
        return [sys.executable, str(TOOL), *map(str, arguments), "--folder", str(self.rows), "--syslab", str(syslab)]

    def tool(self, *arguments, expect=0, **options):
        environment = {**self.environment(), "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(self.words(*arguments, **options), cwd=self.folder, env=environment, text=True, capture_output=True,
                              timeout=240)
        self.assertEqual(done.returncode, expect, f"{arguments}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done

    def on_cpu(self, *arguments, **options):
        return self.tool(*arguments, "--device", "cpu", **options)

    def with_gpus(self, gpus):
        """A program that says it has so many, and has what this machine has."""
        fake = self.folder / "syslab"
        fake.write_text(FAKE.format(gpus=[0] * gpus, syslab=SYSLAB))
        fake.chmod(0o755)
        return fake

    def measured(self):
        return self.sql("SELECT experiment, world_size, params, implementation, count(*) FROM v_attempt WHERE status = 'ok'"
                        " GROUP BY 1, 2, 3, 4")

    def test_it_plans_measures_and_reports_every_part_and_measures_nothing_twice(self):
        ours = ("--without", "pytorch-*")
        planned = self.on_cpu("plan", *ours).stdout
        self.assertFalse(self.db.exists())
        parts = re.findall(r"^(\S+) +(\d+) +0 ", planned, re.M)
        cases = sum(int(number) for _, number in parts)
        self.assertIn(f"\n{cases} cases in {len(parts)} parts", planned)
        done = self.on_cpu(*ours)
        self.assertIn("every row that this machine can fill is there", done.stdout)
        self.assertEqual(sum(count for *_, count in self.measured()), cases)
        for experiment in ("distributed_communication_single_node", "ddp_bucketed_benchmarking", "fsdp_accounting",
                           "optimizer_state_sharding_accounting", "alternate_ring_all_reduce"):
            self.assertLessEqual({2, 4}, {ranks for name, ranks, *_ in self.measured() if name == experiment}, experiment)
        self.assertEqual({file.stem for file in (self.rows / "logs").glob("*.log")}, {name for name, _ in parts})
        self.assertIn("Distributed communication on a single node", (self.rows / "report.md").read_text(encoding="utf-8"))
        self.stands_side_by_side()
        again = self.on_cpu(*ours).stdout
        self.assertIn("is forecast to take 0 s", again)
        self.assertEqual(sum(count for *_, count in self.measured()), cases)
        self.what_is_missing_is_filled_by_the_command_that_the_table_says()

    def table(self, experiment, name):
        return super().table(experiment, name)["rows"]

    def stands_side_by_side(self):
        for row in self.table("distributed_communication_single_node", "ranks"):
            for ranks in (2, 4):
                if row[f"r{ranks}"] == "two modes":  # as on a busy machine: then there is no one time
                    continue
                self.assertGreater(min(row[f"r{ranks}"], row[f"bus{ranks}"]), 0)
            self.assertEqual((row["r6"], row["bus6"]), ("missing", "–"))
        steps = {row["strategy"]: row for row in self.table("ddp_bucketed_benchmarking", "scaling")}
        self.assertEqual(set(steps), {"none", "naive", "planned"})
        alone = steps["none"]["r1"]
        for row in steps.values():
            self.assertEqual(row["rows"], 2)
            self.assertAlmostEqual(row["kept"], 100 * alone / row["r4"], delta=1e-6 * row["kept"])
        self.assertEqual((steps["naive"]["r1"], steps["naive"]["r8"]), ("–", "missing"))
        footnote = self.syslab("report", "ddp_bucketed_benchmarking", "--to", "md").stdout.split("**Weak scaling.**")[1].split("<sub>")[1]
        for ranks in (1, 2, 4):  # a run each
            self.assertIn(f"ddp-tiny-{ranks}'", footnote.split("</sub>")[0])

    def what_is_missing_is_filled_by_the_command_that_the_table_says(self):
        def missing():
            return {(row["operation"], row["ranks"]): row["command"]
                    for row in self.table("distributed_communication_single_node", "ranks_missing")}

        before = missing()
        self.assertEqual(set(before), {(operation, ranks) for operation in ("all_reduce", "all_gather") for ranks in (6, 8)})
        self.syslab(*shlex.split(before["all_gather", 6])[1:], "--laws", "none")
        self.assertEqual(set(before) - set(missing()), {("all_gather", 6)})

    def test_what_is_stopped_goes_on_where_it_was(self):
        only = ("--device", "cpu", "--only", "rings,all_reduce")
        process = subprocess.Popen(self.words(*only), cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        for line in process.stdout:
            if " 1/4 ok " in line:
                process.send_signal(signal.SIGTERM)
                break
        rest = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 130, rest)
        self.assertIn("the same command goes on from here", rest)
        before = self.measured()
        self.assertIn(len(before), (1, 2, 3, 4))
        said = self.tool("report", *only, expect=3).stdout
        self.assertRegex(said, r"missing: rings, not begun; filled by: .*gpu_rows .*--device cpu .*--only rings\n")
        self.tool(*only)
        after = self.measured()
        self.assertEqual(len(after), 4 + 4)
        self.assertEqual({count for *_, count in after}, {1})
        self.assertLessEqual({row[:4] for row in before}, {row[:4] for row in after})

    def test_it_ends_quietly_where_nobody_reads_on(self):
        for arguments, lines, codes, why in (
                (["plan", "--device", "cpu"], 0, (0, 141), ""), (["--help"], 0, (0, 141), ""), (["--dry-run", "--ranks", "8"], 1, (0, 141), ""),
                (["--device", "cpu", "--only", "rings"], 4, (141,), "gpu_rows: stopped (nobody reads on); the same command goes on")):
            process = subprocess.Popen(self.words(*arguments), cwd=self.folder, env=self.environment(), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(lines):
                process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read()
            process.stderr.close()
            self.assertIn(process.wait(timeout=60), codes, arguments)
            self.assertEqual(said[:len(why) or None], why, said)
            self.assertNotIn("Traceback", said)
        self.assertEqual(self.on_cpu("--only", "rings").returncode, 0)  # goes on
        self.assertEqual({count for *_, count in self.measured()}, {1})

    def test_parts_that_do_not_fit_are_left_and_named_with_the_command_that_fills_them(self):
        self.rows.mkdir()
        self.db.touch()  # as a run leaves it that was stopped while it made its database
        said = self.on_cpu("--only", "all_reduce", "--budget", "3s", expect=3).stdout
        self.assertIn("nothing has been measured", said)
        (command,) = re.findall(r"^missing: all_reduce, not begun; filled by: (.*)$", said, re.M)
        done = subprocess.run([sys.executable, *shlex.split(command)], cwd=self.folder, env=self.environment(), text=True,
                              capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({count for *_, count in self.measured()}, {1})

    def test_the_parts_of_the_cpu_are_such_that_syslab_can_plan_them_on_every_number_of_ranks(self):
        for ranks in (2, 4, 6, 8):
            said = self.on_cpu("plan", "--ranks", ranks).stdout
            self.assertRegex(said, rf"(?m)^crossing +{ranks} +0 ")  # 2 sizes on each of 2, 4, …
            self.assertNotIn("not here", re.sub(r"(?m)^pytorch.*", "", said))

    def test_the_parts_of_gpus_are_such_that_syslab_can_plan_them(self):
        said = self.tool("plan", syslab=self.with_gpus(8)).stdout
        for part in ("all_reduce", "ddp-xl26-8", "ddp-xl26-1", "copies-xl26-4", "bf16-xl26-2", "state-10B-6", "fsdp-10B-2", "leaderboard-2026-2", "leaderboard-2026"):
            self.assertRegex(said, rf"(?m)^{part} ")
        self.assertRegex(said, r"(?m)^rings +\d\d +0 ")  # its ranks are the CPU's

    def test_a_machine_without_gpus_plans_for_one_that_has_them(self):
        said = self.tool("plan", "--ranks", 8).stdout
        self.assertIn("for 8 GPUs, this machine has 0", said)
        cases = dict(re.findall(r"(?m)^(\S+) +(\d+) +0 ", said))
        # Of six strategies bucketed alone has a limit of buckets.
        for part, count in {"all_reduce": 4 * 4 * 3, "ddp-xl26-8": 6, "ddp-xl25-1": 1, "fsdp-10B-8": 2, "pytorch-steps-8": 1}.items():
            self.assertEqual(int(cases[part]), count, part)
        self.assertNotIn("not here", said)
        self.assertNotIn("forecast to take 0 s", said)
        self.assertEqual(self.tool("plan").stdout, said)
        four = self.tool("plan", "--ranks", 4, syslab=self.with_gpus(2)).stdout
        self.assertIn("for 4 GPUs, this machine has 2", four)
        self.assertNotIn("ddp-xl26-8", four)

    def test_a_report_is_of_what_the_folder_has(self):
        self.assertIn("missing: ddp-xl26-8, not begun", self.tool("report", expect=3).stdout)
        self.db.parent.mkdir(parents=True, exist_ok=True)
        self.syslab("run", "distributed_communication_single_node", "--preset", "smoke", "-a", "world_size=2", "--laws", "none",
                    "--label", "gpu_rows 6 cuda: all_reduce", "--db", self.db)  # as if of 6 GPUs
        said = self.tool("report", expect=3).stdout
        self.assertNotIn("missing: all_reduce", said)
        self.assertNotIn("xl26-8", said)
        self.assertRegex(said, r"missing: ddp-xl26-6, not begun; filled by: .*gpu_rows --ranks 6 .*--only ddp-xl26-6\n")
        self.assertIn("Distributed communication on a single node", (self.rows / "report.md").read_text(encoding="utf-8"))

    def test_what_pytorch_measured_stands_beside_ours_where_it_was_checked(self):
        about = {"ranks": 2, "backend": "gloo", "torch": "2", "nccl": None, "status": "ok"}
        step = {**about, "model": "tiny", "context": 16, "batch": 4, "precision": "fp32", "parameters": 95168, "peak_gib": [1, 2],
                "by_rank_ms": [[1, 2, 6], [3, 1, 5]], "replicas_equal": True}
        lines = [{**about, "operation": "all_reduce", "bytes": 1000, "bus_factor": 1.0, "single_by_rank_ms": [[1, 4, 1], [2, 1, 3]],
                  "pipelined_by_rank_ms": [[1, 1, 1], [2, 2, 2]]},
                 {**step, "variant": "ddp_25"}, {**step, "variant": "zero"}, {**step, "variant": "none", "replicas_equal": False},
                 {**step, "variant": "fsdp", "replicas_equal": None}, {**about, "variant": "naive", "status": "oom"}]
        log = self.folder / "torch.jsonl"
        log.write_text(log_of(lines, "theirs", {}))
        self.db = self.folder / "lab.db"
        self.syslab("import", log)
        self.assertEqual(self.sql("SELECT experiment, params ->> '$.strategy', params ->> '$.sharding', status, time_ms,"
                                  " metrics ->> '$.peak' FROM v_measured ORDER BY 1"),
                         [("ddp_bucketed_benchmarking", "bucketed", None, "ok", 3.0, None),
                          ("distributed_communication_single_node", None, None, "ok", 3.0, None),
                          ("optimizer_state_sharding_accounting", None, "optimizer", "ok", 3.0, 2.0 * 2**30)])
        self.assertIsNone(log_of(lines[3:], "theirs", {}))

    def test_a_dry_run_prints_the_commands_and_leaves_nothing_behind(self):
        lines = self.tool("--dry-run", "--ranks", 4, "--only", "ddp-xl26-*").stdout.splitlines()
        self.assertEqual([re.findall(r"world_size=(\d)", line) for line in lines[:-1]], [["4"], ["2"], ["1"]])
        self.assertIn(" report ddp_bucketed_benchmarking ", lines[-1])
        self.assertFalse(self.rows.exists())

    def test_what_cannot_be_done_here_is_said_before_anything_is_measured(self):
        for gpus, arguments, why in ((4, ["--ranks", 8], "--ranks 8 was asked and this machine has 4 GPUs"),
                                     (1, [], "this machine has 1 GPU, and two at least are needed"),
                                     (4, ["--ranks", 3], "--ranks 3: rows are of 2, 4, 6 or 8 ranks"),
                                     (0, ["--device", "cpu", "--ranks", 10], "--ranks 10: rows are of 2, 4, 6 or 8 ranks"),
                                     (4, ["--free", "900000T"], r"free and --free wants 9e\+08 GB: name another place"),
                                     (4, ["--only", "everything"], "no part is called everything: all_reduce, "),
                                     (4, ["--budget", "soon"], "'soon' is no amount"),
                                     (4, ["--only", "all_reduce"], "an all-reduce of two GPUs does not work here: .*needs ")):
            said = self.tool(*arguments, syslab=self.with_gpus(gpus), expect=2).stderr
            self.assertRegex(said, why)
            self.assertNotIn("Traceback", said)
        self.assertIn("there is no program at", self.tool(syslab="no/such/file", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
