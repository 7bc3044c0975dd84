"""Experiments on the transformer: what they measure, what they make of it, and what they refuse."""
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from lab import Lab, attempts

TINY = ("-a", "model=tiny", "-a", "batch=2", "-a", "context=16", "--impl", "host", "--device", "cpu")


class BenchmarkingScript(Lab):
    def test_smoke_times_the_step_and_its_phases(self):
        lines = self.lines("run", "benchmarking_script", "--preset", "smoke", "--device", "cpu")
        self.assertEqual([(line["impl"], line["status"]) for line in attempts(lines)], [("host", "ok")])
        found = dict(self.sql("SELECT name, value FROM metric"))
        for phase in ("time", "forward", "backward", "optimizer"):
            self.assertGreater(found[phase + "_mean"], 0)
            self.assertGreaterEqual(found[phase + "_stddev"], 0)
        self.assertEqual(found["parameters"], 2 * 101 * 64 + 2 * (4 * 64**2 + 3 * 64 * 128 + 2 * 64) + 64)
        checks = self.sql("SELECT name, outcome FROM check_result ORDER BY name")
        self.assertEqual(checks, [("reference:gradients", "passed"), ("reference:logits", "passed"), ("reference:loss", "passed"),
                                  ("reference:weights", "passed")])
        (row,) = self.table("benchmarking_script", "benchmarking_script")["rows"]
        self.assertEqual((row["model"], row["status"]), ("tiny", "ok"))
        self.assertAlmostEqual(row["backward_over_forward"], found["backward"] / found["forward"])  # of medians
        self.assertAlmostEqual(row["step_high"] - row["step"], 1e3 * found["time_stddev"])

    def test_the_phases_make_up_the_step(self):
        shares = []
        for _ in range(3):  # steps and phases are timed one after the other, and others may slow the machine in between
            self.syslab("run", "benchmarking_script", "--preset", "smoke", "--device", "cpu")
            found = dict(self.sql("SELECT name, value FROM metric WHERE attempt_id = (SELECT max(attempt_id) FROM metric)"))
            shares.append((found["forward"] + found["backward"] + found["optimizer"]) / found["time_min"])
            if 0.5 < shares[-1] < 2:
                return
        self.fail(f"forward, backward and optimizer together, of a whole step: {shares}")

    def test_the_handouts_protocol_and_grid(self):
        plan = self.json("plan", "benchmarking_script", "--preset", "paper", "--impl", "graph", "--device", "cuda")
        self.assertEqual(plan["protocol"], "cs336")
        axes = {axis["name"]: axis["values"] for axis in self.json("describe", "benchmarking_script")["axes"]}
        self.assertEqual(axes["model"], ["small", "medium", "large", "xl25", "xl26"])
        self.assertEqual((axes["batch"], axes["context"], axes["warmup"]), ([4], [512], [5]))

    def test_the_study_of_warm_up_keeps_every_step_and_is_checked_after_them(self):
        lines = self.lines("run", "benchmarking_script", *TINY, "-a", "warmup=0,1,2,5", "--protocol", "cs336")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        for w in (0, 1, 2, 5):
            series = dict(self.sql(
                "SELECT s.name, count(*) FROM v_attempt t JOIN series s ON s.attempt_id = t.attempt_id JOIN sample x ON x.series_id = s.id"
                " WHERE t.params ->> '$.warmup' = ? AND s.name IN ('time', 'warmup') GROUP BY s.name", w))
            self.assertEqual((series["time"], series.get("warmup", 0)), (10, w))
        rows = self.table("benchmarking_script", "warmup")["rows"]
        self.assertEqual([row["w"] for row in rows], [0, 1, 2, 5])
        (first,) = self.sql("SELECT 1e3 * x.value FROM v_attempt t JOIN series s ON s.attempt_id = t.attempt_id AND s.name = 'time'"
                            " JOIN sample x ON x.series_id = s.id WHERE t.params ->> '$.warmup' = 0 ORDER BY x.idx LIMIT 1")
        self.assertAlmostEqual(rows[0]["first"], first[0])
        # A point of the study alone is no row of the phases: those are after five steps.
        self.assertEqual(len(self.table("benchmarking_script", "benchmarking_script")["rows"]), 1)
        text = self.syslab("report", "benchmarking_script", "--no-figures").stdout
        self.assertIn("Without warm-up the first step of tiny", text)
        self.assertIn("After two warm-up steps", text)

    def test_sizes_of_ones_own(self):
        lines = self.lines("run", "benchmarking_script", *TINY, "-a", "layers=1,3", "-a", "heads=2", "-a", "d_model=32", "--protocol", "quick")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        counts = [value for (value,) in self.sql("SELECT value FROM metric WHERE name = 'parameters' ORDER BY value")]
        # P = 2Vd + L(4d² + 3·d·d_ff + 2d) + d with V = 101, d = 32, d_ff = 128
        self.assertEqual(counts, [2 * 101 * 32 + layers * (4 * 32**2 + 3 * 32 * 128 + 2 * 32) + 32 for layers in (1, 3)])

    def test_one_of_anything_is_right_in_every_implementation(self):
        for axes in ("vocab=1", "context=1", "batch=1", "layers=1 heads=1 d_ff=1", "vocab=1 context=1 batch=1 layers=1 heads=1 d_ff=1 d_model=2"):
            sizes = [word for axis in axes.split() for word in ("-a", axis)]
            lines = self.lines("run", "nsys_profile", "--preset", "smoke", "--device", "cpu", *sizes)
            self.assertEqual([(line["impl"], line["status"]) for line in attempts(lines)], [("host", "ok"), ("host_eager", "ok")], axes)
            lines = self.lines("run", "benchmarking_script", "--preset", "smoke", "--device", "cpu", "--impl", "reference",
                               "-a", "precision=fp64", *sizes)
            self.assertEqual([line["status"] for line in attempts(lines)], ["ok"], axes)

    def test_what_cannot_be_is_refused_before_any_work(self):
        for wrong, says in (("model=smal", "did you mean 'small'?"),
                            ("context=0", "context is 0; it must be between 1 and"),
                            ("heads=5", "5 heads do not divide d_model 64 (4 would be left over)"),
                            ("heads=64", "the head dimension 1 (d_model 64 / 64 heads) is odd, and RoPE rotates pairs"),
                            ("layers=-1", "axis 'layers' of benchmarking_script takes nothing below 0, not '-1'"),
                            ("batch=0", "batch is 0; it must be between 1 and 1048576"),
                            ("batch=300000000000000000", "batch is 300000000000000000; it must be between 1 and"),
                            ("precision=fp8", "unknown value 'fp8' of axis 'precision'"),
                            ("mode=sideways", "unknown value 'sideways' of axis 'mode'")):
            model = () if wrong.startswith("model") else ("-a", "model=tiny")
            done = self.syslab("run", "benchmarking_script", *model, "-a", wrong, expect=2)
            self.assertIn(says, done.stderr)
            self.assertFalse(self.db.exists() and self.sql("SELECT count(*) FROM run") != [(0,)], wrong)

    def test_xl_is_the_models_of_its_handout(self):
        def planned(*arguments):
            return [case["params"]["model"] for case in
                    self.json("plan", "benchmarking_script", "-a", "model=xl,small", "--impl", "host", "--device", "cpu", *arguments)["cases"]]
        self.assertEqual(planned("--handout", "2025"), ["xl25", "small"])
        self.assertEqual(planned("--handout", "2026"), ["xl26", "small"])
        refused = self.refused("run", "benchmarking_script", "-a", "model=xl")
        self.assertIn("say --handout 2025 (xl25) or --handout 2026 (xl26)", refused)
        described = re.sub(r"\s+", " ", self.syslab("describe", "benchmarking_script").stdout)
        self.assertIn("with --handout 2025 xl is xl25", described)
        sizes = "12 layers, d_model 768, 12 heads, d_ff 3072, vocabulary 10,000: 128,625,408 parameters"
        self.assertIn("small " + sizes, described, "what a name stands for")
        (model,) = [axis for axis in self.json("describe", "benchmarking_script")["axes"] if axis["name"] == "model"]
        explained = {line.split(":")[0] for line in model["help"].splitlines()[1:]}
        self.assertEqual(explained, {*model["values"], *model["also"]} - {"2.7B"}, "every name, and the other one of xl26")

    def test_a_mode_takes_and_predicts_only_what_it_needs(self):
        cases = {mode: self.json("plan", "torch_compile", "-a", "model=small", "-a", f"mode={mode}", "--impl", "host", "--device",
                                 "cpu")["cases"][0]["predicted_bytes"] for mode in ("forward", "forward_backward", "train")}
        plane, stream = 4 * 128_625_408, 4 * 4 * 512 * 768  # a backward pass begins with the gradient of the stream
        self.assertEqual((cases["forward_backward"] - cases["forward"], cases["train"] - cases["forward_backward"]),
                         (plane + stream, 2 * plane))
        self.lines("run", "torch_compile", "-a", "model=tiny", "-a", "batch=1", "-a", "context=8", "-a",
                   "mode=forward,forward_backward,train", "--impl", "host", "--device", "cpu", "--protocol", "quick")
        peak = dict(self.sql("SELECT t.params ->> '$.mode', m.value FROM v_attempt t JOIN metric m USING (attempt_id)"
                             " WHERE m.name = 'peak_bytes'"))
        parameters = 4 * (2 * 101 * 64 + 2 * (4 * 64**2 + 3 * 64 * 128 + 2 * 64) + 64)
        self.assertGreaterEqual(peak["train"] - peak["forward_backward"], 2 * parameters)
        self.assertGreaterEqual(peak["forward_backward"] - peak["forward"], parameters)

    def test_a_precision_that_the_cpu_has_not_is_told(self):
        lines = self.lines("run", "benchmarking_script", *TINY, "-a", "precision=bf16_fused", expect=None)
        (ended,) = attempts(lines)
        self.assertEqual(ended["status"], "unsupported")
        self.assertIn("host runs in fp32 on the CPU; bf16_fused needs a GPU", ended["detail"])

    def test_a_plan_says_of_every_rung_and_precision_what_running_it_says(self):
        """Every experiment on a training step; of those of several ranks the plan alone, which asks the same."""
        tiny = ("-a", "model=tiny", "-a", "batch=2", "-a", "context=8", "-a", "precision=fp32,bf16_amp,fp64", "--impl",
                "reference,host,host_eager")
        wanted = {(rung, precision): (rung == "reference") == (precision == "fp64") and precision != "bf16_amp"
                  for rung in ("reference", "host", "host_eager") for precision in ("fp32", "bf16_amp", "fp64")}
        everywhere = ("benchmarking_script", "benchmarking_mixed_precision", "nsys_profile", "torch_compile", "memory_profiling",
                      "gradient_checkpointing", "leaderboard_2026", "train_lm", "naive_ddp_benchmarking", "optimizer_state_sharding",
                      "fsdp")
        for experiment in everywhere:
            for case in self.json("plan", experiment, *tiny)["cases"]:
                # Of a model of two blocks: left out for that.
                if experiment == "gradient_checkpointing" and case["params"]["segment"] > 2:
                    continue
                of = (case["impl"], case["params"]["precision"])
                self.assertEqual("skip" not in case, wanted[of], (experiment, case))
                self.assertEqual("predicted_bytes" in case, wanted[of], (experiment, case))
        lines = self.lines("run", "memory_profiling", *tiny, "-a", "pass=forward", "--protocol", "quick")
        self.assertEqual({(line["impl"], line["params"]["precision"]): line["status"] == "ok" for line in attempts(lines)}, wanted)
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok", "unsupported"})
        # The reference holds 8 bytes where the others hold 4, and the prediction says so.
        (peak, predicted), = self.sql(
            "SELECT p.value, m.value FROM v_attempt a JOIN metric p ON p.attempt_id = a.attempt_id AND p.name = 'peak_bytes'"
            " JOIN metric m ON m.attempt_id = a.attempt_id AND m.name = 'predicted_peak' WHERE a.implementation = 'reference'")
        self.assertAlmostEqual(predicted, peak, delta=0.03 * peak)

    def test_running_out_of_memory_is_an_answer_where_the_experiment_says_so(self):
        asked = ("-a", "model=small", "-a", "batch=2", "-a", "context=32", "--impl", "host", "--device", "cpu", "--memory-limit", "64Mi")
        said = self.syslab("run", "memory_profiling", *asked, "-a", "precision=fp32", "-a", "pass=step", expect=0).stdout
        self.assertIn("1 oom", said)
        self.assertIn("out of memory: an answer here, no failure", said)
        self.assertIn("running out of memory: an answer", self.syslab("describe", "memory_profiling").stdout)
        self.syslab("run", "train_lm", *asked, expect=3)
        self.assertNotIn("running out of memory: an answer", self.syslab("describe", "train_lm").stdout)


