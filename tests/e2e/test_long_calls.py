"""`check --mine`: calls that never end, and first calls that compile."""
import json
import os
import textwrap
import unittest

from lab import Lab, attempts

PLUGINS = os.environ["SYSLAB_PLUGINS"]


class Hanging(Lab):
    def test_what_hangs_is_told_with_its_input_made_small(self):
        quiet = os.getloadavg()[0] < 1
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_hang_on_odd_tiles.so", "--cases", "40", "-k",
                    ".equals_oracle", "--timeout", "40s", expect=None, timeout=300)
        [(outcome, message, text, tried, taken)] = self.sql("SELECT outcome, message, counterexample, shrinks_tried, shrinks_taken"
                                                            " FROM check_result WHERE contract = 'full'")
        self.assertEqual(outcome, "error")
        self.assertIn("was still running attention_forward after", message)
        found = json.loads(text)
        self.assertNotEqual(int(found["seq_q"]) % 16, 0)
        self.assertGreater(taken, 0)
        if tried >= 25 and quiet:  # so many it takes; each waits for a limit, which a busy machine makes longer
            self.assertEqual(found["batch"], "1")
            self.assertLessEqual(int(found["head_dim"]), 32)
        self.assertEqual(self.sql("SELECT count(*) FROM v_attempt WHERE status = 'timeout'"), [(0,)])


class Compiling(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def test_a_first_call_that_takes_longer_than_a_hang_may_is_waited_for(self):
        (self.folder / "slow.py").write_text(textwrap.dedent("""
            import time

            import numpy

            compiled = []


            class Slow:
                def forward(self, q, k, v, is_causal=False):
                    if not compiled:
                        time.sleep(3.5)  # a call that is no first one has three seconds, of a law's twelve
                        compiled.append(1)
                    s = q @ k.swapaxes(-1, -2) / numpy.sqrt(q.shape[-1])
                    lse = numpy.log(numpy.exp(s).sum(-1))
                    return numpy.exp(s - lse[..., None]) @ v, lse
        """))
        lines = self.lines("check", "flash_forward", "--mine", "me=slow.py:Slow", "--cases", "2", "-k", ".equals_oracle", "--timeout", "12s",
                           "--contract", "handout", expect=None)
        self.assertNotIn("still running", json.dumps(lines))
        self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"}, lines)


if __name__ == "__main__":
    unittest.main()
