"""A lab in which somebody's file is judged that would rather be believed than be right; what test_hostile.py and test_read_security.py share."""
import json
import os
import pathlib

from lab import Lab, attempts

HOSTILE = pathlib.Path(__file__).parent / "hostile"
PLUGINS = os.environ["SYSLAB_PLUGINS"]
CASE = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "-a", "dtype=fp32", "--impl", "me", "--laws", "none",
        "--protocol", "quick", "--device", "cpu")


class HostileLab(Lab):
    def setUp(self):
        super().setUp()
        self.outside = self.folder / "outside"
        (self.outside / "state" / "syslab").mkdir(parents=True, mode=0o700)
        for name in ("there", "cut", "state/syslab/runs.key"):
            (self.outside / name).write_text("kept")
            (self.outside / name).chmod(0o600)

        self.walls = {}
        self.terminal, other = os.openpty()
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.close, other)
        self.tty = os.ttyname(other)

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "OUTSIDE": str(self.outside),
                "XDG_STATE_HOME": str(self.outside / "state"), "TERMINAL": self.tty,
                "DATABASE": str(self.db), **self.walls}

    def attempt(self, file, *arguments):
        [ended] = attempts(self.lines("run", "flash_forward", *CASE, "--mine", f"me={file}", *arguments, expect=None))
        return ended

    def python(self, name, *arguments, file="cheats"):
        return self.attempt(f"{HOSTILE}/{file}.py:{name}", *arguments)

    def library(self, name, *arguments):
        return self.attempt(f"{PLUGINS}/hostile_{name}.so", *arguments)

    def facts(self):
        [[facts]] = self.sql("SELECT facts FROM v_attempt ORDER BY attempt_uid DESC LIMIT 1")
        return json.loads(facts)

    def tearDown(self):
        for name in ("there", "cut"):
            self.assertEqual((self.outside / name).read_text(), "kept")
        self.assertFalse((self.outside / "made").exists())
