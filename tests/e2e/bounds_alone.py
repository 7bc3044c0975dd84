"""The bounds that nobody declared (src/python/syslab_reference.py, syslab_bounds.py) without syslab: right functions of many kinds must keep
them, forwards and backwards, and planted faults must not."""
import copy
import math
import pathlib
import sys
import typing
import unittest
import unittest.mock

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src" / "python"))
import syslab_bounds  # noqa: E402
import syslab_reference as references  # noqa: E402


def softmax(x):
    return torch.softmax(x, -1)


def softmax_by_exp(x):
    y = torch.exp(x.float() - x.float().amax(-1, keepdim=True))
    return (y / y.sum(-1, keepdim=True)).to(x.dtype)


def product(a, b):
    return a @ b


def product_in_slices(a, b):
    parts = [a[:, i:i + 16].float() @ b[i:i + 16].float() for i in range(0, a.shape[1], 16)]
    return sum(parts).to(a.dtype)


def product_term_by_term(a, b):
    """In the arguments' own order, one rounding of float32 a term."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for i in range(a.shape[1]):
        total = total + a[:, i:i + 1].float() * b[i:i + 1].float()
    return total.to(a.dtype)


def norm(x, w):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], w)


def norm_by_hand(x, w):
    y = x.float()
    y = y - y.mean(-1, keepdim=True)
    return (y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-5) * w.float()).to(x.dtype)


def attention(q, k, v):
    return torch.softmax(q @ k.T / math.sqrt(q.shape[1]), -1) @ v


def attention_with_rounded_p(q, k, v):
    p = softmax_by_exp(q.float() @ k.float().T / math.sqrt(q.shape[1])).to(q.dtype)
    return (p.float() @ v.float()).to(q.dtype)


def total(x):
    return x.sum()


def total_one_after_another(x):
    y = np.float32(0)
    for each in x.float().flatten().numpy():
        y = np.float32(y + each)
    return torch.tensor(y).to(x.dtype)


def random(*shape, dtype):
    return lambda seed: [torch.randn(each, generator=torch.Generator().manual_seed(seed + i)).to(dtype) for i, each in enumerate(shape)]


def positive(*shape, dtype):
    return lambda seed: [each.abs() for each in random(*shape, dtype=dtype)(seed)]


RIGHT: typing.Any = (
    (softmax, (softmax_by_exp,), ((33, 100),), random),
    (product, (product_in_slices, product_term_by_term), ((24, 300), (300, 20)), random),
    (product, (product_in_slices, product_term_by_term), ((24, 300), (300, 20)), positive),
    (norm, (norm_by_hand,), ((17, 128), (128,)), random),
    (attention, (attention_with_rounded_p,), ((40, 32), (70, 32), (70, 32)), random),
    (total, (total_one_after_another,), ((50, 60),), positive),
    (total, (total_one_after_another,), ((50, 60),), random),
)


def reference_of(function, arguments, backward=False, **fields):
    """A Reference of what stands in this file, past its command line."""
    made = references.Reference.__new__(references.Reference)
    made.native = made.wide = function
    made.case, made.name, made.problem = {"arguments": arguments, **fields}, "here", "here"
    made.signature, first = made.arguments(1)
    if backward:
        made.differentiate(first)
        _, first = made.arguments(1)
    made.device = "cpu"
    made.outputs = made.describe_outputs(made.run(function, first))
    made.precision = made.precision_of(first)
    made.terms = fields.get("terms") or max([1] + [size for each in first for size in made.sums_over(each)])
    return made


def worst_ratio(reference, function, seed):
    """The largest error of all outputs against its bound; infinity where an infinite or zero bound is missed."""
    _, values = reference.arguments(seed)
    worst = 0.0
    for (value, tolerance, _), (_, found) in zip(reference.expect(values), reference.run(function, values)):
        value, tolerance = np.asarray(value), np.asarray(tolerance)
        error = np.abs(np.asarray(syslab_bounds.doubles(found)) - value)
        worst = max(worst, np.max(np.where(error == 0, 0, error / np.maximum(tolerance, 1e-300))))
    return worst


class Bounds(unittest.TestCase):
    def test_both_libraries_say_the_same(self):
        numbers = np.random.default_rng(5)
        value, moved, erring = numbers.standard_normal((3, 7, 40)), numbers.standard_normal((7, 40)), numbers.standard_normal((7, 40)) ** 2
        value = np.concatenate([value[0].ravel(), [1e39, -1e39, np.inf]]).reshape(1, -1), moved.ravel(), erring.ravel()
        value = tuple(np.resize(each, (1, 283)) for each in value)
        for dtype, exact, declared, others in (("float32", True, None, value), ("bfloat16", False, None, value), ("float32", True, (1e-3, 1e-5), (value[0], None, None))):
            def of(made, dtype=dtype, exact=exact, declared=declared, others=others):
                one, sensitivity, own = (None if each is None else made(each) for each in others)
                return [np.asarray(each) for each in syslab_bounds.bound(one, dtype, given=2.0 ** -8, terms=40, sensitivity=sensitivity, erring=own, exact=exact,
                                                                         declared=declared)]

            for here, there in zip(of(np.asarray), of(torch.from_numpy)):
                np.testing.assert_allclose(here, there, rtol=1e-13)

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    def test_a_reference_computes_on_the_gpu_where_it_can(self):
        for function, moves in ((softmax, True), (lambda x: x + torch.ones(16), False)):
            made = reference_of(function, random((64, 16), dtype=torch.float32))
            _, values = made.arguments(7)
            here = made.expect(values)
            self.assertEqual(made.computes_on("cuda", values), moves)
            made.device = "cuda" if moves else "cpu"
            for (value, tolerance, _), (other, bound, _) in zip(here, made.expect(values)):
                np.testing.assert_allclose(value, other.cpu(), rtol=1e-12)
                np.testing.assert_allclose(tolerance, bound.cpu(), rtol=0.1)

    def test_right_functions_keep_them(self):
        for function, others, shapes, distribution in RIGHT:
            for dtype in (torch.float32, torch.bfloat16):  # torch 1.13 has little of float16 on the CPU
                reference = reference_of(function, distribution(*shapes, dtype=dtype), terms=3000 if function is total else None)
                self.assertEqual(reference.precision, "float64")
                for other in others:
                    worst = max(worst_ratio(reference, other, seed) for seed in range(3, 9))
                    with self.subTest(f"{other.__name__} {dtype} {distribution.__name__}"):
                        self.assertLess(worst, 1)

    def test_fewer_probes_tell_the_same_values_and_no_wider_bounds(self):
        for function, _, shapes, distribution in RIGHT:
            reference = reference_of(function, distribution(*shapes, dtype=torch.float32))
            _, values = reference.arguments(3)
            (value, whole, _), = reference.expect(values)
            for probes in (0, 1):
                with self.subTest(f"{function.__name__}, {probes}"), unittest.mock.patch.object(reference, "own_errors") as own:
                    (same, narrow, _), = reference.expect(values, probes)
                    np.testing.assert_array_equal(same, value)
                    self.assertTrue((narrow <= whole).all())
                    self.assertTrue((narrow > 0).all())
                    own.assert_not_called()

    def test_faults_do_not(self):
        faults = {
            "zeros": lambda f: lambda *x: torch.zeros_like(f(*x)),
            "constant": lambda f: lambda *x: torch.full_like(f(*x), f(*x).float().mean().item()),
            "shuffled": lambda f: lambda *x: f(*x).flip(0),
            "one row wrong": lambda f: lambda *x: torch.cat([f(*x)[:1] * 1.5, f(*x)[1:]]),
        }
        for function, others, shapes, distribution in RIGHT[:5]:
            for dtype in (torch.float32, torch.bfloat16):
                reference = reference_of(function, distribution(*shapes, dtype=dtype))
                for name, fault in faults.items():
                    with self.subTest(f"{name} of {function.__name__} {dtype}"):
                        self.assertGreater(worst_ratio(reference, fault(others[0]), 5), 1)
        # A matrix product in lower precision than it says, and one that leaves out a term.
        reference = reference_of(product, random((24, 300), (300, 20), dtype=torch.float32))
        self.assertGreater(worst_ratio(reference, lambda a, b: (a.bfloat16() @ b.bfloat16()).float(), 5), 1)
        self.assertGreater(worst_ratio(reference, lambda a, b: a[:, 1:] @ b[1:], 5), 1)

    def test_what_no_argument_rounds_is_not_held_against_a_function(self):
        """Constants and a module's own numbers: the same code as reference and as function is right."""
        def near_zero(x):
            return 1 - torch.exp(-1e-4 * x.abs())

        def in_between(x):
            return x + 1000 - 1000

        for function in (near_zero, in_between):
            reference = reference_of(function, random((40, 60), dtype=torch.float32))
            self.assertLess(max(worst_ratio(reference, function, seed) for seed in range(3, 9)), 1, function.__name__)
            self.assertGreater(worst_ratio(reference, lambda x: function(x) * 1.5 + 0.001, 5), 1, function.__name__)

        def ids(seed):
            return [torch.randint(0, 100, (4, 32), generator=torch.Generator().manual_seed(seed))]

        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Embedding(100, 64), torch.nn.Linear(64, 64))
        reference = reference_of(module, ids)
        reference.wide = copy.deepcopy(module).double()
        reference.precision = reference.precision_of(reference.arguments(1)[1])
        self.assertEqual(reference.precision, "float64")
        before = [each.clone() for each in reference.wide.state_dict().values()]
        self.assertLess(max(worst_ratio(reference, module, seed) for seed in range(3, 9)), 1)
        self.assertGreater(worst_ratio(reference, lambda i: module(i) * 1.01, 5), 1)
        self.assertTrue(all(map(torch.equal, before, reference.wide.state_dict().values())), "its numbers are put back")
        rows, columns = torch.randn(100, 64), torch.randn(64, 8)
        self.assertEqual(reference_of(lambda i: rows[i] @ columns, ids).precision, "its own")

    def test_what_does_not_run_in_float64_is_said(self):
        reference = reference_of(lambda x: x.float().exp().to(x.dtype), random((5, 6), dtype=torch.float32))
        self.assertEqual(reference.precision, "float64")  # it says so, and its digits are single's: the probes see them

        def single(x):
            if x.dtype != torch.float32:
                raise TypeError("float32 only")
            return x.exp()

        self.assertEqual(reference_of(single, random((5, 6), dtype=torch.float32)).precision, "its own")

    def test_beyond_the_range_is_infinity_and_nan_is_refused(self):
        reference = reference_of(lambda x: x * 1e5, random((5, 6), dtype=torch.float16))
        _, values = reference.arguments(3)
        value, tolerance, _ = reference.expect(values)[0]
        self.assertTrue(np.isinf(value).any())
        self.assertTrue((tolerance[np.isinf(value)] == 0).all())
        broken = reference_of(lambda x: torch.log(x), random((5, 6), dtype=torch.float32))
        with self.assertRaisesRegex(references.BadCases, "computes NaN in 'out'"):
            broken.expect(broken.arguments(3)[1])

    def test_gradients_are_no_numbers_of_an_argument(self):
        reference = reference_of(norm, random((17, 128), (128,), dtype=torch.float32), backward=True)
        _, (x, _, drawn) = reference.arguments(3)
        self.assertEqual(x.shape, drawn.shape)
        self.assertLess(abs(torch.corrcoef(torch.stack([x.flatten(), drawn.flatten()]))[0, 1]), 0.2)

    def test_a_declared_bound_is_taken_as_it_is(self):
        reference = reference_of(softmax, random((5, 6), dtype=torch.float32), rtol=0.1, atol=0.5)
        value, tolerance, _ = reference.expect(reference.arguments(3)[1])[0]
        np.testing.assert_allclose(tolerance, 0.5 + 0.1 * np.abs(value), rtol=1e-12)


