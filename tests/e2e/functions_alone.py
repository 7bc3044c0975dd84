"""The Python side of functions (src/python/syslab_functions.py, syslab_signature.py, syslab_compilers.py) without syslab: signatures, what
compilers do, and calls whose arguments are on a GPU."""
import copy
import ctypes
import functools
import gc
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import weakref

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

SCRIPTS = pathlib.Path(__file__).parents[2] / "src" / "python"
sys.path.insert(0, str(SCRIPTS))
import syslab_arguments  # noqa: E402
import syslab_beside as beside  # noqa: E402
import syslab_compilers as compilers  # noqa: E402
import syslab_functions as functions  # noqa: E402
import syslab_imports as imports  # noqa: E402
import syslab_library as libraries  # noqa: E402
import syslab_cases as user_cases  # noqa: E402
import syslab_reference as references  # noqa: E402
import syslab_settings as settings  # noqa: E402
import syslab_signature as signatures  # noqa: E402
import syslab_tensors as tensors  # noqa: E402


class Settings(unittest.TestCase):
    def newer(self, precision):
        """What torch 2.9 has and older ones do not."""
        matmul = types.SimpleNamespace(fp32_precision=precision)
        return types.SimpleNamespace(backends=types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul)))

    def test_a_precision_that_comes_back_under_its_other_name_has_not_changed(self):
        said = [settings.of_attribute(self.newer(each), "backends.cuda.matmul", "fp32_precision")[0]() for each in ("none", "ieee", "tf32")]
        self.assertEqual(said, ["ieee", "ieee", "tf32"])

    def test_a_setting_that_is_put_back_is_what_it_was_and_one_that_is_missing_is_left_out(self):
        before = settings.global_flags()
        self.addCleanup(settings.put_back, "torch.backends.cudnn.enabled", before["torch.backends.cudnn.enabled"])
        torch.backends.cudnn.enabled = not torch.backends.cudnn.enabled
        changed = [name for name, now in settings.global_flags().items() if now != before[name]]
        self.assertEqual(changed, ["torch.backends.cudnn.enabled"])
        settings.put_back(changed[0], before[changed[0]])
        self.assertEqual(settings.global_flags(), before)
        self.assertFalse(settings.can_be_asked(settings.of_attribute(torch, "backends.cuda.matmul", "of_no_torch")[0]))

    def test_a_torch_that_sets_a_default_device_and_does_not_tell_it_tells_by_what_it_makes(self):
        made = types.SimpleNamespace(device="meta")
        of_2_2 = types.SimpleNamespace(set_default_device=None, empty=lambda count: made)
        self.assertEqual(settings.default_device(of_2_2), "meta")
        self.assertEqual(settings.default_device(types.SimpleNamespace(set_default_device=None, get_default_device=lambda: "cpu")), "cpu")
        self.assertFalse(settings.can_be_asked(lambda: settings.default_device(types.SimpleNamespace())))


