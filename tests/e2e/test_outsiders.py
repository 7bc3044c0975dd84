"""Hand-ins by somebody who had read SECURITY.md and the manuals alone, in search of what they do not name.

Class → what keeps it → what it was seen to do with that switched off:
  Watches, watch  the walls (seccomp)           as they were: told the names in a folder that it may not list, and set attributes by calls
                                                that the build's libseccomp did not know by name
  Calls           the walls (seccomp, a network as they were: a class of ranks spoke to any service of this machine (D-Bus, a container's), and
                  of its own)                   to any port, of whichever machine
  PunchesHoles    the worker compares its copy  not switched off
  GrowsMemory     the worker's own lengths      not switched off
  StaysAround     keeper, reaper, remove_tree   not switched off; seen to live, and to sit in its folder, while it is judged
  Commands        without_workflow_commands     as it was: lines that begin with "::"
  ahead           inputs lie there at release   not switched off
"""
import os
import pathlib
import shutil
import socket
import threading
import unittest

from hostile_lab import CASE, HOSTILE, PLUGINS, HostileLab
from lab import attempts


def asleep():
    """Processes that StaysAround starts."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"1000.731" in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            pass
    return found


class Outsiders(HostileLab):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()

    def environment(self):
        return {**super().environment(), "TMPDIR": str(self.temporary)}

    def outsider(self, name, *arguments):
        return self.python(name, *arguments, file="outsider")

    def test_what_happens_in_a_hidden_folder_is_not_told_and_newer_calls_are_not_there(self):
        self.assertIn("reached: nothing", self.outsider("Watches")["detail"])
        self.assertIn("returned 4: nothing", self.library("watch")["detail"])
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertIn("reached: names", self.outsider("Watches")["detail"])
        self.assertIn("returned 4: names", self.library("watch")["detail"])

    def test_memory_with_holes_or_without_end_makes_nothing_right(self):
        for name in ("PunchesHoles", "GrowsMemory"):
            self.assertNotIn(self.outsider(name, "--timeout", "60s")["status"], ("ok", "crashed"), name)

    def test_nothing_stays_whoevers_child_it_is(self):
        lived, over = [], threading.Event()

        def watch():  # else a hand-in that starts nothing would pass
            while not over.wait(0.01):
                if found := asleep():
                    lived.append((len(found), any("d" * 100 in folders for _, folders, _ in os.walk(self.temporary))))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            ended = self.outsider("StaysAround")
        finally:
            over.set()
            watcher.join()
        self.assertEqual(ended["status"], "ok", ended)
        self.assertEqual(max(lived, default=(0, False)), (3, True), "processes that lived, and whether the folders were made")
        self.assertEqual(asleep(), [])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_runner_that_reads_what_is_printed_is_given_no_commands(self):
        self.walls = {"GITHUB_ACTIONS": "true"}
        run = ("run", "flash_forward", *CASE, "--mine", f"me={HOSTILE}/outsider.py:Commands")
        for command in (run, (*run, "--json"), ("show", "##[add-mask]wrong"), ("show", "##[add-mask]wrong", "--json")):
            done = self.syslab(*command, expect=None)
            said = done.stdout + done.stderr
            self.assertIn("add-mask", said)
            self.assertNotRegex(said, r"(?m)^\s*::|##\[")

    def test_inputs_are_not_there_before_the_clock_runs(self):
        ended = self.library("ahead")
        self.assertEqual(ended["status"], "ok", ended)
        self.assertGreaterEqual(ended["metrics"]["time"], 0.02)

    def test_ranks_speak_to_no_service_of_this_machine(self):
        with socket.socket(socket.AF_UNIX) as service, socket.create_server(("127.0.0.1", 0)) as port:
            service.bind(str(self.outside / "service"))
            service.listen()
            service.setblocking(False)
            port.setblocking(False)
            self.walls = {"LISTENS": str(port.getsockname()[1])}
            law, *_ = attempts(self.lines("check", "naive_ddp", "--mine", f"me={HOSTILE}/caller.py:Calls", "--cases", "1", "-k",
                                          "shares_parameters", "--contract", "handout", expect=1))
            self.assertIn("reached: nothing", law["detail"])
            self.assertRaises(BlockingIOError, service.accept)
            self.assertRaises(BlockingIOError, port.accept)

    def test_what_lies_beside_a_library_is_read_only_if_it_is_a_file(self):
        library = self.folder / "mine.so"
        shutil.copy(f"{PLUGINS}/hostile_nothing.so", library)
        os.mkfifo(f"{library}.json")
        refused = self.syslab("check", "flash_forward", "--mine", f"me={library}", "--cases", "1", "-k", "refusal", expect=2).stderr
        self.assertIn("it is a FIFO, and only a plain file is read", refused)
        os.remove(f"{library}.json")
        pathlib.Path(f"{library}.json").write_text("[" * 5000)
        refused = self.syslab("check", "flash_forward", "--mine", f"me={library}", "--cases", "1", "-k", "refusal", expect=2).stderr
        self.assertIn("a domain is a JSON object", refused)
        self.assertLess(len(refused), 1000)


if __name__ == "__main__":
    unittest.main()
