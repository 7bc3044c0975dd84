"""`check --mine` says what a fault depends on: other inputs that are right, calls that disagree, tensors that are changed or given twice."""
import os
import subprocess
import textwrap
import unittest

from lab import Lab, attempts

FAULTS = """
import sys
import numpy as np
sys.path.insert(0, {mine!r})
from plain import Naive, probabilities


class TurnedMask(Naive):
    def backward(self, q, k, v, o, lse, do, is_causal):
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        p = np.exp(scores - lse[..., None])
        if is_causal:
            p = p * (np.arange(q.shape[1])[:, None] <= np.arange(k.shape[1])[None, :])
        ds = p * (do @ v.transpose(0, 2, 1) - (do * o).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
        return ds @ k, ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ do


class EveryThird(Naive):
    calls = 0

    def backward(self, *arguments):
        dq, dk, dv = super().backward(*arguments)
        EveryThird.calls += 1
        return dq, dk, dv + (EveryThird.calls % 3 == 0)


class OtherEachTime(EveryThird):
    def backward(self, *arguments):
        dq, dk, dv = super().backward(*arguments)
        return dq, dk, dv + EveryThird.calls


class FirstScale(Naive):
    width = None

    def forward(self, q, k, v, is_causal):
        FirstScale.width = FirstScale.width or q.shape[-1]
        return super().forward(q * np.float32(np.sqrt(q.shape[-1] / FirstScale.width)), k, v, is_causal)


class KeptRowTerm(Naive):
    kept = {{}}

    def backward(self, q, k, v, o, lse, do, is_causal):
        own = (o * do).sum(-1, keepdims=True)
        term = KeptRowTerm.kept.setdefault((o.ctypes.data, o.shape), own.copy())
        # D comes in as a sum over dO and O alone: exchange it for the one that was kept.
        dq, dk, dv = super().backward(q, k, v, o, lse, do, is_causal)
        p, _ = probabilities(q, k, is_causal)
        ds = p * (own - term) / np.sqrt(q.shape[-1])
        return (dq + ds @ k).astype(q.dtype), (dk + ds.transpose(0, 2, 1) @ q).astype(q.dtype), dv


class MoreLse(Naive):
    def forward(self, q, k, v, is_causal):
        out, lse = super().forward(q, k, v, is_causal)
        return out, lse + 1


class LargeMaximum(Naive):
    def forward(self, q, k, v, is_causal):
        out, lse = super().forward(q, k, v, is_causal)
        scores = q @ k.transpose(0, 2, 1)
        if is_causal:
            scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
        return out, lse + scores.max(-1) * (1 - 1 / np.sqrt(q.shape[-1]))


def scores_of(q, k):
    return q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])


def masked(q, k, v, seen):
    return of_scores(np.where(seen, scores_of(q, k), -np.inf), v)


def of_scores(scores, v):
    top = scores.max(-1, keepdims=True)
    lse = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return np.exp(scores - lse) @ v, lse[..., 0]


class OtherCorner(Naive):
    def forward(self, q, k, v, is_causal):
        n, m = q.shape[1], k.shape[1]
        return masked(q, k, v, np.tri(n, m, max(0, m - n) if is_causal else m, dtype=bool))


class OwnKeyHidden(Naive):
    def forward(self, q, k, v, is_causal):
        n, m = q.shape[1], k.shape[1]
        seen = np.tri(n, m, -1 if is_causal else m, dtype=bool)
        seen[0, 0] = True
        return masked(q, k, v, seen)


class EqualTiles(Naive):
    def forward(self, q, k, v, is_causal):
        i, j = np.arange(q.shape[1])[:, None], np.arange(k.shape[1])[None, :]
        end = np.minimum((i // 32 + 1) * 32, q.shape[1])
        seen = np.where(i // 32 == j // 16, j <= i, j // 16 * 16 < end)
        return masked(q, k, v, seen if is_causal else seen | True)


class EveryFourthTile(Naive):
    def forward(self, q, k, v, is_causal):
        out, lse = super().forward(q, k, v, is_causal)
        out[:, np.arange(q.shape[1]) % 64 >= 16] += 1
        return out, lse


class Buffer(Naive):
    def forward(self, q, k, v, is_causal):
        return super().forward(q, k[:, :100], v[:, :100], is_causal)


class OtherWeights(Naive):
    def backward(self, q, k, v, o, lse, do, is_causal):
        p, _ = probabilities(q, k, is_causal)
        return self.gradients(q, k, v, p, do, (do * o).sum(-1, keepdims=True))

    def gradients(self, q, k, v, p, do, term, own=None):
        ds = p * (do @ v.transpose(0, 2, 1) - term) / np.sqrt(q.shape[-1])
        kept = 1 if own is None else own
        return ds @ k, (ds * kept).transpose(0, 2, 1) @ q, (p * kept).transpose(0, 2, 1) @ do


def over_tiles(x):
    # Sums over tiles of 16 keys, each in all of its places.
    starts = np.arange(0, x.shape[-1], 16)
    return np.repeat(np.add.reduceat(x, starts, axis=-1), 16, axis=-1)[..., : x.shape[-1]]


class TileWeights(OtherWeights):
    def gradients(self, q, k, v, p, do, term):
        return super().gradients(q, k, v, p / np.maximum(over_tiles(p), np.float32(1e-30)), do, term)


class TileTerm(OtherWeights):
    def gradients(self, q, k, v, p, do, term):
        return super().gradients(q, k, v, p, do, over_tiles(p * (do @ v.transpose(0, 2, 1))))


class NoDiagonal(OtherWeights):
    def backward(self, q, k, v, o, lse, do, is_causal):
        self.own = 1 - np.eye(q.shape[1], k.shape[1], dtype=q.dtype) if is_causal else None
        return super().backward(q, k, v, o, lse, do, is_causal)

    def gradients(self, q, k, v, p, do, term):
        return super().gradients(q, k, v, p, do, term, self.own)


class FiniteMask(Naive):
    def forward(self, q, k, v, is_causal):
        n, m = q.shape[1], k.shape[1]
        return of_scores(np.where(np.tri(n, m, 0 if is_causal else m, dtype=bool), scores_of(q, k), np.float32(-10)), v)


class AddedMask(Naive):
    def forward(self, q, k, v, is_causal):
        n, m = q.shape[1], k.shape[1]
        return of_scores(scores_of(q, k) - 10 * (1 - np.tri(n, m, 0 if is_causal else m, dtype=q.dtype)), v)


class FiniteMaskOfGradients(OtherWeights):
    def backward(self, q, k, v, o, lse, do, is_causal):
        n, m = q.shape[1], k.shape[1]
        scores = np.where(np.tri(n, m, 0 if is_causal else m, dtype=bool), scores_of(q, k), np.float32(-3))
        return self.gradients(q, k, v, np.exp(scores - lse[..., None]), do, (do * o).sum(-1, keepdims=True))


class OverQueries(Naive):
    def forward(self, q, k, v, is_causal):
        p, lse = probabilities(q, k, is_causal)
        weights = p * np.exp(lse)[..., None]
        return weights / np.maximum(weights.sum(-2, keepdims=True), np.float32(1e-30)) @ v, lse


class LastTileTwice(Naive):
    def forward(self, q, k, v, is_causal):
        p, lse = probabilities(q, k, is_causal)
        p = p * (1 + (np.arange(k.shape[1]) >= (k.shape[1] - 1) // 32 * 32))
        total = p.sum(-1, keepdims=True)
        return (p / total) @ v, lse + np.log(total[..., 0])


class FirstTileShown(Naive):
    def forward(self, q, k, v, is_causal):
        n, m = q.shape[1], k.shape[1]
        return masked(q, k, v, np.tri(n, m, 0 if is_causal else m, dtype=bool) | (np.arange(m) < 32))


class KeysOfWeights(OtherWeights):
    def gradients(self, q, k, v, p, do, term, own=None):
        dq, _, dv = super().gradients(q, k, v, p, do, term)
        return dq, p.transpose(0, 2, 1) @ q / np.float32(np.sqrt(q.shape[-1])), dv


class NoScores(Naive):
    def forward(self, q, k, v, is_causal):
        return super().forward(q * 0, k, v, is_causal)


class IntegerScale(Naive):
    def backward(self, q, k, v, o, lse, do, is_causal):
        scale = 1 // q.shape[-1]
        p = np.exp(scale * scores_of(q, k) - lse[..., None])
        if is_causal:
            p = p * np.tri(*p.shape[1:], dtype=q.dtype)
        return scale * q, scale * k, p.transpose(0, 2, 1) @ do


class QuartersOfKeys(Naive):
    def forward(self, q, k, v, is_causal):
        whole = k.shape[1] // 4 * 4 if is_causal else k.shape[1]
        return super().forward(q, k[:, :whole], v[:, :whole], is_causal)


class FarBelow(Naive):
    def forward(self, q, k, v, is_causal):
        p, lse = probabilities(q, k, is_causal)
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        hidden = np.arange(q.shape[1])[:, None] < np.arange(k.shape[1])[None, :] if is_causal else False
        return np.where((scores < lse[..., None] - 87) & ~np.asarray(hidden), 3, p) @ v, lse


class FromZero(Naive):
    def forward(self, q, k, v, is_causal):
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        if is_causal:
            scores = np.where(np.arange(q.shape[1])[:, None] >= np.arange(k.shape[1])[None, :], scores, -np.inf)
        top = np.maximum(scores.max(-1, keepdims=True), 0)
        with np.errstate(all="ignore"):
            p = np.exp(scores - top)
            return p / p.sum(-1, keepdims=True) @ v, (top + np.log(p.sum(-1, keepdims=True)))[..., 0]


class ScalesInPlace(Naive):
    def forward(self, q, k, v, is_causal):
        q *= np.float32(1 / np.sqrt(q.shape[-1]))
        return super().forward(q * np.float32(np.sqrt(q.shape[-1])), k, v, is_causal)


class ScalesTheGradient(Naive):
    def backward(self, q, k, v, o, lse, do, is_causal):
        result = super().backward(q, k, v, o, lse, do, is_causal)
        do *= 2
        return result
"""

