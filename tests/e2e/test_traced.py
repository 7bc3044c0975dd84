"""What the kernel was asked for: no write outside the paths that were given, no connection that nobody asked for.

With a connect(2) to port 9 put into main() both tests that look for connections were seen to fail."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from lab import Lab

CHANGES = "creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,truncate,link,linkat,symlink,symlinkat,mknod,mknodat"
CALLS = f"openat,open,{CHANGES},socket,connect,bind,listen,sendto"
FOR_WRITING = re.compile("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
# Devices that keep nothing, and what a process says to the kernel of itself.
KEEPS_NOTHING = re.compile(r"/dev/(null|zero|tty|pts/.*|nvidia.*)$|/proc/self/")


@unittest.skipIf(shutil.which("strace") is None, "needs strace")
class Traced(Lab):
    def setUp(self):
        super().setUp()
        if subprocess.run(["strace", "-o", os.devnull, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("strace may not trace here")
        (self.folder / "temporary").mkdir()

    def environment(self):
        return {**super().environment(), "TMPDIR": str(self.folder / "temporary")}

    def traced(self, *arguments):
        """(call, its arguments) of every call of all processes that succeeded."""
        log = self.folder / "calls.log"
        done = subprocess.run(["strace", "-f", "-y", "-qq", "-o", log, "-e", f"trace={CALLS}", *self.command(*arguments)],
                              cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = re.findall(r"^\d+ +(\w+)\((.*)\) += \d", log.read_text(errors="replace"), re.MULTILINE)
        self.assertIn("openat", {name for name, _ in calls})
        return calls

    def outside(self, calls):
        """Paths that were changed or opened for writing and are not below this test's folder."""
        found = set()
        for name, arguments in calls:
            if name in ("socket", "connect", "bind", "listen", "sendto"):
                continue
            if name in ("open", "openat") and not FOR_WRITING.search(arguments):
                continue
            at = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", arguments)
            for path in re.findall(r'"([^"]*)"', arguments):
                whole = os.path.normpath(pathlib.Path(at[1] if at else self.folder, path))
                if not pathlib.Path(whole).is_relative_to(self.folder) and not KEEPS_NOTHING.match(whole):
                    found.add(f"{name} {whole}")
        return found

    def test_cases_and_ranks_write_below_what_was_given_and_connect_nowhere(self):
        calls = self.traced("run", "selftest_empty", "selftest_ranks", "-a", "world_size=2")
        self.assertEqual(self.outside(calls), set())
        self.assertTrue([each for each in calls if "lab.db" in each[1]])
        # A message without an address goes to the keeper, over a pair of sockets that were made for it.
        self.assertEqual([each for each in calls if each[0] in ("connect", "bind", "listen")
                          or each[0] == "sendto" and ", NULL, 0" not in each[1]], [])

    def test_a_report_writes_where_it_was_told(self):
        self.syslab("run", "selftest_empty")
        calls = self.traced("report", "selftest_empty", "-o", self.folder / "report.md")
        self.assertEqual(self.outside(calls), set())
        self.assertTrue([each for each in calls if "report.md" in each[1]])
        self.assertEqual([each for each in calls if each[0] in ("connect", "bind", "listen", "sendto")], [])

    def test_what_is_outside_is_seen(self):
        # Temporary folders go where TMPDIR says: looked at from another folder they are outside.
        calls = self.traced("run", "selftest_ranks", "-a", "world_size=2")
        self.folder = self.folder / "elsewhere"
        self.assertTrue([each for each in self.outside(calls) if "syslab-held" in each])


if __name__ == "__main__":
    unittest.main()
