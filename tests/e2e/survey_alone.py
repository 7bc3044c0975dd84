"""What a handed-in adapters.py is found to answer (src/python/syslab_submission.py), without syslab and without torch."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "src" / "python" / "syslab_submission.py"
GETTER, FUNCTION = "get_flash", "get_ddp"
STUBS = f"def {GETTER}():\n    raise NotImplementedError\n\n\ndef {FUNCTION}(module):\n    raise NotImplementedError\n"
MADE = f"class Flash:\n    pass\n\n\ndef {GETTER}():\n    return Flash\n\n\ndef {FUNCTION}(module):\n    return module\n"


class Survey(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("made.py", MADE)
        self.write("stubs.py", STUBS)

    def write(self, name: str, text: str) -> pathlib.Path:
        file = self.folder / name
        file.write_text(textwrap.dedent(text))
        return file

    def states(self, text: str) -> tuple[str, str]:
        file = self.write("adapters.py", text)
        done = subprocess.run([sys.executable, SCRIPT, file, "0", FUNCTION, "--", GETTER], stdout=subprocess.PIPE, check=True)
        functions = json.loads(done.stdout)["functions"]
        return functions[GETTER]["state"], functions[FUNCTION]["state"]

    def test_a_function_is_there_however_its_name_is_bound(self) -> None:
        inner = textwrap.indent(MADE, "    ")
        for form, text in {
            "defined": MADE,
            "imported": f"from made import {GETTER}, {FUNCTION}\n",
            "imported_all": "from made import *\n",
            "renamed": f"from made import {GETTER} as one, {FUNCTION} as two\n{GETTER} = one\n{FUNCTION} = two\n",
            "conditional": f"if True:\n{inner}",
            "tried": f"try:\n{inner}\nexcept ImportError:\n    pass\n",
            "with": f"import contextlib\nwith contextlib.suppress(ImportError):\n{inner}",
            "loop": f"for _ in range(1):\n{inner}",
            "other_branch": f"if not __name__:\n{textwrap.indent(STUBS, '    ')}\nelse:\n{inner}",
            "later": f"{STUBS}\nimport made\n{GETTER} = lambda: made.Flash\n{FUNCTION} = lambda module: module\n",
            "later_import": f"{STUBS}\nfrom made import {GETTER}, {FUNCTION}\n",
            "walrus": f"import made\n({GETTER} := made.{GETTER}, {FUNCTION} := made.{FUNCTION})\n",
            "unpacked": f"import made\n{GETTER}, {FUNCTION} = made.{GETTER}, made.{FUNCTION}\n",
            "global": f"import made\n\ndef bind():\n    global {GETTER}, {FUNCTION}\n    {GETTER} = made.{GETTER}\n"
                      f"    {FUNCTION} = made.{FUNCTION}\n\nbind()\n",
            "globals": "import made\nglobals().update(vars(made))\n",
            "exec": "exec(open(__file__.replace('adapters', 'made')).read())\n",
            "setattr": f"import made, sys\nfor name in ('{GETTER}', '{FUNCTION}'):\n    setattr(sys.modules[__name__], name, getattr(made, name))\n",
            "on_demand": "import made\n\ndef __getattr__(name):\n    return getattr(made, name)\n",
            "decorated": "import made\n\ndef right(stub):\n    return getattr(made, stub.__name__)\n\n" + STUBS.replace("def", "@right\ndef"),
            "class": f"class {GETTER}:\n    def __new__(cls):\n        return cls\n\nclass {FUNCTION}:\n    pass\n",
            "partial": f"import functools, made\n{GETTER} = functools.partial(made.{GETTER})\n{FUNCTION} = functools.partial(made.{FUNCTION})\n",
            "wrapped": f"import functools, made, stubs\n\n{GETTER} = made.{GETTER}\n\n@functools.wraps(stubs.{FUNCTION})\ndef {FUNCTION}(module):\n    return module\n",
        }.items():
            with self.subTest(form):
                self.assertEqual(self.states(text), ("implemented", "implemented"))

    def test_a_stub_is_one_wherever_it_is_defined(self) -> None:
        for form, text in {
            "defined": STUBS,
            "described": STUBS.replace("    raise", "    '''Later.'''\n    import made\n    raise"),
            "imported": f"from stubs import {GETTER}, {FUNCTION}\n",
            "conditional": f"if True:\n{textwrap.indent(STUBS, '    ')}",
            "replaced": f"{MADE}\n{STUBS}",
        }.items():
            with self.subTest(form):
                self.assertEqual(self.states(text), ("not_implemented", "not_implemented"))

    def test_what_nothing_binds_is_absent(self) -> None:
        for form, text in {
            "empty": "",
            "inside": f"class Own:\n{textwrap.indent(MADE, '    ')}",
            "deleted": f"{MADE}\ndel {GETTER}, {FUNCTION}\n",
            "no_function": f"{GETTER} = None\n{FUNCTION} = 7\n",
            "mentioned": f"__all__ = ['{GETTER}']\n",
        }.items():
            with self.subTest(form):
                self.assertEqual(self.states(text), ("absent", "absent"))

    def test_where_the_import_fails_the_text_decides_what_it_can(self) -> None:
        head = "import a_package_of_nobody\n"
        for text, expected in ((MADE, ("fails", "fails")), (STUBS, ("not_implemented", "not_implemented")), ("", ("absent", "absent")),
                               (f"{GETTER} = lambda: int\n", ("fails", "absent")), ("from made import *\n", ("fails", "fails")),
                               (f"{STUBS}\n{FUNCTION} = len\n", ("not_implemented", "fails"))):
            with self.subTest(text):
                self.assertEqual(self.states(head + text), expected)

    def test_what_a_function_imports_is_found_out_before_it_is_called(self) -> None:
        text = MADE.replace("    return module", "    import a_package_of_nobody\n    return module")
        self.write("missing.py", text)
        self.assertEqual(self.states(text), ("implemented", "fails"))
        self.assertEqual(self.states("from missing import *\n"), ("implemented", "fails"))

    def test_an_import_that_a_call_does_not_reach_or_makes_findable_is_left_to_the_call(self) -> None:
        (self.folder / "elsewhere").mkdir()
        self.write("elsewhere/found.py", MADE)
        late = "    import a_package_of_nobody\n"
        for form, text in {
            "after a return": MADE.replace("    return Flash", "    if True:\n        return Flash\n" + late)
                                  .replace("    return module", "    if True:\n        return module\n" + late),
            "after a path": f"import sys\n\ndef {GETTER}():\n    sys.path.insert(0, {str(self.folder / 'elsewhere')!r})\n"
                            f"    import found\n    return found.Flash\n\ndef {FUNCTION}(module):\n    return module\n",
        }.items():
            with self.subTest(form):
                self.assertEqual(self.states(text), ("implemented", "implemented"))
        self.assertEqual(self.states(MADE.replace("    return Flash", "    size = 1\n" + late + "    return Flash")),
                         ("fails", "implemented"))


if __name__ == "__main__":
    unittest.main()
