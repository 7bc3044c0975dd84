"""What tools/ say before they build: options for this machine, and the cost of headers; and that they leave nothing behind."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUPS = ["-Dunity=on", "-Dunity_size=8", "-Djoined_tests=true"]
NVCC = {"nvcc": "true"}


class OptionsForThisMachine(unittest.TestCase):
    def options(self, programs):
        """What a first build gets where only these programs, {name: a line of shell}, and those of the system are found."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "sort"):
                os.symlink(f"/usr/bin/{name}", pathlib.Path(folder, name))
            for name, line in programs.items():
                pathlib.Path(folder, name).write_text(f"#!/usr/bin/bash\n{line}\n")
                pathlib.Path(folder, name).chmod(0o755)
            done = subprocess.run(["bash", "-c", "set -euo pipefail; source tools/packages.sh; options_for_this_machine"], cwd=ROOT,
                                  env={"PATH": folder}, text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        options = done.stdout.splitlines()
        self.assertEqual(options[:3], GROUPS)
        return options[3:], done.stderr

    def test_no_gpu_means_no_cuda_objects(self):
        self.assertEqual(self.options(NVCC), (["-Dcuda=disabled"], ""))
        for broken in ("echo No devices were found", "echo NVIDIA-SMI has failed; exit 9"):
            self.assertEqual(self.options({**NVCC, "nvidia-smi": broken}), (["-Dcuda=disabled"], ""), broken)

    def test_gpus_are_built_for_each_architecture_once(self):
        for found, wanted in ((r"9.0\n9.0", "90a"), ("8.0", "80"), (r"12.0\n8.6\n9.0\n8.6", "86,90a,120")):
            options, said = self.options({**NVCC, "nvidia-smi": f"printf '{found}\\n'"})
            self.assertEqual((options, said), (["-Dcuda=enabled", f"-Dgpu_archs={wanted}"], ""))

    def test_a_gpu_that_cannot_be_built_for_is_named(self):
        options, said = self.options({"nvidia-smi": "echo 9.0"})
        self.assertEqual(options, ["-Dcuda=disabled"])
        self.assertIn("no nvcc", said)
        options, said = self.options({**NVCC, "nvidia-smi": "echo 7.5"})
        self.assertEqual(options, ["-Dcuda=disabled"])
        self.assertIn("7.5: kernels need 8.0 or later", said)


class EndedScripts(unittest.TestCase):
    """tools/end_started.sh, by which .ci/run leaves nothing behind."""

    SCRIPT = """
        source tools/end_started.sh
        trap end_started EXIT
        waits() { bash -c 'echo $$ >>"$0"; exec sleep 600' "$pids"; }
        export -f waits
        (setsid --wait bash -c waits | cat) & # in a session of its own
        waits
        """

    def left(self, pids):
        """Those of which a process is left."""
        states = {pid: pathlib.Path(f"/proc/{pid}/stat") for pid in pids}
        return [pid for pid, file in states.items() if file.exists() and file.read_text().rsplit(")", 1)[1].split()[0] != "Z"]

    def test_what_they_started_ends_with_them_in_whatever_session(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                pids = pathlib.Path(folder, "pids")
                pids.touch()
                script = subprocess.Popen(["bash", "-c", self.SCRIPT], cwd=ROOT, env={**os.environ, "pids": str(pids)})
                while len(started := pids.read_text().split()) < 2:
                    self.assertIsNone(script.poll())
                    time.sleep(0.01)
                self.assertEqual(len(self.left(started)), 2)
                script.send_signal(number)
                self.assertEqual(script.wait(60), -number)
                left = self.left(started)
                for pid in left:
                    os.kill(int(pid), signal.SIGKILL)
                self.assertEqual(left, [])

    def test_one_that_goes_to_its_end_keeps_its_exit_code(self):
        ends = "source tools/end_started.sh; trap end_started EXIT; true; exit 7"
        self.assertEqual(subprocess.run(["bash", "-c", ends], cwd=ROOT, timeout=60).returncode, 7)


class CostOfHeaders(unittest.TestCase):
    def test_units_are_counted_through_other_headers(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {
                "src/core/low.hpp": "#include <vector>\n",
                "src/core/high.hpp": '#include "core/low.hpp"\n#include "core/high.hpp"\n',
                "src/core/a.cpp": '#include "core/high.hpp"\n// #include <regex>\n',
                "src/core/b.cpp": '  #  include "core/low.hpp"\n',
                "tests/core/a_test.cpp": '#include "core/high.hpp"\n#include <regex>\n',
            }.items():
                file = pathlib.Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            said = subprocess.run([sys.executable, ROOT / "tools/layering.py", "--cost", folder], text=True, capture_output=True,
                                  check=True).stdout
        rows = [line.split(maxsplit=2) for line in said.splitlines()[1:]]
        self.assertEqual(rows, [["3", "2", "(all units)"], ["3", "2", "<vector>"], ["3", "2", "src/core/low.hpp"],
                                ["2", "1", "src/core/high.hpp"], ["1", "0", "<regex>"]])


class Release(unittest.TestCase):
    def test_a_build_without_its_library_is_told_what_to_build(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder, "build")
            (build / "src/capi").mkdir(parents=True)
            (build / "syslab").write_text("#!/bin/sh\necho syslab 1.0\n")
            (build / "syslab").chmod(0o755)
            (build / "src/capi/libsyslab.so").symlink_to("libsyslab.so.0")  # as a build that was cut off leaves it
            done = subprocess.run([ROOT / "tools/release", "--build", build, "--output", f"{folder}/out"], text=True, capture_output=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"has the program and no libsyslab.so; build all of it first: ninja -C {build}", done.stderr)
            self.assertFalse(pathlib.Path(folder, "out").exists())


if __name__ == "__main__":
    unittest.main()
