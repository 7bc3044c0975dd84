"""Somebody's data parallelism and sharded optimizers on ranks of Python: right ones, some of the faults (all of them:
tools/long/parallel_faults.py), and how they are told."""
import json
import os
import pathlib
import shutil
import unittest

from lab import Lab, asked_again, attempts, multiplies_in_fp16, torch_is_older
from parallel_classes import BUFFERS, FAULTS, OURS, RIGHT, VARIANTS, file_of

MINE = os.environ["SYSLAB_MINE"]
HOSTILE = pathlib.Path(__file__).resolve().parent / "hostile"
OWN = {"SYSLAB_LIBRARY": os.environ["SYSLAB_BUILT_LIBRARY"], "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[2] / "src/python")}


SLOW = """
import time
import torch
import torch.distributed as dist


class Slow(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.large = sum(p.numel() for p in module.parameters()) > 10_000  # laws ask for less
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, src=0)

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def finish_gradient_synchronization(self):
        for parameter in self.module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
        if self.large:
            time.sleep(0.3)
"""
SKIPS = SLOW.replace("Slow", "Skips").replace("parameter.grad is not None", "parameter.grad is not None and not self.large")
NEWER = SLOW.replace("class Slow(torch.nn.Module):", "class Newer(torch.nn.Module):\n    made = 0\n").replace("Slow", "Newer").replace("        for tensor", """        type(self).made += 1
        if not self.large and self.made > MADE:
            next(module.parameters()).register_hook_of_a_later_torch(print)
        for tensor""")


class Parallel(Lab):
    def environment(self):
        # A cluster's profile may name an interface, which ranks behind the walls do not have.
        return {**super().environment(), **OWN, "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "GLOO_SOCKET_IFNAME": "nowhere"}

    def check(self, experiment, name, *arguments, path=None, **options):
        spec = f"me={path or MINE + '/' + file_of(name)}:{name}"
        lines = self.lines("check", experiment, "--mine", spec, *arguments, **options)
        return attempts(lines), lines[-1]

    def untried(self, name, experiment):
        """Laws that nobody can try of it here: of FSDP where the class takes no compute_dtype, or this torch's CPU has no products in it;
        about messages where it sends what is not counted."""
        if name == "Ring":
            return {"ddp.messages"}
        if experiment != "fsdp":
            return set()
        if name == "FullySharded":
            return {"fsdp.fp16", "fsdp.bf16"}
        return set() if multiplies_in_fp16() else {"fsdp.fp16"}

    @staticmethod
    def word(untried):
        """What is not tried for want of a newer torch leaves the verdict open."""
        lacking = "fsdp.fp16" in untried and not multiplies_in_fp16() and torch_is_older()
        return "OPEN" if lacking else "NOT CHECKED" if untried - {"ddp.messages"} else "PASS"

    def test_right_ones_are_accused_of_nothing(self):
        for name, experiment in {**RIGHT, **VARIANTS}.items():
            with self.subTest(name):
                untried = self.untried(name, experiment)
                laws, verdict = self.check(experiment, name, "--cases", "4", expect=3 if untried - {"ddp.messages"} else 0)
                self.assertEqual((verdict["verdict"], verdict["findings"]), (self.word(untried), []))
                left = [*verdict["never_tried"].values(), *verdict["open"].values()]
                self.assertEqual({law.split()[0] for laws in left for law in laws}, untried)
                self.assertEqual({law["law"] for law in laws if law["status"] != "ok"}, untried, laws)
                self.assertGreaterEqual(len(laws), 6)
                self.assertRegex(verdict["left_out"], r"^never tried, at any depth: (parameters of more than \d+ elements(?: \(except .*\))? or 4 dimensions"
                                                      r"|weights of more than \d+ elements \(except .*\)), trainings of more than 12 steps$")

    def test_our_own_are_accused_of_nothing(self):
        for name, experiments in OURS.items():
            for experiment in experiments:
                with self.subTest(name, experiment=experiment):
                    untried = self.untried(name, experiment)
                    laws, verdict = self.check(experiment, name, "--cases", "4", expect=3 if untried else 0)
                    against = {law["law"] for law in laws if law["status"] != "ok"} - untried
                    self.assertEqual((verdict["verdict"], against - {"ddp.messages"} if name == "PlannedAtOnce" else against),
                                     (self.word(untried), set()), laws)

    def test_our_strategies_are_searched_by_the_same_laws(self):
        laws = {e["id"]: len(e["laws"]) for e in self.json("list")["experiments"]}
        for experiment, law in (("naive_ddp", "ddp.waits"), ("optimizer_state_sharding", "sharded.state_once"), ("fsdp", "fsdp.holds_parts")):
            self.assertGreater(laws[experiment], 3)
            found = attempts(self.lines("check", experiment, "--impl", "host", "--cases", "3", expect=0))
            self.assertIn(law, [one["law"] for one in found])
            self.assertEqual({one["status"] for one in found}, {"ok"}, found)

    def accused(self, name, *, expect):
        """What the law that is about the fault says first, and the verdict."""
        experiment, law = FAULTS[name]
        laws, verdict = self.check(experiment, name, "--cases", "12", "-k", law, expect=expect)
        said = [one["detail"] for one in laws if one["status"] == "check_failed"]
        self.assertTrue(said, (name, laws))
        return said[0], verdict

    def test_a_forgotten_mean_is_named_with_rank_step_and_element(self):
        said, verdict = self.accused("AverageForgotten", expect=1)
        self.assertEqual(verdict["verdict"], "FAIL")
        self.assertRegex(said, r"the gradient of 'layers\.0\.weight'\[0, 0\] on rank 0 in step 0 is -?\d.*, in one process -?\d.*: "
                               "that is the sum over ranks, not divided by 2")

    def test_a_missing_wait_is_named(self):
        said, _ = self.accused("NoWait", expect=1)
        line = next(n for n, text in enumerate(pathlib.Path(MINE, "parallel.py").read_text().splitlines(), 1) if "self.handles.append((dist.all_reduce(p.grad, async_op=True), p))" in text)
        self.assertRegex(said, rf"no wait\(\) was called for the collective of \d+ elements of step 0, begun at parallel\.py:{line}\)")
        self.assertRegex(self.accused("NoWaitForWeights", expect=1)[0], r"no wait\(\) was called for the collective of .*, begun at parallel_faults\.py:\d+\)")

    def test_a_rank_that_stays_away_is_named_at_once(self):
        said, _ = self.accused("OneRankMissing", expect=1)
        self.assertRegex(said, r"rank 0 waits in step 0 in all_reduce of \d+ elements of float32, and rank 1 has ended its steps without it")

    def test_what_the_timeline_shows_is_a_finding_beyond_the_handout(self):
        for name in ("NoOverlap", "LimitInBits", "NotSharded"):
            _, verdict = self.check(FAULTS[name][0], name, "--cases", "8", expect=0)
            self.assertEqual(verdict["verdict"], "PASS", name)
            self.assertTrue(any(FAULTS[name][1] in finding for finding in verdict["findings"]), verdict)

    def test_lost_bits_fail_what_the_official_tests_fail(self):
        for name in ("RoundsGradients", "ReducesInBf16"):
            said, verdict = self.accused(name, expect=1)
            self.assertEqual(verdict["verdict"], "FAIL", name)

    def test_memory_that_a_class_does_not_show_is_found(self):
        state = r"between steps a tensor outside of optimizer\.state holds state that rank \d owns"
        weights = r"between steps there are \d+ elements of 'layers\.\d\.weight' in tensors of this rank's process, in parameters\(\) or elsewhere; expected at most \d+"
        for name, said_of_it in (("HidesState", state), ("HidesStateFlat", state), ("CachesWhole", weights), ("CachesPieces", weights)):
            with self.subTest(name):
                said, verdict = self.accused(name, expect=1)
                self.assertRegex(said, said_of_it)
        for name, experiment in BUFFERS.items():  # right ones that keep memory of their own
            law = {"fsdp": "fsdp.holds_parts"}.get(experiment, "sharded.state_shared")
            laws, _ = self.check(experiment, name, "--cases", "12", "-k", law, expect=None)
            self.assertEqual({one["status"] for one in laws if one["law"] == law}, {"ok"}, laws)

    def test_a_class_that_hides_memory_is_not_timed_and_one_that_shows_it_is(self):
        for experiment, chosen, name, ends in (("optimizer_state_sharding_accounting", "sharding=optimizer", "HidesState", "check_failed"),
                                               ("optimizer_state_sharding_accounting", "sharding=optimizer", "NotSharded", "ok"),
                                               ("fsdp_accounting", "granularity=layer", "CachesWhole", "check_failed"),
                                               ("fsdp_accounting", "granularity=layer", "KeepsPart", "ok")):
            with self.subTest(name):
                status, detail = self.timed(experiment, name, "--impl", "me", "-a", chosen, expect=None)["me"]
                self.assertEqual(status, ends, detail)
                if ends != "ok":
                    self.assertRegex(detail, r"not timed, since (sharded\.state_once|fsdp\.holds_parts) does not hold: .*between steps")

    def test_what_no_official_test_asks_is_a_finding(self):
        for name in ("DropsCopies", "RateNotPassedOn", "StopsAtEmpty", "Unties", "DiffersInEval"):
            with self.subTest(name):
                experiment, law = FAULTS[name]
                laws, verdict = self.check(experiment, name, "--cases", "12", expect=None)
                self.assertEqual([one["law"] for one in laws if one["status"] == "check_failed"], [law])
                self.assertNotEqual(verdict["verdict"], "FAIL")

    def test_a_container_that_leaves_eval_mode_fails(self):
        for name, when in (("Evals", "after the container was made"), ("EvalsInStep", r"after finish_gradient_synchronization\(\) in step 0"),
                           ("ComputesInEval", r"after finish_gradient_synchronization\(\) in step 0")):
            with self.subTest(name):
                said, verdict = self.accused(name, expect=1)
                self.assertRegex(said, r"in eval\(\) mode " + when + r"; expected the mode that it had before, train\(\)")
                self.assertEqual(verdict["verdict"], "FAIL")

    def test_dropped_keyword_arguments_of_forward_fail(self):
        for name, said_of_it in (("DropsKeywords", r"forward\(batch, numbers=\.\.\.\) of the container calls the module without the keyword argument 'numbers'"),
                                 ("FullyShardedDropsKeywords", "without the keyword argument 'numbers'"),
                                 ("TakesNoKeywords", r"TypeError: .*forward\(\) got an unexpected keyword argument 'numbers'")):
            with self.subTest(name):
                said, verdict = self.accused(name, expect=1)
                self.assertRegex(said, said_of_it)
                self.assertEqual(verdict["verdict"], "FAIL")

    def test_dropped_options_of_an_optimizer_fail_and_are_named(self):
        for option in ("nesterov", "dampening", "maximize", "amsgrad", "betas", "eps"):
            with self.subTest(option):
                experiment, law = FAULTS[name := f"Drops{option.capitalize()}"]
                laws, verdict = self.check(experiment, name, "--cases", "60", "-k", law, expect=1)
                said = [one["detail"] for one in laws if one["status"] == "check_failed"]
                self.assertEqual(verdict["verdict"], "FAIL", laws)
                self.assertIn(f"as if the wrapped optimizer had not been given {option}", said[0])

    def test_a_class_that_seeds_random_numbers_is_a_finding(self):
        for name, how, seed in (("MovesRng", "begin anew after the container was made", "with the seed 0"),
                                ("SeedsInStep", r"begin anew as the module's forward pass begins, with the seed 0; expected no torch.manual_seed\(\) in an optimizer", ""),
                                ("MovesRngInStep", r"begin anew after finish_gradient_synchronization\(\) in step 0", "with the seed 1"),
                                ("RewindsRng", r"are those of an earlier moment again after finish_gradient_synchronization\(\) in step 0", ""),
                                ("PutsBackTheModulesDraws", r"are those of an earlier moment again after forward\(\) in step 0", ""),
                                ("PutsBackLate", r"are those of an earlier moment again after forward\(\) in step 0", ""),
                                ("ForksAroundTheModule", r"are those of an earlier moment again after forward\(\) in step 0", ""),
                                ("SeedsForTheModule", "begin anew as the module's forward pass begins", "with the seed 2"),
                                ("RepeatsForTheModule", "are those of an earlier moment again as the module's forward pass begins", ""),
                                ("SharesRng", "begin anew as the module's forward pass begins", "with the seed"),
                                ("PutsBackTheClosuresDraws", r"are those of an earlier moment again after step\(\) in step 0", "")):
            with self.subTest(name):
                experiment, law = FAULTS[name]
                laws, verdict = self.check(experiment, name, "--cases", "4", expect=0)
                failed = [one for one in laws if one["status"] != "ok"]
                self.assertEqual([one["law"] for one in failed], [law])
                self.assertRegex(failed[0]["detail"], rf"torch's random numbers \(CPU\) {how}.*{seed}")
                self.assertEqual(verdict["verdict"], "PASS")
                self.assertTrue(any(law in finding for finding in verdict["findings"]), verdict)

    def test_torchs_own_container_seeds_nothing_and_leaves_train_mode(self):
        (self.folder / "torchs.py").write_text("""import torch


class Own(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.whole = torch.nn.parallel.DistributedDataParallel(module)

    def forward(self, *inputs, **options):
        return self.whole(*inputs, **options)

    def finish_gradient_synchronization(self):
        pass
""")
        for law in ("ddp.keeps_random_numbers", "ddp.equals_one_process"):
            laws, _ = self.check("naive_ddp", "Own", "--cases", "6", "-k", law, path=self.folder / "torchs.py", expect=None)
            self.assertEqual({one["law"]: one["status"] for one in laws if one["status"] != "skipped"}, {law: "ok"}, laws)

    def test_faults_of_large_deep_long_and_wide_trainings_are_found(self):
        fails = {"SkipsTheHandOutsLarge", "KeepsTheHandOutsLarge", "StopsSending", "LeavesLargeParts"}  # the hand-out's tests fail them, too
        for name in ("SkipsTheHandOutsLarge", "SkipsLarge", "SkipsKernels", "SkipsCubes", "SkipsScalars", "StopsReducing", "ReducesInFp32",
                     "KeepsTheHandOutsLarge", "KeepsLargeWeights", "KeepsKernels", "StopsSending", "SendsInFp32", "LeavesLargeParts"):
            with self.subTest(name):
                experiment, law = FAULTS[name]
                laws, verdict = self.check(experiment, name, "--cases", "60", "-k", law, expect=None)
                self.assertEqual({one["law"] for one in laws if one["status"] == "check_failed"}, {law}, laws)
                decided = fails | {"ReducesInFp32", "SendsInFp32"}  # the last two are told by laws beyond it, and no other was asked
                self.assertEqual(verdict["verdict"] == "FAIL", name in decided, verdict)

    def test_missing_waits_and_races_are_found_in_whatever_training_they_are(self):
        for name, told in (("FrozenNoWait", r"no wait\(\) was called for the collective"), ("WideNoWait", r"no wait\(\) was called for the collective"),
                           ("AsksOnce", r"no wait\(\) was called for the collective"), ("SecondNoWait", r"no wait\(\) was called for the collective"),
                           ("OneScratch", r"the input of all_gather of \d+ elements in step 0, begun at parallel_waits\.py:\d+, was written to before it was waited for"),
                           ("KeepsInBf16", r"no wait\(\) was called for the collective")):
            with self.subTest(name):
                self.assertRegex(self.accused(name, expect=None)[0], told)

    def test_what_is_wrong_beside_the_numbers_is_found(self):
        for name, cases, told in (("GathersFirst", "12", r"step 0 sends one message of \d+ elements, the gradients have \d+"),
                                  ("FirstBlocks", "8", "the first message of step 0 blocks the backward pass"),
                                  ("CopyComputesInEval", "4", r"the module computes in eval\(\) mode"), ("ShardedInEval", "4", r"the module computes in eval\(\) mode"),
                                  ("StaleAfterThree", "60", "in step 3 is|after step 3 is"), ("ShardedSeeds", "4", "begin anew .*, with the seed 0"),
                                  ("KeepsFrozen", "8", r"a tensor outside of optimizer\.state"), ("KeepsSparse", "8", r"a tensor outside of optimizer\.state"),
                                  ("WholeUnderAdamW", "12", "expected .* two of each trained element")):
            with self.subTest(name):
                experiment, law = FAULTS[name]
                laws, _ = self.check(experiment, name, "--cases", cases, "-k", law, expect=None)
                said = [one["detail"] for one in laws if one["status"] == "check_failed"]
                self.assertTrue(said, (name, laws))
                self.assertRegex(said[0], told)

    def test_a_class_with_groups_of_some_ranks_is_not_accused(self):
        laws, verdict = self.check("naive_ddp", "Halves", "--cases", "4", "-k", "ddp.equals_one_process", path=MINE + "/parallel_variants.py", expect=None)
        self.assertNotIn("check_failed", {one["status"] for one in laws}, laws)
        self.assertNotIn(verdict["verdict"], ("PASS", "FAIL"))
        self.assertIn("a collective of a group of 1 of the 2 ranks", "".join(one["detail"] or "" for one in laws))

    def test_messages_that_are_not_counted_are_no_missing_messages(self):
        by_group = self.folder / "ring.py"
        shutil.copy(pathlib.Path(MINE, "parallel.py"), self.folder)
        by_group.write_text(pathlib.Path(MINE, "parallel_variants.py").read_text(encoding="utf-8").replace(
            "dist.isend(own, (rank + 1) % ranks)", "dist.group.WORLD.send([own], (rank + 1) % ranks, 0)").replace(
            "dist.recv(got, (rank - 1) % ranks)", "dist.group.WORLD.recv([got], (rank - 1) % ranks, 0).wait()"), encoding="utf-8")
        for path in (None, by_group):
            laws, _ = self.check("naive_ddp", "Ring", "--cases", "4", "-k", "ddp.messages", path=path, expect=None)
            self.assertRegex(laws[-1]["detail"], r"steps send from rank to rank \((parallel_variants|ring)\.py:\d+\), and only collectives of all ranks")

    def test_a_counterexample_is_small_and_replays(self):
        laws, _ = self.check("naive_ddp", "AverageForgotten", "--cases", "12", "-k", "ddp.equals_one_process", expect=1)
        uid = self.sql("SELECT uid FROM check_result WHERE outcome = 'falsified' ORDER BY id LIMIT 1")[0][0]
        shown = self.sql("SELECT counterexample FROM check_result WHERE outcome = 'falsified' ORDER BY id LIMIT 1")[0][0]
        self.assertIn('"further layers":"0"', shown.replace(" \"", "\"").replace("\": \"", "\":\""))
        again = self.syslab("replay", uid, expect=1)
        self.assertIn("not divided by 2", again.stdout + again.stderr)

    def test_what_is_no_class_for_ranks_is_told(self):
        (self.folder / "odd.py").write_text(
            "import torch\n"
            "class NoFinish(torch.nn.Module):\n    def __init__(self, module):\n        super().__init__()\n        self.module = module\n"
            "class Newer(NoFinish):\n    def __init__(self, module):\n        super().__init__(module)\n"
            "        next(module.parameters()).register_post_accumulate_grad_hook_of_tomorrow(print)\n")
        path = self.folder / "odd.py"
        for name, told, code in (("NoFinish", "NoFinish has no finish_gradient_synchronization()", 1),
                                 ("Newer", "rank 0: AttributeError", 3 if torch_is_older() else 1)):  # no list of names is asked
            laws, _ = self.check("naive_ddp", name, "--cases", "1", "-k", "ddp.shares_parameters", "--contract", "handout", path=path, expect=code)
            self.assertIn(told, laws[0]["detail"])

    def test_a_class_is_checked_and_not_timed(self):
        lines = self.lines("run", "naive_ddp", "--mine", f"me={MINE}/parallel.py:Naive", "--impl", "me", "--laws", "none", expect=None)
        self.assertEqual({one["status"] for one in attempts(lines)}, {"unsupported"})
        self.assertIn("checked and not timed here: syslab check naive_ddp; `syslab run naive_ddp_benchmarking` times it", attempts(lines)[0]["detail"])

    def timed(self, experiment, name, *arguments, path=None, expect=0, protocol="few"):
        """Status and detail by implementation, where they were not skipped."""
        spec = f"me={path or MINE + '/' + file_of(name)}:{name}"
        lines = self.lines("run", experiment, "--preset", "smoke", "--mine", spec, "--laws", "none", "--protocol", protocol, *arguments, expect=expect)
        return {one["impl"]: (one["status"], one.get("detail", "")) for one in attempts(lines) if one["status"] != "skipped"}

    @asked_again  # phases of two short steps that a busy machine holds up are doubted, and not stored
    def test_a_class_is_timed_beside_ours_around_the_same_module_and_a_slow_one_is_slower(self):
        (self.folder / "slow.py").write_text(SLOW)
        found = self.timed("naive_ddp_benchmarking", "Slow", "--impl", "me", "--impl", "ours_in_torch", "-a", "strategy=naive",
                           path=self.folder / "slow.py")
        self.assertEqual({name: status for name, (status, _) in found.items()}, {"me": "ok", "ours_in_torch": "ok"}, found)
        rows = self.sql("SELECT t.implementation, m.name, m.value FROM metric m JOIN v_attempt t ON t.attempt_id = m.attempt_id"
                        " WHERE m.rank = -1 AND m.name IN ('time', 'exposed', 'communicating')")
        told = {(implementation, name): value for implementation, name, value in rows}
        self.assertGreater(told["me", "exposed"], 0.3)  # as long as it sleeps
        self.assertGreater(told["me", "time"], told["me", "exposed"])
        self.assertGreater(told["me", "time"], told["ours_in_torch", "time"])
        self.assertGreater(told["ours_in_torch", "communicating"], 0)

    def test_a_class_that_skips_communication_gets_no_time(self):
        (self.folder / "skips.py").write_text(SKIPS)
        status, detail = self.timed("naive_ddp_benchmarking", "Skips", "--impl", "me", "-a", "strategy=naive",
                                    path=self.folder / "skips.py", expect=1)["me"]
        self.assertEqual(status, "check_failed")
        self.assertRegex(detail, r"weights \(rank [01]\): .* off, at most 1 is allowed; weights after 3 steps")
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])

    def test_ranks_that_slow_their_clocks_gain_nothing_and_are_told(self):
        status, detail = self.timed("naive_ddp_benchmarking", "HalfItsClock", "--impl", "me", "-a", "strategy=naive", path=f"{HOSTILE}/ranks.py",
                                    protocol="cs336")["me"]  # of fewer steps than ten a busy machine may have made all longer
        self.assertEqual(status, "ok", detail)
        ((facts,),) = self.sql("SELECT facts FROM attempt_facts")
        self.assertRegex(json.loads(facts)["suspect"], "its own clock tells of .* the lab's of")
        notes = dict(self.sql("SELECT name, note FROM metric WHERE rank = 0 AND value IS NULL"))
        self.assertRegex(notes["backward"], "tells of phases of .* together, the lab's of steps of")

    def test_ranks_whose_work_goes_on_behind_a_step_get_no_time(self):
        for name, ends in (("Honest", "ok"), ("UpdatesLater", "check_failed")):
            status, detail = self.timed("naive_ddp_benchmarking", name, "--impl", "me", "-a", "strategy=naive", path=f"{HOSTILE}/ranks.py",
                                        expect=None)["me"]
            self.assertEqual(status, ends, detail)
        self.assertRegex(detail, "weights behind each step: .* off, at most 1 is allowed; .* when step [0-9]+ of [0-9]+ had ended")

    def test_a_class_that_breaks_a_law_of_the_handout_is_not_timed(self):
        status, detail = self.timed("naive_ddp_benchmarking", "AverageForgotten", "--impl", "me", "-a", "strategy=naive", expect=1)["me"]
        self.assertEqual(status, "check_failed")
        self.assertIn("not timed, since ddp.equals_one_process does not hold: the gradient of", detail)

    def test_a_class_that_needs_a_newer_torch_is_not_timed(self):
        for made in (0, 2):  # refused are all modules, and all but the first
            (self.folder / "newer.py").write_text(NEWER.replace("MADE", str(made)))
            status, detail = self.timed("naive_ddp_benchmarking", "Newer", "--impl", "me", "-a", "strategy=naive", expect=1, path=self.folder / "newer.py")["me"]
            self.assertEqual(status, "check_failed")
            self.assertRegex(detail, r"not timed, since ddp\.shares_parameters does not hold: .*register_hook_of_a_later_torch")  # the first
        self.assertEqual(self.sql("SELECT count(*) FROM metric WHERE name = 'time'"), [(0,)])


if __name__ == "__main__":
    unittest.main()
