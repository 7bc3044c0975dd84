"""What `meson install`, `tools/bundle` and `tools/release` leave must work where the checkout is not: from another folder, in an empty
environment, with nothing but what was installed.

Where this machine lets a user have mounts of her own (`unshare --mount`), the checkout and the build are hidden from the
programs that are tried. Everywhere, the programs must not contain the checkout's path.
"""
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from submitted import BOTH_FLASHES, make, rubric

SOURCE = pathlib.Path(os.environ["SYSLAB_SOURCE"])
BUILD = pathlib.Path(os.environ["SYSLAB_BUILD"])
MESON = os.environ["SYSLAB_MESON"]
SMALL = ("weighted_sum", "-a", "rows=50", "-a", "dim=20", "-a", "dtype=fp32", "-a", "pass=forward", "-a", "impl=tiled")
PLUGIN = SOURCE / "tests/fixtures/plugins/naive_attention.c"
HIDE = ("unshare", "--map-root-user", "--mount", "sh", "-ec",
        'mount -t tmpfs none "$1"; if [ -e "$2" ]; then mount -t tmpfs none "$2"; fi; shift 2; exec "$@"', "sh", SOURCE, BUILD)
CAN_HIDE = shutil.which("unshare") is not None and subprocess.run([*HIDE, "true"], capture_output=True).returncode == 0
# What is graded must not find the seed, the rubric or earlier results.
READS_AUTOGRADER = """import pathlib
for file in [*pathlib.Path("/autograder/source").rglob("*"), *pathlib.Path("/autograder/results").rglob("*")]:
    if file.is_file():
        try:
            file.read_bytes()
        except OSError:
            continue
        raise SystemExit(f"it could read {file}")
"""
# Gradescope's layout in a root folder of its own, where root has no rights outside.
CONTAINER = r"""
root=$(mktemp -d)
mount -t tmpfs none "$root"
for name in usr bin sbin lib lib64 etc dev proc opt; do
  if [ -L "/$name" ]; then cp -a "/$name" "$root/$name"
  elif [ -d "/$name" ]; then mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
done
mkdir -p "$root/tmp" "$root/root" "$root/environment" "$root/autograder/results"
cp -r "$1/source" "$1/submission" "$root/autograder/"
mount --bind "$1/results" "$root/autograder/results"
exec chroot "$root" /usr/bin/env -i PATH=/environment/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 /bin/sh -ec '
"$1" -m venv --system-site-packages /environment
chmod +x /autograder/source/setup.sh /autograder/source/run_autograder
cp /autograder/source/run_autograder /autograder/
cd /autograder && source/setup.sh && ./run_autograder' sh "$2"
"""


