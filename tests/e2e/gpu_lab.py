"""The lab on a GPU, end to end: cases run there, are checked and timed, share a worker, and what goes wrong is told; the smoke
preset of every experiment; and every rung, dtype and pass of every ladder at two shapes.

    gpu_lab.py                      all of it, one after the other
    gpu_lab.py OnTheGpu             what unittest takes: classes, tests, -k PATTERN; this class is neither the smoke presets nor the ladders
    gpu_lab.py --ledger FILE        all of it, and a row about it at the end of the table in FILE (docs/performance.md); wants a checkout
    gpu_lab.py --beside             the three classes beside each other, each on GPUs of its own: nine minutes on three H200s; with --ledger, too

Exits 77 where there is no GPU that CUDA can use. SYSLAB_BINARY names the program; a bundle's ./tests/gpu_lab.py finds it
beside itself.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("SYSLAB_BINARY", str(HERE.parent / "syslab"))

import gpu_judged  # noqa: E402
from gpu_judged import SMALL  # noqa: E402
from ladders import REFUSED, Outcomes, ladders  # noqa: E402
from lab import SYSLAB, Lab, attempts, summary  # noqa: E402

CHAIN = ("selftest_compare", "--impl", "selftest_cuda", "-a", "steps=50000", "--protocol", "quick")


def gpus():
    try:
        done = subprocess.run([SYSLAB, "worker", "--probe"], capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)["gpus"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return []


class OnTheGpu(gpu_judged.Judged):  # by its module, so that its tests run once
    def test_more_nccl_ranks_than_there_are_gpus_need_more_gpus(self):
        there = len(gpus())
        asked = ("distributed_communication_single_node", "--impl", "nccl", "-a", "bytes=1000000", "-a",
                 f"world_size={there},{there + 1}", "--protocol", "quick")
        skips = {case["world_size"]: case.get("skip") for case in self.json("plan", *asked)["cases"]}
        self.assertEqual(skips, {there: None, there + 1: f"needs {there + 1} GPUs"})

    def test_cases_run_there_by_default_and_share_a_worker(self):
        lines = self.lines("run", "weighted_sum", *SMALL)
        done = attempts(lines)
        self.assertGreaterEqual(len(done), 2)
        self.assertEqual({line["device"] for line in done}, {"cuda"})
        self.assertEqual({line["status"] for line in done}, {"ok"})
        facts = self.facts()
        self.assertEqual({fact["isolation"] for fact in facts}, {"reuse"})
        self.assertEqual({fact["worker"] for fact in facts}, {1})
        for fact in facts:
            self.assertEqual(fact["device"], "cuda")
            self.assertIn("NVIDIA", fact["gpu"]["name"])
            self.assertGreaterEqual(fact["verified"], 1)
            self.assertRegex(fact["code"].get("digest", ""), "^[0-9a-f]+$", fact["code"])
        self.assertTrue(all(value > 0 for value in self.metrics("time")))
        self.assertEqual(len(self.metrics("peak_scratch_bytes")), len(done))
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'max_rss_bytes'"), [(0,)])
        ((gpu,),) = self.sql("SELECT DISTINCT gpu_name FROM v_attempt")
        self.assertIn("NVIDIA", gpu)

    def test_the_clock_of_every_sample_is_stored(self):
        self.lines("run", "selftest_compare", "--impl", "selftest_cuda", "-a", "steps=200000", "--protocol", "kernel")
        ((count,),) = self.sql("SELECT count(*) FROM sample s JOIN series n ON n.id = s.series_id WHERE n.name = 'time'")
        ((clocks,),) = self.sql("SELECT count(*) FROM sample s JOIN series n ON n.id = s.series_id WHERE n.name = 'clock'"
                                " AND s.value BETWEEN 2e8 AND 4e9")
        self.assertGreater(count, 5)
        self.assertEqual(clocks, count)

    def test_the_cpu_of_this_machine_is_another_device(self):
        self.lines("run", "weighted_sum", "-a", "rows=256", "-a", "dim=64", "--laws", "none", "--protocol", "quick",
                   "--device", "cpu,cuda", "-a", "pass=forward")
        keys = dict(self.sql("SELECT DISTINCT implementation, comparability_key FROM v_attempt WHERE status = 'ok'"))
        cpu = {key for name, key in keys.items() if not name.endswith("cuda")}
        gpu = {key for name, key in keys.items() if name.endswith("cuda")}
        self.assertTrue(cpu and gpu)
        self.assertFalse(cpu & gpu)
        self.assertEqual(self.sql("SELECT count(*) FROM v_attempt WHERE gpu_name IS NOT NULL AND implementation = 'naive'"),
                         [(0,)])

    def test_attention_is_checked_and_timed_in_graphs_and_one_by_one(self):
        lines = self.lines("run", "flash_forward", "flash_backward", "--impl", "flash_mma_deterministic,naive_cuda", "-a", "seq=256",
                           "-a", "head_dim=64", "-a", "dtype=bf16", "-a", "causal=true", "-a", "heads=1", "--laws", "none",
                           "--protocol", "kernel")
        done = attempts(lines)
        self.assertEqual([line["status"] for line in done], ["ok"] * len(done), lines)
        self.assertGreaterEqual(len(done), 4)
        for fact in self.facts():
            self.assertEqual(fact["launched"], "graph", fact.get("not_captured"))
            self.assertGreaterEqual(fact["verified"], 1)
            self.assertGreaterEqual(fact["eager_verified"], 1)
            self.assertNotIn("flags_missing", fact)
        self.assertEqual(len(self.metrics("time_eager")), len(done))
        outcomes = dict(self.sql("SELECT name, outcome FROM check_result"))
        for name in ("reference:out", "reference:dq", "samples:out", "eager:out", "naive:out", "naive:dq"):
            self.assertEqual(outcomes[name], "passed")

    def test_what_cublas_keeps_is_nobodys_scratch_memory(self):
        case = ("flash_forward", "--impl", "naive_cuda", "-a", "head_dim=64", "-a", "dtype=fp32", "-a", "causal=false", "-a", "heads=1",
                "--laws", "none", "--protocol", "quick")
        self.lines("run", *case, "-a", "seq=256,512")
        first, second = self.metrics("peak_scratch_bytes")
        self.assertLess(first, 2 * second, "the first case of a worker")
        self.assertLess(second, 16 << 20)

    def test_laws_hold_there(self):
        lines = self.lines("check", "weighted_sum", "--cases", "20")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})

    def test_a_wrong_kernel_gets_no_time(self):
        lines = self.lines("run", *CHAIN, "-a", "fault=wrong", expect=1)
        self.assertEqual([line["status"] for line in attempts(lines)], ["check_failed"])
        self.assertEqual(self.metrics("time"), [])

    def test_a_failed_launch_never_passes_silently(self):
        lines = self.lines("run", *CHAIN, "-a", "fault=launch", expect=None)
        ((status, detail),) = [(line["status"], line["detail"]) for line in attempts(lines)]
        self.assertIn(status, ("error", "check_failed"))
        self.assertTrue(detail)
        self.assertEqual(self.metrics("time"), [])

    def test_a_lost_context_is_replaced_and_the_sweep_goes_on(self):
        lines = self.lines("run", *CHAIN, "-a", "fault=illegal,none", expect=3)
        self.assertEqual([line["status"] for line in attempts(lines)], ["error", "ok"])
        self.assertIn("illegal", attempts(lines)[0]["detail"])
        self.assertEqual([fact["worker"] for fact in self.facts()], [1, 2])

    def test_what_does_not_fit_is_told_before_and_found_when_tried(self):
        case = ("ceiling_copy", "-a", "bytes=1Ti", "--device", "cuda", "--laws", "none", "--protocol", "quick")
        (planned,) = {line["predicted_oom"] for line in self.json("plan", *case[:5])["cases"]}
        self.assertIn("NVIDIA", planned)
        lines = self.lines("run", *case, "--try-oom")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"oom"})
        self.assertEqual(summary(lines)["exit"], 0, "an out-of-memory that the experiment declares as an answer")

    def test_identical_sides_are_the_same_and_a_slowdown_is_found(self):
        for slowdown, words in ((0, ("same",)), (5, ("slower",))):
            done = self.syslab("compare", "selftest_compare", "A:slowdown=0", f"B:slowdown={slowdown}", "--impl",
                               "selftest_cuda", "-a", "steps=100000", "--launches", "3", "--same-on-purpose", expect=None)
            self.assertTrue(any(word in done.stdout for word in words), done.stdout + done.stderr)

    def test_a_gpu_that_is_hidden_is_a_reason(self):
        environment = {**self.environment(), "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(self.command("run", "weighted_sum", *SMALL, "--device", "cuda", "--json"), cwd=self.folder,
                              env=environment, text=True, capture_output=True, timeout=240)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({line["status"] for line in attempts(lines)}, {"skipped"})
        self.assertIn("needs a GPU", attempts(lines)[0]["detail"])
        self.assertIn("CUDA_VISIBLE_DEVICES", attempts(lines)[0]["detail"])

    def test_doctor_names_the_gpu(self):
        done = self.syslab("doctor", expect=None)
        self.assertIn("NVIDIA", done.stdout)


# What became of cases and laws, for the row of the ledger: {"smoke presets": Counter(ok=…, refused=…, failed=…)}.
COUNTED: dict = collections.defaultdict(collections.Counter)


def count(what, done):
    for line in done:
        status = line["status"]
        COUNTED[what]["ok" if status == "ok" else "refused" if status in REFUSED else "failed"] += 1


class EveryExperiment(Lab):
    def test_smoke_presets_run_clean(self):
        lines = self.lines("run", "all", "--preset", "smoke", "--device", "cuda", expect=None, timeout=900)
        done = attempts(lines)
        count("smoke presets", done)
        told = [f"{one['status']}: {one['experiment']} {one['impl']} {one.get('law') or one['params']}: {one['detail']}"
                for one in done if one["status"] not in ("ok", *REFUSED)]
        self.assertEqual(told, [])
        self.assertEqual(summary(lines)["exit"], 0, summary(lines))
        measured = {one["experiment"] for one in done if one["status"] == "ok" and one["task"] == "measure"}
        self.assertEqual({one["experiment"] for one in done} - measured, set(), "experiments of which nothing was measured")


class EveryRung(Lab):
    def test_passes_in_every_dtype_and_pass_at_two_shapes(self):
        silent, heard = {}, set()
        for ladder in ladders(self.json("list")["experiments"], "cuda"):
            for shape in ladder.shapes:
                with self.subTest(experiment=ladder.experiment, shape=shape):
                    began = time.monotonic()
                    done = attempts(self.lines("run", ladder.experiment, "--device", "cuda", *ladder.arguments(shape), "--laws",
                                               "none", "--protocol", "quick", expect=None, timeout=900))
                    count("ladders", done)
                    outcomes = Outcomes(ladder, done)
                    print(f"{ladder.experiment} {shape}: {outcomes.passed} ok, {time.monotonic() - began:.0f} s", *(
                        f"{number} refused: {reason}" for reason, number in sorted(outcomes.refused.items())), *outcomes.failed, sep="\n  ", flush=True)
                    silent.update({rung: ladder.experiment for rung in outcomes.silent()})
                    heard.update(set(ladder.rungs) - outcomes.silent())
                    self.assertEqual(outcomes.failed, [])
                    self.assertEqual(outcomes.missing(), [], "rungs without a case that passed")
        # An experiment may have its reason to leave a rung out, but then another has it.
        self.assertEqual({rung: experiment for rung, experiment in silent.items() if rung not in heard}, {})
        self.assertTrue(heard, "no experiment has a rung for the GPU")


class Timed(unittest.TextTestResult):
    """Says how long each test took, for what the lab may take on a GPU is short; and at once why one failed, for a run may be cut off."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.stream.writeln(self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.stream.writeln(self.errors[-1][1])

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        self.stream.writeln(f"  {time.monotonic() - self.began:.1f} s")
        super().stopTest(test)