class Compilers(unittest.TestCase):
    watch = None

    def said(self, body):
        Compilers.watch = Compilers.watch or compilers.Watch()  # an audit hook stays for good
        return Compilers.watch.during(body)[1]

    def test_what_compilers_do_is_heard_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, {"TRITON_CACHE_DIR": folder}):
            cached = pathlib.Path(folder, "kernel.cubin")
            cached.write_text("")
            other = pathlib.Path(folder + "-beside")
            self.assertIsNone(self.said(lambda: (torch.ones(3).exp(), [open(__file__).close()], other.exists())))
            self.assertEqual(self.said(cached.read_bytes), "looks for compiled code in TRITON_CACHE_DIR")
        self.assertEqual(self.said(lambda: ctypes.CDLL("libm.so.6")), "loads libm.so.6")
        self.assertEqual(self.said(lambda: os.system("true")), "starts true")

    def test_graphs_of_torch_compile_are_counted(self):
        counters = {"stats": {"unique_graphs": 1}, "frames": {"total": 1}}
        with unittest.mock.patch.dict(sys.modules, {"torch._dynamo.utils": types.SimpleNamespace(counters=counters)}):
            self.assertIsNone(self.said(lambda: None))
            self.assertEqual(self.said(lambda: counters["stats"].update(unique_graphs=2)), "has torch.compile build another graph")

    def test_whatever_torchscript_builds_is_heard_and_what_is_built_already_is_not(self):
        class Relu(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x)

        def double(x):
            return 2 * x

        x, text = torch.ones(3), "def f(x):\n  return torch.relu(x)\n"  # whose `torch` is found where it is compiled
        built, unit = torch.jit.script(Relu()), torch.jit.CompilationUnit(text)
        for body in (lambda: torch.jit.script(Relu()), lambda: torch.jit.CompilationUnit(text), lambda: torch.jit.CompilationUnit().define(text),
                     lambda: torch.jit.trace(torch.relu, (x,)), lambda: torch.jit.trace(Relu(), (x,)), lambda: torch.jit.script(double)):
            self.assertEqual(self.said(body), "has TorchScript build another graph")
        for body in (lambda: torch.jit.script(double)(x), lambda: built(x), lambda: unit.f(x), lambda: copy.deepcopy(built)):
            self.assertIsNone(self.said(body))