class MixedPrecision(Lab):
    def test_dtypes_are_read_from_the_running_model(self):
        lines = self.lines("run", "benchmarking_mixed_precision", "--preset", "smoke", "--device", "cpu")
        self.assertEqual(sorted((line["params"]["precision"], line["status"]) for line in attempts(lines)),
                         [("bf16_amp", "unsupported"), ("bf16_fused", "unsupported"), ("fp16_amp", "unsupported"), ("fp32", "ok"),
                          ("tf32", "unsupported")])
        self.syslab("run", "benchmarking_mixed_precision", "-a", "model=tiny", "-a", "batch=1", "-a", "context=8", "-a", "precision=fp64",
                    "--impl", "reference", "--protocol", "quick")
        rows = {(row["implementation"], row["tensor"]): row for row in self.table("benchmarking_mixed_precision", "dtypes")["rows"]}
        for tensor in ("parameters", "gradients of parameters", "layers.*.ffn.gate_up", "layers.*.ln1.normalized", "logits", "loss"):
            self.assertEqual((rows["host", tensor]["fp32"], rows["host", tensor]["bf16_amp"]), ("fp32", None))
            self.assertEqual(rows["reference", tensor]["fp64"], "fp64")
            self.assertNotEqual(rows["host", tensor]["toy"], "–")

    def test_norms_in_half_precision_overflow_where_the_sum_of_squares_does(self):
        lines = self.lines("run", "norm_precision", "--preset", "smoke")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        rows = {(row["norm"], row["dtype"], row["statistics"], row["implementation"], row["offset"]): row
                for row in self.table("norm_precision", "norm_precision")["rows"]}
        half = rows["rms_norm", "fp16", "fp16", "pairwise", 0]
        # 256 squares of deviation 2^3 are 16384, of 2^6 a million; 65504 is the largest number.
        self.assertLess(float(half["e3"]), 2e-3)
        self.assertEqual((half["e6"], half["e8"]), ("overflow", "overflow"))
        for dtype in ("fp16", "bf16"):
            self.assertLess(float(rows["rms_norm", dtype, "fp32", "pairwise", 0]["e8"]), 1e-6)
        self.assertLess(1e-3, float(rows["rms_norm", "bf16", "bf16", "pairwise", 0]["e8"]))
        text = self.syslab("report", "benchmarking_mixed_precision", "--no-figures").stdout
        self.assertIn("overflows at a standard deviation of 64", text)
        self.assertIn("bf16 has the range of fp32 and does not overflow", text)


