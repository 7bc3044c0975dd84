"""Where time and memory go: kernels by phase, timelines, live bytes, and what the report makes of them."""
import json
import re
import unittest

from lab import Lab, asked_again, attempts

# A model of two layers, on the CPU: the calls of its operators are its kernels.
TINY = ("-a", "model=tiny", "-a", "batch=2", "-a", "context=32", "-a", "precision=fp32", "--device", "cpu")
LAYERS = 2


class Profile(Lab):
    def run_all(self, experiment, *arguments):
        lines = self.lines("run", experiment, *TINY, *arguments, "--protocol", "quick")
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"})

    @asked_again  # a busy machine stops a step between two phases
    def test_every_product_of_the_baseline_is_counted_and_times_add_up(self):
        self.run_all("nsys_profile", "--impl", "host,host_eager")
        rows = {row["implementation"]: row for row in self.table("nsys_profile", "nsys_profile")["rows"]}
        eager = rows["host_eager"]
        self.assertEqual((eager["forward_products"], eager["step_products"]), (9 * LAYERS + 1, 27 * LAYERS + 3))
        self.assertEqual((eager["forward_expected"], eager["step_expected"]), (9 * LAYERS + 1, 27 * LAYERS + 3))
        self.assertEqual(rows["host"]["forward_products"], 4 * LAYERS + 1, "joined, and attention in one call")
        self.assertEqual(eager["source"], "host clock")
        for row in rows.values():
            self.assertTrue(row["forward_busy"] > 0 and row["step_busy"] > 0 and row["step"] > 0)
        for uid, whole in self.sql("SELECT attempt_id, sum(total_ns) FROM kernel_stat WHERE phase = '' GROUP BY attempt_id"):
            (phases,) = self.sql("SELECT sum(total_ns) FROM kernel_stat WHERE phase <> '' AND attempt_id = ?", uid)
            self.assertLessEqual(phases[0], whole)
            self.assertGreater(phases[0], 0.9 * whole, "nearly all of a step lies in a phase")

        shares = self.table("nsys_profile", "matmul_share")["rows"]
        self.assertEqual(len(shares), 2)
        for row in shares:
            self.assertTrue(0 < row["step"] < 100 and 0 < row["forward"] < 100)
        (attention,) = self.table("nsys_profile", "attention")["rows"]
        self.assertEqual(attention["implementation"], "host_eager")
        self.assertAlmostEqual(attention["flop_ratio"], 5 / (4 * 16))  # 5·BHT² over 4·BHT²·d, d = 16
        kernels = self.table("nsys_profile", "kernels")["rows"]
        self.assertEqual({row["phase"] for row in kernels}, {"forward", "backward", "optimizer"})
        self.assertLessEqual({"gemm", "adamw"}, {row["operation"] for row in kernels})
        # The table shows the longest ones; softmax's are there however short.
        kinds = dict(self.sql("SELECT DISTINCT operation, kind FROM v_kernel WHERE implementation = 'host_eager' AND phase = 'forward'"))
        self.assertEqual(kinds.get("attention.softmax.exp"), "softmax", kinds)
        self.assertEqual({kind for operation, kind in kinds.items() if operation.endswith("gemm")}, {"matrix products"}, kinds)
        blank = {row["implementation"]: (row["fused"] is None, row["softmax"] is None) for row in shares}
        self.assertEqual(blank, {"host": (False, True), "host_eager": (True, False)})

    def test_the_timeline_comes_out_as_a_file_that_perfetto_reads(self):
        self.run_all("nsys_profile", "--impl", "host")
        self.syslab("query", "SELECT content FROM artifact WHERE kind = 'timeline'", "--to", "raw", "-o", "step.json")
        whole = json.loads((self.folder / "step.json").read_text(encoding="utf-8"))
        names = {event["name"] for event in whole["traceEvents"] if event["ph"] == "X"}
        self.assertTrue({"forward", "backward", "optimizer", "layers.0", "layers.1", "attn", "ffn", "lm_head", "gemm"} <= names, names)
        self.assertIn("wants a SELECT of one row", self.syslab("query", "SELECT 1 UNION SELECT 2", "--to", "raw", expect=2).stderr)
        spans = self.sql("SELECT name, start_ns, end_ns FROM span WHERE category = 'phase' ORDER BY start_ns")
        self.assertEqual([name for name, _, _ in spans], ["forward", "backward", "optimizer"])

    def test_live_bytes_add_up_to_the_peak_and_meet_their_prediction(self):
        self.run_all("memory_profiling", "--impl", "host,host_eager", "-a", "pass=forward,forward_kept,step")
        rows = self.table("memory_profiling", "memory_profiling")["rows"]
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertLess(abs(row["off"]), 3, row)
            parts = sum(row[part] or 0 for part in ("parameters", "gradients", "optimizer", "saved", "temporaries", "others"))
            self.assertAlmostEqual(parts, row["peak"], delta=0.03 * row["peak"])
            self.assertEqual(row["gradients"] > 0, row["pass"] == "step")
            self.assertEqual(row["saved"] > 0.05, row["pass"] != "forward", row)
        # What the log says at its highest is what the account says.
        for peak, timeline in self.sql(
                "SELECT p.value, t.value FROM metric p JOIN metric t ON t.attempt_id = p.attempt_id AND t.name = 'timeline_peak'"
                " WHERE p.name = 'peak_bytes'"):
            self.assertAlmostEqual(timeline, peak, delta=0.01 * peak)
        (live,) = self.sql("SELECT max(live) FROM (SELECT attempt_id, sum(delta_bytes) OVER (PARTITION BY attempt_id ORDER BY t_ns, delta_bytes,"
                           " seq) AS live FROM mem_event)")
        (most,) = self.sql("SELECT max(value) FROM metric WHERE name = 'timeline_peak'")
        self.assertEqual(live[0], most[0])

        block = [row for row in self.table("memory_profiling", "block_residuals")["rows"] if row["implementation"] == "host_eager"]
        self.assertIn("attn.kept", {row["tensor"] for row in block})
        self.assertAlmostEqual(block[0]["total"], block[0]["predicted"], delta=0.01 * block[0]["total"])
        # AdamW's numbers are a few bytes where there are no moments; the baseline is of this model's size.
        for row in rows:
            self.assertEqual(row["optimizer"] > 0.1, row["pass"] == "step")
            self.assertTrue(0.8 * row["peak"] < row["framework"] < 2 * row["peak"], row)
        report = self.syslab("report", "memory_profiling", "--no-figures").stdout
        self.assertIn("| 168 B |", report)
        self.assertIn("and was not run here", report)
        largest = self.table("memory_profiling", "largest")["rows"]
        self.assertTrue(all(row["mib"] > 0 for row in largest))

    def test_the_report_answers_every_part(self):
        self.run_all("nsys_profile", "--impl", "host_eager")
        self.run_all("memory_profiling", "--impl", "host_eager")
        report = self.syslab("report", "nsys_profile", "memory_profiling").stdout
        for words in ("by the profile (", "takes the most time", "Besides matrix products", "From inference to a training step of",
                      "softmax takes", "live memory rises", "activation of the residual stream", "of parameter gradients, "):
            self.assertIn(words, report)
        # A ratio of two times never stands alone, and what is more than all of it leaves no gaps.
        for ratio in re.findall(r"takes ([^;]*?) times as long", report):
            self.assertRegex(ratio, r"±|…|no interval")
        for share in re.findall(r"kernels fill ([\d.]+) % of the pass", report):
            self.assertLess(float(share), 100)
        self.assertRegex(report, r"Profiling overhead (is|cannot be given)")
        # Half precision is a GPU's: what is missing is told with the command, not promised.
        self.assertIn("**(c) Table**: The same peaks under mixed precision. → not measured: `syslab run memory_profiling --preset paper`",
                      report)
        self.assertIn("No case in half precision beside one in fp32", report)

    def test_times_of_passes_are_predicted(self):
        cases = {case["params"]["pass"]: case for case in self.json("plan", "memory_profiling", *TINY, "--impl", "host")["cases"]}
        self.assertGreater(cases["step"]["predicted_seconds"], 0)
        self.assertGreaterEqual(cases["step"]["predicted_seconds"], cases["forward"]["predicted_seconds"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
