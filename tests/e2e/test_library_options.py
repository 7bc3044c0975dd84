"""`check --mine` of a library in C: which options its calls have."""
import os
import unittest

from lab import Lab, attempts

PLUGINS = os.environ["SYSLAB_PLUGINS"]


class OptionsOfALibrary(Lab):
    def check(self, plugin, *more, law="equals_oracle", expect=0):
        return self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_{plugin}.so", "--cases", "20", "-k", law, *more,
                          expect=expect)[-1]

    def test_who_promises_no_bits_may_refuse_to_be_deterministic(self):
        self.assertIn("; deterministic = 1; ", self.check("refuse_repeatable")["left_out"])
        self.assertIn("; deterministic = 1; ", self.check("refuse_repeatable", "--contract", "full")["left_out"])

    def test_who_promises_them_is_asked_for_them(self):
        declared = ("-a", "deterministic=true")
        self.assertIn("; deterministic = 0; ", self.check("handle_faults", *declared)["left_out"])
        self.check("wrong_if_repeatable")
        self.check("wrong_if_repeatable", "--strict", *declared, expect=1)
        self.check("wrong_if_repeatable", "--contract", "full", expect=1)
        # One law asks that nothing promised is refused; the others pass over it.
        self.assertEqual(self.check("refuse_repeatable", "--strict", *declared, law="refusal", expect=1)["warnings"], {"raised": 1})

    def test_a_time_is_of_what_is_declared(self):
        run = ("run", "flash_forward", "-a", "head_dim=16", "-a", "seq=32", "-a", "causal=false", "-a", "dtype=fp32", "--impl", "me",
               "--laws", "none", "--mine", f"me={PLUGINS}/planted_refuse_repeatable.so")
        self.assertEqual(attempts(self.lines(*run, expect=None))[0]["status"], "ok")

    def test_outputs_far_above_one(self):
        self.check("clamp_at_hundred")
        self.check("clamp_at_hundred", "--contract", "full", expect=1)


if __name__ == "__main__":
    unittest.main()