def unjudged(reference, function, seed):
    """The largest part of an output's elements that lie beyond their own tolerance and within the other; and of those beyond both."""
    _, values = reference.arguments(seed)
    worst = wrong = 0.0
    for told, (_, found) in zip(reference.expect(values), reference.run(function, values)):
        value, tolerance, own = map(np.asarray, told)
        assert (own <= tolerance * (1 + 1e-12)).all()
        error = np.abs(np.asarray(syslab_bounds.doubles(found)) - value)
        worst, wrong = max(worst, ((error > own) & (error <= tolerance)).mean()), max(wrong, (error > tolerance).mean())
    return worst, wrong


def halves(seed):
    return [torch.randint(-20, 20, (64, 200), generator=torch.Generator().manual_seed(seed)).float() / 2]


def gelu(x):
    return torch.nn.functional.gelu(x)


def gelu_by_hand(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def power(x):
    return torch.exp(5 * x)


def power_of_two(x):
    return torch.exp2(x.float() * (5 / math.log(2))).to(x.dtype)


def inverse(x):
    return 1 / (x * x)


class Unjudged(unittest.TestCase):
    """What a tolerance lets pass only because of neighbours or a jump."""

    def test_right_functions_have_next_to_nothing_of_it(self):
        wide = ((gelu, (gelu_by_hand,), ((64, 1000),), random), (power, (power_of_two,), ((64, 1000),), random),
                (inverse, (lambda x: (1 / x) ** 2,), ((64, 1000),), random), (lambda x: softmax(10 * x), (lambda x: softmax_by_exp(10 * x),), ((64, 1000),), random))
        for function, others, shapes, distribution in RIGHT + wide:
            for dtype in (torch.float32, torch.bfloat16):
                for backward in (False, True):
                    reference = reference_of(function, distribution(*shapes, dtype=dtype), backward=backward, terms=3000 if function is total else None)
                    for other in others:
                        if backward and other is total_one_after_another:  # NumPy's
                            continue
                        with self.subTest(f"{other.__name__} {dtype} {backward}"):
                            self.assertLess(max(unjudged(reference, other, seed)[0] for seed in range(3, 6)), 0.005)

    def test_at_a_jump_and_beside_large_elements_faults_have(self):
        faults = ((torch.round, lambda x: torch.round(x) + 100 * (x * 2 % 2), halves, 0.5), (torch.floor, lambda x: torch.ceil(x) - 1, halves, 0.5),
                  (lambda x: (x == 3).to(x.dtype), torch.zeros_like, halves, 0.025),
                  (power, lambda x: torch.where(x < 0, torch.zeros_like(x), power(x)), random((64, 1000), dtype=torch.float32), 0.5),
                  (inverse, lambda x: inverse(x) * torch.where(inverse(x) < 1, 1.01, 1.0), random((64, 1000), dtype=torch.float32), 0.32))
        for function, fault, arguments, part in faults:
            reference = reference_of(function, arguments)
            for seed in range(3, 6):
                found, wrong = unjudged(reference, fault, seed)
                self.assertEqual(wrong, 0)
                self.assertAlmostEqual(found, part, delta=0.02)
                self.assertEqual(unjudged(reference, function, seed), (0, 0))

    def test_a_sum_that_cancels_to_nothing_is_no_jump(self):
        def nothing(x):
            return (x - x.mean(-1, keepdim=True)).sum(-1)

        reference = reference_of(nothing, random((64, 100), dtype=torch.float32))
        self.assertLess(unjudged(reference, lambda x: x.sum(-1) - x.shape[-1] * x.mean(-1), 5)[0], 0.005)

        def bias_of_keys(q, k, b):  # softmax takes no notice of what all scores of a row share
            return torch.softmax(q @ (k + b).T / 8, -1) @ k

        reference = reference_of(bias_of_keys, random((40, 64), (70, 64), (64,), dtype=torch.float32), backward=True)
        self.assertLess(unjudged(reference, lambda q, k, b: softmax_by_exp(q @ (k + b).T / 8) @ k, 5)[0], 0.005)

    def test_a_reference_in_its_own_dtype_leaves_half_of_a_value(self):
        def single(x):
            if x.dtype != torch.float32:
                raise TypeError("float32 only")
            return power(x)

        reference = reference_of(single, random((64, 1000), dtype=torch.float32))
        self.assertEqual(reference.precision, "its own")
        self.assertAlmostEqual(unjudged(reference, lambda x: torch.where(x < 0, torch.zeros_like(x), power(x)), 5)[0], 0.5, delta=0.1)
        self.assertEqual(unjudged(reference, power_of_two, 5), (0, 0))


def mask_of_lengths(seed, longest=11):
    lengths = torch.randint(0, longest, (12,), generator=torch.Generator().manual_seed(seed))
    return [torch.arange(20) < lengths[:, None]]


def few_numbers(seed, dtype=torch.int64, shape=(8, 33)):
    return [torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)]