LEARN = ("-a", "model=tiny", "-a", "batch=2", "-a", "context=32", "-a", "lr_warmup=3", "--impl", "host", "--device", "cpu")


class TrainLm(Lab):
    def test_smoke_learns_and_draws_its_curve(self):
        lines = self.lines("run", "train_lm", "--preset", "smoke", "--device", "cpu")
        self.assertEqual([line["status"] for line in attempts(lines)], ["ok"])
        losses = [value for (value,) in self.sql(
            "SELECT x.value FROM series s JOIN sample x ON x.series_id = s.id WHERE s.name = 'loss' ORDER BY x.idx")]
        self.assertEqual(len(losses), 30)
        self.assertAlmostEqual(losses[0], 5.55, delta=1)
        self.assertLess(losses[-1], 0.8 * losses[0])
        (row,) = self.table("train_lm", "train_lm")["rows"]
        self.assertAlmostEqual(row["loss"], sum(losses[-3:]) / 3)
        self.assertEqual((row["vs_fp32"], row["from_step"], row["status"]), (0, 0, "ok"))
        checks = {name for (name,) in self.sql("SELECT name FROM check_result WHERE outcome = 'passed'")}
        self.assertLessEqual({"learned", "reference:gradients"}, checks)

    def test_of_many_runs_the_sentence_is_of_the_best_and_names_it(self):
        # The better one is neither the first nor the last.
        self.syslab("run", "train_lm", *LEARN, "-a", "steps=30", "-a", "lr=1e-3,1e-2,2e-3", "-a", "seed=3")
        rates = {row["lr"]: row["validation"] for row in self.table("train_lm", "train_lm")["rows"]}
        self.assertEqual((len(rates), min(rates, key=rates.get)), (3, 1e-2))
        (row,) = self.table("train_lm", "learned")["rows"]
        self.assertEqual((row["lr"], row["seed"], row["context"], row["validation"]), (1e-2, 3, 32, rates[1e-2]))
        text = " ".join(self.syslab("report", "train_lm", "--no-figures").stdout.split())
        self.assertIn("peak learning rate 0.010, seed 3)", text)
        self.assertIn("in 30 steps of 2 × 32 tokens", text)
        self.assertRegex(text, r"validation loss on .* is [0-9.]+ \([^)]*3 runs[^)]*\), versus")

    def test_what_a_right_program_cannot_learn_is_not_held_against_it(self):
        noise = self.folder / "noise.bin"  # every token as often as every other: nothing below ln V is to be had
        noise.write_bytes(b"".join(number.to_bytes(2, "little") for number in random.Random(1).choices(range(256), k=40_000)))
        for arguments, why in ((("lr=0", "steps=30"), "its steps are too few or too small"), (("lr=1e-2", "steps=5"), "its steps are too few or too small"),
                               (("lr=1e-2", "steps=30", f"text={noise}"), "the frequencies of the text's tokens tell too little")):
            with self.subTest(arguments):
                (ended,) = attempts(self.lines("run", "train_lm", *LEARN, *(word for one in arguments for word in ("-a", one))))
                self.assertEqual(ended["status"], "ok", ended)
                ((outcome, message),) = self.sql("SELECT outcome, message FROM check_result WHERE name = 'learned' ORDER BY id DESC LIMIT 1")
                if outcome != "passed":
                    self.assertEqual(outcome, "not_run")
                    self.assertTrue(message.endswith(f"; whether it learns was not judged: {why}"), message)
        self.assertGreaterEqual(self.sql("SELECT count(*) FROM check_result WHERE name = 'learned' AND outcome = 'not_run'"), [(2,)])

    def test_what_does_not_train_is_refused_by_the_plan(self):
        for mode in ("forward", "forward_backward"):
            (case,) = self.json("plan", "train_lm", *LEARN, "-a", f"mode={mode}")["cases"]
            self.assertEqual(case["skip"], "a text is learned by steps with an update: mode=train")
            lines = self.lines("run", "train_lm", *LEARN, "-a", "steps=5", "-a", f"mode={mode}")
            self.assertEqual([line["status"] for line in attempts(lines)], ["unsupported"])

    def test_a_killed_run_goes_on_bit_for_bit(self):
        def command(path):
            return ("run", "train_lm", *LEARN, "-a", "steps=400", "-a", f"checkpoint={path}", "-a", "checkpoint_every=25")
        whole, killed = self.folder / "whole.safetensors", self.folder / "killed.safetensors"
        self.syslab(*command(whole))
        # In a session of its own, so that the worker goes with it.
        running = subprocess.Popen(self.command(*command(killed)), cwd=self.folder, env=self.environment(), start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not killed.exists() and running.poll() is None:  # however long a busy machine takes
            time.sleep(0.002)
        self.assertIsNone(running.poll(), "it was killed before its end")
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        self.assertTrue(killed.exists())
        self.assertNotEqual(killed.read_bytes(), whole.read_bytes(), "it was killed before its end")
        self.syslab(*command(killed))
        self.assertEqual(killed.read_bytes(), whole.read_bytes())
        resumed = self.sql("SELECT m.value FROM v_attempt t JOIN metric m ON m.attempt_id = t.attempt_id WHERE m.name = 'first_step'"
                           " AND t.params ->> '$.checkpoint' = ?", str(killed))
        self.assertTrue(len(resumed) == 1 and 25 <= resumed[0][0] < 400, resumed)
        # No piece of a file is left beside them, and what would go on otherwise is refused.
        self.assertEqual(sorted(path.name for path in self.folder.glob("*safetensors*")), [killed.name, whole.name])
        before = killed.read_bytes()
        lines = self.lines(*command(killed), "-a", "max_norm=0.5", expect=None)
        self.assertIn("run.max_norm was 1 and is 0.5 now", attempts(lines)[0]["detail"])
        self.assertEqual(killed.read_bytes(), before)

    def test_a_nan_names_its_tensor_and_leaves_no_file(self):
        kept = self.folder / "kept.safetensors"
        lines = self.lines("run", "train_lm", *LEARN, "-a", "steps=20", "-a", "lr=1e30", "-a", f"checkpoint={kept}", expect=1)
        (ended,) = attempts(lines)
        self.assertEqual(ended["status"], "check_failed")
        self.assertRegex(ended["detail"], r"step \d+: the loss is (-?(nan|inf)|\S+ and a gradient is no number)"
                         r"; the first tensor that holds no number: \S+\[\d+, \d+\] of")
        self.assertFalse(kept.exists())

    def test_bad_texts_are_refused(self):
        short = self.folder / "short.txt"
        short.write_text("too short")
        foreign = self.folder / "foreign.safetensors"
        foreign.write_text("no weights")
        above = self.folder / "above.txt"
        above.write_text("no byte of the word is below 97 " * 40)
        for arguments, says in ((("-a", f"text={above}", "-a", "vocab=100"), f"cannot read tokens from '{above}': token 110 at"),
                                (("-a", f"checkpoint={foreign}"), "foreign.safetensors")):
            lines = self.lines("run", "train_lm", *LEARN, "-a", "steps=5", *arguments, expect=None)
            (ended,) = attempts(lines)
            self.assertEqual(ended["status"], "error")
            self.assertIn(says, ended["detail"])
        for wrong, says in ((f"text={short}", f"'{short}' has 9 tokens to draw from"), ("text=nowhere.txt", "'nowhere.txt'"),
                            ("vocab=100", "cannot read tokens from 'pages': token"), ("context=1000000", "'pages' has"),
                            ("steps=0", "steps is 0; it must be at least 1"), ("max_norm=0", "a norm of 0; it must be positive")):
            self.assertIn(says, self.refused("run", "train_lm", *LEARN, "-a", "steps=5", "-a", wrong))
        for wrong, says in (("lr=-1", "lr is -1; it must not be negative"), ("lr_warmup=9", "a warm-up of 9 steps in a cycle of 5"), ("context=0", "context is 0")):
            done = self.syslab("run", "train_lm", "-a", "model=tiny", "-a", "steps=5", "-a", wrong, expect=2)
            self.assertIn(says, done.stderr)

    def test_a_place_that_no_checkpoint_can_take_is_refused_before_the_first_step(self):
        for place, why in ((self.folder / "nowhere" / "ck.safetensors", "No such file or directory"), (self.folder, "it is no plain file")):
            for verb in ("plan", "run"):
                refused = self.refused(verb, "train_lm", *LEARN, "-a", "steps=5", "-a", f"checkpoint={place}")
                self.assertIn(f"cannot write '{place}': {why}", refused)
        self.syslab("plan", "train_lm", *LEARN, "-a", "steps=5", "-a", f"checkpoint={self.folder / 'new.safetensors'}")
        self.assertEqual(list(self.folder.glob("new*")), [], "only tried")


class TorchCompile(Lab):
    def test_smoke_and_a_graph_is_of_a_whole_step(self):
        lines = self.lines("run", "torch_compile", "--preset", "smoke", "--device", "cpu")
        self.assertEqual({(line["params"]["mode"], line["impl"], line["status"]) for line in attempts(lines)},
                         {("forward", "host", "ok"), ("train", "host", "ok")})
        rows = self.table("torch_compile", "model")["rows"]
        self.assertEqual([row["what"] for row in rows], ["forward", "step"])
        self.assertLess(0, rows[0]["time"])
        self.assertIn("Our analogue", self.syslab("report", "torch_compile", "--no-figures").stdout)
        plan = self.syslab("plan", "torch_compile", "--preset", "paper", "--impl", "graph", "--device", "cuda").stdout
        self.assertRegex(plan, "the graph is of a whole training step|graph needs CUDA, which this build has not|graph needs a GPU")

    def test_speedups_stay_within_a_protocol(self):
        for protocol in ("quick", "hot"):
            self.lines("run", "torch_compile", "-a", "model=tiny", "-a", "batch=1", "-a", "context=8", "-a", "mode=forward",
                       "--impl", "host", "--device", "cpu", "--protocol", protocol)
        # There is no `eager` without a GPU: what was measured is called so.
        with sqlite3.connect(self.db) as connection:
            connection.execute("DROP TRIGGER IF EXISTS implementation_no_update")
            connection.execute("UPDATE implementation SET name = 'eager' WHERE name = 'host'")
        connection.close()
        rows = self.table("torch_compile", "model")["rows"]
        self.assertEqual(sorted((row["protocol"], row["vs_eager"]) for row in rows), [("hot", 1), ("quick", 1)])

    def test_times_of_pytorch_that_nobody_checked_are_stored_and_not_printed(self):
        line = {"model": "small", "batch": 4, "context": 512, "precision": "fp32", "variant": "compiled", "torch": "2.11", "cuda": "13.0",
                "gpu": "NVIDIA H100", "phase": "step", "status": "ok", "n": 3, "mean_ms": 66.0, "median_ms": 65.5, "std_ms": 0.5,
                "samples_ms": [65.5, 65.5, 67.0], "peak_bytes": 2**31}
        oom = {**line, "model": "xl26", "status": "oom", "note": "CUDA out of memory"}
        peer, log = self.folder / "peer.jsonl", self.folder / "peer.log"
        peer.write_text("".join(json.dumps(one) + "\n" for one in (line, {**line, "phase": "pipelined"}, oom)))
        tool = pathlib.Path(__file__).resolve().parents[2] / "tools/peers/transformer_log.py"
        log.write_text(subprocess.run([sys.executable, tool, peer], text=True, capture_output=True, check=True).stdout)
        self.syslab("import", log)
        self.assertEqual(self.sql("SELECT value FROM metric WHERE name = 'time_mean'"), [(0.066,)])
        rows = {row["model"]: row for row in self.table("torch_compile", "model")["rows"]}
        self.assertEqual(set(rows), {"small", "xl26"})
        self.assertEqual((rows["small"]["time"], rows["small"]["status"]), (None, "error"))
        self.assertEqual((rows["small"]["checked"], rows["small"]["what"]), ("no", "step"))
        self.assertIn("pytorch_compiled", rows["small"]["implementation"])
        self.assertEqual(rows["xl26"]["status"], "oom")
        peer.write_text("no JSON\n")
        done = subprocess.run([sys.executable, tool, peer], text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("peer.jsonl:1", done.stderr)


class GradientCheckpointing(Lab):
    def test_smoke_has_the_bits_the_counts_and_the_memory(self):
        lines = self.lines("run", "gradient_checkpointing", "--preset", "smoke", "--device", "cpu", "--impl", "host")
        self.assertEqual([line["status"] for line in attempts(lines)], ["ok"] * 4)
        passed = dict(self.sql("SELECT name, count(*) FROM check_result WHERE outcome = 'passed' GROUP BY name"))
        self.assertEqual((passed["reference:recomputed"], passed["reference:block_forwards"]), (4, 4))
        rows = {row["segment"]: row for row in self.table("gradient_checkpointing", "gradient_checkpointing")["rows"]}
        self.assertEqual({k: row["forwards"] for k, row in rows.items()}, {"all kept": "4", "0.5": "7.5", "1": "7", "2": "6"})
        self.assertLess(rows["1"]["peak"], rows["2"]["peak"])
        self.assertLess(rows["2"]["peak"], rows["all kept"]["peak"])
        for k, row in rows.items():
            self.assertAlmostEqual(row["predicted"], row["peak"], delta=0.03 * row["peak"], msg=k)
        # Streams of 2 × 32 rows of 64 in fp32; a block of the last segment beside them.
        block = rows["all kept"]["kept"] / 4
        self.assertAlmostEqual(rows["1"]["kept"], block + 3 * 2 * 32 * 64 * 4 / 2**20)
        self.assertAlmostEqual(rows["2"]["kept"], 2 * block + 2 * 32 * 64 * 4 / 2**20)
        report = self.syslab("report", "gradient_checkpointing", "--no-figures").stdout
        self.assertIn("segments of 1 block have the lowest peak, ", report)
        self.assertRegex(report, r"Segments of k blocks hold .* least at k = √\(N·c/R\)\..* N = 4, c = 16\.00 KiB and R = \d+\.\d KiB, so k = 0\.6\d+, below one block; the formula holds for whole blocks only\.")
        self.assertNotIn("0.00", re.findall(r"have the lowest peak, (\S+)", report)[0])

    def test_segments_that_cannot_be_are_refused_before_any_work(self):
        for wrong in ("0.3", "-1"):
            self.syslab("run", "gradient_checkpointing", "-a", "model=tiny", "-a", f"segment={wrong}", expect=2)
        refused = self.refused("run", "gradient_checkpointing", "-a", "model=tiny", "-a", "mode=train,forward")
        self.assertIn("mode=forward has no backward pass", refused)

    def test_a_segment_of_more_blocks_than_there_are_is_left_out_with_the_reason(self):
        cases = self.json("plan", "gradient_checkpointing", "-a", "model=tiny", "-a", "layers=3", "-a", "segment=0,1,3,4", "--impl",
                          "host")["cases"]
        self.assertEqual([case["params"]["segment"] for case in cases if "skip" in case], [4])
        self.assertIn("keeps all of them: segment=0", cases[-1]["skip"])

    def test_a_stack_that_cannot_be_is_bad_input(self):
        for blocks in ("0", "5000"):
            refused = self.refused("run", "checkpoint_schemes", "-a", f"blocks=8,{blocks}")
            self.assertIn(f"blocks is {blocks}; a toy stack has 1 to 4096 of them", refused)

    def test_schemes_are_counted_on_a_toy_stack(self):
        lines = self.lines("run", "checkpoint_schemes", "-a", "blocks=32")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        rows = {row["scheme"]: (row["forwards"], row["streams"], row["residuals"])
                for row in self.table("gradient_checkpointing", "schemes")["rows"]}
        self.assertEqual(rows, {"none": (32, 1, 32), "every": (63, 32, 1), "sqrt": (62, 6, 6), "halving": (112, 6, 1),
                                "binomial": (92, 6, 1), "left_deep": (528, 1, 1)})
        self.assertEqual(len(self.table("checkpoint_schemes", "checkpoint_schemes")["rows"]), 6)
        # The sketch of part (a): as many moments as passes of a block, as high as the counts.
        self.assertEqual(dict(self.sql("SELECT params ->> '$.scheme', count(*) FROM v_attempt JOIN series s USING (attempt_id) JOIN sample"
                                       " ON series_id = s.id WHERE s.name = 'held_streams' GROUP BY 1")),
                         {scheme: forwards + 32 for scheme, (forwards, _, _) in rows.items()})
        report = self.syslab("report", "gradient_checkpointing", "-o", "report.md") and (self.folder / "report.md").read_text()
        self.assertIn("Gradient checkpointing: memory over a pass", report)
        self.assertNotIn("**(a) Figure**: A sketch of it: what is held over the pass. → not", report)


class Operators(Lab):
    def test_smoke_holds_every_operator_against_a_copy_of_as_many_bytes(self):
        lines = self.lines("run", "operators", "--preset", "smoke", "--device", "cpu")
        ended = [line for line in attempts(lines) if "operator" in line["params"]]  # the others are laws
        ran = {(line["params"]["operator"], line["params"]["pass"]) for line in ended if line["status"] == "ok"}
        one = {(name, "forward") for name in ("elementwise", "adamw", "global_norm")}
        two = {(name, way) for name in ("rms_norm", "rope", "swiglu", "embedding", "cross_entropy") for way in ("forward", "backward")}
        self.assertEqual(ran, one | two | {("cross_entropy", "both")})
        self.assertLessEqual({line["status"] for line in ended}, {"ok", "skipped"})
        rows = self.table("operators", "operators")["rows"]
        self.assertEqual(len(rows), 14)
        for row in rows:
            self.assertEqual((row["implementation"], row["status"]), ("naive", "ok"))
            self.assertGreater(row["share"], 0)
            self.assertTrue(row["peer"].startswith("copy_"), row)
        # The copy of a case moves the operator's bytes.
        (adamw,) = self.sql("SELECT count(*) FROM v_attempt WHERE implementation = 'copy_threads_streaming' AND status = 'ok'"
                            " AND params ->> '$.operator' = 'adamw' AND params ->> '$.pass' = 'forward'")
        self.assertEqual(adamw, (1,))

    def test_sizes_that_cannot_be_are_refused(self):
        self.syslab("run", "operators", "-a", "operator=swiglu", "-a", "rows=0", expect=2)


if __name__ == "__main__":
    unittest.main()
