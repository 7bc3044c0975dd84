"""Symbols of libraries and their manifests (src/python/syslab_library.py), and the calls that are examined, without syslab: what a call may
not touch, what the inputs are."""
import ctypes
import json
import math
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src" / "python"))
import syslab_functions as functions  # noqa: E402
import syslab_library as libraries  # noqa: E402
import syslab_signature as signatures  # noqa: E402
from syslab_failures import WrongAnswer  # noqa: E402

ELEMENTS = 6


def manifest_with(*arguments, **more):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "manifest.json")
        path.write_text(json.dumps({"arguments": [*arguments, {"name": "y", "dtype": "float32", "shape": [ELEMENTS], "output": True}], **more}))
        return list(libraries.manifest_cases(path))


class Outputs(unittest.TestCase):
    def test_outputs_begin_unwritten_and_are_watched_on_both_sides_in_torchs_memory_too(self):
        symbol = libraries.Symbol.__new__(libraries.Symbol)
        shapes: list = [[3, 2], [], [0]]
        for device in ("cpu", "cpu:0"):  # the second is to it as a GPU's: memory of torch
            for dtype, content in (("float32", math.nan), ("bfloat16", math.nan), ("int32", -1), ("uint8", 255), ("bool", True)):
                for shape in shapes:
                    for side, where in ((0, "before the beginning"), (1, "behind the end")):
                        symbol.canaries = []
                        made = symbol.output("y", dtype, shape, device)
                        self.assertEqual((list(made.shape), str(made.dtype).removeprefix("torch.")), (shape, dtype))
                        self.assertTrue(all(each == content or each != each and content != content for each in made.flatten().tolist()))
                        self.assertIsNone(symbol.overrun())
                        symbol.canaries[side][1][-1 if side == 0 else 0] = 0  # beside the output
                        self.assertEqual(symbol.overrun(), f"{where} of its output 'y'", (device, dtype))

    def test_an_output_is_as_even_as_the_memory_that_it_lies_in(self):
        self.assertEqual(libraries.CANARY_BYTES % 256, 0)  # as cudaMalloc's addresses


class Examined(unittest.TestCase):
    """The calls that nobody times."""

    def examine(self, function, abi=None):
        signature, values = signatures.take_apart({"x": np.ones(ELEMENTS, "f4")})
        signature.abi = abi
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "own.py"
            file.write_text("import torch\n")
            with unittest.mock.patch.object(functions, "load_callable", return_value=function):
                own = functions.Function(str(file), "function", -1, "cpu")
        own.examine(signature, values, [{"name": "out", "dtype": "float32", "shape": [ELEMENTS]}])

    def symbol(self, *wrong, at):
        """That writes a number there, counted in elements, in those of its calls."""
        symbol = libraries.Symbol.__new__(libraries.Symbol)
        calls: list = []

        def function(x, y):
            calls.append(None)
            ctypes.memmove(y.value, x.value, 4 * ELEMENTS)
            if len(calls) in wrong:
                ctypes.memset(y.value + 4 * at, 0, 4)

        symbol.function, symbol.name, symbol.canaries = function, "own", []
        return symbol

    ABI = {"returns": "void", "arguments": [["input", 0, "float32"], ["output", "y", "float32", [ELEMENTS]]]}

    def test_what_a_symbol_writes_outside_its_output_in_one_call_alone_is_told(self):
        self.examine(self.symbol(at=0), self.ABI)
        for wrong in (1, 2):
            for at, where in ((ELEMENTS, "behind the end"), (ELEMENTS + 60, "behind the end"), (-1, "before the beginning"), (-60, "before the beginning")):
                with self.assertRaisesRegex(WrongAnswer, f"wrote {where} of its output 'y'"):
                    self.examine(self.symbol(wrong, at=at), self.ABI)

    def test_random_numbers_that_are_drawn_in_one_call_alone_are_told(self):
        self.examine(lambda x: x + 1)
        for draw, state in ((lambda: torch.rand(3), "torch"), (lambda: np.random.rand(), "numpy.random"), (lambda: np.random.randn(), "numpy.random")):
            for wrong in (1, 2):
                calls: list = []

                def function(x):
                    calls.append(None)
                    if len(calls) == wrong:
                        draw()
                    return x + 1

                with self.assertRaisesRegex(WrongAnswer, f"the state of {state} has moved"):
                    self.examine(function)

    def test_an_input_that_the_second_call_changes_is_told(self):
        calls: list = []

        def function(x):
            calls.append(None)
            y = x + 1
            if len(calls) == 2:
                x[0] = 0
            return y

        with self.assertRaisesRegex(WrongAnswer, "changed its input 'x'"):
            self.examine(function)


class Manifests(unittest.TestCase):
    def test_integers_are_drawn_as_the_manifest_says_or_refused(self):
        for dtype, most in (("int8", 128), ("uint8", 256), ("int16", 2 ** 15), ("int32", 2 ** 31)):
            with self.assertRaisesRegex(libraries.BadCases, f"argument 'x': 'below' is {most + 1}, but the largest {dtype} is {most - 1}"):
                manifest_with({"name": "x", "dtype": dtype, "shape": [4], "below": most + 1})
            (case,) = manifest_with({"name": "x", "dtype": dtype, "shape": [4096], "below": most})
            drawn = case.arguments(1)[0]
            self.assertTrue((drawn >= 0).all() and drawn.max() > 0.9 * most)
        for dtype in ("int64", "bool", "float32"):
            manifest_with({"name": "x", "dtype": dtype, "shape": [4], "below": 2 ** 40})

    def test_uniform_numbers_stay_below_one_in_every_dtype(self):
        almost = unittest.mock.Mock(random=lambda shape: np.full(shape, 1 - 2.0 ** -53))
        for dtype in ("float64", "float32", "float16", "bfloat16"):
            made = libraries.draw(almost, {"dtype": dtype, "shape": [3], "draw": "uniform", "below": 2})
            self.assertTrue(all(0.99 < float(each) < 1 for each in made), dtype)
            self.assertEqual(str(made.dtype).removeprefix("torch."), dtype)

    def test_a_size_may_be_a_quotient_that_is_whole(self):
        (case,) = manifest_with({"name": "x", "dtype": "float32", "shape": ["n / 2", 2.0]}, axes={"n": [64]})
        self.assertEqual(case.inputs[0]["shape"], [32, 2])
        self.assertEqual(case.arguments(1)[0].shape, (32, 2))
        for size in ("n / 3", -2.0, "n * 1e308 * 10"):
            with self.assertRaisesRegex(libraries.BadCases, "sizes are whole numbers from 0 on"):
                manifest_with({"name": "x", "dtype": "float32", "shape": [size]}, axes={"n": [64]})


if __name__ == "__main__":
    unittest.main()
