"""The experiments that hold attention's passes against each other: their registration, their defaults, memory as an answer."""
import json
import re
import unittest

from lab import Lab, attempts

POINT = ("-a", "seq=32", "-a", "head_dim=16", "-a", "dtype=fp32")
NO_LAWS = ("--laws", "none")
KEEPERS = ("literal", "fused_softmax", "flash_tiled")


class Attention(Lab):
    def test_smoke_of_both_ends_well_and_fills_their_tables(self):
        lines = self.lines("run", "flash_benchmarking,pytorch_attention", "--preset", "smoke", *NO_LAWS)
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})
        cases = [(line["experiment"], line["impl"], line["params"]["pass"]) for line in attempts(lines)]
        self.assertEqual(set(cases), {("flash_benchmarking", impl, which) for impl in KEEPERS
                                      for which in ("forward", "backward", "both")}
                         | {("pytorch_attention", impl, which) for impl in KEEPERS for which in ("forward", "backward")})
        rows = self.table("flash_benchmarking", "flash_benchmarking")["rows"]
        self.assertEqual(len(rows), 6)  # three implementations in two dtypes, three passes in a row
        for row in rows:
            self.assertTrue(row["forward"] > 0 and row["backward"] > 0 and row["both"] > 0, row)
            self.assertEqual(row["status"], "ok")
            self.assertEqual(row["vs_literal"] == 1, row["implementation"] == "literal", row)
        text = self.syslab("report", "flash_benchmarking", "--no-figures").stdout
        self.assertIn("No summary of these cases alone: `syslab run flash_benchmarking`.", text)
        self.assertNotIn("Not measured: `syslab run", text)

    def test_a_run_keeps_what_its_ladder_says_of_the_rungs_in_its_plan(self):
        self.syslab("run", "flash_forward", *POINT, "--impl", "naive,flash_tiled", "--protocol", "quick", *NO_LAWS)
        rows = self.sql("SELECT implementation, is_general, facts FROM v_rung ORDER BY implementation")
        dtypes = "fp32, bf16, fp16"
        self.assertEqual([(name, general, json.loads(facts)) for name, general, facts in rows],
                         [("flash_tiled", 1, {"device": "cpu", "dtypes": dtypes, "forward_tile": "96 × 128", "works": "plain loops"}),
                          ("naive", 0, {"device": "cpu", "dtypes": dtypes, "role": "naive"})])

    def test_memory_between_the_passes_is_what_the_rungs_keep(self):
        self.syslab("run", "naive_attention", "--preset", "smoke", *NO_LAWS)
        rows = {(row["seq"], row["implementation"]): row for row in self.table("naive_attention", "pytorch_attention")["rows"]}
        for seq in (64, 128):
            matrix, tensor, row = 4 * 2 * seq * seq, 4 * 2 * seq * 16, 4 * 2 * seq
            kept = {"literal": 2 * matrix + 2 * row, "fused_softmax": matrix + row, "flash_tiled": row}
            for name, expected in kept.items():
                found = rows[seq, name]
                self.assertEqual(found["kept"], expected, name)
                self.assertAlmostEqual(found["before_backward"] * 2**20, expected + 4 * tensor)
                self.assertGreater(found["forward_peak"] * 2**20, expected + 4 * tensor)
                self.assertGreater(found["backward_peak"] * 2**20, expected + 8 * tensor)
        self.assertGreater(rows[128, "literal"]["forward_peak"], 4 * 4 * 2 * 128 * 128 / 2**20)
        growth = {row["implementation"]: row["growth"] for row in self.table("pytorch_attention", "growth")["rows"]}
        self.assertAlmostEqual(growth["fused_softmax"], 4, delta=0.1)
        self.assertAlmostEqual(growth["flash_tiled"], 2)

    def test_the_words_say_how_what_is_kept_can_be_avoided(self):
        self.syslab("run", "pytorch_attention", *POINT, "-a", "pass=forward", "--impl", "literal", "--protocol", "quick", *NO_LAWS)
        text = self.syslab("report", "pytorch_attention", "--no-figures").stdout
        self.assertRegex(text, "The score matrices need not be kept: .* L of each row.*recomputes P = .*FlashAttention-2")

    def test_the_command_that_the_report_gives_for_the_derivation_runs_out_of_nothing(self):
        self.syslab("run", "selftest_empty", "--protocol", "quick", *NO_LAWS)  # a store that holds nothing of it
        text = self.syslab("report", "pytorch_attention", "--no-figures").stdout
        command, = re.findall(r"\*\*Derivation\*\*: .*not measured: `syslab (.*?)`", text)
        ended = attempts(self.lines(*command.split(), expect=0, timeout=60))
        self.assertEqual({line["status"] for line in ended}, {"oom"})
        self.assertTrue(all(line["detail"].startswith("needs") for line in ended), "predicted, not tried")
        self.assertIn(" case out of memory: ", self.syslab("report", "pytorch_attention", "--no-figures").stdout)

    def test_each_has_a_protocol_of_its_own_and_a_run_of_both_the_general_one(self):
        for experiments, protocol in (("naive_attention", "cs336_100"), ("flash_benchmarking", "do_bench"),
                                      ("naive_attention,flash_benchmarking", "kernel")):
            plan = self.json("plan", experiments, *POINT)
            self.assertEqual(plan["protocol"], protocol)
        self.syslab("run", "naive_attention", *POINT, "-a", "pass=forward", "--impl", "flash_tiled", *NO_LAWS)
        self.assertEqual(self.sql("SELECT n FROM metric WHERE name = 'time'"), [(100,)])
        self.assertEqual(self.sql("SELECT protocol ->> '$.name' FROM run"), [("cs336_100",)])

    def test_the_alias_answers_everywhere(self):
        self.assertEqual(self.json("describe", "naive_attention"), self.json("describe", "pytorch_attention"))
        self.assertEqual(self.json("plan", "naive_attention", *POINT)["cases"],
                         self.json("plan", "pytorch_attention", *POINT)["cases"])
        self.syslab("check", "naive_attention", "--impl", "literal", "--cases", "2")
        self.assertEqual(self.sql("SELECT DISTINCT experiment FROM case_def"), [("pytorch_attention",)])
        self.assertIn("Our analogue", self.syslab("report", "naive_attention", "--no-figures").stdout)

    def test_what_is_chosen_where_no_name_is_given_is_told_with_its_reasons(self):
        described = self.json("describe", "flash_backward")
        chosen = [row["implementation"] for row in described["chosen"]]
        self.assertEqual(chosen[:3], ["flash_wgmma", "flash_wgmma_deterministic", "flash_mma"])
        self.assertLessEqual(set(chosen), {it["name"] for it in described["implementations"]})
        self.assertTrue(all(row["because"] for row in described["chosen"]))
        text = re.sub(r"\s+", " ", self.syslab("describe", "flash_backward").stdout)
        _, rule = text.split("the library takes the first that can, and says why")
        self.assertIn("flash_tiled the fastest on the CPU, and holds no matrix of scores", rule)
        self.assertEqual(self.json("describe", "weighted_sum")["chosen"], [])

    def test_the_grids_are_the_handouts(self):
        def axes(experiment):
            return {axis["name"]: axis["values"] for axis in self.json("describe", experiment)["axes"]}
        flash, plain = axes("flash_benchmarking"), axes("pytorch_attention")
        self.assertEqual((flash["seq"], flash["head_dim"], flash["dtype"], flash["causal"], flash["batch"], flash["heads"]),
                         ([2**k for k in range(7, 17)], [16, 32, 64, 128], ["bf16", "fp32"], [True], [1], [1]))
        self.assertEqual((plain["seq"], plain["head_dim"], plain["causal"], plain["batch"], plain["heads"]),
                         ([256, 1024, 4096, 8192, 16384], [16, 32, 64, 128], [False], [8], [1]))
        self.assertEqual(len(self.json("plan", "flash_benchmarking", "--impl", "flash_tiled")["cases"]),
                         80 * 3)
        # What the grid leaves out can be asked for.
        self.json("plan", "flash_benchmarking", "-a", "causal=false", "-a", "dtype=fp16")

    def test_running_out_of_memory_is_an_answer_with_its_sum(self):
        huge = ("-a", "seq=65536", "-a", "head_dim=16", "--impl", "literal", "--memory-limit", "1Gi")
        lines = self.lines("run", "pytorch_attention", *huge, *NO_LAWS, expect=0)
        self.assertEqual([line["status"] for line in attempts(lines)], ["oom", "oom"])
        (sum_,) = self.table("pytorch_attention", "accounting")["rows"]
        self.assertEqual((sum_["kept"], sum_["work"], sum_["pass"]), (2, 2, "forward"))
        planned = self.json("plan", "pytorch_attention", *huge)["cases"][0]
        # The plan counts L, the sums of rows and a head for the products as well.
        self.assertAlmostEqual(sum_["total_gib"] * 2**30 / planned["predicted_bytes"], 1, delta=0.001)
        (row,) = self.table("pytorch_attention", "pytorch_attention")["rows"]
        self.assertEqual((row["status"], row["forward"]), ("oom", None))
        text = self.syslab("report", "pytorch_attention", "--no-figures").stdout
        self.assertIn("OOM (needs ", text)
        self.assertIn(" case out of memory: ", text)
        self.lines("run", "flash_benchmarking", *huge, *NO_LAWS, "-a", "dtype=bf16", expect=0)
        self.assertIn("runs out of memory at T = 65536 (forward)", self.syslab("report", "flash_benchmarking", "--no-figures").stdout)


if __name__ == "__main__":
    unittest.main()
