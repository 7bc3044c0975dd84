"""Classes that would work while the other side of a comparison is timed.

Class → what keeps it → what it was seen to do with that switched off:
  Wakes                       the walls (seccomp)             SYSLAB_WALLS=none: all but clone3, where the limit of locked memory allows it
  Populates, WokenByChildren  the walls; without them the look after each turn    used up to a whole processor of the other side's turns
  Copies                      the look after each turn (src/runner/standstill.cpp)    the same, and was compared
"""
import json
import unittest

from hostile_lab import CASE, HOSTILE, HostileLab


NO_WALLS = {"SYSLAB_WALLS": "none"}


class Sleepless(HostileLab):
    def sleepless(self, name):
        return self.python(name, file="sleepless")

    def compared(self, name):
        """The comparison with our own, and of each attempt of the class: status and what it did in the other's turns."""
        case = [word for word in CASE if word not in ("--impl", "me", "--laws", "none")]
        lines = self.lines("compare", "flash_forward", "A:impl=flash_tiled", "B:impl=me", *case, "--launches", "3",
                           "--timeout", "60s", "--mine", f"me={HOSTILE}/sleepless.py:{name}", expect=None)
        [verdict] = [line for line in lines if "verdict" in line]
        rows = self.sql("SELECT status, facts FROM v_attempt WHERE implementation = 'me'")
        return verdict, [(status, json.loads(facts)["paired"]) for status, facts in rows]

    def test_nothing_wakes_it_and_nothing_fills_memory_in_one_call(self):
        self.assertIn("reached: nothing", self.sleepless("Wakes")["detail"])
        self.walls = NO_WALLS
        detail = self.sleepless("Wakes")["detail"]
        for way in ("signal of a child's end", "signal of the parent's end", "populated memory"):
            self.assertIn(way, detail)

    def test_asking_for_a_signal_at_the_parents_end_is_no_failure(self):
        self.assertEqual(self.sleepless("KeepsSpawning")["status"], "ok")

    def test_who_works_in_the_others_turns_is_not_compared_or_did_so_in_no_block_that_counts(self):
        for name, all_walls in (("Copies", ({},)), ("Populates", ({}, NO_WALLS)), ("WokenByChildren", ({}, NO_WALLS))):
            for walls in all_walls:  # no wall is there for Copies
                with self.subTest(name, walls=walls):
                    self.db.unlink(missing_ok=True)
                    self.walls = walls
                    verdict, attempts = self.compared(name)
                    ran = sum(paired["turns_it_ran_in"] for _, paired in attempts)
                    dropped = sum(paired["dropped_blocks"] for _, paired in attempts)
                    self.assertGreaterEqual(ran, dropped)
                    if any(status == "error" for status, _ in attempts):
                        self.assertEqual(verdict["verdict"], "incomparable")
                    # Who is never caught at work stood still, by the processor time of its group: its calls end while the lab waits.
                    for status, paired in attempts:
                        if status == "ok" and paired["turns_it_ran_in"] == 0:
                            self.assertLess(paired["idle_cpu_share"], 0.05)


if __name__ == "__main__":
    unittest.main()
