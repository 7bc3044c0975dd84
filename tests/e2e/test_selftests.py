"""The lab's experiments on itself, in their smoke presets: nothing lost, left or unnamed, and each violation that is planted is found."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

from lab import Lab, attempts


class Selftests(Lab):
    def planted(self, experiment, kind, what, count=1):
        (line,) = attempts(self.lines("run", experiment, "-a", f"count={count}", "-a", f"kind={kind}", "-a", f"planted={what}",
                                      expect=1))
        self.assertEqual(line["status"], "check_failed", line["detail"])
        return line["detail"]

    def all_good(self, experiment):
        lines = attempts(self.lines("run", experiment, "--preset", "smoke"))
        self.assertEqual({line["status"] for line in lines}, {"ok"}, [line["detail"] for line in lines])
        return [line["metrics"] for line in lines]

    def test_a_killed_parent_loses_and_leaves_nothing(self):
        counts = self.all_good("selftest_crash")
        self.assertEqual([counted["kills"] for counted in counts], [2] * 4)
        self.assertGreater(sum(counted["acknowledged"] for counted in counts), 8)
        (row,) = [row for row in self.table("selftest_crash", "kills")["rows"] if row["kind"] == "promise"]
        self.assertEqual(row["kills"], 2)

    def test_a_killed_or_stopped_rank_is_named_in_time(self):
        for _ in range(3):  # each try names it; on a busy machine one may be late
            counts = self.all_good("selftest_rank_faults")
            self.assertEqual([(counted["faults"], counted["named"]) for counted in counts], [(1, 1)] * len(counts))
            if all(counted["late"] == 0 and counted["slowest"] < 5 for counted in counts):
                return
        self.fail(f"late: {counts}")

    def test_nobody_who_would_rather_be_believed_is(self):
        self.assertEqual([(counted["tried"], counted["succeeded"]) for counted in self.all_good("selftest_hostile")], [(2, 0)] * 2)
        (row,) = [row for row in self.table("selftest_hostile", "hand_ins")["rows"] if row["kind"] == "class"]
        self.assertEqual((row["tried"], row["succeeded"]), (2, 0))
        self.assertIn("1 of 1 succeed: Honest passed", self.planted("selftest_hostile", "class", "success"))

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def test_what_is_planted_after_kills_is_found(self):
        self.assertRegex(self.planted("selftest_crash", "promise", "lost"), "1 of [0-9]+ acknowledged attempts are lost")
        self.assertIn("doctor found it damaged", self.planted("selftest_crash", "promise", "damage"))
        self.assertIn("1 files or folders are left", self.planted("selftest_crash", "promise", "file"))
        self.assertIn("1 processes are left", self.planted("selftest_crash", "promise", "process"))

    def test_what_is_planted_after_faults_of_ranks_is_found(self):
        self.assertRegex(self.planted("selftest_rank_faults", "kill_later", "unnamed"),
                         "1 of 1 faults are not named; the first: rank [012] was killed")


class OfThisMachine(Lab):
    def test_doctor_runs_every_implementation_and_writes_what_strangers_may_read(self):
        said = self.syslab("doctor", "--selftest").stdout
        text = (self.folder / "syslab-selftest.json").read_text()
        record = json.loads(text)
        self.assertIn(f"selftest: {len(record['cases'])} cases, {record['endings']['ok']} ok, 0 failed", said)
        self.assertEqual(sum(record["endings"].values()), len(record["cases"]))
        tried = {(case["experiment"], case["implementation"]) for case in record["cases"]}
        for name in ("flash_forward", "flash_backward", "weighted_sum", "ceiling_gemm", "ceiling_copy", "naive_ddp"):
            experiment = self.json("describe", name)
            for one in experiment["implementations"]:
                if one["device"] == "cpu" and not one["unavailable"] and not one["reference"]:
                    self.assertIn((experiment["id"], one["name"]), tried)
        for name in (socket.gethostname(), str(self.folder), str(pathlib.Path.home())):
            self.assertNotRegex(text, rf"\b{re.escape(name)}\b" if name[0].isalnum() else re.escape(name))
        self.assertEqual([file.name for file in self.folder.iterdir() if file.name != "state"], ["syslab-selftest.json"])

    def test_an_interrupted_one_ends_and_writes_nothing(self):
        process = subprocess.Popen(self.command("doctor", "--selftest"), cwd=self.folder, env=self.environment(), text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        self.assertIn("every implementation", process.stderr.readline())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        self.assertIn("interrupted: nothing was written", said)
        self.assertEqual(process.returncode, 3)
        self.assertFalse((self.folder / "syslab-selftest.json").exists())

    def test_a_selftest_has_its_file_before_it_runs(self):
        refused = self.syslab("doctor", "--selftest", "-o", "nowhere/it.json", expect=2, timeout=10)
        self.assertIn("nowhere/it.json", refused.stderr)
        self.assertIn("ask for one of them", self.syslab("doctor", "--selftest", "--noise", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