class Signatures(unittest.TestCase):
    def test_arguments_are_put_together_as_they_were(self):
        x = torch.rand(3)
        signature, tensors = signatures.take_apart({"a": x, "more": [np.arange(2), (1.5, None, {"k": x, "inf": math.inf})], "word": "é"})
        self.assertEqual([each["name"] for each in signature.tensors], ["a", "more.0", "more.1.2.k"])
        a, (b, (c, none, d)), word = signatures.Signature.parse(signature.text()).build(tensors)
        self.assertTrue(torch.equal(a, x) and torch.equal(d["k"], x))
        self.assertEqual((c, none, d["inf"], word, list(b)), (1.5, None, math.inf, "é", [0, 1]))

    def test_arguments_are_gone_when_nobody_needs_them(self):
        """Without Python's collector, which counts objects and not their bytes."""
        gc.disable()
        self.addCleanup(gc.enable)
        gone = []
        for _ in range(2):
            x = torch.ones(4)
            gone.append(weakref.ref(x))
            signature, values = signatures.take_apart({"x": [x]})
            signatures.Signature.parse(signature.text()).build(values)
            del x, values
        self.assertEqual([each() for each in gone], [None, None])

    def test_a_result_lies_where_no_argument_was(self):
        """malloc may hand out the addresses of a mapping that is gone."""
        with tempfile.TemporaryFile() as file:
            file.truncate(1 << 24)
            memory = tensors.Memory(file.fileno())
            memory.bytes(1 << 20)
            first, past = memory.mapped[0][1:]
            memory.bytes(1 << 24)
            gc.collect()
            with open("/proc/self/maps", encoding="ascii") as maps:
                ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
            self.assertTrue(any(begin <= first and past <= end for begin, end in ranges), "it is still mapped")

    def test_a_file_is_run_once_however_often_it_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "once.py"
            path.write_text("import pathlib\nwith open(__file__ + '.runs', 'a') as runs:\n    runs.write('x')\nCASES = []\n")
            for _ in range(3):
                functions.load_object(path, "CASES")
            self.assertEqual(pathlib.Path(f"{path}.runs").read_text(), "x")
            path.write_text("CASES = [1]\n")
            self.assertEqual(functions.load_object(path, "CASES"), [1], "another file by now")

    def test_a_list_of_cases_is_another_problem_when_its_content_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            path, problems = pathlib.Path(folder) / "listed.py", []
            for count in (8, 100_000):
                path.write_text(f"def ref(x):\n    return x\nLIST = [{{'name': 'a', 'arguments': {count}}}]\n")
                problems.append(user_cases.problem_of((path, "ref"), (path, "LIST")))
            self.assertNotEqual(*problems)

    def test_what_another_function_made_is_another_problem_where_that_one_is_called_otherwise(self):
        made = ("def make(k):\n    @functools.wraps(max)\n    def slow(x):\n        return x * k\n    return slow\nref = make(K)\n",
                "class Scaled:\n    def __init__(self, k):\n        self.k = k\n    def ref(self, x):\n        return x * self.k\nref = Scaled(K).ref\n",
                "def make(k):\n    class ref:\n        def __call__(self, x):\n            return x * k\n    return ref\nref = make(K)\n",
                "def plain(x):\n    return x\ndef twice(f, k=K):\n    return functools.wraps(f)(lambda x: k * f(x))\nref = twice(plain)\n")
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate((*made, "def ref(x):\n    return x\nOTHER = K\n")):
                problems = set()
                for k in ("2.0", "3.0"):
                    path = pathlib.Path(folder) / f"made_{number}_{k[0]}.py"
                    path.write_text("import functools\n" + text.replace("K", k))
                    problems.add(user_cases.problem_of((path, "ref"), (path, "ref")))
                self.assertEqual(len(problems), 2 if number < len(made) else 1, text)

    def test_a_file_whose_name_has_dots_is_loaded_in_a_package_too(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "of_dots")
            package.mkdir()
            for path, text in ((package / "__init__.py", ""), (package / "beside.py", "N = 3\n"), (package / "flash.v2.py", "from .beside import N\n"),
                               (pathlib.Path(folder, "my.t1.py"), "N = 3\n"), (package / "plain.py", "from . import beside\nN = beside.N\n")):
                path.write_text(text)
            for path in (package / "flash.v2.py", package / "plain.py", pathlib.Path(folder, "my.t1.py")):
                self.assertEqual(functions.load_object(str(path), "N"), 3)

    def test_the_only_case_may_have_neither_name_nor_axes(self):
        self.assertEqual(user_cases.check_case({"arguments": lambda seed: ()}, 1, [], {}), "all")
        with self.assertRaisesRegex(references.BadCases, "two cases are called 'all'"):
            user_cases.check_case({"arguments": lambda seed: ()}, 2, [], {"all": None})
        with self.assertRaisesRegex(references.BadCases, "a name is a text without commas, found ''"):
            user_cases.check_case({"arguments": lambda seed: (), "name": ""}, 1, [], {})

    def test_an_axis_is_a_finite_number(self):
        with self.assertRaisesRegex(references.BadCases, "axis 'rate' is inf; axes are finite numbers"):
            user_cases.check_case({"name": "a", "arguments": lambda seed: (), "axes": {"rate": math.inf}}, 1, [], {})

    def test_an_expression_that_nests_too_deep_is_named(self):
        limit = sys.getrecursionlimit()
        self.addCleanup(sys.setrecursionlimit, limit)
        sys.setrecursionlimit(500)
        with self.assertRaisesRegex(libraries.BadCases, "manifest, 'terms': '-+…' nests too deep"):
            libraries.evaluate("-" * 900 + "n", {"n": 1}, "manifest, 'terms'")

    def test_a_manifest_has_each_key_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "manifest.json")
            for text, said in (('{"arguments": [], "arguments": []}', "has the key 'arguments' twice"), ("[" * 100_000, "nests too deep")):
                path.write_text(text)
                with self.assertRaisesRegex(libraries.BadCases, said):
                    list(libraries.manifest_cases(path))

    def test_arguments_without_elements_are_not_the_same_with_every_seed(self):
        self.assertFalse(references.Reference.same([np.ones((0, 4))], [np.ones((0, 4))]))
        self.assertFalse(references.Reference.same([], []))
        self.assertTrue(references.Reference.same([np.ones(4), np.ones((0, 4))], [np.ones(4), np.ones((0, 4))]))
        self.assertFalse(references.Reference.same([torch.ones(4), torch.ones(0)], [torch.zeros(4), torch.ones(0)]))

    def test_infinity_where_there_was_a_number_is_a_difference(self):
        for like in (torch.tensor, np.array):
            one, two = like([1.0, math.inf]), like([1.0, 2.0])
            self.assertEqual(functions.largest_difference(one, two)[0], math.inf)
            self.assertEqual(functions.largest_difference(one, one)[0], 0)
            self.assertEqual(functions.largest_difference(like([math.nan]), like([math.nan]))[0], 0)

    def test_calls_in_other_streams_have_other_values_of_every_kind_and_shape(self):
        for tensor in (torch.rand(3, 4), torch.rand(()), torch.arange(6).reshape(2, 3), torch.tensor(7), torch.tensor([True, False])):
            other = beside.other_values(tensor, 1)
            self.assertEqual((other.dtype, other.shape), (tensor.dtype, tensor.shape))
            self.assertEqual(torch.equal(other, tensor), tensor.dim() == 0 and not tensor.is_floating_point())

    def test_what_cannot_travel_is_named(self):
        for value, said in ((object(), "'a' is a object"), (torch.eye(2).to_sparse(), "no dense tensor"),
                            (np.array(["x"]), "has dtype <U1")):
            with self.assertRaisesRegex(TypeError, said):
                signatures.take_apart({"a": value})


