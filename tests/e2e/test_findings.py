"""What kind of fault a law meets, and where, decides the verdict of `check`: its exit code, its last line and its JSON."""
import os
import unittest

from lab import Lab

CLASSES = '''
import ctypes, math, os, time, torch


def forward(q, k, v, causal):
    """In fp32, since scores that are rounded to bf16 are wrong."""
    dtype = q.dtype
    q, k, v = q.float(), k.float(), v.float()
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.arange(s.shape[-1]) > torch.arange(s.shape[-2])[:, None], -math.inf)
    lse = torch.logsumexp(s, -1)
    return (torch.exp(s - lse[..., None]) @ v).to(dtype), lse


class Right(torch.autograd.Function):
    """Before a call `before`, and after it `after`, of what it returns."""

    @classmethod
    def asked(cls, q, k, v, causal):
        pass

    @classmethod
    def returned(cls, o):
        return o

    @classmethod
    def gradient(cls, do):
        return do


def function(cls):
    class Flash(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, is_causal=False):
            cls.asked(q, k, v, is_causal)
            o, lse = forward(q, k, v, is_causal)
            ctx.save_for_backward(lse, q, k, v)
            ctx.causal = is_causal
            return cls.returned(o)

        @staticmethod
        def backward(ctx, do):
            lse, q, k, v = ctx.saved_tensors
            ctx.passes = cls.passes = getattr(ctx, "passes", 0) + 1
            do = cls.gradient(do)
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_(True) for t in (q, k, v)]
                return (*torch.autograd.grad(forward(*leaves, ctx.causal)[0], leaves, do), None)

    Flash.__name__ = cls.__name__
    return Flash


class CrashesAtWidth48(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        if q.shape[2] == 48:
            os.abort()


class CrashesAtWidth64(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        if q.shape[2] == 64:
            os.abort()


class ReadsPastTheEnd(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        ctypes.c_float.from_address(v.data_ptr() + 4 * v.numel() + 512).value


class OneBuffer(Right):
    buffers = {}

    @classmethod
    def returned(cls, o):
        kept = cls.buffers.setdefault(o.shape, torch.empty_like(o))
        return kept.copy_(o)


class NoMemory(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        raise MemoryError("no room")


class ContiguousGradient(Right):
    @classmethod
    def gradient(cls, do):
        return do.view(-1).view(do.shape)


class WrongInInference(Right):
    @classmethod
    def returned(cls, o):
        return o if cls.wanted else torch.zeros_like(o)

    @classmethod
    def asked(cls, q, k, v, causal):
        cls.wanted = any(tensor.requires_grad for tensor in (q, k, v))


class RaisesInInference(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        if not any(tensor.requires_grad for tensor in (q, k, v)):
            raise ValueError("no gradient is wanted")


class WrongIfFrozen(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        cls.frozen = not all(tensor.requires_grad for tensor in (q, k, v))

    @classmethod
    def gradient(cls, do):
        return 2 * do if cls.frozen else do


class TakesSmallForZeros(Right):
    """Of V in the forward pass, of dO in the backward pass."""

    @classmethod
    def asked(cls, q, k, v, causal):
        cls.small = bool(v.abs().max() < 1e-3)

    @classmethod
    def returned(cls, o):
        return torch.zeros_like(o) if cls.small else o

    @classmethod
    def gradient(cls, do):
        return torch.zeros_like(do) if do.abs().max() < 1e-3 else do


class WrongOnOneTensor(Right):
    @classmethod
    def asked(cls, q, k, v, causal):
        cls.alike = q.data_ptr() == k.data_ptr()

    @classmethod
    def returned(cls, o):
        return 2 * o if cls.alike else o

    @classmethod
    def gradient(cls, do):
        return 2 * do if cls.alike else do


class WrongTheSecondTime(Right):
    @classmethod
    def gradient(cls, do):
        return cls.passes * do


class WritesOverItsOutput(Right):
    @classmethod
    def returned(cls, o):
        cls.o = o
        return o

    @classmethod
    def gradient(cls, do):
        cls.o.detach().mul_(2)
        return do


ALL = (Right, CrashesAtWidth48, CrashesAtWidth64, ReadsPastTheEnd, OneBuffer, NoMemory, ContiguousGradient, WrongInInference, RaisesInInference,
       WrongIfFrozen, TakesSmallForZeros, WrongOnOneTensor, WrongTheSecondTime, WritesOverItsOutput)
globals().update((cls.__name__, function(cls)) for cls in ALL)


class Groups:
    """Grouped heads; `again` makes as many heads of keys as there are of queries."""

    def forward(self, q, k, v, causal):
        if q.dim() == 4:
            times = q.shape[1] // k.shape[1]
            k, v = self.again(k, times), self.again(v, times)
        return forward(q, k, v, causal)


class RightGroups(Groups):
    def again(self, tensor, times):
        return tensor.repeat_interleave(times, 1)


class WrongGroups(Groups):
    def again(self, tensor, times):
        return tensor.repeat(1, times, 1, 1)


class NoGroups:
    def forward(self, q, k, v, causal):
        batch, queries, width = q.shape
        return forward(q, k, v, causal)
'''