SAME_BUFFER = """
import torch


class Flash(torch.autograd.Function):
    kept = {}

    @staticmethod
    def forward(ctx, q, k, v, is_causal=False):
        s = q @ k.mT * q.shape[-1] ** -0.5
        if is_causal:
            s = s.masked_fill(torch.arange(k.shape[1]) > torch.arange(q.shape[1])[:, None], -torch.inf)
        lse = torch.logsumexp(s, -1)
        o = torch.exp(s - lse[..., None]) @ v
        if OWN:
            o = Flash.kept.setdefault(o.shape, torch.empty_like(o)).copy_(o).detach()
        ctx.save_for_backward(lse, q, k, v)
        ctx.o, ctx.is_causal = o.detach(), is_causal
        return o

    @staticmethod
    def backward(ctx, do):
        lse, q, k, v = ctx.saved_tensors
        p = torch.exp(q @ k.mT * q.shape[-1] ** -0.5 - lse[..., None])
        p = p.tril() if ctx.is_causal else p
        ds = p * (do @ v.mT - (do * ctx.o).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        return ds @ k, ds.mT @ q, p.mT @ do, None
"""


class Contrasts(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def setUp(self):
        super().setUp()
        (self.folder / "faults.py").write_text(textwrap.dedent(FAULTS).format(mine=os.environ["SYSLAB_MINE"]))

    def wrong(self, name, verb, law, *options, file="faults.py", expect=1):
        """What is said of the first law that fails, or nothing."""
        lines = self.lines("check", verb, "--mine", f"me={file}:{name}", "--impl", "me", "--cases", "20", "-k", law, *options, expect=expect)
        return next((one["detail"] for one in attempts(lines) if one["status"] == "check_failed"), "")

    def test_a_mask_that_is_transposed_is_named_and_that_it_is_the_mask(self):
        said = self.wrong("TurnedMask", "flash_backward", "gradients_equal", "--contract", "full")
        self.assertIn("\nlooks like a mask the wrong way round: ", said)
        self.assertIn("\nright once it is asked without a mask", said)

    def test_calls_that_disagree_are_told_in_place_of_a_formula(self):
        said = self.wrong("EveryThird", "flash_backward", "gradients_equal", "--contract", "handout")
        self.assertIn("\nlooks like memory that threads or calls share, ", said)
        self.assertRegex(said, r"another answer now and then \(wrong in [23] of 8 calls\)")
        self.assertEqual(said.count("looks like"), 1, said)

    def test_calls_that_are_all_wrong_and_disagree_are_told_so(self):
        said = self.wrong("OtherEachTime", "flash_backward", "gradients_equal", "--contract", "handout")
        self.assertIn("the same input has another wrong answer each time (of 8 calls)", said)
        self.assertNotIn("now and then", said.split("looks like", 1)[1])

    def test_what_an_earlier_call_left_is_told_by_a_fresh_process_or_found_by_new_values_in_the_same_memory(self):
        said = self.wrong("FirstScale", "flash_forward", "attention.equals_oracle", "--contract", "handout")
        self.assertIn("\nlooks like state that an earlier call left: right when it is called first in a fresh process, wrong in all 8 calls",
                      said)
        self.assertIn("new values in the same memory: dq", self.wrong("KeptRowTerm", "flash_backward", "keeps_no_state", "--contract",
                                                                      "full"))

    def test_what_masks_tiles_and_log_sum_exps_have_wrong_is_put_in_words(self):
        for name, verb, law, words in (
            ("MoreLse", "flash_forward", "lse_equals", "looks like a summand that is wrong or missing: lse is +1 off"),
            ("LargeMaximum", "flash_forward", "lse_equals", "looks like a log-sum-exp whose maximum is without its scale: "),
            ("OtherCorner", "flash_forward", "attention.equals_oracle", "looks like a mask that is aligned with the other corner: "),
            ("OwnKeyHidden", "flash_forward", "attention.equals_oracle", "looks like a mask that shows one key too few: "),
            ("EqualTiles", "flash_forward", "attention.equals_oracle", "looks like a mask on too few tiles, only where the indices"),
            ("EveryFourthTile", "flash_forward", "attention.equals_oracle", "wrong rows 16..63 of every 64 of out"),
            ("Buffer", "flash_forward", "attention.equals_oracle", "right at S=100, wrong at 101"),
            ("TileWeights", "flash_backward", "gradients_equal", "looks like weights of a tile of keys, each normalised by itself: "),
            ("TileTerm", "flash_backward", "gradients_equal", "looks like a row term D of one tile of keys: "),
            ("NoDiagonal", "flash_backward", "gradients_equal", "looks like dK and dV without the diagonal: "),
            ("FiniteMask", "flash_forward", "large_scores", "looks like masked scores of -10 in place of −∞: "),
            ("AddedMask", "flash_forward", "large_scores", "looks like a mask that adds -10 to scores in place of −∞: "),
            ("FiniteMaskOfGradients", "flash_backward", "gradients_equal",
             "looks like masked scores of -3 in place of −∞ in the backward pass: "),
            ("OverQueries", "flash_forward", "attention.equals_oracle", "looks like a softmax over the wrong axis: "),
            ("LastTileTwice", "flash_forward", "lse_equals", "looks like a last tile of keys that counts twice: "),
            ("FirstTileShown", "flash_forward", "attention.equals_oracle", "looks like a mask that is missing in the first tile: "),
            ("NoScores", "flash_forward", "lse_equals", "looks like scores that are all 0: "),
            ("IntegerScale", "flash_backward", "gradients_equal", "looks like a scale of the backward pass that is 0: "),
            ("KeysOfWeights", "flash_backward", "gradients_equal", "looks like dK made of P in place of dS: "),
        ):
            with self.subTest(name):
                self.assertIn("\n" + words, self.wrong(name, verb, law, "--contract", "full", "-a", "dtype=fp32"))

    def test_a_length_that_makes_it_right_is_told(self):
        said = self.wrong("QuartersOfKeys", "flash_forward", "attention.equals_oracle", "--contract", "full")
        self.assertRegex(said, r"\nright once it is asked without a mask(, or with as many keys as queries \(\d+\))?, or with \d+ keys in place of \d+")

    def test_scores_that_lie_far_apart_and_maxima_that_begin_at_zero_are_told_apart(self):
        asked = ("--contract", "full", "-a", "dtype=fp32")  # NumPy's scores of 1e4 are infinite in fp16
        far = self.wrong("FarBelow", "flash_forward", "large_scores", *asked)
        self.assertIn("wrong where they lie far apart", far)
        self.assertNotIn("looks like", far)
        self.assertIn("\nlooks like a maximum that does not begin at −∞", self.wrong("FromZero", "flash_forward", "large_scores", *asked))

    def test_an_input_that_is_changed_is_named_but_for_the_gradient_that_came_in(self):
        said = self.wrong("ScalesInPlace", "flash_forward", "attention.equals_oracle", "--contract", "handout")
        self.assertRegex(said, r"^the call changed its input 'q', 256 of 256 elements, the first \[[0-9, ]+\] from \S+ to \S+: .*q = q \* c in place of q \*= c")
        self.assertEqual(self.wrong("ScalesTheGradient", "flash_backward", "gradients_equal", "--contract", "handout", expect=0), "")

    def test_a_function_that_returns_the_same_memory_twice_loses_what_the_layer_before_gave(self):
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")
        for own in ("True", "False"):
            (self.folder / "flash.py").write_text(SAME_BUFFER.replace("OWN", own))
            for verb in ("flash_forward", "flash_backward"):
                said = self.wrong("Flash", verb, "keeps_no_state", "--contract", "full", file="flash.py", expect=1 if own == "True" else 0)
                self.assertEqual("wrote over what the one before had returned or saved" in said, own == "True", said)

    def test_gradients_that_the_next_backward_pass_writes_over_are_found(self):
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")
        right = SAME_BUFFER.replace("if OWN", "if False")
        returned = "return ds @ k, ds.mT @ q, p.mT @ do, None"
        self.assertIn(returned, right)
        for gradient in range(3):
            once = ("dq, dk, dv = found = [ds @ k, ds.mT @ q, p.mT @ do]\n"
                    f"        kept = Flash.kept.setdefault(({gradient}, found[{gradient}].shape), torch.empty_like(found[{gradient}]))\n"
                    f"        found[{gradient}] = kept.copy_(found[{gradient}])\n        return *found, None")
            (self.folder / "flash.py").write_text(right.replace(returned, once))
            said = self.wrong("Flash", "flash_backward", "keeps_no_state", "--contract", "full", file="flash.py")
            self.assertIn("a backward pass of other values wrote over the gradients that the one before had returned", said)
        of_call = ("if not hasattr(ctx, 'dq'):\n            ctx.dq = torch.empty_like(q)\n"
                   "        return ctx.dq.copy_(ds @ k), ds.mT @ q, p.mT @ do, None")
        (self.folder / "flash.py").write_text(right.replace(returned, of_call))
        self.assertEqual(self.wrong("Flash", "flash_backward", "keeps_no_state", "--contract", "full", file="flash.py", expect=0), "")
        self.assertIn("a second backward pass over a kept graph wrote over the gradients that the first had returned",
                      self.wrong("Flash", "flash_backward", "gradient_layouts", "--contract", "full", "-a", "dtype=fp32", file="flash.py"))

    def test_what_a_backward_pass_writes_into_what_another_forward_pass_saved_is_found(self):
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")
        kept = SAME_BUFFER.replace("if OWN", "if False").replace("return o\n", "Flash.kept.setdefault(o.shape, []).append(lse)\n        return o\n")
        (self.folder / "flash.py").write_text(kept)
        self.assertEqual(self.wrong("Flash", "flash_backward", "keeps_no_state", "--contract", "full", file="flash.py", expect=0), "")
        zeroes = "        [one.zero_() for one in Flash.kept[do.shape] if one.data_ptr() != lse.data_ptr()]\n        ds = p"
        (self.folder / "flash.py").write_text(kept.replace("        ds = p", zeroes))
        said = self.wrong("Flash", "flash_backward", "keeps_no_state", "--contract", "full", file="flash.py")
        self.assertIn("a backward pass of other values wrote over what a forward pass had returned or saved", said)

    def test_what_backward_reads_off_the_class_is_what_another_layer_left_there(self):
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")
        kept = SAME_BUFFER.replace("if OWN", "if False")
        masks = kept.replace("ctx.o, ctx.is_causal", "ctx.o, Flash.is_causal").replace("if ctx.is_causal", "if Flash.is_causal")
        widths = kept.replace("ctx.o, ctx.is_causal = o.detach(), is_causal", "ctx.o, ctx.is_causal, Flash.width = o.detach(), is_causal, q.shape[-1]")
        widths = widths.replace("do * ctx.o).sum(-1, keepdim=True)) * q.shape[-1]", "do * ctx.o).sum(-1, keepdim=True)) * Flash.width")
        for text, how in ((masks, "under another mask"), (widths, "of another width")):
            (self.folder / "flash.py").write_text(text)
            said = self.wrong("Flash", "flash_backward", "keeps_no_state", "--contract", "full", file="flash.py")
            self.assertIn(f"with another call {how} before its outputs were read", said)


if __name__ == "__main__":
    unittest.main()
