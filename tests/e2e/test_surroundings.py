"""What a submission does not lose points for: its own package is not installed, or this Python lacks what it was written for."""
import os
import unittest

from lab import Lab
from submitted import PYTORCH, make

NEEDS_ITSELF = "import importlib.metadata\nVERSION = importlib.metadata.version('Ada_Systems')\nassert VERSION == '1.2', VERSION\n"


class Surroundings(Lab):
    more: dict = {}

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], **self.more}

    def check(self, what, *arguments):
        """The functions of the submission, by name."""
        lines = self.lines("check", *arguments, "--mine", what, "--cases", "5", expect=None)
        return {row["function"]: row for row in lines[-1]["adapters"]}

    def test_a_submission_counts_as_installed_for_itself(self):
        make(self.folder / "ada", head=NEEDS_ITSELF)
        (self.folder / "ada/pyproject.toml").write_text('[project]\nname = "ada-systems"\nversion = "1.2"\n')
        row = self.check("ada", "flash_forward", "--contract", "handout")[PYTORCH]
        self.assertEqual((row["state"], row["why"]), ("implemented", ""))
        self.assertEqual({law["outcome"] for law in row["laws"]}, {"passed"})

    def test_a_file_of_a_project_counts_its_package_as_installed(self):
        make(self.folder / "ada")
        flash = self.folder / "ada/cs336_systems/flash.py"
        flash.write_text(NEEDS_ITSELF + flash.read_text())
        (self.folder / "ada/pyproject.toml").write_text('[project]\nname = "ada-systems"\nversion = "1.2"\n')
        verdict = self.lines("check", "flash_forward", "--contract", "handout", "--mine", f"me={flash}:IgnoresCausal", "--cases", "5")[-1]
        self.assertEqual(verdict["verdict"], "PASS")

    def install(self, package, text, requires):
        """In the folder that is on Python's path from now on."""
        site = self.folder / "site-packages"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / f"{package}.py").write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: {requires}\n")
        self.more = {"PYTHONPATH": str(site)}

    def test_an_installed_package_that_refuses_this_torch_leaves_it_open(self):
        for name, text, requires, is_open in (("imported", "raise RuntimeError('einx requires torch >= 99')\n", "numpy", True),
                                              ("called", "def call():\n    raise ValueError('no backend')\n", "torch>=99; extra == 'torch'", True),
                                              ("works", "def call():\n    raise ValueError('requires torch >= 99')\n", "torch>=1", False)):
            with self.subTest(name):
                self.install("einx", text, requires)
                make(self.folder / name, head="import einx\neinx.call()\n")
                row = self.check(name, "flash_forward", "--contract", "handout")[PYTORCH]
                self.assertEqual((row["state"], row["open"]), ("fails", is_open), row)
                if is_open:
                    self.assertEqual((row["lacks"]["kind"], row["lacks"]["name"]), ("package", "einx"))


if __name__ == "__main__":
    unittest.main()
