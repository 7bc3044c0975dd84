"""A missing TMPDIR, a full disk, and commands that cannot be started again: one line with what to do, and nothing half written."""
import shutil
import signal
import subprocess
import unittest

from lab import Lab, SYSLAB

ONE_LINE = r"\Aerror: [^\n]*\n\Z"
PROGRAM = "#!/bin/sh\nsleep 0.02\necho $1\n"


class NoTemporaryFolder(Lab):
    def environment(self):
        return {**super().environment(), "TMPDIR": str(self.place)}

    def test_verbs_that_run_cases_say_what_to_do_before_they_begin(self):
        file = self.folder / "file"
        file.touch()
        for self.place in (self.folder / "missing", file):
            for command in (("run", "train_lm", "--preset", "smoke", "--impl", "host_eager", "--device", "cpu"),
                            ("run", "ddp_small_tensors", "--preset", "smoke", "--device", "cpu"), ("check", "flash_forward"),
                            ("compare", "selftest_compare", "A:slowdown=0", "B:slowdown=9")):
                with self.subTest(command, place=self.place.name):
                    said = self.syslab(*command, expect=2)
                    self.assertRegex(said.stderr, ONE_LINE)
                    self.assertIn("set TMPDIR", said.stderr)
                    self.assertIn(str(self.place), said.stderr)
                    self.assertEqual(said.stdout, "")
                    self.assertFalse(self.db.exists())


def may_mount():
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(may_mount(), "no user namespace in which a small disk could be mounted")
class FullDisk(Lab):
    """A disk of 400 KiB, of which `taken` are full: a namespace of its own for each command."""

    def on_full_disk(self, taken, *words, before="true", read_only=False):
        """What it ended with, and what is on the disk then, by size."""
        disk = self.folder / "disk"
        disk.mkdir(exist_ok=True)
        script = (f"mount -t tmpfs -o size=400k none '{disk}' && {{ {before}; }} >/dev/null 2>&1\n"
                  f"head -c {taken}k /dev/zero > '{disk}/taken' 2>/dev/null\n"
                  f"{'mount -o remount,ro' if read_only else ':'} '{disk}'\n"
                  '"$@"; code=$?\n' f"find '{disk}' -type f -printf '%P %s\\n' | sort >&2; exit $code")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", SYSLAB, *words], cwd=self.folder, text=True,
                              env=self.environment(), capture_output=True, timeout=300, check=False)
        told = done.stderr.splitlines(keepends=True)
        errors = [line for line in told if line.startswith("error: ")]
        files = dict(line.rsplit(" ", 1) for line in map(str.strip, told) if line.rsplit(" ", 1)[-1].isdigit())
        files.pop("taken", None)
        return done.returncode, errors, {name: int(size) for name, size in files.items()}

    def test_a_new_database_says_that_the_disk_is_full_and_holds_nothing_half_written(self):
        for taken in (400, 300):
            code, errors, files = self.on_full_disk(taken, "run", "selftest_empty", "--db", "disk/lab.db")
            self.assertEqual((code, files.get("lab.db", 0)), (4, 0), errors)  # an empty file counts as none
            self.assertRegex("".join(errors), r"\Aerror: .*disk/lab\.db.*free space[^\n]*\n\Z")

    def test_one_that_is_there_says_that_the_disk_is_full(self):
        code, errors, _ = self.on_full_disk(400, "run", "selftest_empty", "--db", "disk/lab.db",
                                            before=f"'{SYSLAB}' run selftest_empty --db disk/lab.db")
        self.assertEqual(code, 4)
        self.assertRegex("".join(errors), r"\Aerror: .*the disk is full[^\n]*free space[^\n]*\n\Z")

    def test_a_report_and_a_checkpoint_leave_nothing(self):
        self.syslab("run", "selftest_empty")
        code, errors, files = self.on_full_disk(400, "report", "selftest_empty", "-o", "disk/page.html")
        self.assertEqual((code, files), (4, {}))
        self.assertRegex("".join(errors), r"\Aerror: .*disk/page\.html.*free space[^\n]*\n\Z")
        code, _, files = self.on_full_disk(300, "run", "train_lm", "--preset", "smoke", "--impl", "host_eager", "--device", "cpu",
                                           "-a", "checkpoint=disk/weights.safetensors")
        self.assertEqual((code, files), (3, {}))

    def test_a_full_temporary_folder_leaves_nothing(self):
        environment = self.environment
        self.environment = lambda: {**environment(), "TMPDIR": str(self.folder / "disk")}
        code, errors, files = self.on_full_disk(400, "run", "train_lm", "--preset", "smoke", "--impl", "host_eager", "--device", "cpu")
        self.assertEqual((code, files), (4, {}))
        self.assertRegex("".join(errors), r"\Aerror: .*set TMPDIR[^\n]*\n\Z")

    def test_a_disk_is_no_mistake_of_the_command_and_a_wrong_path_is(self):
        self.syslab("run", "selftest_empty")
        query = ("query", "SELECT 1", "-o")
        for words in (("report", "selftest_empty", "-o", "disk/page.md"), (*query, "disk/rows.csv")):
            for read_only, told in ((False, "No space left on device"), (True, "Read-only file system")):
                code, errors, files = self.on_full_disk(400, *words, read_only=read_only)
                self.assertEqual((code, files), (4, {}), errors)
                self.assertIn(told, "".join(errors))
        for path, told in (("none/rows.csv", "there is no folder"), ("disk", "it is a folder")):
            code, errors, _ = self.on_full_disk(0, *query, path, "--to", "csv")
            self.assertEqual(code, 2, errors)
            self.assertIn(told, "".join(errors))

    def test_a_read_only_temporary_folder_is_no_mistake_of_the_command(self):
        environment = self.environment
        self.environment = lambda: {**environment(), "TMPDIR": str(self.folder / "disk")}
        code, errors, _ = self.on_full_disk(0, "run", "selftest_empty", read_only=True)
        self.assertEqual(code, 4, errors)
        self.assertIn("Read-only file system", "".join(errors))


