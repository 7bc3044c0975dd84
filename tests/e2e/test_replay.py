"""A law broken by somebody's library: found, stored, and replayed with the place of the error."""
import os
import shlex
import shutil
import unittest
import unittest.mock

from lab import Lab, attempts, summary

PLUGINS = os.environ["SYSLAB_PLUGINS"]


class Replay(Lab):
    def test_a_mask_off_by_one_is_found_stored_and_replayed(self):
        lines = self.lines("check", "flash_forward", "--mine", f"bad={PLUGINS}/faulty_attention.so", "--cases", "60",
                           expect=1, timeout=300)
        broken = [line for line in attempts(lines) if line["status"] == "check_failed"]
        self.assertTrue(broken)
        self.assertTrue(all(line["impl"] == "bad" for line in attempts(lines)), "without --impl only hers is checked")
        self.assertEqual({line["params"]["contract"] for line in attempts(lines)}, {"handout", "full"})
        falsified = self.sql("SELECT k.uid, k.name, k.reproduce, k.counterexample FROM check_result k"
                             " WHERE k.outcome = 'falsified'")
        self.assertEqual(len(falsified), len(broken))
        uid, name, reproduce, counterexample = falsified[0]
        self.assertTrue(reproduce and counterexample)
        replayed = self.json("replay", uid, expect=1)
        self.assertEqual(replayed["name"], name)
        self.assertEqual(replayed["now"]["outcome"], "falsified")
        text = self.syslab("replay", uid[-12:], expect=1).stdout
        self.assertIn("expected", text)
        self.assertIn("[", text, "no place of the error")

    def test_the_same_library_without_the_fault_keeps_the_laws(self):
        self.syslab("check", "flash_forward", "--mine", f"good={PLUGINS}/naive_attention.so", "--cases", "15", timeout=300)

    def test_a_fault_of_one_call_in_fifty_is_found_and_seen_again(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_slip_once_in_fifty.so", "-k", "repeats",
                    expect=1)
        [(uid,)] = self.sql("SELECT uid FROM check_result WHERE outcome = 'falsified'")
        self.assertEqual(self.json("replay", uid, expect=1)["now"]["outcome"], "falsified")

    def test_of_an_unchanged_library_it_never_says_that_it_holds(self):
        library = self.folder / "mine.so"
        shutil.copy(f"{PLUGINS}/planted_slip_where_told.so", library)
        with unittest.mock.patch.dict(os.environ, PLANTED_SLIPS="1"):
            self.syslab("check", "flash_forward", "--mine", f"me={library}", "-k", "repeats", expect=1)
        [(uid,)] = self.sql("SELECT uid FROM check_result WHERE outcome = 'falsified'")
        now = self.json("replay", uid, expect=3)["now"]
        self.assertEqual(now["outcome"], "not seen again")
        self.assertRegex(now["message"], r"held in all \d+ tries; .* is the file that failed")
        shutil.copy(f"{PLUGINS}/naive_attention.so", library)
        self.assertEqual(self.json("replay", uid, "--mine", f"me={library}", expect=0)["now"]["outcome"], "passed")

    def test_a_library_that_is_none_of_ours(self):
        lines = self.lines("run", "flash_forward", "-a", "seq=16", "-a", "causal=false", "--impl", "other", "--laws", "none",
                           "--mine", f"other={PLUGINS}/attention_of_another_abi.so", expect=3)
        self.assertEqual([line["status"] for line in attempts(lines)], ["error"])
        self.assertIn("99", attempts(lines)[0]["detail"])
        command = summary(lines)["concerns"][0]["command"]
        again = self.lines(*shlex.split(command)[1:], expect=3)  # what is told to do can be done as it stands
        self.assertEqual([line["status"] for line in attempts(again)], ["error"])


if __name__ == "__main__":
    unittest.main()
