"""The experiments of several ranks, on CPU ranks: that their smoke runs end well, and what their tables make of them."""
import json
import shlex
import unittest

from lab import Lab, attempts

DDP = ("naive_ddp", "naive_ddp_benchmarking", "minimal_ddp_flat_benchmarking", "ddp_overlap_individual_parameters",
       "ddp_overlap_individual_parameters_benchmarking", "ddp_overlap_bucketed", "ddp_bucketed_benchmarking")


class Communication(Lab):
    def rows(self, experiment, name):
        return next(table for table in self.json("report", experiment) if table["id"] == name)["rows"]

    def smoke(self, *experiments):
        ended = [line for line in attempts(self.lines("run", ",".join(experiments), "--preset", "smoke"))
                 if line["status"] != "skipped"]
        self.assertEqual({line["status"] for line in ended}, {"ok"})
        return ended

    def test_the_error_for_several_links_prints_options_that_choose_one(self):
        for protocol in ("quick", "kernel"):
            self.syslab("run", "distributed_communication_single_node", "--preset", "smoke", "--laws", "none",
                        "-a", "operation=all_reduce", "--protocol", protocol)
        (self.folder / "ready.csv").write_text("name,bytes,ready_ms\na,4000,1\nb,4000,2\n")
        plan = ("plan-buckets", "--trace", "ready.csv", "--curve", "lab.db")
        links = self.syslab(*plan, expect=2).stderr.splitlines()[1:]
        self.assertEqual(len(links), 2)
        for link in links:
            self.assertIn(link.split()[-1], self.syslab(*plan, *shlex.split(link)).stdout)
        self.assertIn("of those named", self.syslab(*plan, "--protocol", "none", expect=2).stderr)

    def test_collectives_are_checked_on_every_rank_and_their_rates_follow_from_their_times(self):
        self.smoke("distributed_communication_single_node")
        self.assertEqual(self.sql("SELECT count(DISTINCT name) FROM check_result WHERE outcome = 'passed'"
                                  " AND name LIKE 'reference:result%'"), [(2,)])
        rows = self.rows("distributed_communication_single_node", "distributed_communication_single_node")
        self.assertEqual(len(rows), 4)
        for row in rows:
            # A busy machine may give samples of two modes, which have no rate.
            if row["algbw"] == "–":
                self.assertIn("bimodal", row["noise"])
            else:
                self.assertAlmostEqual(row["algbw"], row["bytes"] * 1e-6 / row["time_ms"], delta=1e-6 * row["algbw"])
                factor = {"all_reduce": 1, "all_gather": 0.5}[row["operation"]]  # of two ranks
                self.assertAlmostEqual(row["busbw"], factor * row["algbw"], delta=1e-6 * row["algbw"])
            self.assertEqual(row["pipelined"] == "two modes", row["busbw_pipelined"] == "–")
        # As many samples on all ranks, in both series, so that there is a slowest rank at each.
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name IN ('time', 'pipelined') AND rank = -1"
                                  " AND value IS NULL"), [(0,)])
        # Two sizes: where there is a law it goes through both.
        for law in self.rows("distributed_communication_single_node", "laws_of_time"):
            self.assertEqual(law["worst"] == "–", law["alpha"] > 0)  # two numbers, two sizes
            self.assertGreater(law["beta"], 0)
            self.assertGreaterEqual(law["alpha"], 0)

    def test_what_nccl_lacks_on_this_machine_is_named_by_the_plan_and_stands_in_the_table(self):
        of_64 = ("distributed_communication_single_node", "--impl", "nccl", "--device", "cuda", "-a", "world_size=64", "-a",
                 "bytes=1000")
        (case,) = self.json("plan", *of_64)["cases"]
        # gpu_lab.py has machines with some GPUs, and asks for one more than there are.
        self.assertRegex(case["skip"], r"^(nccl needs (CUDA, which this build has not|a GPU: .+)|needs 64 GPUs)$")
        self.lines("run", *of_64)
        (row,) = self.rows("distributed_communication_single_node", "distributed_communication_single_node")
        self.assertEqual(row["message"], case["skip"])
        self.assertIsNone(row["time_ms"])

    def test_a_layers_ratio_of_communicating_to_computing_stands_beside_the_formulas(self):
        self.smoke("layer_crossover")
        rows = {(row["layout"], row["tokens"], row["d_ff"]): row for row in self.rows("layer_crossover", "layer_crossover")}
        self.assertEqual(len(rows), 8)
        for row in rows.values():
            self.assertAlmostEqual(row["ratio"], row["communicate"] / row["compute"], delta=1e-9 * row["ratio"])
        # By the formula tokens alone count where weights are gathered, hidden numbers alone where sums are.
        for tokens, d_ff in ((8, 8), (8, 512), (512, 8), (512, 512)):
            for layout, counts in (("fsdp", tokens), ("tensor", d_ff)):
                self.assertAlmostEqual(rows[layout, tokens, d_ff]["formula"] * counts, 8 * rows[layout, 8, 8]["formula"],
                                       delta=1e-6 * rows[layout, 8, 8]["formula"])

    def test_both_rings_stand_beside_each_other(self):
        self.smoke("alternate_ring_all_reduce")
        rows = self.rows("alternate_ring_all_reduce", "alternate_ring_all_reduce")
        sent = {(row["ranks"], row["implementation"]): row["sent"] for row in rows}
        self.assertEqual(sent[2, "whole"], sent[2, "parts"])
        self.assertEqual(sent[3, "whole"], 2 * 65536)
        self.assertEqual(sent[3, "parts"], 4 * 65536 // 3)

    def test_buckets_of_small_tensors_stand_beside_their_formula(self):
        self.smoke("ddp_small_tensors")
        rows = self.rows("ddp_small_tensors", "ddp_small_tensors")
        self.assertEqual([(row["bucket_kb"], row["buckets"]) for row in rows], [(10, 100), (100, 10), (1000, 1)])
        for row in rows:  # at pace 1
            self.assertAlmostEqual(row["forecast"], 1024e-3 / row["buckets"] / row["w"] + 1e-3 * row["o"] * row["buckets"],
                                   delta=1e-9 * row["forecast"])
            self.assertGreater(row["exposed"], 0)
            self.assertGreater(row["time_ms"], row["backward"])
        report = self.syslab("report", "ddp_small_tensors", "--to", "md").stdout
        self.assertIn("100 tensors of ", report)
        self.assertIn("`ddp_small_tensors` · posed by the hand-out of 2025", report)

    def test_data_parallel_steps_are_certified_and_tell_what_they_expose(self):
        self.smoke("distributed_communication_single_node")
        self.smoke(*DDP)
        ranks = self.sql("SELECT count(*) FROM check_result WHERE name LIKE 'reference:certificate%' AND outcome = 'passed'")
        cases = self.sql("SELECT count(*) FROM v_newest WHERE status = 'ok' AND experiment LIKE '%ddp%'")
        self.assertEqual(ranks[0][0], 2 * cases[0][0])
        rows = {row["strategy"]: row for row in self.rows("minimal_ddp_flat_benchmarking", "steps")}
        self.assertEqual({name: row["buckets"] for name, row in rows.items()},
                         {"none": 0, "naive": 21, "flat_copy": 1, "flat_view": 1})
        self.assertEqual(rows["naive"]["gradient_bytes"], rows["flat_view"]["gradient_bytes"])
        # The phases follow each other inside what the clock of the host has seen, in every sample of every rank.
        samples = self.sql("SELECT s.attempt_id, v.rank, v.idx, json_group_object(s.name, v.value) FROM series s"
                           " JOIN sample v ON v.series_id = s.id GROUP BY s.attempt_id, v.rank, v.idx")
        steps = [found for found in (json.loads(text) for *_, text in samples) if "forward" in found]
        self.assertGreater(len(steps), 100)
        for found in steps:
            phases = [found.get(name, 0) for name in ("forward", "backward", "exposed", "update")]
            self.assertGreater(min(found["forward"], found["backward"], found["update"]), 0)
            self.assertLessEqual(sum(phases), found["time"] + 1e-6)
        report = self.syslab("report", *DDP, "--to", "md").stdout
        for words in ("give weights bit-identical to one process after 3 steps", "is communication: 21 all-reduces, ", "ms flat with copies",
                      "; without communication ", "bucket limits from "):
            self.assertIn(words, " ".join(report.split()))
        # Of two sizes on a busy machine the law may have no cost of a call, or not fit: then no number of buckets is best.
        law = self.sql("SELECT alpha, fits FROM v_transfer_law WHERE operation = 'all_reduce' AND series = 'pipelined'"
                       " AND implementation = 'shm'")
        self.assertEqual("MiB a bucket," in " ".join(report.split()), any(alpha > 0 and fits for alpha, fits in law))
        plans = {row["strategy"]: row for row in self.rows("ddp_bucketed_benchmarking", "steps")}
        self.assertGreaterEqual(plans["planned"]["forecast_exposed"], 0)
        self.assertEqual((plans["overlap"]["forecast_exposed"], plans["overlap"]["bucket_mb"]), ("–", "–"))
        for name in ("naive", "flat_copy", "flat_view"):
            self.assertGreater(rows[name]["exposed"], 0)
            self.assertGreater(rows[name]["communicating"], 0)

    def test_gradients_that_travel_in_bf16_are_half_the_bytes_and_stand_apart(self):
        name = "ddp_bucketed_benchmarking"
        asked = (name, "--preset", "smoke", "-a", "bucket_mb=0,1,1000", "-a", "backend=auto,shm")
        self.lines("run", *asked, "-a", "strategy=none")
        ended = attempts(self.lines("run", *asked, "-a", "strategy=naive,bucketed,planned", "-a", "wire=own,bf16,fp16"))
        self.assertEqual({line["status"] for line in ended}, {"ok", "skipped"})
        rows = {(row["wire"], row["strategy"], row["bucket_mb"]): row for row in self.rows(name, "steps")}
        self.assertEqual((len(rows), len(self.rows(name, "steps"))), (13, 13))  # auto is shm: one row for both words
        parameters = self.sql("SELECT DISTINCT value FROM metric WHERE name = 'parameters'")[0][0]
        for (wire, strategy, _), row in rows.items():
            self.assertEqual(row["gradient_bytes"], 0 if strategy == "none" else parameters * (4 if wire == "own" else 2))
            self.assertAlmostEqual(row["over_none"], row["time_ms"] - rows["own", "none", "–"]["time_ms"], delta=1e-9)
        self.assertEqual({row["wire"] for row in self.rows(name, "scaling")}, {"own", "bf16", "fp16"})
        said = " ".join(self.syslab("report", name, "--to", "html").stdout.split())
        for sent in ("uncompressed", "in bf16", "in fp16"):
            self.assertEqual(said.count(f"gradients {sent}, "), 1)

    def test_a_wire_is_asked_for_where_steps_are_timed_and_not_of_models_in_fp64(self):
        of_64 = ("naive_ddp_benchmarking", "--preset", "smoke", "-a", "precision=fp64", "--impl", "reference", "-a", "wire=bf16")
        for case in self.json("plan", *of_64)["cases"]:
            self.assertEqual("take wire=own" in case.get("skip", ""), case["params"]["strategy"] != "none")
        for line in attempts(self.lines("run", *of_64)):
            self.assertEqual(line["status"], "ok" if line["params"]["strategy"] == "none" else "unsupported")
        for experiment in ("naive_ddp", "ddp_overlap_bucketed"):
            self.assertIn("unknown axis", self.refused("plan", experiment, "-a", "wire=bf16"))
        self.assertIn("known: own, bf16, fp16", self.refused("plan", "naive_ddp_benchmarking", "-a", "wire=fp8"))
        # The buffer, two bytes a parameter on each of two ranks, is in the forecast of memory.
        bytes_of = {case["params"]["wire"]: case["predicted_bytes"] for case in self.json(
            "plan", "naive_ddp_benchmarking", "--preset", "smoke", "-a", "strategy=naive", "-a", "wire=own,bf16")["cases"]}
        self.assertAlmostEqual(bytes_of["bf16"] - bytes_of["own"], 2 * 2 * 95168, delta=4096)

    def test_a_divided_state_is_what_the_formula_has_in_every_dtype_wire_and_order_of_updates(self):
        name = "optimizer_state_sharding_accounting"
        asked = ("--preset", "smoke", "-a", "sharding=none,zero1,zero2")
        ended = attempts(self.lines("run", name, *asked, "-a", "wire=own,bf16", "-a", "updates=at_end,in_turn"))
        self.assertEqual({line["status"]: sum(one["status"] == line["status"] for one in ended) for line in ended}, {"ok": 10, "skipped": 2})
        self.assertEqual({line["detail"][-21:] for line in ended if line["status"] == "skipped"}, {": take updates=at_end"})
        rows = {(row["sharding"], row["wire"], row["updates"]): row for row in self.rows(name, "b_time")}
        self.assertEqual(len(rows), 10)
        for (sharding, wire, updates), row in rows.items():
            none = rows["none", wire, "at_end"]
            self.assertAlmostEqual(row["over_none"], row["time_ms"] - none["time_ms"], delta=1e-9)
            self.assertAlmostEqual(row["sent"] / row["formula_sent"], 1, delta=0.01)
            if sharding != "none":  # gradients scattered, in half the bytes where they are rounded, and weights in fp32
                self.assertAlmostEqual(row["formula_sent"], 0.5 * rows["none", "own", "at_end"]["sent"] * (2 if wire == "own" else 1.5), delta=1)
            self.assertGreaterEqual(row["updating"], 0)
        said = " ".join(self.syslab("report", name).stdout.split())
        self.assertIn("sharding `zero2` (updates in turn): a rank holds ", said)
        self.assertNotIn("(empty)", said)
        # In fp64 everything is twice as large, by formula as well.
        for experiment in ("fsdp", name):
            for line in attempts(self.lines("run", experiment, "--preset", "smoke", "--impl", "reference", "-a", "precision=fp64")):
                self.assertEqual((line["status"], line.get("message", "")), ("ok", ""))
        state = self.sql("SELECT max(m.value), max(f.value) FROM metric m JOIN metric f USING (attempt_id, rank) JOIN v_attempt a USING (attempt_id) "
                         "WHERE m.name = 'held_state' AND f.name = 'formula_state' AND a.params ->> '$.precision' = 'fp64' AND a.params ->> '$.sharding' = 'none'")
        self.assertEqual(state[0][0], state[0][1])

    def test_what_does_not_divide_among_the_ranks_is_refused_before_anything_runs(self):
        for asked, words in (
                (("naive_ddp", "-a", "batch=2"), "a batch of 2 rows is not divided evenly among 3 ranks"),
                (("fsdp", "-a", "batch=4"), "a batch of 4 rows is not divided evenly among 3 ranks"),
                (("optimizer_state_sharding", "-a", "batch=1"), "a batch of 1 rows is not divided evenly among 3 ranks"),
                (("layer_crossover", "-a", "d_ff=9", "-a", "tokens=8"), "8 tokens are not divided evenly among 3 ranks"),
                (("layer_crossover", "-a", "d_ff=8", "-a", "tokens=9"),
                 "8 hidden numbers are not divided evenly among 3 ranks")):
            for verb in ("plan", "run"):
                refused = self.syslab(verb, *asked, "--preset", "smoke", "-a", "world_size=3", expect=2)
                self.assertIn(words, refused.stderr)
        collectives = "distributed_communication_single_node"
        for asked, words in (
                ((collectives, "-a", "bytes=3"), "3 bytes are less than an fp32; at least 4 are wanted"),
                ((collectives, "-a", "bytes=7", "-a", "operation=all_gather"),
                 "7 bytes are less than an fp32 for each of 2 ranks; at least 8 are wanted"),
                (("alternate_ring_all_reduce", "-a", "bytes=0"), "0 bytes are less than an fp32; at least 4"),
                (("alternate_ring_all_reduce", "-a", "bytes=7"), "7 bytes are no whole number of fp32; write 4 or 8")):
            for verb in ("plan", "run"):
                self.assertIn(words, self.refused(verb, *asked, "--preset", "smoke", "-a", "world_size=2"))
        for asked, words in (("world_size=1", "one rank sends nothing"), ("tensors=0", "tensors of 0 make no gradients")):
            self.assertIn(words, self.refused("run", "ddp_small_tensors", "--preset", "smoke", "-a", asked))
        self.assertFalse(self.db.exists())
        self.syslab("plan", "naive_ddp", "--preset", "smoke", "-a", "world_size=3", "-a", "batch=3")

    def test_a_state_that_is_divided_is_certified_and_accounted_for(self):
        self.smoke("optimizer_state_sharding", "optimizer_state_sharding_accounting")
        name = "optimizer_state_sharding_accounting"
        steps = {row["sharding"]: row for row in self.rows(name, "b_time")}
        self.assertEqual(set(steps), {"none", "optimizer", "zero1", "zero2"})
        elements = self.sql("SELECT DISTINCT value FROM metric WHERE name = 'parameters'")[0][0]
        padding = max(value for (value,) in self.sql("SELECT value FROM metric WHERE name = 'padding'"))
        for sharding, row in steps.items():
            self.assertAlmostEqual(row["sent"], row["formula_sent"], delta=4 * 2 * padding, msg=sharding)
        self.assertLess(steps["zero1"]["sent"], steps["optimizer"]["sent"] / 1.4)
        # Moments of the fullest rank: half of them, in whole parameters or with half of the padding.
        held = dict(self.sql("SELECT a.params ->> '$.sharding', max(m.value) FROM metric m JOIN v_newest a USING (attempt_id)"
                             " WHERE m.name = 'held_moments' AND a.experiment LIKE '%accounting' GROUP BY 1"))
        self.assertGreaterEqual(held["none"], 8 * elements)
        for sharding in ("optimizer", "zero1", "zero2"):
            self.assertLessEqual(held[sharding], 0.55 * held["none"], sharding)
        memory = {(row["sharding"], row["moment"]): row for row in self.rows(name, "a_memory")}
        self.assertEqual(len(memory), 20)
        for sharding in steps:
            pytorch = memory.pop((sharding, "after initialisation, as PyTorch has it"))
            self.assertEqual((pytorch["gradients"], pytorch["optimizer"]), (0, 0))
            self.assertLess(pytorch["total"], memory[sharding, "after initialisation"]["total"])
        # What a plan promises of all ranks together, which share this machine's memory, is what they hold at the highest.
        planned = {case["params"]["sharding"]: case["predicted_bytes"] / case["world_size"]
                   for case in self.json("plan", name, "--preset", "smoke")["cases"]}
        for sharding, promised in planned.items():
            self.assertAlmostEqual(memory[sharding, "highest"]["total"] * 2**30 / promised, 1, delta=0.1, msg=sharding)
        for (sharding, moment), row in memory.items():
            self.assertGreaterEqual(memory[sharding, "highest"]["total"], row["total"])
            # The account's own: what it says is the optimizer's is the moments and a few numbers.
            self.assertAlmostEqual(row["optimizer"] * 2**30, held[sharding], delta=4096, msg=(sharding, moment))
        report = " ".join(self.syslab("report", "optimizer_state_sharding", name, "--to", "md").stdout.split())
        for words in ("give weights bit-identical to one process after 3 steps", "ZeRO stage 1 reduce-scatters gradients", "% less than the "):
            self.assertIn(words, report)

    def test_steps_of_one_limit_of_buckets_never_meet_those_of_another(self):
        name = "optimizer_state_sharding_accounting"
        refused = self.syslab("plan", name, "--preset", "smoke", "-a", "bucket_mb=0", expect=2)
        self.assertIn("bucket_mb is 0; a whole number of 2^20 bytes, at least 1, is wanted", refused.stderr)
        reasons = {(case["params"]["strategy"], case["params"]["bucket_mb"]): case.get("skip")
                   for case in self.json("plan", "ddp_bucketed_benchmarking", "--preset", "smoke", "-a", "bucket_mb=0,1")["cases"]}
        for strategy in ("none", "overlap", "planned"):
            self.assertIsNone(reasons[strategy, 0])
            self.assertIn("of strategy bucketed alone", reasons[strategy, 1])
        self.assertIsNone(reasons["bucketed", 1])
        self.assertEqual(reasons["bucketed", 0], "a limit of buckets of at least 1 (2^20 bytes) is wanted by strategy bucketed")
        limits = ("--preset", "smoke", "-a", "model=cpu10m", "-a", "bucket_mb=1,25")
        self.syslab("run", name, *limits)
        steps = {(row["sharding"], row["bucket_mb"]): row for row in self.rows(name, "b_time")}
        self.assertEqual(len(steps), 4 * 2)
        for sharding, _ in steps:
            small, large = steps[sharding, 1], steps[sharding, 25]
            self.assertGreater(small["calls"], large["calls"] + 10, sharding)
            self.assertEqual(small["sent"], large["sent"], sharding)
        for (_, limit), row in steps.items():
            self.assertAlmostEqual(row["over_none"], row["time_ms"] - steps["none", limit]["time_ms"])
        self.assertEqual(sorted((row["sharding"], row["bucket_mb"]) for row in self.rows(name, "a_expected")),
                         [(sharding, limit) for sharding in ("optimizer", "zero1", "zero2") for limit in (1, 25)])
        told = {row["bucket_mb"]: row for row in self.rows(name, "c_zero1")}
        self.assertEqual(len(self.rows(name, "c_zero1")), 2)
        for limit, row in told.items():
            self.assertEqual((row["calls"], row["zero1_calls"]),
                             (steps["optimizer", limit]["calls"], steps["zero1", limit]["calls"]))
        # Slots of zero2 are as large as the largest bucket: a forecast follows the limit.
        promised = {(case["params"]["sharding"], case["params"]["bucket_mb"]): case["predicted_bytes"]
                    for case in self.json("plan", name, *limits)["cases"]}
        self.assertLess(promised["zero2", 1], promised["zero2", 25])
        self.assertEqual(promised["zero1", 1], promised["zero1", 25])
        report = " ".join(self.syslab("report", name, "--to", "md").stdout.split())
        self.assertIn("bucket limit", report)

    def test_full_sharding_is_certified_holds_the_formulas_bytes_and_tells_of_every_gather(self):
        self.smoke("fsdp", "fsdp_accounting")
        ranks = self.sql("SELECT count(*) FROM check_result WHERE name LIKE 'reference:certificate%' AND outcome = 'passed'")
        self.assertEqual(ranks, [(2 * 4,)])  # two ranks of two ways of two experiments
        rows = {row["granularity"]: row for row in self.rows("fsdp", "steps")}
        self.assertEqual(set(rows), {"layer", "block"})
        for row in rows.values():
            self.assertEqual(row["state"], row["formula"] + row["padding"])
            self.assertGreater(min(row["forward"], row["backward"], row["updating"]), 0)
        self.assertLess(rows["layer"]["slots"], rows["block"]["slots"])
        gathers = self.rows("fsdp_accounting", "gathers")
        counted = {name: sum(row["granularity"] == name for row in gathers) for name in rows}
        # Embedding, head, and two blocks: forward all, backward all but the embedding and the two that are still there.
        self.assertEqual(counted, {"layer": 2 * (2 + 2 * 4) - 3, "block": 2 * (2 + 2) - 3})
        for row in gathers:
            self.assertLessEqual(row["start"], row["ended"])
            self.assertLessEqual(row["ended"], row["first_use"] + 1e-3)
            self.assertGreaterEqual(row["exposed"], 0)
        report = " ".join(self.syslab("report", "fsdp", "fsdp_accounting", "--to", "md").stdout.split())
        for words in ("give weights bit-identical to one process after 3 steps", "FSDP saves "):
            self.assertIn(words, report)


if __name__ == "__main__":
    unittest.main()