class ResumedCommand(Lab):
    def environment(self):  # what tests beside this one leave when they kill a lab is removed, and told, by whoever comes next
        return {**super().environment(), "TMPDIR": str(self.folder / "temporary")}

    def setUp(self):
        super().setUp()
        (self.folder / "temporary").mkdir()
        self.program = self.folder / "bench.sh"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(0o755)
        running = subprocess.Popen(self.command("run", "--command", "old=./bench.sh {n}", "-a", "n=1:8", "--json"), cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in running.stdout:
            if '"attempt"' in line:
                running.send_signal(signal.SIGINT)
                break
        running.stdout.read()
        running.wait()
        running.stdout.close()

    def refused(self, *words):
        said = self.syslab("resume", *words, expect=2)
        self.assertRegex(said.stderr, ONE_LINE)
        return said.stderr

    def test_one_that_cannot_be_started_again_asks_for_a_new_run(self):
        self.assertIn("start a new run", self.refused("--mine", "old=./bench.sh"))
        self.program.write_text(PROGRAM.replace("0.02", "0.03"), encoding="utf-8")
        said = self.refused()
        self.assertIn("has changed", said)
        self.assertNotIn("--mine", said)
        self.program.unlink()
        said = self.refused()
        self.assertIn("start a new run: `syslab run --command", said)
        self.assertNotIn("--mine", said)

    def test_one_of_somebody_else_is_not_started_and_no_file_could_replace_it(self):
        state = self.folder / "state"
        shutil.rmtree(state)
        said = self.refused()
        self.assertIn("nothing proves", said)
        self.assertIn("start a new run: `syslab run --command", said)
        self.assertNotIn("--mine", said)


if __name__ == "__main__":
    unittest.main()
