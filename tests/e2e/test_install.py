"""What `meson install` and `tools/bundle` leave must work where the checkout is not: from another folder, in an empty
environment, with nothing but what was installed."""
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["SYSLAB_SOURCE"])
BUILD = pathlib.Path(os.environ["SYSLAB_BUILD"])
SMALL = ("weighted_sum", "-a", "rows=50", "-a", "dim=20", "-a", "dtype=fp32", "-a", "pass=forward", "-a", "impl=tiled")
PLUGIN = SOURCE / "tests/fixtures/plugins/naive_attention.c"


def run(*command, cwd, expect=0, **environment):
    """In an environment that holds only what is named."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={"NO_COLOR": "1", **environment}, text=True,
                          capture_output=True, timeout=300)
    if done.returncode != expect:
        raise AssertionError(f"{command}: exit {done.returncode}, wanted {expect}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Elsewhere(unittest.TestCase):
    def setUp(self):
        # Not below the checkout, whose files must not be found by going up.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syslab_elsewhere_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cwd = self.folder / "somewhere"
        self.cwd.mkdir()

    def works(self, syslab):
        """Lists, measures and reports: SQL, templates and views are there."""
        self.assertIn("flash_forward", run(syslab, "list", cwd=self.cwd))
        run(syslab, "run", *SMALL, "--protocol", "quick", "--laws", "none", "--db", "a.db", cwd=self.cwd)
        report = run(syslab, "report", "weighted_sum", "--db", "a.db", cwd=self.cwd)
        self.assertIn("Weighted sum over the last dimension", report)
        self.assertIn("tiled", report)


class Installed(Elsewhere):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        run(os.environ["SYSLAB_MESON"], "install", "-C", BUILD, "--no-rebuild", "--destdir", self.root, cwd=self.cwd,
            PATH=os.environ["PATH"])
        found = list(self.root.rglob("bin/syslab"))
        self.assertEqual(len(found), 1, "one syslab is installed")
        self.prefix = found[0].parents[1]

    def pkg_config(self, what):
        folder = next(self.prefix.rglob("syslab.pc")).parent
        return run("pkg-config", what, "syslab", cwd=self.cwd, PATH=os.environ["PATH"], PKG_CONFIG_PATH=str(folder),
                   PKG_CONFIG_SYSROOT_DIR=str(self.root)).split()

    def test_the_program_works_from_another_folder(self):
        self.works(self.prefix / "bin/syslab")

    def test_a_plugin_compiles_against_the_installed_header_and_is_loaded(self):
        # The checkout's example, with the header where a user finds it.
        (self.cwd / "mine.c").write_text(PLUGIN.read_text().replace('"capi/syslab.h"', "<syslab.h>"))
        run("cc", "-shared", "-fPIC", "-O2", *self.pkg_config("--cflags"), "-o", "mine.so", "mine.c", "-lm", cwd=self.cwd,
            PATH=os.environ["PATH"])
        run(self.prefix / "bin/syslab", "run", "flash_forward", "-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a",
            "causal=true", "--protocol", "quick", "--laws", "none", "--mine", "me=mine.so", "--impl", "me", "--db", "a.db",
            cwd=self.cwd)

    def test_a_program_links_to_the_installed_library(self):
        (self.cwd / "main.c").write_text('#include <stdio.h>\n#include <syslab.h>\n'
                                         'int main(void) { printf("%d", (int)syslab_plugin_abi()); return 0; }\n')
        run("cc", "main.c", "-o", "main", *self.pkg_config("--cflags"), *self.pkg_config("--libs"), cwd=self.cwd,
            PATH=os.environ["PATH"])
        library = next(self.prefix.rglob("libsyslab.so")).parent
        self.assertEqual(run(self.cwd / "main", cwd=self.cwd, LD_LIBRARY_PATH=str(library)), "1")

    def test_the_documents_and_the_way_in_from_python_are_there(self):
        for name in ("README.md", "syslab_torch.py", "syslab_worker.py", "check-your-own-kernel.md", "troubleshooting.md"):
            self.assertEqual(len(list((self.prefix / "share").rglob(name))), 1, name)


@unittest.skipUnless(shutil.which("patchelf"), "patchelf is not installed")
class Bundled(Elsewhere):
    def setUp(self):
        super().setUp()
        run(SOURCE / "tools/bundle", "--build", BUILD, "--output", self.folder / "made/lab", cwd=self.cwd,
            PATH=os.environ["PATH"])
        self.archive = self.folder / "made/lab.tar.gz"
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.cwd)
        shutil.rmtree(self.folder / "made/lab")
        self.lab = self.cwd / "lab"

    def test_it_works_in_an_empty_environment_from_another_folder(self):
        self.works(self.lab / "syslab")
        loaded = run("/lib64/ld-linux-x86-64.so.2", "--list", self.lab / "syslab", cwd=self.cwd)
        for name in ("libfmt", "libsqlite3", "libgomp"):
            line = next(line for line in loaded.splitlines() if name in line)
            self.assertIn(str(self.lab / "lib"), line)

    def test_it_is_small_and_takes_no_glibc_along(self):
        files = [file for file in self.lab.rglob("*") if file.is_file()]
        self.assertLess(sum(file.stat().st_size for file in files), 60e6)
        for file in files:
            self.assertNotRegex(file.name, r"^(libc|libm|libpthread|libstdc\+\+|ld-linux)[.-]")
        self.assertRegex((self.lab / "README.txt").read_text(), r"glibc 2\.\d+ or newer")

    def test_openblas_comes_from_the_bundle(self):
        if not (self.lab / "lib/libopenblas.so.0").exists():
            self.skipTest("built where there is no OpenBLAS")
        # `doctor` asks which library multiplies matrices; its exit code is about this machine.
        log = subprocess.run([str(self.lab / "syslab"), "doctor"], cwd=self.cwd, env={"LD_DEBUG": "files"}, text=True,
                             capture_output=True, timeout=120).stderr
        self.assertIn(f"calling init: {self.lab}/lib/libopenblas.so.0", log)


if __name__ == "__main__":
    unittest.main()
