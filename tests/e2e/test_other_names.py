"""What is hidden from judged code has no second way in, and its memory is what was given to it.

Class → what keeps it → what it was seen to do before
  Reads               a refusal of hard links (judge/other_names.cpp); SQLite's files beside the target of a link    read them
  SeesTheLists        withheld_variables() in judge/walls.cpp    told every hidden path
  FillsSharedMemory   the size of its /dev/shm (core/process/own_namespaces.cpp)    took half of the machine's memory
  LiftsItsLimit       the hard limit (src/python/syslab_limits.py)        took 3 GiB where it had 512 MiB
"""
import os
import re
import subprocess
import unittest

from hostile_lab import CASE, HOSTILE, HostileLab


class OtherNames(HostileLab):
    paths = ()

    def environment(self):
        return {**super().environment(), "PATHS": os.pathsep.join(map(str, self.paths)), "SYSLAB_LAUNCH_SECRET": "0f" * 32}

    def curious(self, name, *arguments):
        return self.python(name, *arguments, file="curious")

    def test_a_database_with_a_second_name_is_refused(self):
        second = self.folder / "elsewhere" / "second"
        second.parent.mkdir()
        self.paths = [second]
        self.assertIn("reached: nothing", self.curious("Reads")["detail"])
        os.link(self.db, second)
        refused = self.curious("Reads")
        self.assertEqual(refused["status"], "error")
        self.assertNotIn("reached", refused["detail"])
        second.unlink()
        self.assertIn("reached: nothing", self.curious("Reads")["detail"])

    def test_a_key_with_a_second_name_is_refused(self):
        second = self.folder / "second.key"
        os.link(self.outside / "state/syslab/runs.key", second)
        self.paths = [second]
        done = self.syslab("run", "flash_forward", *CASE, "--mine", f"me={HOSTILE}/curious.py:Reads", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("reached", done.stdout + done.stderr)
        self.assertIn("hard links", done.stdout + done.stderr)

    def test_the_keys_of_other_variables_are_hidden(self):
        for home in ("home", "home/below"):
            keys = self.folder / home / ".local/state/syslab"
            keys.mkdir(parents=True, mode=0o700)
            (keys / "runs.key").write_text("kept")
            self.paths = [keys / "runs.key", self.outside / "state/syslab/runs.key"]
            self.walls = {"HOME": str(self.folder / home)}
            self.assertIn("reached: nothing", self.curious("Reads")["detail"])
        self.walls["SYSLAB_WALLS"] = "none"
        self.assertIn("home/below/.local/state/syslab/runs.key", self.curious("Reads")["detail"])

    def test_what_sqlite_keeps_beside_the_target_of_a_link_is_hidden(self):
        real = self.folder / "real"
        real.mkdir()
        self.assertIn("reached: nothing", self.curious("Reads")["detail"])  # makes the database
        self.db.rename(real / "lab.db")
        self.db.symlink_to(real / "lab.db")
        self.paths = [real / f"lab.db{ending}" for ending in ("", "-wal", "-shm")]
        self.assertIn("reached: nothing", self.curious("Reads")["detail"])
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertIn("lab.db-wal", self.curious("Reads")["detail"])

    def test_a_database_that_is_mounted_twice_is_hidden_twice(self):
        twin = self.folder / "twin"
        twin.mkdir()
        self.paths = [twin / "lab.db"]
        mounted = subprocess.run(["unshare", "-rm", "sh", "-c", 'mount --bind "$0" "$1"', self.folder, twin], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no user namespaces here")
        bare = self.command
        self.addCleanup(setattr, self, "command", bare)
        mounting = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(self.folder), str(twin)]
        self.command = lambda *arguments: [*mounting, *bare(*arguments)]
        self.assertIn("reached: nothing", self.curious("Reads")["detail"])
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertIn("twin/lab.db", self.curious("Reads")["detail"])

    def test_its_environment_tells_nothing_of_what_is_hidden(self):
        self.assertIn("told: nothing", self.curious("SeesTheLists")["detail"])
        self.walls = {"SYSLAB_WALLS": "none"}
        self.assertIn("told: nothing", self.curious("SeesTheLists")["detail"])

    def test_its_shared_memory_is_within_its_limit(self):
        detail = self.curious("FillsSharedMemory", "--memory-limit", "256Mi")["detail"]
        held, names = map(int, re.search(r"held: (\d+) MiB and (\d+) names", detail).groups())
        self.assertLessEqual(held, 256)
        self.assertLess(names, 100_000)

    def test_its_own_limit_stays(self):
        self.assertEqual(self.curious("LiftsItsLimit", "--memory-limit", "512Mi")["status"], "ok")


if __name__ == "__main__":
    unittest.main()
