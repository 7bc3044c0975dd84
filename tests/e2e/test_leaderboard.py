"""The leaderboard of 2026: arithmetic of the 8B model, its step fully sharded, and what is refused."""
import unittest

from lab import Lab, attempts


class Leaderboard2026(Lab):
    def test_arithmetic_of_the_8b_model_on_any_machine(self):
        lines = self.lines("run", "leaderboard_2026", "--preset", "laptop")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        rows = {(row["batch"], row["precision"], row["variant"]): row for row in self.table("leaderboard_2026", "memory")["rows"]}
        self.assertEqual(len(rows), 12)
        row = rows[2, "bf16_fused", "fused"]
        self.assertAlmostEqual(rows[2, "fp32", "eager"]["kept"] - rows[2, "fp32", "fused"]["kept"],
                               # Of 34 layers, batch 2: two matrices of 32 heads and sums of rows, what norms give, and the gate.
                               34 * 2 * 4 * 32768 * (32 * (2 * 32768 + 1) + 2 * 4096 + 11008) / 2**30)
        self.assertEqual(row["parameters"], 8125698048)
        self.assertAlmostEqual((row["weights"] + row["gradients"] + row["moments"]) * 2**30, 16 * 8125698048)
        self.assertAlmostEqual(row["petaflop"], 3 * (0.902 + 0.0816 + 0.598), delta=0.01)
        self.assertEqual((row["fits_80"], row["fits_141"]), ("no", "no"))
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_the_step_of_several_ranks_is_that_of_kept_activations_and_holds_what_was_forecast(self):
        tiny = ("-a", "model=tiny", "-a", "layers=4", "-a", "context=32", "-a", "precision=fp32", "--protocol", "quick")
        lines = self.lines("run", "leaderboard_2026", *tiny, "-a", "segment=0,0.5,1,2,3", "-a", "world_size=2", "--impl", "fsdp_host")
        self.assertEqual([line["status"] for line in attempts(lines)], ["ok"] * 5)
        rows = {row["segment"]: row for row in self.table("leaderboard_2026", "sharded")["rows"]}
        self.assertEqual(set(rows), {"all kept", "0.5", "1", "2", "3"})
        for row in rows.values():
            self.assertAlmostEqual(row["peak"] / row["forecast"], 1, delta=0.02)
        self.assertLess(rows["1"]["peak"], rows["2"]["peak"])
        self.assertLess(rows["2"]["peak"], rows["all kept"]["peak"])
        checked = self.sql("SELECT params ->> '$.segment', count(*) FROM v_attempt a JOIN check_result k USING (attempt_id)"
                           " WHERE k.name LIKE 'reference:recomputed%' AND k.outcome = 'passed' GROUP BY 1")
        self.assertEqual(checked, [(0.5, 2), (1.0, 2), (2.0, 2), (3.0, 2)])
        # Of 4 blocks of equal work, and attention's scores.
        flops = dict(self.sql("SELECT params ->> '$.segment', max(value) FROM v_attempt a JOIN metric m USING (attempt_id)"
                              " WHERE m.name = 'segment_flops' GROUP BY 1"))
        self.assertAlmostEqual((flops[1] - flops[0]) / (flops[2] - flops[0]), 3 / 2)
        self.assertAlmostEqual((flops[3] - flops[0]) / (flops[1] - flops[0]), 1)

    def test_of_the_whole_model_two_gpus_run_again_as_few_blocks_as_fit(self):
        layers, fits = 34, {}
        segments = ",".join(map(str, range(layers + 1)))
        plan = self.json("plan", "leaderboard_2026", "-a", f"segment={segments}", "-a", "world_size=2", "--impl", "fsdp")["cases"]
        for case in plan:
            segment = int(case["params"]["segment"])
            again = 0 if segment == 0 else (layers - 1) // segment * segment
            if case["predicted_bytes"] <= 141e9:
                fits[segment] = again
        (usual,) = self.json("plan", "leaderboard_2026", "-a", "world_size=2", "--impl", "fsdp")["cases"]
        self.assertEqual(fits[int(usual["params"]["segment"])], min(fits.values()))
        (alone,) = self.json("plan", "leaderboard_2026", "--impl", "fsdp")["cases"]
        self.assertGreater(alone["predicted_bytes"], 141e9)

    def test_several_ranks_are_for_full_sharding(self):
        (ended,) = attempts(self.lines("run", "leaderboard_2026", "-a", "world_size=2", "--impl", "predicted"))
        self.assertEqual(ended["status"], "unsupported")
        self.assertIn("predicted is one process's work; fsdp divides the step", ended["detail"])
        for arguments, why in ((("-a", "world_size=3", "--impl", "fsdp"), "a batch of 2 rows is not divided evenly among 3 ranks"),
                               (("-a", "segment=0.3",), "segments of 0.3 blocks")):
            self.assertIn(why, self.syslab("run", "leaderboard_2026", *arguments, expect=2).stderr)

    def test_a_backend_that_joins_nobody_and_segments_beyond_the_model_are_told_by_the_plan(self):
        tiny = ("-a", "model=tiny", "-a", "layers=2", "-a", "context=32", "-a", "precision=fp32")

        def reasons(*arguments):
            return [case.get("skip") for case in self.json("plan", "leaderboard_2026", *tiny, *arguments)["cases"]]

        engines = ("-a", "segment=1", "-a", "backend=copy_engines", "--impl")
        self.assertEqual(reasons(*engines, "fsdp_host", "-a", "world_size=2"),
                         ["the backend copy_engines joins GPUs, and fsdp_host computes on the CPU"])
        for alone in ("predicted", "host"):
            self.assertEqual(reasons(*engines, alone),
                             [f"{alone} is one process's work, and no backend carries anything for it: backend=auto"])
            self.assertEqual(reasons("--impl", alone), [None])
        beyond = "a segment of more blocks than the model has keeps all of them: segment=0 measures that"
        self.assertEqual(reasons("-a", "segment=0,2,2.5,99", "--impl", "fsdp_host", "-a", "world_size=2"), [None, None, beyond, beyond])

    def test_the_whole_model_is_an_oom_that_says_what_it_needs(self):
        lines = self.lines("run", "leaderboard_2026", "-a", "precision=fp32", "--impl", "host", "--device", "cpu", "--memory-limit", "8Gi")
        (ended,) = attempts(lines)
        self.assertEqual(ended["status"], "oom")
        self.assertIn("needs", ended["detail"])


if __name__ == "__main__":
    unittest.main()
