"""Integers and bool of references (src/python/syslab_reference.py, syslab_ties.py) without syslab: which others are as right, and in which
dtype the reference computes them."""
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
    import torch  # noqa: F401, the file of the test imports it
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src" / "python"))
import syslab_reference as references  # noqa: E402
import syslab_ties as ties  # noqa: E402

FILE = """
import numpy as np
import torch

W = torch.randn(16, 8, generator=torch.Generator().manual_seed(0))


def pairs(seed):
    "Scores of which each is there twice in a column, as sums of which rounding decides."
    drawn = torch.Generator().manual_seed(seed)
    scores = torch.stack([torch.randperm(16, generator=drawn) // 2 for _ in range(5)], 1).float() + 1
    noise = torch.randint(1, 4, (16, 5), generator=drawn).float()
    return {"x": torch.stack([scores + noise, -noise], -1)}


def normal(seed):
    return {"x": torch.randn(4, 16, generator=torch.Generator().manual_seed(seed))}


def weighed(seed):
    "Each of eight scores is there twice."
    drawn = torch.Generator().manual_seed(seed)
    w = torch.randn(16, 8, generator=drawn)
    return {"x": torch.randn(4, 16, generator=drawn), "w": torch.cat([w, w], 1)}


def few(seed):
    return {"x": torch.randint(0, 4, (8, 33), generator=torch.Generator().manual_seed(seed)).float()}


def cases():
    for make in (pairs, normal, weighed, few):
        yield {"name": make.__name__, "arguments": make}
    yield {"name": "few exactly", "arguments": few, "atol": 0.0}
    yield {"name": "few loosely", "arguments": few, "rtol": 0.5, "atol": 1.0}


def order(x):
    return torch.from_numpy(np.argsort(x.numpy().sum(-1), 0, kind="stable"))


def first(x):
    return x.argmax(-1)


def by_weights(x, w):
    return (x @ w).argmax(-1)


def by_weights_in_float32(x, w):
    assert x.dtype == torch.float32
    return (x @ w).argmax(-1)


def sign_by_weights(x):
    return x @ W > 0


def of_float32_alone(x):
    assert x.dtype == torch.float32
    return (x > 0).sum(-1)


def total_and_sign(x):
    return 100 * x.sum(-1).long(), x > 1
"""


class Ties(unittest.TestCase):
    file: pathlib.Path

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.file = pathlib.Path(folder.name, "ties_of_the_test.py")
        cls.file.write_text(FILE)

    def wrong(self, reference, case, *, seen, seed=7):
        """How many elements of what `seen` makes of the reference's first result and the arguments are wrong."""
        asked = references.Reference((str(self.file), reference), (str(self.file), "cases"), case, "cpu")
        values = asked.arguments(seed)[1]
        right = [np.asarray(value) for _, value in asked.run(asked.native, values)]
        found = [np.asarray(seen(right[0], values[0]), "f8"), *right[1:]]
        told = asked.expect_ties(values, [each.reshape(-1) for each in found], references.PROBES)
        value, tolerance = (np.asarray(part, "f8") for part in told[0][:2])
        return int((abs(value - found[0]) > tolerance).sum()), asked.precision

    def test_a_place_is_there_once_along_every_axis_along_which_the_reference_has_each_once(self):
        def from_the_end(_, x):
            scores = x.numpy().sum(-1)[::-1]
            return len(scores) - 1 - np.argsort(scores, 0, kind="stable")

        def one_of_two(right, _):
            return np.repeat(right[::2], 2, 0)

        self.assertEqual(self.wrong("order", "pairs", seen=lambda right, _: right), (0, "float64"))
        self.assertEqual(self.wrong("order", "pairs", seen=from_the_end), (0, "float64"))
        self.assertEqual(self.wrong("order", "pairs", seen=one_of_two), (5 * 8, "float64"))

    def test_places_that_differ_in_one_run_by_chance_need_not_differ(self):
        wanted, found = np.array([[0.0, 2], [1, 3]]), np.array([[1.0, 2], [1, 3]])
        other = np.array([[1.0, 3], [0, 2]])
        self.assertEqual(ties.settled(wanted, found, (), [wanted, other])[0, 0], 0)
        self.assertEqual(ties.settled(wanted, found, (), [wanted, other, found])[0, 0], 1)
        for seed in range(20, 24):
            for seen in (lambda right, _: (right + 8) % 16, lambda right, _: right % 8, lambda right, _: right % 8 + 8):
                self.assertEqual(self.wrong("by_weights", "weighed", seen=seen, seed=seed)[0], 0)

    def test_where_a_bound_is_declared_nothing_ties_and_integers_lie_within_it(self):
        def last(_, x):
            return x.shape[-1] - 1 - x.flip(-1).argmax(-1)

        self.assertEqual(self.wrong("first", "few", seen=last)[0], 0)
        self.assertGreater(self.wrong("first", "few exactly", seen=last)[0], 0)
        self.assertEqual(self.wrong("first", "few exactly", seen=lambda right, _: right)[0], 0)
        self.assertEqual(self.wrong("total_and_sign", "few loosely", seen=lambda right, _: right * 1.4 + 1)[0], 0)
        asked = references.Reference((str(self.file), "total_and_sign"), (str(self.file), "cases"), "few loosely", "cpu")
        self.assertEqual(float(asked.expect(asked.arguments(3)[1])[1][1].max()), 0, "a bool is right or wrong")

    def test_a_reference_of_integers_that_takes_no_doubles_is_asked_as_it_is(self):
        for reference in ("sign_by_weights", "of_float32_alone"):
            self.assertEqual(self.wrong(reference, "normal", seen=lambda right, _: right), (0, "its own"))
            if reference == "of_float32_alone":
                self.assertEqual(self.wrong(reference, "normal", seen=lambda right, _: right + 1), (4, "its own"))
        # What rounding decides is as right there, and nothing else.
        self.assertEqual(self.wrong("by_weights_in_float32", "weighed", seen=lambda right, _: (right + 8) % 16), (0, "its own"))
        self.assertEqual(self.wrong("by_weights_in_float32", "weighed", seen=lambda right, _: (right + 1) % 16), (4, "its own"))


if __name__ == "__main__":
    unittest.main()