@unittest.skipUnless(os.environ.get("SYSLAB_PYTHON"), "needs a Python with torch")
class Findings(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def check(self, name, *options, expect, experiment="flash_forward"):
        (self.folder / "flash.py").write_text(CLASSES)
        return self.lines("check", experiment, "--mine", f"me=flash.py:{name}", *options, expect=expect)[-1]

    def test_a_crash_beyond_the_handout_is_a_warning_that_strict_makes_a_failure(self):
        asked = ("CrashesAtWidth48", "-k", "attention.equals_oracle", "--cases", "60")
        verdict = self.check(*asked, "--strict", expect=1)
        self.assertEqual((verdict["verdict"], verdict["warnings"]), ("FAIL", {"crash": 1}))
        done = self.syslab("check", "flash_forward", "--mine", "me=flash.py:CrashesAtWidth48", *asked[1:])
        self.assertEqual(done.stdout.splitlines()[-1], "hand-out 2026: PASS (1 of 1; only the laws that -k attention.equals_oracle "
                                                       "chose), 1 warning: 1 crash")

    def test_a_crash_on_the_handouts_inputs_fails(self):
        verdict = self.check("CrashesAtWidth64", "--contract", "handout", "-k", "lse_equals_oracle", "--cases", "40", expect=1)
        self.assertEqual(verdict["verdict"], "FAIL")
        self.assertEqual(self.sql("SELECT finding, promised FROM check_result"), [("crash", 1)])

    def test_what_no_tolerance_excuses_fails_on_the_handouts_inputs_whichever_law_met_it(self):
        verdict = self.check("OneBuffer", "--beyond", "attention.keeps_no_state", "--cases", "10", expect=1)
        self.assertEqual((verdict["verdict"], verdict["held"], verdict["broken"]), ("FAIL", 3, ["attention.keeps_no_state"]))
        self.assertEqual(self.sql("SELECT finding, promised FROM check_result WHERE finding IS NOT NULL"), [("kept_state", 1)])

    def test_a_law_without_an_answer_leaves_the_verdict_open(self):
        for asked in (("--contract", "handout", "-k", "equals_oracle"), ("-k", "attention.repeats"),
                      ("-k", "equals_oracle", "--contract", "full")):
            verdict = self.check("NoMemory", *asked, "--cases", "3", expect=3)
            self.assertEqual(verdict["verdict"], "NOT CHECKED", asked)

    def test_a_crash_while_the_class_is_loaded_fails(self):
        (self.folder / "aborts.py").write_text(CLASSES + "\n\nos.abort()\n")
        verdict = self.lines("check", "flash_forward", "--mine", "me=aborts.py:RightGroups", "--contract", "handout", "--cases", "3",
                             expect=1)[-1]
        self.assertEqual(verdict["verdict"], "FAIL")
        self.assertEqual(self.sql("SELECT DISTINCT outcome, finding, promised FROM check_result"), [("error", "crash", 1)])

    def test_the_kind_of_a_fault_is_stored(self):
        self.check("ReadsPastTheEnd", "--contract", "handout", "-k", "refusal", "--cases", "3", expect=1)
        self.assertEqual(self.sql("SELECT finding, promised FROM check_result"), [("read_outside", 1)])

    def test_a_gradient_that_autograd_expands_is_asked_by_default(self):
        asked = ("--beyond", "attention.gradient_layouts", "--cases", "5")
        verdict = self.check("ContiguousGradient", *asked, experiment="flash_backward", expect=0)
        self.assertEqual((verdict["verdict"], verdict["warnings"]), ("PASS", {"raised": 1}))
        verdict = self.check("Right", *asked, experiment="flash_backward", expect=0)
        self.assertEqual((verdict["verdict"], verdict["warnings"]), ("PASS", {}))

    def test_how_models_call_is_asked_by_default(self):
        for name, experiment, law, warnings in (("WrongInInference", "flash_forward", "equals_oracle", {"wrong_value": 1}),
                                                ("WrongIfFrozen", "flash_backward", "gradient_layouts", {"wrong_value": 1}),
                                                ("WrongOnOneTensor", "flash_forward", "equals_oracle", {"wrong_value": 1}),
                                                ("WrongOnOneTensor", "flash_backward", "gradient_layouts", {"wrong_value": 1}),
                                                ("WrongTheSecondTime", "flash_backward", "gradient_layouts", {"wrong_value": 1}),
                                                ("Right", "flash_forward", "equals_oracle", {}),
                                                ("Right", "flash_backward", "gradient_layouts", {})):
            verdict = self.check(name, "--beyond", "attention." + law, "--cases", "20", experiment=experiment, expect=0)
            self.assertEqual((verdict["verdict"], verdict["warnings"]), ("PASS", warnings), name)
        messages = [message for (message,) in self.sql("SELECT message FROM check_result WHERE outcome = 'falsified'")]
        for how in ("where q, k and v are the same tensor: out", "where q, k and v are the same tensor: dq + dk + dv",
                    "in a second backward pass over a kept graph: d"):
            self.assertTrue(any(message.startswith(how) for message in messages), (how, messages))
        self.check("WritesOverItsOutput", "-k", "gradient_layouts", "--cases", "20", experiment="flash_backward", expect=None)
        [(finding, message)] = self.sql("SELECT finding, message FROM check_result WHERE outcome <> 'passed'")[-1:]
        self.assertIn("backward wrote over the output of forward", message)
        self.assertEqual(finding, "input_changed")

    def test_a_backward_pass_that_writes_over_the_output_fails_by_the_handouts_own_law(self):
        asked = ("--contract", "handout", "-k", "gradients_equal_oracle", "--cases", "5")
        self.assertEqual(self.check("WritesOverItsOutput", *asked, experiment="flash_backward", expect=1)["verdict"], "FAIL")
        self.assertEqual(self.sql("SELECT finding, promised FROM check_result"), [("input_changed", 1)])
        self.assertEqual(self.check("Right", *asked, experiment="flash_backward", expect=0)["verdict"], "PASS")

    def test_what_raises_only_where_no_gradient_is_wanted_breaks_the_law_of_refusals(self):
        asked = ("-k", "attention.refusal", "--cases", "20")
        verdict = self.check("RaisesInInference", *asked, expect=0)
        self.assertEqual((verdict["verdict"], verdict["warnings"]), ("PASS", {"raised": 1}))
        [(message,)] = self.sql("SELECT message FROM check_result WHERE outcome = 'falsified'")
        self.assertIn(": under torch.no_grad(): ", message)

    def test_small_values_and_gradients_are_asked_by_the_full_contract(self):
        for experiment, law in (("flash_forward", "attention.equals_oracle"), ("flash_backward", "gradients_equal_oracle")):
            asked = ("-k", law, "--contract", "full", "--cases", "60")
            verdict = self.check("TakesSmallForZeros", *asked, experiment=experiment, expect=1)
            self.assertEqual(verdict["verdict"], "FAIL")
            [(finding, message)] = self.sql("SELECT finding, message FROM check_result WHERE outcome = 'falsified'")[-1:]
            self.assertEqual(finding, "wrong_value")
            self.assertRegex(message, r": found 0, expected -?(0\.000|[0-9.]+e-0)")
            verdict = self.check("Right", *asked, experiment=experiment, expect=0)
            self.assertEqual(verdict["verdict"], "PASS")

    def test_quiet_says_the_verdict_only_where_something_was_warned_of(self):
        (self.folder / "flash.py").write_text(CLASSES)
        asked = ("--beyond", "attention.gradient_layouts", "--cases", "5", "--quiet")
        for name, said in (("ContiguousGradient", "1 warning"), ("Right", "")):
            done = self.syslab("check", "flash_backward", "--mine", f"me=flash.py:{name}", *asked)
            self.assertEqual((said in done.stdout, len(done.stdout.splitlines())), (True, 1 if said else 0), done.stdout)

    def test_grouped_heads_are_asked_under_the_full_contract_of_those_who_take_them(self):
        asked = ("--contract", "full", "-k", "attention.equals_oracle", "--cases", "60")
        for name, exit_code, warnings in (("WrongGroups", 1, {"wrong_value": 1}), ("RightGroups", 0, {}), ("NoGroups", 0, {})):
            verdict = self.check(name, *asked, expect=exit_code)
            self.assertEqual(verdict["warnings"], warnings, name)
            self.assertEqual("grouped heads" in verdict["left_out"], name == "NoGroups", verdict["left_out"])


if __name__ == "__main__":
    unittest.main()
