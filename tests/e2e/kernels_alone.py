"""What a class's process tells of its kernels (src/python/syslab_kernels.py) without syslab, torch and a GPU."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src" / "python"))
import syslab_kernels as kernels  # noqa: E402

CUDA = object()


def event(name, device=CUDA, **more):
    return types.SimpleNamespace(name=name, device_type=device, **more)


class Profiler:
    """torch.profiler.profile, of which this is known: what ran between start and stop stands in events()."""

    def __init__(self, torch):
        self.torch = torch

    def __call__(self, activities):
        return self

    def start(self):
        if self.torch.why:
            raise RuntimeError(self.torch.why)
        self.first = len(self.torch.ran)

    def stop(self):
        self.last = len(self.torch.ran)

    def events(self):
        return self.torch.ran[self.first:self.last]


class Torch:
    def __init__(self, why=""):
        self.ran, self.why = [], why
        self.cuda = types.SimpleNamespace(synchronize=lambda: None)
        self.profiler = types.SimpleNamespace(profile=Profiler(self), ProfilerActivity=types.SimpleNamespace(CUDA=1))
        self.autograd = types.SimpleNamespace(DeviceType=types.SimpleNamespace(CUDA=CUDA))

    def call(self, _inputs, _options, timed, _bell):
        """Prepares with one kernel, and runs five in the part that is timed elsewhere."""
        self.ran.append(event("prepare"))
        body = [event("z"), event("Memcpy HtoD (Pinned -> Device)"), event("a"), event("z"), event("aten::mm", "cpu"),
                event("range", is_user_annotation=True), event("Memset (Device)")]
        return timed(lambda: self.ran.extend(body) or "values", ())


class Kernels(unittest.TestCase):
    def test_are_those_of_the_timed_part_each_with_its_launches(self):
        torch = Torch()
        values, told = kernels.run_listened(torch, torch.call, {}, {})
        self.assertEqual(values, "values")
        self.assertEqual(told, {"kernels": [{"name": "z", "launches": 2}, {"name": "a", "launches": 1}], "no_kernels": ""})

    def test_where_nobody_may_listen_the_call_is_made_and_the_reason_told(self):
        torch = Torch("CUPTI is held by another")
        values, told = kernels.run_listened(torch, torch.call, {}, {})
        self.assertEqual((values, told["kernels"]), ("values", []))
        self.assertIn("held by another", told["no_kernels"])

    def test_a_call_without_kernels_says_so(self):
        torch = Torch()
        _, told = kernels.run_listened(torch, lambda _inputs, _options, timed, _bell: timed(lambda: None, ()), {}, {})
        self.assertEqual(told, {"kernels": [], "no_kernels": "torch's profiler saw no kernel"})

    def test_names_are_cut_and_not_without_end(self):
        listed = kernels.counted([event(f"{i}" + "x" * 1000) for i in range(1000)], CUDA)
        self.assertEqual((len(listed), len(listed[0]["name"])), (kernels.MOST_KERNELS, kernels.MOST_LETTERS))


if __name__ == "__main__":
    unittest.main()
