"""Implementations that do less than was asked for: each is a known cheat, and none gets a time that is ranked.

What keeps them → who was seen to end `ok` with that switched off in src/worker/cases/checked_operator.cpp:
  every sample's outputs are compared with its own   all but LeavesWithZero
  timed samples are compared, too                    CachesByShape, CachesByAddress, OneCallLate, DriftsLater
  rows of every timed call are                       EverySecondCall, EverySeventhCall, StaleFromThen, HalfOfTheRows, now and then
  (libraries: stale.c has the same)
  inputs are new for each sample                     CachesByShape, CachesByAddress, OneCallLate, RemembersContent (too fast)
  OnlyListedShapes is what laws are for: `run` alone, which has listed shapes, takes it for right
LeavesWithZero, PatchesRandom and ScansItself are kept by the separation of processes, which cannot be switched off; that ScansItself
finds a seed where there is one is seen in the test. docs/cheats.md says of which known cheat each is.
"""
import os
import pathlib
import re
import unittest

from lab import Lab, attempts

PLUGINS = pathlib.Path(os.environ["SYSLAB_PLUGINS"])
SHORTCUTS = pathlib.Path(__file__).parent / "hostile" / "shortcuts.py"
CASE = ("-a", "seq=32", "-a", "head_dim=16", "-a", "heads=2", "-a", "causal=true", "-a", "dtype=fp32", "--impl", "me", "--laws", "none",
        "--device", "cpu")


ROOT = pathlib.Path(__file__).parents[2]
SEED = 0x5EED_1E55_0B5C_0DED  # has no zero byte, and as digits more than eight