def last_of_largest(x):
    return x.shape[-1] - 1 - x.to(torch.int64).flip(-1).argmax(-1)


def order_from_the_end(x):
    return x.shape[-1] - 1 - torch.sort(x.flip(-1), dim=-1, stable=True)[1]


class Ties(unittest.TestCase):
    """Integers of which several may be equally right, and others, which are not."""

    def wrong(self, reference, function, arguments, seed=7):
        """How many integers of the function the reference does not accept."""
        judge = reference_of(reference, arguments)
        _, values = judge.arguments(seed)
        returned = judge.run(function, values)
        seen = [np.asarray(value).astype("f8") for _, value in returned]
        expected = judge.expect_ties(values, seen, references.PROBES)
        return sum(int((np.asarray(value) != other).sum()) for (value, *_), other, each in zip(expected, seen, judge.outputs)
                   if each["dtype"] == "int64")

    def test_a_count_that_points_at_an_equal_element_is_no_place(self):
        def count(mask):
            return mask.sum(-1).round().long() if mask.is_floating_point() else mask.sum(-1)

        for dtype in (torch.bool, torch.int64, torch.float32):
            for more in (1, 5):
                with self.subTest(f"{dtype} {more}"):
                    self.assertEqual(self.wrong(count, lambda mask, more=more: count(mask) + more, lambda seed, dtype=dtype: [mask_of_lengths(seed)[0].to(dtype)]), 12)
        self.assertEqual(self.wrong(count, lambda mask: torch.full((12,), 19), mask_of_lengths), 12)

    def test_nor_is_a_single_count(self):
        for seed in range(3, 9):
            for size in (2, 3, 40):
                def mask(seed, size=size):
                    return [torch.arange(size) < torch.randint(0, size, (), generator=torch.Generator().manual_seed(seed))]

                self.assertEqual(self.wrong(lambda mask: mask.sum(), lambda mask: (mask.sum() + 1) % len(mask), mask, seed), 1)

    def test_nor_an_order_by_something_else(self):
        def arguments(seed):
            generator = torch.Generator().manual_seed(seed)
            return [torch.rand(4, 30, generator=generator), torch.randint(0, 2, (4, 30), generator=generator)]

        def by_the_first(x, group):
            return x.argsort(-1)

        self.assertGreater(self.wrong(by_the_first, lambda x, group: x.argsort(-1, descending=True), arguments), 50)

    def test_places_of_equal_elements_of_an_argument_are_right(self):
        def first_of_largest(x):
            return x.to(torch.int64).argmax(-1)

        for dtype in (torch.bool, torch.int64, torch.float32, torch.bfloat16):
            with self.subTest(dtype):
                arguments = (lambda dtype: lambda seed: few_numbers(seed, dtype))(dtype)
                self.assertEqual(self.wrong(first_of_largest, last_of_largest, arguments), 0)
                self.assertGreater(self.wrong(first_of_largest, lambda x: (last_of_largest(x) + 1) % 33, arguments), 0)
        self.assertEqual(self.wrong(lambda x: torch.sort(x, dim=-1, stable=True)[1], order_from_the_end, few_numbers), 0)
        self.assertEqual(self.wrong(lambda x: x.argmin(-1), lambda x: last_of_largest(-x), few_numbers), 0)
        of_numpy = lambda seed: [few_numbers(seed)[0].numpy()]  # noqa: E731
        self.assertEqual(self.wrong(lambda x: x.argmax(-1), lambda x: 32 - x[:, ::-1].argmax(-1), of_numpy), 0)

    def test_places_in_scores_that_are_an_output_are_right_and_lengths_of_a_mask_are_not(self):
        def scores(x, first=True):
            found = torch.relu(x @ torch.arange(-4.0, 4.0).repeat(2, 2).reshape(4, 8).to(x.dtype))
            return found, found.argmax(-1) if first else last_of_largest_float(found)

        def last_of_largest_float(x):
            return x.shape[-1] - 1 - x.flip(-1).argmax(-1)

        arguments = random((32, 4), dtype=torch.float32)
        self.assertEqual(self.wrong(scores, lambda x: scores(x, False), arguments), 0)

        def lengths(x, more=0):
            mask = (x.cumsum(-1) < 3).cumprod(-1).to(x.dtype)
            return mask, mask.sum(-1).long() + more

        positive_rows = positive((12, 30), dtype=torch.float32)
        self.assertEqual(self.wrong(lengths, lambda x: lengths(x, 1), positive_rows), 12)


if __name__ == "__main__":
    unittest.main()