def run(*command, cwd, expect=0, **environment):
    """In an environment that holds only what is named."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={"NO_COLOR": "1", **environment}, text=True,
                          capture_output=True, timeout=300)
    if done.returncode != expect:
        raise AssertionError(f"{command}: exit {done.returncode}, wanted {expect}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def run_alone(*command, cwd, **environment):
    """With neither the checkout nor the build in sight, where that can be had."""
    if not CAN_HIDE:
        return run(*command, cwd=cwd, **environment)
    # unshare, mount and sh are found by PATH; the program itself sees the environment that is named.
    return run(*HIDE, "env", "-i", "NO_COLOR=1", *(f"{name}={value}" for name, value in environment.items()), *command,
               cwd=cwd, PATH=os.environ["PATH"])


class Elsewhere(unittest.TestCase):
    def setUp(self):
        # Not below the checkout, whose files must not be found by going up; a blank, because folders have them.
        self.cwd = pathlib.Path(tempfile.mkdtemp(prefix="syslab some where "))
        self.addCleanup(shutil.rmtree, self.cwd, ignore_errors=True)

    @classmethod
    def folder_of_class(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="syslab_elsewhere_"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def works(self, syslab):
        """Lists, measures, checks, asks and reports: SQL, templates, views and laws are there."""
        self.assertIn("flash_forward", run_alone(syslab, "list", cwd=self.cwd))
        for words in (["selftest_empty"], SMALL):
            run_alone(syslab, "run", *words, "--protocol", "quick", "--laws", "none", "--db", "a lab.db", cwd=self.cwd)
        run_alone(syslab, "check", "weighted_sum", "--impl", "tiled", "--cases", "3", "--db", "a lab.db", cwd=self.cwd)
        rows = json.loads(run_alone(syslab, "query", "--json", "SELECT DISTINCT experiment FROM v_latest ORDER BY 1", "--db",
                                    "a lab.db", cwd=self.cwd))
        self.assertIn("weighted_sum", json.dumps(rows))
        report = run_alone(syslab, "report", "weighted_sum", "--db", "a lab.db", cwd=self.cwd)
        self.assertIn("Weighted sum (worked example)", report)
        self.assertIn("tiled", report)
        for to in ("html", "tex"):
            run_alone(syslab, "report", "weighted_sum", "--db", "a lab.db", "--to", to, "-o", f"a report.{to}", cwd=self.cwd)
            self.assertIn("tiled", (self.cwd / f"a report.{to}").read_text(encoding="utf-8"))

    def has_documents(self, folder, *names):
        """The pages, and what was measured of the lab, to which they refer."""
        pages = [*(SOURCE / "docs").rglob("*.md"), *(SOURCE / "reports/ledger").glob("*.md")]
        for name in (*(page.relative_to(SOURCE) for page in pages), "SECURITY.md", *names):
            self.assertTrue((folder / name).is_file(), name)

    def has_all_scripts(self, folder):
        """Those of src/python; and the worker, which imports most of them, begins there."""
        self.assertEqual({file.name for file in folder.glob("syslab_*.py")}, {file.name for file in (SOURCE / "src/python").glob("*.py")})
        self.assertIn("--mine", run_alone(sys.executable, "-B", folder / "syslab_worker.py", "--help", cwd=self.cwd))

    def knows_no_checkout(self, *files):
        for file in files:
            self.assertNotIn(bytes(SOURCE) + b"/", file.read_bytes(), f"{file} names the checkout")


class Installed(Elsewhere):
    root: pathlib.Path
    prefix: pathlib.Path
    wanted_prefix: str

    @classmethod
    def setUpClass(cls):
        cls.root = cls.folder_of_class() / "root"
        run(MESON, "install", "-C", BUILD, "--no-rebuild", cwd=cls.root.parent, PATH=os.environ["PATH"],
            DESTDIR=str(cls.root))
        options = json.loads(run(MESON, "introspect", "--buildoptions", BUILD, cwd=cls.root.parent, PATH=os.environ["PATH"]))
        cls.wanted_prefix = next(option["value"] for option in options if option["name"] == "prefix")
        cls.prefix = cls.root / cls.wanted_prefix.lstrip("/")

    def pkg_config(self, *what, sysroot=True):
        folder = next(self.prefix.rglob("syslab.pc")).parent
        environment = {"PKG_CONFIG_SYSROOT_DIR": str(self.root)} if sysroot else {}
        return shlex.split(run("pkg-config", *what, "syslab", cwd=self.cwd, PATH=os.environ["PATH"],
                               PKG_CONFIG_PATH=str(folder), **environment))

    def test_everything_goes_below_destdir_and_prefix(self):
        self.assertTrue((self.prefix / "bin/syslab").is_file())
        strangers = [file for file in self.root.rglob("*") if not file.is_dir() and self.prefix not in file.parents]
        self.assertEqual(strangers, [])
        self.assertEqual(self.pkg_config("--variable=prefix", sysroot=False), [self.wanted_prefix])

    def test_the_program_works_without_the_checkout(self):
        self.works(self.prefix / "bin/syslab")

    def test_what_is_installed_knows_no_checkout(self):
        self.knows_no_checkout(*(file for file in self.root.rglob("*") if file.is_file()))

    def test_a_plugin_compiles_against_the_installed_header_and_is_loaded(self):
        # The checkout's example, with the header where a user finds it.
        (self.cwd / "mine.c").write_text(PLUGIN.read_text().replace('"capi/syslab.h"', "<syslab.h>"))
        run("cc", "-shared", "-fPIC", "-O2", *self.pkg_config("--cflags"), "-o", "mine.so", "mine.c", "-lm", cwd=self.cwd,
            PATH=os.environ["PATH"])
        run(self.prefix / "bin/syslab", "run", "flash_forward", "-a", "seq=1024", "-a", "head_dim=16", "-a", "heads=2", "-a",
            "causal=true", "--protocol", "quick", "--laws", "none", "--mine", "me=mine.so", "--impl", "me", "--db", "a.db",
            cwd=self.cwd)

    def test_a_program_links_to_the_installed_library(self):
        library = next(self.prefix.rglob("libsyslab.so")).parent
        for compiler, name in (("cc", "main.c"), ("c++", "main.cpp")):
            (self.cwd / name).write_text('#include <stdio.h>\n#include <syslab.h>\n'
                                         'int main(void) { printf("%d", (int)syslab_plugin_abi()); return 0; }\n')
            run(compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", name, "-o", "main", *self.pkg_config("--cflags", "--libs"),
                cwd=self.cwd, PATH=os.environ["PATH"])
            self.assertEqual(run_alone(self.cwd / "main", cwd=self.cwd, LD_LIBRARY_PATH=str(library)), "1")

    def test_the_documents_and_the_way_in_from_python_are_there(self):
        self.has_all_scripts(next((self.prefix / "share").rglob("syslab/python")))
        self.has_documents(self.prefix / "share/doc/syslab", "README.md")


class Bundled(Elsewhere):
    said: str
    archive: pathlib.Path
    lab: pathlib.Path

    @classmethod
    def setUpClass(cls):
        folder = cls.folder_of_class()
        cls.said = run(SOURCE / "tools/bundle", "--build", BUILD, "--output", folder / "made here/lab", cwd=folder,
                       PATH=os.environ["PATH"])
        cls.archive = folder / "made here/lab.tar.gz"
        unpacked = folder / "unpacked elsewhere"
        with tarfile.open(cls.archive) as archive:
            archive.extractall(unpacked)
        shutil.rmtree(folder / "made here/lab")
        cls.lab = unpacked / "lab"

    def test_it_works_in_an_empty_environment_from_another_folder(self):
        self.works(self.lab / "syslab")

    def test_what_fills_rows_of_many_gpus_finds_the_program_beside_it(self):
        lines = run_alone(sys.executable, self.lab / "gpu_rows", "--dry-run", "--only", "all_reduce,pytorch-steps-2", cwd=self.cwd)
        self.assertIn(shlex.quote(f"{self.lab}/syslab") + " run distributed_communication_single_node ", lines)
        self.assertIn(shlex.quote(f"{self.lab}/peers/data_parallel.py"), lines)

    def test_the_documents_and_the_way_in_from_python_are_there(self):
        self.has_all_scripts(self.lab / "python")
        self.has_documents(self.lab)

    def test_its_libraries_are_its_own(self):
        loader = "/lib64/ld-linux-x86-64.so.2" if os.uname().machine == "x86_64" else "/lib/ld-linux-aarch64.so.1"
        for file in (self.lab / "syslab", self.lab / "lib/libsyslab.so.0"):
            lines = run_alone(loader, "--list", file, cwd=self.cwd).splitlines()
            for name in ("libfmt", "libsqlite3", "libsodium", "libgomp"):
                for line in (line for line in lines if name in line):
                    self.assertIn(str(self.lab / "lib"), line)
        self.assertIn("libsqlite3", run_alone(loader, "--list", self.lab / "syslab", cwd=self.cwd))

    def test_it_knows_no_checkout(self):
        self.knows_no_checkout(*(file for file in self.lab.rglob("*") if file.is_file()))

    def test_it_is_small_and_takes_no_glibc_along(self):
        files = [file for file in self.lab.rglob("*") if file.is_file()]
        with_kernels = (self.lab / "tests").exists()  # a build with CUDA brings its tests of GPUs along
        # Other people's libraries are as large as the system has them (45 MB here, OpenBLAS 37 of them). Ours: 17.5 MB on
        # 2026-11-30, the program 13.9, the library 2.2, scripts 0.5, documents 0.8.
        others = {file for file in (self.lab / "lib").iterdir() if not file.name.startswith("libsyslab")}
        ours = [file for file in files if self.lab / "tests" not in file.parents and file not in others]
        self.assertLess(sum(file.stat().st_size for file in ours), 67e6 if with_kernels else 18e6)
        for file in files:
            self.assertNotRegex(file.name, r"^(libc|libm|libpthread|libstdc\+\+|ld-linux)[.-]")
        self.assertRegex((self.lab / "README.txt").read_text(), r"glibc 2\.\d+ or newer")

    def test_it_says_what_it_made_and_how_large(self):
        self.assertRegex(self.said, r"lab\.tar\.gz: +[0-9.]+ MB")

    def test_openblas_comes_from_the_bundle(self):
        if not (self.lab / "lib/libopenblas.so.0").exists():
            self.skipTest("built where there is no OpenBLAS")
        # `doctor` asks which library multiplies matrices; its exit code is about this machine.
        log = subprocess.run([str(self.lab / "syslab"), "doctor"], cwd=self.cwd, env={"LD_DEBUG": "files"}, text=True,
                             capture_output=True, timeout=120).stderr
        self.assertIn(f"calling init: {self.lab}/lib/libopenblas.so.0", log)

    def test_a_folder_that_is_no_bundle_is_left_alone(self):
        (self.cwd / "mine").mkdir()
        (self.cwd / "mine/README.txt").write_text("my thesis\n")
        run(SOURCE / "tools/bundle", "--build", BUILD, "--output", self.cwd / "mine", cwd=self.cwd, PATH=os.environ["PATH"],
            expect=2)
        self.assertEqual((self.cwd / "mine/README.txt").read_text(), "my thesis\n")


class Released(Elsewhere):
    folder: pathlib.Path
    said: str
    wheel: pathlib.Path
    python: pathlib.Path
    syslab: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.folder_of_class()
        if "libgloo" in subprocess.run(["ldd", BUILD / "syslab"], capture_output=True, text=True).stdout:
            run(SOURCE / "tools/release", "--build", BUILD, "--output", cls.folder / "made", cwd=cls.folder, PATH=os.environ["PATH"], expect=2)
            raise unittest.SkipTest("this build has Gloo, which no wheel can bring along: refused")
        cls.said = run(SOURCE / "tools/release", "--build", BUILD, "--output", cls.folder / "made", cwd=cls.folder,
                       PATH=os.environ["PATH"])
        (cls.wheel,) = (cls.folder / "made").glob("*.whl")
        venv = cls.folder / "venv"
        run(sys.executable, "-m", "venv", venv, cwd=cls.folder, PATH=os.environ["PATH"])
        cls.python = venv / "bin/python"
        run(cls.python, "-m", "pip", "install", "--no-index", "--quiet", cls.wheel, cwd=cls.folder)
        cls.syslab = venv / "bin/syslab"

    def test_it_works_from_the_environment_that_it_was_installed_into(self):
        self.works(self.syslab)
        self.assertEqual(run_alone(self.syslab, "--version", cwd=self.cwd),
                         run_alone(self.python, "-m", "syslab", "--version", cwd=self.cwd))

    def test_python_files_get_the_python_that_it_was_installed_into(self):
        (self.cwd / "mine.py").write_text("import a_module_that_nobody_has\n\n\nclass Flash:\n    pass\n")
        check = ("check", "flash_forward", "--mine", "me=mine.py:Flash", "--db", "a.db")
        for environment, named in (({}, self.python), ({"SYSLAB_PYTHON": sys.executable}, sys.executable)):
            done = subprocess.run([str(self.syslab), *check], cwd=self.cwd, env=environment, text=True, capture_output=True)
            self.assertIn("No module named 'a_module_that_nobody_has'", done.stderr)
            self.assertIn(f"'{named}' was asked", done.stderr)

    def test_the_way_in_from_python_finds_its_library(self):
        python = next((self.folder / "venv").rglob("lab/python"))
        self.has_all_scripts(python)
        found = run(self.python, "-c", "import importlib.util as of\nprint(of.find_spec('syslab_torch').origin)",
                    cwd=self.cwd)
        self.assertEqual(found.strip(), str(python / "syslab_torch.py"))
        self.assertTrue((python.parent / "lib/libsyslab.so.0").is_file())  # where syslab_torch looks

    def test_gradescope_s_zip_grades_a_submission_in_a_container_without_rights(self):
        if not CAN_HIDE:
            self.skipTest("no user namespaces here")
        with_torch = os.environ["SYSLAB_PYTHON"]
        if not with_torch.startswith(("/usr/", "/opt/", "/bin/")):
            self.skipTest(f"{with_torch} is not where the container sees it")
        if subprocess.run([with_torch, "-c", "import ensurepip, numpy, torch"], capture_output=True).returncode != 0:
            self.skipTest(f"{with_torch} has no torch, or makes no virtual environments")
        (self.cwd / "rubric.toml").write_text(rubric(BOTH_FLASHES))
        run(self.syslab, "grade", "--handout", "2026", "--gradescope", "autograder.zip", "--wheel", self.wheel, "--rubric",
            "rubric.toml", "--seed", "4711", "--cases", "3", cwd=self.cwd)
        home = self.cwd / "autograder"
        (home / "results").mkdir(parents=True)
        with zipfile.ZipFile(self.cwd / "autograder.zip") as archive:
            archive.extractall(home / "source")
        make(home / "submission", head=READS_AUTOGRADER)
        # What setup.sh installs goes into an environment of the container's own: /usr is the machine's.
        run("unshare", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-ec", CONTAINER, "sh", home, with_torch, cwd=self.cwd,
            PATH=os.environ["PATH"])
        results = json.loads((home / "results/results.json").read_text())
        self.assertEqual((results["score"], [(test["name"], test["score"], test["status"]) for test in results["tests"]]),
                         (6, [("flash_forward (a)", 6, "passed"), ("flash_forward (b)", 0, "failed")]), results)

    def test_uninstalling_leaves_nothing(self):
        other = self.cwd / "other"
        run(self.python, "-m", "pip", "install", "--no-index", "--quiet", "--target", other, self.wheel, cwd=self.cwd)
        recorded = {line.rsplit(",", 2)[0] for line in next(other.glob("*.dist-info/RECORD")).read_text().splitlines()}
        there = {str(file.relative_to(other)) for file in other.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
        self.assertEqual(there - recorded, {"bin/syslab"} & there)

    def test_nothing_in_it_asks_for_a_glibc_newer_than_its_tag_says(self):
        self.assertRegex(self.wheel.name, r"-py3-none-manylinux_2_28_")
        with tarfile.open(next((self.folder / "made").glob("*.tar.xz"))) as archive:
            archive.extractall(self.cwd)
        lab = next(self.cwd.glob("syslab-*"))
        files = [lab / "syslab", *(lab / "lib").iterdir()]
        for file in files:
            asked = run("objdump", "-T", file, cwd=self.cwd, PATH=os.environ["PATH"])
            newest = max(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", asked))
            self.assertLessEqual(newest, 28, file)
            self.assertNotIn("GLIBCXX", asked, file)
        # Symbols that moved into libc with 2.34 are found in older ones only where these are named.
        for file in files[:1] + [lab / "lib/libsyslab.so.0"]:
            named = run("readelf", "-d", file, cwd=self.cwd, PATH=os.environ["PATH"])
            for library in ("libpthread.so.0", "libdl.so.2"):
                self.assertIn(library, named, file)
        if (lab / "lib/libopenblas.so.0").exists():
            log = subprocess.run([lab / "syslab", "doctor"], cwd=self.cwd, env={"LD_DEBUG": "files"}, text=True, capture_output=True,
                                 timeout=120).stderr
            self.assertIn(f"calling init: {lab}/lib/libopenblas.so.0", log)
        self.assertIn("frobnicate", subprocess.run([lab / "syslab", "frobnicate"], cwd=self.cwd, env={}, text=True,
                                                   capture_output=True).stderr)  # exceptions find their way

    def test_checksums_and_sizes(self):
        run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=self.folder / "made", PATH=os.environ["PATH"])
        self.assertEqual(sorted(file.name for file in (self.folder / "made").iterdir()),
                         sorted(["SHA256SUMS", self.wheel.name, next((self.folder / "made").glob("*.tar.xz")).name]))
        if not any("tests/" in name for name in tarfile.open(next((self.folder / "made").glob("*.tar.xz"))).getnames()):
            for file in (self.folder / "made").iterdir():
                self.assertLess(file.stat().st_size, 15e6, file)  # without CUDA
        self.assertRegex(self.said, r"\.whl: [0-9.]+ MB")


if __name__ == "__main__":
    if {"Bundled", "Released"} & set(sys.argv[1:]) and not shutil.which("patchelf"):
        print("SKIP: tools/bundle needs patchelf")
        sys.exit(77)
    if "Released" in sys.argv[1:] and importlib.util.find_spec("ensurepip") is None:
        print("SKIP: this Python makes no virtual environments")
        sys.exit(77)
    unittest.main()
