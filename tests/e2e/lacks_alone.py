"""What a judged process may claim that its Python lacks, and what is found to be so (src/python/syslab_lacks.py), without syslab."""
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

try:
    import torch
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

SCRIPTS = pathlib.Path(__file__).parents[2] / "src" / "python"
sys.path.insert(0, str(SCRIPTS))
import syslab_lacks as lacks  # noqa: E402
import syslab_names as names  # noqa: E402
import syslab_packages as packages  # noqa: E402
from syslab_operators import AutogradFunction  # noqa: E402

LATER = "of_a_later_torch"


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "pyproject.toml").touch()

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file


class Claims(unittest.TestCase):
    def claim_of(self, error):
        try:
            raise error
        except BaseException as raised:
            return lacks.claim(raised)

    def test_an_attribute_is_of_the_nearest_class_of_torch(self):
        class Own(torch.nn.Linear):
            pass

        for thing in (torch.nn.Linear(2, 2), Own(2, 2), Own):
            self.assertEqual(self.claim_of(AttributeError(name=LATER, obj=thing)),
                             {"kind": "attribute", "of": "torch.nn.modules.linear.Linear", "name": LATER})
        self.assertIsNone(self.claim_of(AttributeError(name=LATER, obj=object())))

    def test_a_context_is_of_a_class_that_can_be_found_again(self):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.of_a_later_torch

        with self.assertRaises(AttributeError) as raised:
            Square.apply(torch.ones(2, requires_grad=True))
        found = lacks.claim(raised.exception)
        self.assertEqual(lacks.part_of(found["of"]).__name__, "BackwardCFunction")

    def test_a_class_needs_a_torch_that_calls_its_setup_context(self):
        class Later(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

        older = not hasattr(torch.autograd.Function, "setup_context")
        self.assertEqual(lacks.is_lacking(**lacks.SETUP_CONTEXT, root=pathlib.Path()), older)
        if older:
            with self.assertRaises(TypeError) as raised:
                AutogradFunction(Later).apply(torch.ones(2))
            self.assertEqual(lacks.claim(raised.exception), lacks.SETUP_CONTEXT)

    def test_what_is_no_text_is_no_claim(self):
        raised = RuntimeError()
        for odd in (object(), 7, b"torch", "x" * 201, ""):
            self.assertIsNone(self.claim_of(AttributeError(name=odd, obj=torch)), odd)
            self.assertIsNone(self.claim_of(ImportError("cannot import name 'x'", name=odd)), odd)
            self.assertIsNone(self.claim_of(ModuleNotFoundError(name=odd)), odd)
            raised.lacks = {"kind": "dtype", "of": "addmm", "name": odd}
            self.assertIsNone(self.claim_of(raised), odd)
        raised.lacks = {"kind": object(), "of": "addmm", "name": "Half", "more": object()}
        self.assertIsNone(self.claim_of(raised))
        raised.lacks["kind"] = "dtype"
        self.assertEqual(json.loads(json.dumps(self.claim_of(raised))), {"kind": "dtype", "of": "addmm", "name": "Half"})


class Findings(Folder):
    def is_lacking(self, kind, of, name):
        return lacks.looked_at(self.folder / "mine.py", kind, of, name)["lacks"]

    def test_an_attribute_that_instances_have_is_not_lacking(self):
        for of, has in (("torch.nn.modules.linear.Linear", ("weight", "in_features", "training", "forward")),
                        ("torch.optim.sgd.SGD", ("param_groups", "state", "step")),
                        ("torch.nn.modules.batchnorm.BatchNorm1d", ("running_mean", "momentum")),
                        ("torch.nn.modules.rnn.LSTM", ("weight_ih_l0", "bias_hh_l3_reverse", "hidden_size")),
                        ("torch.nn.parallel.distributed.DistributedDataParallel", ("module", "device_ids")),
                        ("torch.utils.data.dataloader.DataLoader", ("dataset",)),
                        ("torch.optim.lr_scheduler.StepLR", ("base_lrs", "optimizer")),
                        ("torch.cuda.StreamContext", ("cur_stream", "stream")),
                        ("torch.Tensor", ("grad", "shape"))):
            for name in has:
                self.assertFalse(self.is_lacking("attribute", of, name), f"{of}.{name}")
            self.assertTrue(self.is_lacking("attribute", of, LATER), of)

    def test_what_is_no_name_or_no_part_of_torch_is_not_lacking(self):
        for of, name in (("torch", "nn.Linear"), ("torch", "None"), ("torch", "lambda"), ("torch", "0"), ("torch", "_later"), ("torch.sys", LATER),
                         ("torch.nn.functional.linear", LATER), ("torch.nothing", LATER), ("torch.float32", LATER), ("", LATER), ("numpy", LATER)):
            self.assertFalse(self.is_lacking("attribute", of, name), f"{of}.{name}")
            self.assertFalse(self.is_lacking("of_nobody", of, name))
        self.assertTrue(self.is_lacking("attribute", "torch", LATER))
        for name in ("x.y", "None", "0", "_later"):
            self.assertFalse(self.is_lacking("argument", "torch.ones", name), name)

    def test_an_argument_is_known_by_a_signature_a_text_or_a_stub(self):
        for of, name in (("torch.nn.functional.linear", "bias"), ("torch.ones", "dtype"), ("torch.ones", "pin_memory"), ("torch.Tensor.sum", "keepdim")):
            self.assertFalse(self.is_lacking("argument", of, name), f"{of}({name})")
            self.assertTrue(self.is_lacking("argument", of, LATER), of)

    def test_only_types_that_later_versions_have_added_are_lacking(self):
        for kernel, word in (("softmax_lastdim_kernel_impl", "Long"), ("addmm_impl_cpu_", "Bool"), ("GeluKernelImpl", "Int"), ("addmm_impl_cpu_", "load")):
            self.assertFalse(self.is_lacking("dtype", kernel, word), word)
        try:
            torch.ones(2, 2).half() @ torch.ones(2, 2).half()
        except RuntimeError as error:
            self.assertTrue(self.is_lacking(**lacks.claim(error)))

    def test_a_name_that_the_project_makes_is_its_own(self):
        self.write("model.py", """
            class Own(Module):
                def __init__(self):
                    self.by_assignment = 1
                    self.register_buffer("by_registering", x)
                    object.__setattr__(self, "by_object", x)
                    setattr(self, f"layer_{n}", x)
                    setattr(self, f"{n}", x)
                    self.__dict__["by_entry"] = x
                    getattr(self, "by_nobody")
        """)
        made = names.names_made_in(self.folder)
        for name in ("by_assignment", "by_registering", "by_object", "by_entry", "layer_3", "Own"):
            self.assertFalse(self.is_lacking("attribute", "torch.nn.modules.module.Module", name), name)
            self.assertIn(name, made)
        for name in ("by_nobody", "layers", LATER):
            self.assertTrue(self.is_lacking("attribute", "torch.nn.modules.module.Module", name), name)

    def test_a_newer_python_is_lacking_where_a_file_does_not_parse(self):
        self.write("pyproject.toml", '[project]\nname = "ada"\nversion = "1"\nrequires-python = ">=3.99"\n')
        self.write("mine.py", "x = 1\n")
        self.assertFalse(self.is_lacking("python", "", "syntax"))
        self.write("later.py", "def later[of a later Python]: pass\n")
        self.assertTrue(self.is_lacking("python", "", "syntax"))
        self.write("pyproject.toml", '[project]\nname = "ada"\nversion = "1"\nrequires-python = ">=3.5"\n')
        self.assertFalse(self.is_lacking("python", "", "syntax"))

    def test_a_module_is_lacking_where_nothing_of_that_name_is_found(self):
        for name in ("torch.nn", "json", "torch..x", "torch.", ".torch", "", "torch.nothing.of_later"):
            self.assertFalse(self.is_lacking("module", "", name), name)
        for name in ("a_package_of_nobody", "a_package_of_nobody.part", "torch." + LATER):
            self.assertTrue(self.is_lacking("module", "", name), name)


class Packages(Folder):
    """Of a folder that is on Python's path, as site-packages are."""

    def installed(self, name, text, requires="numpy"):
        self.write(f"site-packages/{name}.py", text)
        self.write(f"site-packages/{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n")
        self.write(f"site-packages/{name}-1.0.dist-info/RECORD", f"{name}.py,,\n")
        self.write(f"site-packages/{name}-1.0.dist-info/top_level.txt", f"{name}\n")

    def python(self, code, *arguments):
        path = f"{self.folder / 'site-packages'}:{SCRIPTS}"
        done = subprocess.run([sys.executable, *code, *arguments], env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def claimed(self, call):
        said = self.python(["-c", f"import json, syslab_lacks\ntry:\n    {call}\nexcept Exception as error:\n    print(json.dumps(syslab_lacks.claim(error)))\n"])
        return json.loads(said.splitlines()[-1])  # the package may print, too

    def is_lacking(self, claim):
        return json.loads(self.python([SCRIPTS / "syslab_lacks.py"], self.folder / "mine.py", json.dumps(claim)))["lacks"]

    def test_one_that_refuses_by_its_own_exception_does_not_work(self):
        self.installed("refuses", "class TooOld(RuntimeError): pass\nprint('not an answer')\nraise TooOld('expected torch >= 99')\n")
        claim = self.claimed("import refuses")
        self.assertEqual(claim, {"kind": "package", "of": "refuses.TooOld", "name": "refuses"})
        self.assertTrue(self.is_lacking(claim))
        self.assertFalse(self.is_lacking({**claim, "of": "builtins.RuntimeError"}), "another exception than here")
        self.write("refuses/__init__.py", "")
        self.assertFalse(self.is_lacking(claim), "the project has one of its own")

    def test_one_whose_own_needs_are_not_installed_does_not_work(self):
        self.installed("needs", "import a_package_of_nobody\n")
        claim = self.claimed("import needs")
        self.assertEqual(claim, {"kind": "package", "of": "builtins.ModuleNotFoundError", "name": "needs"})
        self.assertTrue(self.is_lacking(claim))

    def test_one_that_needs_a_newer_torch_does_not_work_when_it_is_called(self):
        for requires, works in (("torch>=99; extra == 'torch'", False), ("torch (>=99.1)", False), ("torch>=1", True), ("numpy>=99", True)):
            self.installed("called", "def call(): raise ValueError('no backend')\n", requires)
            claim = self.claimed("import called; called.call()")
            self.assertEqual(claim, {"kind": "package", "of": "builtins.ValueError", "name": "called"})
            self.assertEqual(self.is_lacking(claim), not works, requires)

    def test_what_is_raised_in_a_name_of_one_is_not_believed(self):
        self.installed("works", "")
        for name in ("works", "json", "this", "torch", "torch.nn", "syslab_lacks", "a_package_of_nobody", "works.part", ""):
            self.assertFalse(self.is_lacking({"kind": "package", "of": "builtins.ImportError", "name": name}), name)
        self.assertFalse(packages.does_not_work("this", "builtins.ImportError"))
        self.assertNotIn("this", sys.modules, "one of Python's own is not imported: some do something")


if __name__ == "__main__":
    unittest.main()