class Tally:
    """What became of the tests of one process; or of several."""

    def __init__(self):
        self.ran, self.failed, self.skipped, self.well, self.counted = 0, 0, 0, True, collections.defaultdict(collections.Counter)

    def of(self, tests):
        bad = tests.failures + tests.errors
        # A test of many parts may have failed in several of them.
        failed = len({getattr(test, "test_case", test).id() for test, _ in bad})
        self.add({"ran": tests.testsRun, "failed": failed, "skipped": len(tests.skipped), "well": tests.wasSuccessful(),
                  "counted": COUNTED})
        return self

    def add(self, told):
        self.ran, self.failed, self.skipped = self.ran + told["ran"], self.failed + told["failed"], self.skipped + told["skipped"]
        self.well = self.well and told["well"]
        for what, counted in told["counted"].items():
            self.counted[what].update(counted)

    def __str__(self):
        parts = [f"{self.ran - self.failed - self.skipped} tests passed, {self.failed} failed, {self.skipped} skipped"]
        for what, counted in sorted(self.counted.items()):
            parts.append(f"{what}: {counted['ok']} cases and laws `ok`, {counted['refused']} refused, {counted['failed']} failed")
        return "; ".join(parts)


def beside(there):
    """Each class in a process of its own, on GPUs that no other has; what they say, line by line, behind their names."""
    tally, parts = Tally(), {"EveryExperiment": there[:-2], "EveryRung": there[-2:-1], "OnTheGpu": there[-1:]}

    def part(name, gpus_of_its_own, told):
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(gpu["uuid"] for gpu in gpus_of_its_own)}
        process = subprocess.Popen([sys.executable, "-u", __file__, "--tally", told, name], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        for line in process.stdout:
            print(f"{name}: {line}", end="", flush=True)
        process.wait()

    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder) / name for name in parts}
        threads = [threading.Thread(target=part, args=(name, gpus_of, files[name])) for name, gpus_of in parts.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for file in files.values():
            ended = file.exists()
            tally.add(json.loads(file.read_text()) if ended else {"ran": 1, "failed": 1, "skipped": 0, "well": False, "counted": {}})
    return tally


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--ledger", type=pathlib.Path)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--tally", type=pathlib.Path)  # where a process of beside() leaves what became of its tests
    asked, others = parser.parse_known_args()
    there = gpus()
    if not there:
        print("no GPU that CUDA can use: skipped")
        return 77
    if (asked.ledger or asked.beside) and others:
        parser.error(f"--ledger and --beside are about all of the tests, not about {' '.join(others)}")
    if asked.beside and len(there) < 3:
        parser.error(f"--beside needs three GPUs, and here CUDA can use {len(there)}")
    if asked.ledger:
        sys.path.insert(0, str(HERE.parents[1] / "tools"))
        import gpu_ledger  # a bundle has neither it nor the sources
        digest = gpu_ledger.digest(HERE.parents[1])  # of what is tested, not of what is there when the tests end
    if asked.beside:
        tally = beside(there)
    else:
        runner = unittest.TextTestRunner(verbosity=2, resultclass=Timed)
        tally = Tally().of(unittest.main(argv=[sys.argv[0], *others], testRunner=runner, exit=False).result)
    print(tally)
    if asked.tally:
        asked.tally.write_text(json.dumps(vars(tally)))
    if asked.ledger:
        today = datetime.datetime.now(datetime.timezone.utc).date()
        gpu_ledger.append(asked.ledger, gpu_ledger.Row(str(today), there[0]["name"], str(tally), tally.well, digest))
    return 0 if tally.well else 1


if __name__ == "__main__":
    sys.exit(main())
