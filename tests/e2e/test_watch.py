"""`check --watch`: a student edits, saves, and sees the verdict again."""
import os
import pathlib
import queue
import signal
import subprocess
import threading
import unittest

from lab import Lab

PLAIN = (pathlib.Path(os.environ["SYSLAB_MINE"]) / "plain.py").read_text()
LIMIT = 120  # seconds, of a busy machine


class Watch(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def save(self, text, as_before=False):
        mine, draft = self.folder / "mine.py", self.folder / "mine.py.draft"
        draft.write_text(text)
        if as_before:
            there = mine.stat()
            self.assertEqual(draft.stat().st_size, there.st_size)
            os.utime(draft, ns=(there.st_atime_ns, there.st_mtime_ns))
        draft.rename(mine)

    def start(self, *arguments):
        self.process = subprocess.Popen(
            self.command("check", "flash_forward", "--mine", "me=mine.py:Naive", "--impl", "me", "--cases", "3", "-k", "equals_oracle",
                         "--watch", *arguments),
            cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()

    def until_it_waits(self):
        said = ""
        while "Ctrl-C ends" not in said:
            said += self.lines.get(timeout=LIMIT)
        return said

    def test_each_save_is_checked_and_ctrl_c_ends_with_the_last_verdict(self):
        self.save(PLAIN)
        self.start()
        self.assertIn("hand-out 2026: PASS", self.until_it_waits())
        self.save(PLAIN.replace("/ np.sqrt(q.shape[-1])", ""))  # the scale is forgotten
        self.assertIn("hand-out 2026: FAIL", self.until_it_waits())
        self.save("def half an edit\n")
        self.assertIn("SyntaxError", self.until_it_waits())
        self.save(PLAIN)
        said = self.until_it_waits()
        self.assertIn("hand-out 2026: PASS", said)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(LIMIT), 0)

    def test_a_save_of_the_same_size_and_time_is_checked(self):
        self.save(PLAIN)
        self.start()
        self.assertIn("hand-out 2026: PASS", self.until_it_waits())
        self.save(PLAIN.replace("/ np.sqrt(q.shape[-1])", "* np.sqrt(q.shape[-1])"), as_before=True)
        self.assertIn("hand-out 2026: FAIL", self.until_it_waits())

    def test_there_must_be_something_to_watch(self):
        refused = self.syslab("check", "flash_forward", "--watch", expect=2)
        self.assertIn("there is no --mine", refused.stderr)


if __name__ == "__main__":
    unittest.main()