class Arguments(unittest.TestCase):
    def said(self, change, *values):
        kept = syslab_arguments.Kept([f"arg{i}" for i in range(len(values))], values)
        change(*values)
        try:
            kept.demand_same()
        except functions.WrongAnswer as wrong:
            self.assertEqual(wrong.finding, "input_changed")
            return str(wrong).removeprefix("the call changed its argument ").partition(";")[0]
        return None

    def test_each_change_of_a_tensors_metadata_is_named(self):
        for change, said in ((lambda x: x.unsqueeze_(0), "shape from (4, 6) to (1, 4, 6)"), (lambda x: x.t_(), "shape from (4, 6) to (6, 4)"),
                             (lambda x: x.as_strided_((4, 6), (1, 4)), "strides from (6, 1) to (1, 4)"), (lambda x: x.resize_(1), "shape from (4, 6) to (1,)"),
                             (lambda x: x.requires_grad_(True), "requires_grad from False to True"),
                             (lambda x: setattr(x, "data", torch.zeros(4, 6)), "other memory than before"),
                             (lambda x: setattr(x, "data", torch.zeros(4, 6).double()), "dtype from float32 to float64")):
            self.assertEqual(self.said(change, torch.randn(4, 6)), f"'arg0': {said}")
        for change, said in ((lambda x: setattr(x, "shape", (24,)), "shape from (4, 6) to (24,)"), (lambda x: setattr(x, "dtype", "i4"), "dtype from float32 to int32"),
                             (lambda x: setattr(x, "strides", (4, 16)), "strides from (24, 4) to (4, 16)"),
                             (lambda x: x.setflags(write=False), "writeable from True to False")):
            self.assertEqual(self.said(change, np.ones((4, 6), "f4")), f"'arg0': {said}")
        for same in (lambda x: x.mul_(2), lambda x: x.t(), lambda x: x.requires_grad_(False), lambda x: x.detach_(), lambda x: x.numpy()):
            self.assertIsNone(self.said(same, torch.randn(4, 6)))

    def test_containers_are_compared_as_deep_as_they_were(self):
        x, y = torch.ones(2), torch.ones(2)
        for change, said in ((lambda held: held.append(held), "'arg0': length from 3 to 4"), (lambda held: held.clear(), "'arg0': length from 3 to 0"),
                             (lambda held: held.__setitem__(0, held), "'arg0.0': another object than before"),
                             (lambda held: held.__setitem__(0, y), "'arg0.0': another object than before"),
                             (lambda held: held.__setitem__(1, held), "'arg0.1': from a dict to a list"),
                             (lambda held: held.__setitem__(2, 1), "'arg0.2': from 1.0 to 1"),
                             (lambda held: held.__setitem__(2, None), "'arg0.2': from 1.0 to None"),
                             (lambda held: held[1].update(z=0), "'arg0.1': keys from ['n', 'x'] to ['n', 'x', 'z']"),
                             (lambda held: held[1].update(n=held[1].pop("n")), "'arg0.1': keys from ['n', 'x'] to ['x', 'n']"),
                             (lambda held: held[1]["x"][0].unsqueeze_(0), "'arg0.1.x.0': shape from (2,) to (1, 2)"),
                             (lambda held: held[1].update(n=2.0), "'arg0.1.n': from nan to 2.0")):
            self.assertEqual(self.said(change, [x, {"n": math.nan, "x": (torch.ones(2),)}, 1.0]), said)
        for same in (lambda held: held.__setitem__(0, held[0]), lambda held: held[1].update(n=held[1]["n"]),
                     lambda held: held.append(held.pop()), lambda held: held.__setitem__(1, dict(held[1]))):
            self.assertIsNone(self.said(same, [x, {"n": math.nan, "x": (x,)}, 1.0]))

    def test_the_snapshot_holds_no_copy(self):
        x = torch.randn(1 << 20)
        self.assertIs(syslab_arguments.Kept(["x"], [x]).arguments[0][1], x)


