"""Problems for paper and pencil: every number of the hand-outs, their arguments, and the sentences that answer."""
import unittest

from lab import Lab, attempts

LAYERS = ("data_parallel_calcs", "fsdp_calcs", "tp_calcs", "fsdp_tp_calcs")


class Calculators(Lab):
    def run_ok(self, *arguments):
        ended = attempts(self.lines("run", *arguments))
        self.assertTrue(ended)
        self.assertEqual({line["status"] for line in ended}, {"ok"})

    def tables(self, *experiments):
        return {table["id"]: table for table in self.json("report", *experiments)}

    def test_accounting_tells_the_numbers_of_the_hand_out_in_both_readings(self):
        self.run_ok("communication_accounting")
        found = dict(self.sql("SELECT name, value FROM metric GROUP BY name HAVING min(value) = max(value)"))
        self.assertEqual((found["parameters"], found["state_bytes"], found["token_bytes"]), (219848638464, 3517578215424, 17547264))
        tables = self.tables("communication_accounting")
        rows = {row["tokens"]: row for row in tables["memory"]["rows"]}
        self.assertEqual({tokens: (row["devices"], row["devices_gib"], row["shards"], row["shards_gib"]) for tokens, row in rows.items()}, {
            0: (44, 41, "38", "35"), 512: (45, 42, "39", "37"), 1024: (45, 42, "41", "38"), 2048: (45, 42, "46", "43"),
            4096: (45, 42, "61", "54"), 8192: (46, 43, "156", "120"), 131072: (73, 68, "impossible", "impossible")})
        batch = {(row["axes"], row["choice"]): row["tokens_device"] for row in tables["batch"]["rows"]}
        for reading, tokens in {("in parallel", "as asked"): 319.4, ("in sequence", "as asked"): 395.3, ("in parallel", "free"): 61.3,
                                ("in sequence", "free"): 245.3}.items():
            self.assertAlmostEqual(batch[reading], tokens, delta=0.05)
        splits = {(row["x"], row["y"]): (row["overlapped"], row["serial"]) for row in tables["splits"]["rows"]}
        self.assertEqual(splits[16, 4], ("20445", "25302"))
        self.assertEqual((splits[8, 8][1], splits[4, 16][0], splits[2, 32]), ("16594", "5112", ("never", "never")))
        text = self.syslab("report", "communication_accounting").stdout
        for part in ("219,848,638,464", "43.97", "Compute-bound from **320** tokens per device (rounded up), **20,445** over all 64", "396 tokens per device, 25,302", "X = 8, Y = 8"):
            self.assertIn(part, text)
        self.assertNotIn("Smoke run", text)

    def test_every_number_is_counted_in_another_way(self):
        self.run_ok(*LAYERS, "communication_accounting", "--preset", "smoke")
        checks = self.sql("SELECT t.experiment, count(DISTINCT c.name) FROM check_result c JOIN v_attempt t USING (attempt_id) GROUP BY 1")
        self.assertGreaterEqual(min(count for _, count in checks), 6)
        self.assertEqual({name for name, _ in checks}, {*LAYERS, "communication_accounting"})
        self.assertEqual(self.sql("SELECT count(*) FROM check_result WHERE outcome <> 'passed'"), [(0,)])
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])
        for experiment in LAYERS:
            names = {name for (name,) in self.sql("SELECT c.name FROM check_result c JOIN v_attempt t USING (attempt_id) WHERE t.experiment = ?",
                                                  experiment)}
            self.assertLessEqual({"reference:gradients", "reference:forward_flops", "reference:backward_bytes"}, names)

    def test_limits_of_a_layer_follow_from_its_arguments(self):
        # α = B·W/C = 15, β = 3FW/(2C) = 12: chosen so that limits are whole.
        arguments = ("-a", "tokens=15000", "-a", "d_ff=8000", "-a", "compute_tflops=100", "-a", "link_gbps=100")
        self.run_ok(*LAYERS[:3], *arguments, "-a", "ranks=1,16,17")
        self.run_ok("fsdp_tp_calcs", *arguments)
        limits = {(experiment, name): value for experiment, name, value in self.sql(
            "SELECT t.experiment, m.name, m.value FROM metric m JOIN v_attempt t USING (attempt_id) WHERE m.name LIKE '%limit%' OR m.name LIKE '%grid%'")}
        self.assertNotIn(("data_parallel_calcs", "forward_limit"), limits)
        for key, value in {("data_parallel_calcs", "backward_limit"): 16, ("fsdp_calcs", "forward_limit"): 16, ("fsdp_calcs", "backward_limit"): 16,
                           ("tp_calcs", "forward_limit"): 13, ("tp_calcs", "backward_limit"): 25,
                           ("fsdp_tp_calcs", "forward_limit_overlapped"): 16 * 13, ("fsdp_tp_calcs", "forward_grid_overlapped_data"): 16,
                           ("fsdp_tp_calcs", "forward_limit_serial"): 207**2 / 720}.items():
            self.assertAlmostEqual(limits[key], value)
        rows = {row["ranks"]: row for row in self.tables("fsdp_calcs")["fsdp_calcs"]["rows"]}
        self.assertEqual([rows[n]["forward_waits"] for n in (1, 16, 17)], ["compute", "compute", "communication"])
        self.assertEqual(rows[1]["forward_communication"], 0)

    def test_the_report_answers_every_part(self):
        self.run_ok(*LAYERS, "communication_accounting", "--preset", "smoke")
        for handout, problems in (("2025", ("communication_accounting",)), ("2026", LAYERS)):
            text = self.syslab("report", "--appendix", "--handout", handout, "--no-figures").stdout
            for problem in problems:
                section = text.split(f"`{problem}` · hand-out", 1)[1].split("\n## ", 1)[0]
                self.assertIn("→ below", section)
                self.assertNotIn("→ not measured", section)
                self.assertNotIn("your own words", section)

    def test_impossible_arguments_are_told(self):
        for arguments, name in ((("fsdp_calcs", "-a", "ranks=0"), "grid of 0"), (("tp_calcs", "-a", "d_ff=0"), "d_ff is 0"),
                                (("communication_accounting", "-a", "tokens=-1"), "tokens"),
                                (("communication_accounting", "-a", "device_gb=0"), "device_gb is 0"),
                                (("communication_accounting", "-a", "compute_tflops=0"), "the rate of computing is 0"),
                                (("communication_accounting", "-a", "fsdp_ranks=0"), "fsdp_ranks is 0"),
                                (("fsdp_tp_calcs", "-a", "tokens=0"), "tokens is 0"),
                                (("fsdp_tp_calcs", "-a", "tensor_ranks=0"), "grid of 4 × 0"),
                                (("fsdp_calcs", "-a", "link_gbps=0.0"), "rate of the link")):
            for verb in ("plan", "run"):
                self.assertIn(name, self.syslab(verb, *arguments, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