class Shortcuts(Lab):
    hint: dict = {}

    def environment(self):
        turned = [~int.from_bytes(data, "little") & (1 << 64) - 1 for data in (SEED.to_bytes(8, "little"), str(SEED).encode()[:8])]
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "TURNED_OVER": " ".join(map(str, turned)), **self.hint}

    def run_one(self, name, protocol="quick", mine=None):
        given = mine or f"{SHORTCUTS}:{name}"
        [ended] = attempts(self.lines("run", "flash_forward", *CASE, "--protocol", protocol, "--mine", f"me={given}", expect=None))
        return ended

    def refused(self, name, status="check_failed", protocol="quick", mine=None):
        ended = self.run_one(name, protocol, mine)
        self.assertEqual(ended["status"], status, (name, ended.get("detail")))
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)], name)
        self.assertEqual(self.sql("SELECT count(*) FROM v_measured WHERE is_good"), [(0,)], name)
        return ended["detail"]

    def test_results_of_other_calls_are_wrong(self):
        for name in ("CachesByShape", "CachesByAddress", "OneCallLate", "DriftsLater"):
            self.assertIn("a timed sample is wrong though the first call was right", self.refused(name), name)

    def test_less_work_now_and_then_is_found_always(self):
        for name in ("EverySecondCall", "EverySeventhCall", "StaleFromThen", "HalfOfTheRows"):
            for protocol in ("quick", "cs336"):
                self.assertIn("a timed sample is wrong though the first call was right", self.refused(name, protocol=protocol), name)

    def test_answers_of_a_library_that_were_given_before_are_found_always(self):
        for name in ("every_second", "every_third", "every_seventh", "from_then", "by_shape", "by_address", "one_late", "half_the_rows",
                     "already"):
            for protocol in ("quick", "cs336"):
                self.assertIn("a timed sample is wrong though the first call was right",
                              self.refused(name, protocol=protocol, mine=PLUGINS / f"stale_{name}.so"), (name, protocol))

    def test_a_corner_of_new_content_is_new(self):
        # What a library has answered by four numbers of its input never comes again: it gains nothing, and is right.
        self.assertEqual(self.run_one("by_corner", mine=PLUGINS / "stale_by_corner.so")["status"], "ok")

    def test_no_work_is_no_answer(self):
        for name in ("Uninitialised", "NanWildcard", "Zeros", "FindsTheAnswer", "ReplacesModules", "ExpectsTheSeed",
                     "ReturnsItsInput", "PatchesRandom"):
            self.refused(name)

    def test_shapes_that_nobody_listed_are_searched(self):
        self.assertEqual(self.run_one("OnlyListedShapes")["status"], "ok")  # seq=32, head_dim=16: a listed shape
        searched = attempts(self.lines("check", "flash_forward", "--contract", "full", "-k", "equals_oracle", "--cases", "5", "--impl", "me",
                                       "--device", "cpu", "--mine", f"me={SHORTCUTS}:OnlyListedShapes", expect=1))
        self.assertEqual({(one["params"]["contract"], one["status"]) for one in searched}, {("handout", "ok"), ("full", "check_failed")})

    def test_no_seed_is_in_the_memory_of_what_is_judged(self):
        case = (*CASE, "--protocol", "quick", "--seed", str(SEED), "--mine", f"me={SHORTCUTS}:ScansItself")
        [ended] = attempts(self.lines("run", "flash_forward", *case, expect=None))
        self.assertRegex(ended["detail"], r"reached: nothing \(in [1-9][0-9]* MiB\)")
        self.hint = {"HINT": str(SEED)}
        [ended] = attempts(self.lines("run", "flash_forward", *case, expect=None))
        self.assertIn("reached: the seed", ended["detail"])

    def test_the_page_of_cheats_names_what_there_is(self):
        page = (ROOT / "docs" / "cheats.md").read_text()
        rows = re.findall(r"^\| ([0-9]+) \|(.*)$", page, re.M)
        self.assertEqual([int(number) for number, _ in rows], list(range(1, 42)))
        for number, row in rows:
            self.assertTrue("`" in row or "does not apply" in row or "open" in row, number)
        for file, names in re.findall(r"`([a-z_]+\.(?:py|c)):([\w., ]+)`", page):
            folder = ROOT / "tests" / "e2e"
            place = next(one for one in (folder / file, folder / "hostile" / file, folder / "time_cheats" / file) if one.exists())
            known = set(re.findall(r"(?:class|def) (\w+)|\b(k[A-Z]\w+)", place.read_text()))
            known = {name for pair in known for name in pair}
            self.assertLessEqual(set(names.split(", ")), known, file)

    def test_the_page_of_security_counts_what_there_is(self):
        page = (ROOT / "SECURITY.md").read_text()
        listed = (ROOT / "experiments" / "selftest" / "selftest_hostile" / "hand_ins.cpp").read_text()
        hand_ins = {name for names in re.findall(r"add\(all,[^{]*\{([^}]*)\}", listed) for name in re.findall(r'"(\w+)"', names)}
        self.assertEqual(re.findall(r"hands in ([0-9]+) of them", page), [str(len(hand_ins))])
        # Libraries are named by what they are told to do: kReach is `reach`.
        known = hand_ins | {name[1:].lower() for name in hand_ins if re.match("k[A-Z]", name)}
        (number, named), = re.findall(r"walls ([0-9]+) do \([^)]*\):(.*?)\.\n", page, re.S)
        succeed = re.findall(r"`(\w+)`", named)
        self.assertLessEqual(set(succeed), known)
        self.assertEqual(len(set(succeed)), int(number))
        (number, named), = re.findall(r"of ([0-9]+) patches \(([^)]*) in `tests/mutants`\)", page)
        patches = {file for name in re.findall(r"`([\w*]+)`", named) for file in (ROOT / "tests" / "mutants").glob(f"{name}.patch")}
        self.assertEqual(len(patches), int(number))

    def test_inputs_that_were_zeroed_are_not_the_question(self):
        self.assertIn("the call changed its input 'q'", self.refused("ZeroesInputs"))

    def test_less_work_shows(self):
        for name in ("SkipsLateRows", "IgnoresTheMask"):
            self.refused(name)

    def test_work_behind_the_end_of_a_call_is_too_late(self):
        self.refused("WorksBehindItsBack")

    def test_time_is_what_passes_until_the_outputs_are_there(self):
        # Each of them works for 20 ms a call and would like to be seen for less: by stopped clocks, by working where results are
        # copied, by answers kept for content that comes again, by a slow start.
        for name in ("PatchesTheClock", "AnswersLazily", "RemembersContent", "RemembersACorner", "SlowWarmUp"):
            self.assertEqual(self.run_one(name)["status"], "ok", name)
        times = self.sql("SELECT m.value FROM metric m WHERE m.name = 'time' AND m.value IS NOT NULL")
        self.assertGreaterEqual(len(times), 1)
        self.assertGreaterEqual(min(value for (value,) in times), 0.02)

    def test_what_the_tolerance_of_the_hand_out_allows_is_no_cheat(self):
        # It is 1e-2, as in the official tests, and wider than the rounding of fp16 to which this fp32 was brought.
        self.assertEqual(self.run_one("HalfPrecision")["status"], "ok")

    def test_an_exit_code_is_no_verdict(self):
        self.assertIn("exit code 0", self.refused("LeavesWithZero", "error"))


if __name__ == "__main__":
    unittest.main()