class Results(unittest.TestCase):
    def test_the_order_of_a_dicts_keys_does_not_count(self):
        one, other = np.zeros(2, "f4"), np.ones(3, "f4")
        expected = [{"name": name, "shape": list(value.shape), "dtype": "float32"} for name, value in (("a", one), ("b", other))]
        for returned in ({"a": one, "b": other}, {"b": other, "a": one}):
            results = functions.named_results(returned)
            functions.demand(results, expected)
            self.assertIs(dict(results)["b"], other)
        with self.assertRaisesRegex(functions.WrongAnswer, "it returned a, c; the reference returns a, b"):
            functions.demand(functions.named_results({"c": other, "a": one}), expected)


class Imports(unittest.TestCase):
    def files(self, sources, of):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in sources.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return {str(file.relative_to(root)) for file in imports.files_imported(root / of)}

    def test_what_imported_files_import_comes_too_and_nothing_is_run(self):
        sources = {"pyproject.toml": "", "own/__init__.py": "", "own/a.py": "from . import b\nfrom .c import d\nraise SystemExit\n",
                   "own/b.py": "import helper\n", "own/c/__init__.py": "", "own/c/d.py": "def f():\n    import own.e\n", "own/e.py": "import own.a\n",
                   "src/helper.py": "import importlib\nimportlib.import_module('late')\n", "late.py": "", "unused.py": ""}
        self.assertEqual(self.files(sources, "own/a.py"),
                         {"own/__init__.py", "own/b.py", "own/c/__init__.py", "own/c/d.py", "own/e.py", "src/helper.py", "late.py"})

    def test_what_is_imported_for_other_uses_and_what_is_no_python_is_left_out(self):
        sources = {"a.py": "import b, c, numpy\nif __name__ == '__main__':\n    import d\nif typing.TYPE_CHECKING:\n    import d\nelse:\n    import e\n"
                           "from ....... import f\n", "b.py": "import (", "c.py": "\0", "d.py": "", "e.py": "", "f.py": ""}
        self.assertEqual(self.files(sources, "a.py"), {"b.py", "c.py", "e.py"})
        self.assertEqual(self.files({"a.py": ""}, "a.py"), set())


