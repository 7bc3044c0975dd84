"""The bounds of gradients that nobody declared, as bounds_alone.py has it of results."""
import copy
import math
import unittest

from bounds_alone import (RIGHT, norm, norm_by_hand, random, reference_of, softmax, softmax_by_exp, torch, unjudged,
                          worst_ratio)

ROWS = 128


class MoreGradient(torch.autograd.Function):
    """Its argument; the first row of the gradient is too large by `more`."""

    @staticmethod
    def forward(ctx, x, more):
        ctx.more = more
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        gradient[0] += ctx.more
        return gradient, None


def causal_attention(masked, function=softmax, more=0.0):
    """Of a mask that is an argument: its own gradient is a large number, and no query's."""
    def attention(q, k, v, mask):
        q = MoreGradient.apply(q, more)
        return function(q @ k.T / math.sqrt(q.shape[1]) + (1 - mask) * masked) @ v

    return attention


def without_first(masked, function=softmax, more=0.0):
    """The first row sees one key, and cancels."""
    def attention(scores, v, mask):
        found = function(scores + (1 - mask) * masked) @ v - v[:1]
        return torch.cat([found[:1] + more, found[1:]])

    return attention


def with_mask(*shapes, dtype):
    """A row in the middle sees no key: there any rounding of a score is as large as the mask's."""
    def arguments(seed):
        mask = torch.ones(ROWS, ROWS).tril().to(dtype)
        mask[ROWS // 2] = 0
        return [*random(*shapes, dtype=dtype)(seed), mask]

    return arguments


def of_rows(reference, function, seed, rows):
    """The parts of the first output's elements in these rows that are wrong, and that are not judged."""
    _, values = reference.arguments(seed)
    value, tolerance, own = (each[rows] for each in reference.expect(values)[0])
    error = abs(reference.run(function, values)[0][1][rows].double() - value)
    return [float(part.double().mean()) for part in (error > tolerance, (error > own) & (error <= tolerance))]


class Gradients(unittest.TestCase):
    def test_right_functions_keep_their_bounds_backwards(self):
        for function, others, shapes, distribution in RIGHT[:5]:
            for dtype in (torch.float32, torch.bfloat16):
                reference = reference_of(function, distribution(*shapes, dtype=dtype), backward=True)
                self.assertEqual((reference.precision, len(reference.outputs)), ("float64", len(shapes)))
                for other in (function, others[0]):
                    worst = max(worst_ratio(reference, other, seed) for seed in range(3, 7))
                    with self.subTest(f"{other.__name__} {dtype} {distribution.__name__}"):
                        self.assertLess(worst, 1)

    def test_gradients_that_cancel_to_nothing_are_judged_by_what_is_rounded_on_the_way(self):
        def total_of(function, slope=0.0):
            return lambda x: function(x).sum() + slope * x.sum()

        for shape in ((33, 100), (64, 4), (8, 1000), (2, 2)):
            for slope in (0.0, 1e-4):
                reference = reference_of(total_of(softmax, slope), random(shape, dtype=torch.float32), backward=True)
                with self.subTest(f"{shape} {slope}"):
                    right = total_of(softmax_by_exp, slope)
                    self.assertLess(max(worst_ratio(reference, right, seed) for seed in range(3, 13)), 1)
                    self.assertLess(max(unjudged(reference, right, seed)[0] for seed in range(3, 9)), 0.01)
                    self.assertGreater(unjudged(reference, total_of(softmax_by_exp, slope + 1e-3), 5)[1], 0.99)
                    self.assertGreater(unjudged(reference, lambda x: (x * softmax_by_exp(x)).sum(), 5)[1], 0.4)

        def norm_of(function):
            return lambda x: function(x, torch.ones(64, dtype=x.dtype)).sum(-1)

        reference = reference_of(norm_of(norm), random((17, 64), dtype=torch.float32), backward=True)
        self.assertLess(max(worst_ratio(reference, norm_of(norm_by_hand), seed) for seed in range(3, 13)), 1)
        self.assertGreater(unjudged(reference, lambda x: norm_of(norm_by_hand)(x) + 1e-3 * x.sum(-1), 5)[1], 0.99)

    def test_a_mask_widens_no_bounds_of_what_it_does_not_move(self):
        for make, shapes, backward in ((causal_attention, ((ROWS, 16),) * 3, True),
                                       (without_first, ((ROWS, ROWS), (ROWS, 16)), False)):
            for dtype in (torch.float32, torch.bfloat16):
                for masked in (-1e9, torch.finfo(dtype).min):
                    reference = reference_of(make(masked), with_mask(*shapes, dtype=dtype), backward=backward)
                    with self.subTest(f"{make.__name__} {dtype} {masked:.3g}"):
                        self.assertEqual(reference.precision, "float64")
                        self.keeps_its_first_row(reference, lambda more, make=make, masked=masked: make(
                            masked, softmax_by_exp, more), dtype)

    def keeps_its_first_row(self, reference, with_more, dtype):
        for seed in range(3, 7):
            self.assertEqual(of_rows(reference, with_more(0.0), seed, slice(None))[0], 0)
            self.assertEqual(of_rows(reference, with_more(0.0), seed, 0), [0, 0])
            self.assertEqual(of_rows(reference, with_more(5.0), seed, 0), [1, 0])
            if dtype == torch.float32:  # of bfloat16 it is less than a rounding
                self.assertEqual(of_rows(reference, with_more(1e-3), seed, 0), [1, 0])

    def test_small_gradients_and_zeros_that_cancel_nothing_are_held_to_their_own_rounding(self):
        tiny = reference_of(lambda x: 1e-12 * torch.tanh(x), random((17, 64), dtype=torch.float32), backward=True)
        self.assertGreater(unjudged(tiny, lambda x: 1.001e-12 * torch.tanh(x), 5)[1], 0.9)
        first_rows = reference_of(lambda x: torch.tanh(x[:8]), random((16, 64), dtype=torch.float32), backward=True)
        self.assertEqual(unjudged(first_rows, lambda x: torch.tanh(x[:8]) + 1e-12 * x[8:], 5), (0, 0.5))

    def test_a_sum_over_all_rows_and_a_module_keep_them_too(self):
        def shared(x, bias):
            return torch.tanh(x + bias)

        reference = reference_of(shared, random((20, 50, 8), (8,), dtype=torch.float32), backward=True)
        self.assertEqual(reference.terms, 1000)
        self.assertLess(max(worst_ratio(reference, shared, seed) for seed in range(3, 7)), 1)
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Embedding(100, 64), torch.nn.Linear(64, 64))
        reference = reference_of(module, lambda seed: [torch.randint(0, 100, (4, 32), generator=torch.Generator().manual_seed(seed))],
                                 backward=True)
        self.assertEqual([each["name"] for each in reference.outputs], ["d(0.weight)", "d(1.bias)", "d(1.weight)"])
        reference.wide = copy.deepcopy(module).double()
        reference.precision = reference.precision_of(reference.arguments(1)[1])
        self.assertEqual(reference.precision, "float64")
        self.assertLess(max(worst_ratio(reference, module, seed) for seed in range(3, 7)), 1)

    def test_outputs_by_name_meet_their_gradients_in_any_order(self):
        def reference(x):
            return {"a": 2 * x, "b": 3 * x}

        def other_way_round(x):
            return {"b": 3 * x, "a": 2 * x}

        judge = reference_of(reference, random((5, 6), dtype=torch.float32), backward=True)
        self.assertLess(worst_ratio(judge, other_way_round, 5), 1)

    def test_gradients_of_another_function_do_not(self):
        for function, others, shapes, distribution in RIGHT[:5]:
            reference = reference_of(function, distribution(*shapes, dtype=torch.float32), backward=True)
            for name, fault in {"another scale": lambda *x: 1.001 * others[0](*x),
                                "a row that is cut off": lambda *x: torch.cat([others[0](*x)[:1].detach(), others[0](*x)[1:]])}.items():
                with self.subTest(f"{name} of {function.__name__}"):
                    self.assertGreater(worst_ratio(reference, fault, 5), 1)


if __name__ == "__main__":
    unittest.main()
