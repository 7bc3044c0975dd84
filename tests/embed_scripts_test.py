#!/usr/bin/env python3
"""Which scripts of src/python travel inside the program, and with what: all that lie there, each with what it
imports, and nothing that is listed nowhere.

    embed_scripts_test.py ROOT FILE...      the files that src/python/meson.build lists
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, LISTED = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
del sys.argv[1:]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import embed_scripts  # noqa: E402


def parts(scripts):
    """Name → it and what travels with it, in order."""
    names = [name for name, _, _ in scripts]
    return {name: [names[one] for one in needed] for name, _, needed in scripts}


class Scripts(unittest.TestCase):
    def of(self, **texts):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, f"syslab_{name}.py") for name in texts]
            for file, text in zip(files, texts.values()):
                file.write_text(text)
            return parts(embed_scripts.scripts_of(files))

    def test_each_stands_behind_what_it_imports_at_its_top(self):
        found = self.of(a="from syslab_c import x\n", b="import os\n", c="import syslab_b\n")
        self.assertEqual(found["syslab_a"], ["syslab_b", "syslab_c", "syslab_a"])
        self.assertEqual(found["syslab_b"], ["syslab_b"])

    def test_what_is_imported_in_a_function_travels_too_and_may_import_back(self):
        found = self.of(a="import syslab_b\n", b="def f():\n    from syslab_c import x\n", c="import syslab_b\n")
        self.assertEqual(found["syslab_a"], ["syslab_b", "syslab_a", "syslab_c"])

    def test_what_is_imported_for_type_hints_alone_does_not_travel(self):
        found = self.of(a="if TYPE_CHECKING:\n    from syslab_b import B\nelse:\n    import syslab_c\n",
                        b="from syslab_a import x\n", c="")
        self.assertEqual(found["syslab_a"], ["syslab_a", "syslab_c"])

    def test_an_import_of_what_is_not_listed_is_refused(self):
        with self.assertRaisesRegex(SystemExit,
                                    "syslab_a.py imports syslab_b, which src/python/meson.build does not list"):
            self.of(a="def f():\n    import syslab_b\n")

    def test_scripts_that_import_each_other_at_their_tops_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "imports itself: syslab_a → syslab_b → syslab_a"):
            self.of(a="import syslab_b\n", b="import syslab_a\n")

    def test_all_of_the_folder_are_listed(self):
        self.assertEqual({file.name for file in LISTED}, {file.name for file in (ROOT / "src/python").glob("*.py")})

    def test_ranks_of_a_class_do_without_the_library_and_those_of_the_lab_have_it(self):
        found = parts(embed_scripts.scripts_of(LISTED))
        self.assertNotIn("syslab_torch", found["syslab_ranks"])
        self.assertIn("syslab_torch", found["syslab_yardsticks"])

    def test_what_serves_a_class_is_all_there_before_the_users_file_changes_where_modules_are_looked_for(self):
        needed = parts(embed_scripts.scripts_of(LISTED))["syslab_implementation"]
        program = "import sys; sys.path.insert(0, sys.argv[1]); import syslab_implementation; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-Bc", program, ROOT / "src/python"], capture_output=True,
                              text=True, check=True)
        self.assertEqual(set(needed) - set(done.stdout.split()), set())


if __name__ == "__main__":
    unittest.main()