class Lacks(unittest.TestCase):
    def looked_at(self, requires, **claim):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "pyproject.toml").write_text(f'[project]\nname = "x"\nrequires-python = "{requires}"\n')
            file = pathlib.Path(folder, "a.py")
            file.write_text("for nothing_such in ():\n    pass\n")
            done = subprocess.run([sys.executable, SCRIPTS / "syslab_lacks.py", file, json.dumps(claim)], capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            return found["lacks"], found["declared"]

    def test_names_of_pythons_own_modules_are_a_newer_pythons_where_the_project_admits_one(self):
        claim = {"kind": "attribute", "of": "typing", "name": "nothing_such"}
        minor = sys.version_info[1]
        self.assertEqual(self.looked_at(f">=3.{minor}", **claim), (True, True))
        self.assertEqual(self.looked_at(f">=3.{minor},<3.{minor + 1}", **claim), (True, False))
        self.assertEqual(self.looked_at(f"==3.{minor}.*", **claim), (True, False))
        self.assertEqual(self.looked_at(f">=3.{minor}", **{**claim, "name": "List"})[0], False)

    def test_a_name_that_the_project_assigns_to_may_still_be_torchs_but_of_a_class_it_is_its_own(self):
        self.assertEqual(self.looked_at(">=3.8", kind="attribute", of="torch", name="nothing_such")[0], True)
        self.assertEqual(self.looked_at(">=3.8", kind="attribute", of="torch.nn.modules.module.Module", name="nothing_such")[0], False)

    def test_the_memory_limit_of_the_case_does_not_decide(self):
        """torch does not fit into it; without torch nothing of torch would be found missing."""
        claim = '{"kind": "attribute", "of": "torch", "name": "nothing_such"}'
        limited = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (400 << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))
        done = subprocess.run([sys.executable, SCRIPTS / "syslab_lacks.py", __file__, claim], preexec_fn=limited, capture_output=True, text=True, check=True)
        self.assertIs(json.loads(done.stdout)["lacks"], True)


class MemoryOfTheLab:
    """What LabMemory of syslab_gpu.py is, in memory of the CPU."""

    def __init__(self, size):
        self.memory = np.full(size, 0xFF, "u1")

    def bytes(self, offset, count):
        return torch.from_numpy(self.memory[offset:offset + count])

    def view(self, tensor):
        dtype = getattr(torch, tensors.TORCH_NAMES[tensor["dtype"]])
        size = torch.empty((), dtype=dtype).element_size()
        return self.bytes(tensor["offset"], size * tensor["shape"][0]).view(dtype)


class CallOfTheLab:
    """A GpuCall whose host gives the inputs when the call begins on the stream, and not before; the stream is Python's."""

    def __init__(self, lab, given):
        self.lab, self.given, self.done_with = lab, given, None  # given: (name, offset, bytes)

    def give(self, wanted):
        for name, offset, content in self.given:
            if wanted(name):
                self.lab.memory[offset:offset + len(content)] = np.frombuffer(content, "u1")

    def early(self, names):
        self.give(lambda name: name in names)

    def wait(self):
        pass

    def timed(self, body, reads):
        self.reads = list(reads)
        self.give(lambda _: True)
        return body()

    def done(self, outputs):
        for value, view in outputs:
            view.copy_(value.detach().reshape(view.shape))
        self.done_with = len(outputs)
        return 7


class OnAGpu(unittest.TestCase):
    """Functions whose arguments are in memory of the lab's on a GPU (Function.call_on_gpu), with none."""

    def called(self, function, arguments, expected, late=()):
        """The results as the host has them, by name; `expected`: (name, tensor of that shape and dtype)."""
        signature, values = signatures.take_apart(arguments)
        values = [*values, *late]
        if late:
            signature.tensors += [{"name": f"d({name})", "library": "torch", "dtype": signatures.dtype_name(value), "shape": list(value.shape)}
                                  for (name, value) in zip(("out",), late)]
            signature.late = ["out"]
        offset, inputs, outputs, given = 4096, [], [], []
        for tensor, value in zip(signature.tensors, values):
            wire = signatures.wire_tensor(tensor["name"], signatures.item_bytes(value), math.prod(value.shape))
            content = (value.contiguous().numpy() if signatures.is_torch(value) else value).tobytes()
            inputs.append({"name": tensor["name"], "dtype": wire["dtype"], "shape": [wire["elements"]], "strides": [1], "offset": offset})
            given.append((tensor["name"], offset, content))
            offset += len(content) + 4096 - len(content) % 4096
        for name, value in expected:
            kind = {"float32": "fp32", "float16": "fp16", "complex64": "fp32"}.get(signatures.dtype_name(value), "fp64")
            count = math.prod(value.shape) * (2 if "complex" in signatures.dtype_name(value) else 1)
            outputs.append({"name": name, "dtype": kind, "shape": [count], "strides": [1], "offset": offset})
            offset += 1 << 14
        lab = MemoryOfTheLab(offset)
        self.call = CallOfTheLab(lab, given)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "own.py"
            file.write_text("import torch\nfunction = None\n")
            with unittest.mock.patch.object(functions, "load_callable", return_value=function):
                own = functions.Function(str(file), "function", -1, "cpu")
        message = {"function": "function", "inputs": inputs, "outputs": outputs,
                   "options": {"signature": signature.text(),
                               "outputs": functions.json.dumps([{"name": name, "dtype": signatures.dtype_name(value), "shape": list(value.shape)}
                                                                for name, value in expected])}}
        self.assertEqual(own.call_on_gpu(message, lab, self.call), 7)
        self.assertEqual(self.call.done_with, len(outputs))
        return {wire["name"]: lab.view(wire) for wire in outputs}

    def test_arguments_of_every_dtype_are_given_behind_the_release_and_results_are_where_the_host_takes_them(self):
        x, index, mask = torch.randn(5, 3), torch.tensor([4, 0, 2]), torch.tensor([True, False, True])
        z, table, none = torch.randn(3, dtype=torch.complex64), np.arange(3, dtype=np.uint16), torch.empty(0, 3)

        def gathers(x, index, mask, z, table, none, factor):
            assert isinstance(table, np.ndarray) and table.dtype == np.uint16 and none.shape == (0, 3)
            return {"rows": x[index] * mask[:, None] * factor, "which": index + int(table.sum()), "turned": (z * 1).conj(), "any": mask.clone(),
                    "of NumPy": table.astype("i8")}

        want = {"rows": x[index] * mask[:, None] * 2.0, "which": index + 3, "turned": z.conj().resolve_conj(), "any": mask,
                "of NumPy": torch.arange(3)}
        found = self.called(gathers, (x, index, mask, z, table, none, 2.0), sorted(want.items()))
        self.assertEqual([each.dtype for each in self.call.reads], [torch.float32, torch.float32])  # whole numbers hold no NaN
        for name, value in want.items():
            value = torch.view_as_real(value) if value.is_complex() else value
            self.assertTrue(torch.equal(found[name].double(), value.reshape(-1).double()), name)

    def test_an_array_of_numpy_is_fetched_once_it_is_given_and_may_come_back_the_other_way_round(self):
        table, fetched, fetch = np.arange(6, dtype="f4"), [], functions.on_host

        def on_host(tensor, value):
            fetched.append(hasattr(self.call, "reads"))  # timed() has begun
            return fetch(tensor, value)

        with unittest.mock.patch.object(functions, "on_host", on_host):
            found = self.called(lambda table: (table * 2)[::-1], (table,), [("out", table)])
        self.assertEqual(fetched, [True])
        self.assertEqual(found["out"].tolist(), (table * 2)[::-1].tolist())

    def test_the_way_back_has_the_arguments_before_and_the_gradient_behind_the_release(self):
        x, gradient, seen = torch.randn(4, 3), torch.randn(4, 3), []

        def squares(x):
            seen.append(x.detach().clone())
            return x * x

        found = self.called(squares, {"x": x}, [("d(x)", x)], late=(gradient,))
        self.assertTrue(torch.equal(seen[0], x))
        self.assertTrue(torch.allclose(found["d(x)"], (2 * x * gradient).reshape(-1)))

    def test_what_nobody_could_trust_is_refused_there_too(self):
        x = torch.randn(4, 3)
        with self.assertRaisesRegex(functions.WrongAnswer, "has shape"):
            self.called(lambda x: x.sum(0), (x,), [("out", x)])
        self.assertIsNone(self.call.done_with)
        with self.assertRaisesRegex(functions.WrongAnswer, "is a view of an argument"):
            self.called(lambda x: x, (x,), [("out", x)])
        with self.assertRaisesRegex(functions.WrongAnswer, "expected float32"):
            self.called(lambda x: x.double(), (x,), [("out", x)])


if __name__ == "__main__":
    unittest.main()
