"""`check --mine`: what is said of somebody's library or file, and when."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import textwrap
import time
import unittest
import xml.etree.ElementTree

from lab import Lab, attempts

PLUGINS = os.environ["SYSLAB_PLUGINS"]


class CannotBeUsed(Lab):
    """One line, once, before any search; exit code 2."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def refused(self, mine, attempts=1):
        done = self.syslab("check", "flash_forward", "flash_backward", "--mine", f"me={mine}", "--impl", "me", expect=2)
        [line] = done.stderr.splitlines()
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.sql("SELECT count(*) FROM attempt") if self.db.exists() else [(0,)], [(attempts,)])
        return line

    def test_a_library_without_the_symbols(self):
        line = self.refused(f"{PLUGINS}/no_attention.so", attempts=0)
        self.assertIn("it exports no syslab_plugin_abi, syslab_last_error, syslab_attention_forward", line)
        self.assertIn("and no syslab_operator; ", line)

    def test_an_import_that_the_file_forgives_is_told_where_the_class_is_missing(self):
        (self.folder / "helper.py").write_text("import nowhere_to_be_found\nclass Flash:\n  pass\n")
        (self.folder / "flash.py").write_text("try:\n  from helper import Flash\nexcept ImportError:\n  Flash = None\n")
        line = self.refused("flash.py:Flash")
        self.assertIn("has no class 'Flash' (it has: none); an import failed: ModuleNotFoundError: No module named 'nowhere_to_be_found' "
                      "(helper.py)", line)
        self.assertIn(f"'{os.environ['SYSLAB_PYTHON']}' was asked", line)

    def test_a_class_whose_name_is_that_of_the_error_is_no_missing_module(self):
        (self.folder / "flash.py").write_text("raise RuntimeError('no ModuleNotFoundError')\nclass Flash:\n  pass\n")
        line = self.refused("flash.py:Flash")
        self.assertIn("no ModuleNotFoundError", line)
        self.assertNotIn("was asked", line)

    def test_a_library_of_another_abi(self):
        self.assertIn("speaks ABI 99, this syslab speaks 1", self.refused(f"{PLUGINS}/attention_of_another_abi.so"))

    def test_a_module_that_is_not_there_and_the_interpreter_that_was_asked(self):
        (self.folder / "flash.py").write_text("import nowhere_to_be_found\nclass Flash:\n  pass\n")
        line = self.refused("flash.py:Flash")
        self.assertIn("No module named 'nowhere_to_be_found' (flash.py:1", line)
        self.assertIn(os.environ["SYSLAB_PYTHON"], line)

    def test_a_file_that_raises_while_it_is_imported(self):
        (self.folder / "flash.py").write_text("class Flash:\n  pass\nraise RuntimeError('built for another GPU')\n")
        self.assertIn("built for another GPU", self.refused("flash.py:Flash"))

    def test_a_file_within_a_package_finds_its_own_project(self):
        package = self.folder / "project" / "package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "helper.py").write_text("def refuse():\n  raise ValueError('the helper was found')\n")
        (package / "flash.py").write_text("from package.helper import refuse\n"
                                          "class Flash:\n  def forward(self, q, k, v, is_causal):\n    refuse()\n")
        lines = self.lines("check", "flash_forward", "--mine", "me=project/package/flash.py:Flash", "--impl", "me", "--cases",
                           "2", expect=1)
        self.assertIn("the helper was found", " ".join(law["detail"] for law in attempts(lines)))


class SideBySide(Lab):
    def test_laws_in_several_processes_are_told_in_their_order_and_find_the_same(self):
        def told(*more):
            lines = self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/faulty_attention.so", "--impl", "me", "--cases", "5",
                               *more, expect=1)
            return [(law["law"], law["status"], law["detail"]) for law in attempts(lines)]

        alone, together = told(), told("--jobs", "3")
        self.assertEqual(alone, together)
        self.assertGreater(len(alone), 10)
        # Begun while another was running: as many at a time as were asked for.
        overlaps = self.sql("SELECT count(*) FROM v_attempt a JOIN v_attempt b ON a.run_id = b.run_id AND a.attempt_id <> b.attempt_id"
                            " WHERE a.started_at > b.started_at AND a.started_at < b.ended_at AND a.run_id = 2")
        self.assertGreater(overlaps[0][0], 0)


class SaysWhy(Lab):
    """A failure names its input, the first wrong element and the mistake that explains all of what was written."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def laws(self, plugin):
        lines = self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/{plugin}.so", "--impl", "me", "--cases", "10",
                           expect=None)
        return attempts(lines)

    def test_a_mask_that_is_off_by_one_is_named(self):
        wrong = [law for law in self.laws("faulty_attention") if law["status"] == "check_failed"]
        self.assertGreater(len(wrong), 1)
        for law in wrong:
            self.assertLessEqual(law["detail"].count("\n"), 9)
            self.assertIn("\ninput: B=1 H=1 S=", law["detail"])
            self.assertIn("mask top_left", law["detail"])
            self.assertIn("\nfirst wrong: out[0, 0, 0, 0]", law["detail"])
            self.assertIn("\nlooks like a mask that shows one key too many: ", law["detail"])
        [(maps,)] = self.sql("SELECT count(*) FROM artifact WHERE kind = 'error_map'")
        self.assertEqual(maps, len(wrong))

    def test_tensors_that_are_right_narrow_where_a_fault_can_be(self):
        (self.folder / "flash.py").write_text(textwrap.dedent(f"""
            import sys
            import numpy as np
            sys.path.insert(0, {os.environ["SYSLAB_MINE"]!r})
            from plain import Naive

            class OtherValues(Naive):
                def forward(self, q, k, v, is_causal):
                    return super().forward(q, k, np.roll(v, 1, axis=1), is_causal)

            class LastTile(Naive):
                def forward(self, q, k, v, is_causal):
                    first = 0 if is_causal else (k.shape[1] - 1) // 16 * 16
                    return super().forward(q, k[:, first:], v[:, first:], is_causal)

            class OtherGradient(Naive):
                def backward(self, *arguments):
                    dq, dk, dv = super().backward(*arguments)
                    return dq, dk, np.roll(dv, 1, axis=1)
            """))
        for name, verb, said in (("OtherValues", "flash_forward", "lse is right, so the scores, mask and row sums that it takes are: look at the softmax that P takes"),
                                 ("LastTile", "flash_forward", "looks like the last tile of keys alone: "),
                                 ("OtherGradient", "flash_backward", "dQ and dK are right: look at dV = Pᵀ dO alone")):
            [law] = [one for one in attempts(self.lines("check", verb, "--mine", f"me=flash.py:{name}", "--impl", "me", "--cases", "10",
                                                        "--contract", "handout", "-k", "equal", expect=1))
                     if one["status"] == "check_failed"][:1]
            self.assertIn("\n" + said, law["detail"], name)
            self.assertEqual(law["detail"].count("looks like"), said.count("looks like"), name)

    def test_nothing_is_said_of_what_is_right(self):
        self.assertNotIn("looks like", " ".join(law["detail"] for law in self.laws("naive_attention")))


class Folded(Lab):
    def test_a_crash_under_many_laws_is_told_once_with_their_names(self):
        done = self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/hostile_crash.so", "--cases", "3", expect=1)
        failed = [law for (law,) in self.sql("SELECT law FROM v_attempt WHERE status = 'check_failed'")]
        self.assertGreater(len(failed), 8)
        crash = "killed by signal 11"
        self.assertEqual(done.stdout.count(crash), 1, done.stdout)
        self.assertEqual(done.stderr.count(crash), 1, done.stderr)
        self.assertIn(f"and {len(failed) - 1} other laws: ", done.stdout)
        also = next(line for line in done.stdout.splitlines() if line.startswith("      also: "))
        for law in failed[1:]:
            self.assertIn(law, also)

    def test_findings_beyond_the_handout_that_say_the_same_are_one(self):
        lines = self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_crash_on_odd_tiles.so", "--cases", "20")
        [finding] = lines[-1]["findings"]
        self.assertRegex(finding, r"^attention.equals_oracle, .*attention.large_scores.* \(\d+ laws\): .*killed by signal 6")
        self.assertIn("with batch=", finding)

    def test_a_device_that_failed_is_a_fault_and_the_next_law_asks_a_new_process(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_lose_device.so", "--impl", "me", "--cases", "20", "-k",
                    "equals_oracle", "--contract", "full", expect=1)
        found = self.sql("SELECT outcome, message, counterexample FROM check_result WHERE contract = 'full'")
        self.assertEqual(len(found), 2)
        for outcome, message, text in found:
            self.assertEqual(outcome, "falsified")
            self.assertIn("threw Error(device)", message)
            self.assertNotEqual(int(json.loads(text)["seq_q"]) % 16, 0)


class ForgottenOrComputed(Lab):
    """NaN in an output is called never written exactly where nobody wrote it, whatever word stands there."""

    def message(self, plugin, law):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_{plugin}.so", "--cases", "5", "-k", law, expect=None)
        [(message,)] = self.sql("SELECT DISTINCT message FROM check_result WHERE outcome = 'falsified' AND contract = 'full'"
                                " AND name = 'attention.' || ?", law)
        return message.splitlines()[0]

    def test_a_row_that_nobody_wrote(self):
        self.assertTrue(self.message("forget_last", "equals_oracle").endswith("within [0, 0, 15, 0…15], 16 never written"))
        self.assertIn("out: 16 of 256 elements never written", self.message("forget_last", "writes_nothing_outside"))

    def test_a_row_of_computed_nan(self):
        self.assertTrue(self.message("compute_nan", "equals_oracle").endswith("all of them written: NaN was computed"))

    def test_a_row_that_holds_the_poison_itself(self):
        self.assertTrue(self.message("copy_poison", "equals_oracle").endswith("all of them written: NaN was computed"))


OUT_OF_BOUNDS = """
import ctypes
import {tensors}
from plain import Naive

class Read(Naive):
    def forward(self, q, k, v, is_causal):
        end = {address} + k.itemsize * k.size if {numpy} else {address} + k.element_size() * k.numel()
        ctypes.c_float.from_address(end + 256).value {access}
        return super().forward(q, k, v, is_causal)
"""


class PastTheEndInPython(Lab):
    """Of a class's inputs, as NumPy arrays and as torch tensors."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def message(self, tensors, access):
        shutil.copy(pathlib.Path(os.environ["SYSLAB_MINE"], "plain.py"), self.folder / "plain.py")
        numpy = tensors == "numpy"
        (self.folder / "flash.py").write_text(OUT_OF_BOUNDS.format(
            tensors=tensors, numpy=numpy, access=access, address="k.ctypes.data" if numpy else "k.data_ptr()"))
        self.syslab("check", "flash_forward", "--mine", "me=flash.py:Read", "-k", "attention.equals_oracle", "--cases", "3",
                    "--contract", "handout", expect=None)
        [message] = {message for (message,) in self.sql("SELECT message FROM check_result")}
        return message

    def test_a_read_in_numpy(self):
        self.assertIn("a read past the end of 'k', 256 bytes behind its last (flash.py:9, in forward)",
                      self.message("numpy", ""))

    def test_a_write_in_numpy(self):
        self.assertIn("a write past the end of 'k', 256 bytes behind its last (flash.py:9, in forward)",
                      self.message("numpy", "= 0"))

    def test_a_read_in_torch(self):
        self.assertIn("a read past the end of 'k', 256 bytes behind its last (flash.py:9, in forward)",
                      self.message("torch", ""))


LATE = """
import threading
import time
from plain import Naive

class Late(Naive):
    def forward(self, q, k, v, is_causal):
        o, lse = super().forward(q, k, v, is_causal)
        def finish():
            time.sleep(0.001)
            o[...] = 0
        threading.Thread(target=finish, daemon=True).start()
        return o, lse
"""


class AfterItReturned(Lab):
    """Work that goes on behind a call's back is named, and what has ended by then is not."""

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def outcome(self, mine):
        self.syslab("check", "flash_forward", "--mine", f"me={mine}", "--impl", "me", "-k", "finishes_when", "--cases", "10",
                    expect=None)
        [(outcome, message)] = self.sql("SELECT outcome, message FROM check_result ORDER BY id DESC LIMIT 1")
        return outcome, message

    def test_a_library_whose_thread_writes_on(self):
        # On a busy machine the thread may come so late that the call's memory is gone, and the process dies of that: never held.
        for _ in range(6):
            outcome, message = self.outcome(f"{PLUGINS}/planted_write_late.so")
            self.assertIn(outcome, ("falsified", "error"))
            if "killed by signal 11" not in message:
                break
        self.assertIn("attention_forward wrote its output 'out' after it had returned", message)

    def test_a_class_whose_thread_writes_on(self):
        shutil.copy(pathlib.Path(os.environ["SYSLAB_MINE"], "plain.py"), self.folder / "plain.py")
        (self.folder / "flash.py").write_text(LATE)
        outcome, message = self.outcome("flash.py:Late")
        self.assertEqual(outcome, "falsified")
        self.assertIn("attention_forward: 'out' changed after it had been returned", message)

    def test_who_has_ended_is_not_accused(self):
        self.assertEqual(self.outcome(f"{PLUGINS}/naive_attention.so")[0], "passed")
        self.assertEqual(self.outcome(f"{os.environ['SYSLAB_MINE']}/plain.py:Naive")[0], "passed")


class Emitted(Lab):
    """--emit: the first counterexample as a PyTorch test that needs nothing of ours."""

    MINE = f"{os.environ['SYSLAB_MINE']}/plain.py"

    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def check(self, mine, *options, **expected):
        return self.syslab("check", "flash_forward", "flash_backward", "--mine", f"me={mine}", "-k", "equal", "--cases", "20", *options,
                           **expected)

    def run_test(self, text):
        """Runs it without pytest, which may not be there: (exit code, what it said)."""
        (self.folder / "test_it.py").write_text(text, encoding="utf-8")
        done = subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import test_it; test_it.test_counterexample()"], cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr

    def test_it_fails_for_what_was_wrong_and_holds_for_what_is_right(self):
        self.check(f"{self.MINE}:MaskOffByOne", "--contract", "full", "--emit", "test_mine.py", expect=1)
        text = (self.folder / "test_mine.py").read_text(encoding="utf-8")
        self.assertNotIn("syslab_", text)
        if subprocess.run([os.environ["SYSLAB_PYTHON"], "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("this Python has no torch")
        code, said = self.run_test(text)
        self.assertEqual(code, 1)
        self.assertIn("AssertionError", said)
        self.assertEqual(self.run_test(text.replace("module.MaskOffByOne", "module.Naive")), (0, ""))

    def test_nothing_wrong_writes_nothing(self):
        self.check(f"{self.MINE}:Naive", "--emit", "test_mine.py")
        self.assertFalse((self.folder / "test_mine.py").exists())

    def test_what_cannot_be_emitted_is_refused_before_anything_is_searched(self):
        self.assertIn("end its name in .py", self.check(f"{self.MINE}:Naive", "--emit", "test.txt", expect=2).stderr)
        self.assertIn("me is a library", self.check(f"{PLUGINS}/naive_attention.so", "--emit", "test.py", expect=2).stderr)
        self.assertFalse(self.db.exists())


class Map(Lab):
    """--map: where the first counterexample is wrong."""

    def check(self, plugin, *options, **expected):
        return self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/{plugin}.so", "-k", "equals_oracle", "--cases", "5",
                           *options, **expected)

    def test_an_svg_of_the_counterexample(self):
        self.check("planted_forget_last", "--map", "map.svg", expect=1)
        drawn = xml.etree.ElementTree.parse(self.folder / "map.svg").getroot()
        space = {"s": "http://www.w3.org/2000/svg"}
        self.assertIn("me attention.equals_oracle (handout), out: 16 rows, 16 columns", drawn.find("s:title", space).text)
        cells = [cell for cell in drawn.findall("s:rect", space) if cell.get("width") == cell.get("height") == "9"][:-4]
        self.assertEqual(len(cells), 16 * 16)
        wrong = {(cell.get("x"), cell.get("y")) for cell in cells if cell.get("fill") == "#a63603"}
        self.assertEqual({y for _, y in wrong}, {str(44 + 15 * 10)})  # the last row, all of it
        self.assertEqual(len(wrong), 16)

    def test_nothing_wrong_draws_nothing(self):
        self.check("naive_attention", "--map", "map.svg")
        self.assertFalse((self.folder / "map.svg").exists())

    def test_bad_places_are_refused_before_anything_is_searched(self):
        for place, why in (("map.png", "end its name in .svg"), ("nowhere/map.svg", "nowhere"), (".", "end its name in .svg")):
            self.assertIn(why, self.check("faulty_attention", "--map", place, expect=2).stderr)
        (self.folder / "lab.svg").mkdir()
        self.check("faulty_attention", "--map", "lab.svg", expect=2)
        self.assertFalse(self.db.exists())
        self.assertIn("there is no --mine", self.refused("check", "flash_forward", "--map", "map.svg"))

    def test_a_terminal_shows_it_as_text(self):
        leader, follower = os.openpty()
        done = subprocess.Popen(self.command("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_forget_last.so", "-k",
                                             "equals_oracle", "--cases", "3"), cwd=self.folder, env=self.environment(),
                                stdout=follower, stderr=subprocess.DEVNULL)
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(leader, 4096):
                shown += part
        done.wait()
        os.close(leader)
        lines = shown.decode().replace("\r", "").splitlines()
        first = lines.index("where me attention.equals_oracle (handout) is wrong:")
        self.assertEqual(lines[first + 1:first + 17], ["  " + "·" * 16] * 15 + ["  " + "#" * 16])
        self.assertIn("out: 16 rows, 16 columns; · within the bound", lines[first + 17])


class PastTheEnd(Lab):
    def test_a_write_past_the_end_is_told(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_write_past_end.so", "-k", "equals_oracle",
                    "--cases", "5", expect=None)
        messages = [message for (message,) in self.sql("SELECT message FROM check_result")]
        self.assertTrue(messages)
        for message in messages:
            self.assertIn("a write past the end of 'out', 256 bytes behind its last", message)

    def test_a_read_past_the_end_is_told_and_shrunk(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_read_past_end.so", "-k", "equals_oracle")
        [(uid, message, example)] = self.sql("SELECT uid, message, counterexample FROM check_result WHERE outcome = 'error'"
                                             " AND name = 'attention.equals_oracle'")
        self.assertRegex(message, r"a read past the end of 'k', \d+ bytes behind its last")
        self.assertIn("input: B=1 H=1 S=16 queries × 17 keys D=16 fp32", message)
        self.assertEqual(json.loads(example)["seq_k"], "17")
        now = self.json("replay", uid, expect=1)["now"]
        self.assertEqual((now["outcome"], now["counterexample"]["seq_k"]), ("error", "17"))
        self.assertIn("a read past the end of 'k'", now["message"])

    def test_what_is_copied_from_behind_an_input_to_behind_an_output_shows(self):
        ended = self.lines("run", "flash_forward", "-a", "head_dim=20", "-a", "seq=32", "-a", "causal=false", "-a", "dtype=fp32", "--impl",
                           "me", "--laws", "none", "--mine", f"me={PLUGINS}/planted_copy_past_end.so", expect=1)
        self.assertEqual(self.sql("SELECT name, outcome FROM check_result"), [("call:writes_outputs_alone", "falsified")])
        self.assertIn("output 'out': a byte outside its elements was written", attempts(ended)[0]["detail"])

    def test_a_library_that_handles_faults_of_its_own_is_right(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/planted_handle_faults.so", "--cases", "10", "-k", "oracle")


class Chosen(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def test_laws_by_a_word_of_their_name(self):
        mine = ("--mine", f"me={PLUGINS}/naive_attention.so", "--impl", "me")
        *_, verdict = self.lines("check", "flash_forward", *mine, "--cases", "3", "-k", "oracle")
        self.assertEqual({law for (law,) in self.sql("SELECT name FROM check_result")},
                         {"attention.equals_oracle", "attention.lse_equals_oracle"})
        self.assertEqual((verdict["chosen_by"], verdict["cases"], verdict["until"]), ("-k oracle", 3, None))
        self.assertEqual("never tried, at any depth: fp16; bf16; S < 16, S > 4096 and some between; both lengths above 257, but for some rows where there are 768, 777, 2047, 2048 queries; "
                         "D other than 16, 32, 48, 64, 80, 128; batches and heads above 8; more than 1100000 multiply-adds (B·H·S·S·D), but for the shape of the hand-out's tests; grouped heads; "
                         "a causal mask that ends with the last key (bottom-right); a scale other than 1/sqrt(D); outputs above 100; V or dO far below 1; strided tensors; "
                         "a byte_offset of a DLPack tensor other than 0; deterministic = 1; inputs with inf or NaN, but for one query or value; "
                         "--contract full tries grouped heads, the bottom-right mask, other scales, strided tensors, any D and S", verdict["left_out"])
        declared = self.syslab("check", "flash_forward", *mine, "--cases", "3", "-k", "oracle", "-a", "causal=false").stdout
        self.assertIn("; grouped heads; a scale other than 1/sqrt(D); outputs above 100; V or dO far below 1; strided tensors; a byte_offset of a DLPack tensor other than 0; deterministic = 1; inputs with inf or NaN, but for one query or value\n", declared)
        self.assertIn("only the laws that -k oracle chose", declared)
        self.assertIn("never tried: more than 3 inputs per law; try: --deep, with 1000", declared)
        self.assertIn("no law's name holds it; there are attention.equals_oracle", self.refused("check", "flash_forward", *mine, "-k", "nowhere"))

    def test_what_refuses_every_input_was_not_checked_by_a_chosen_law_either(self):
        (self.folder / "flash.py").write_text("import numpy\nclass Raises:\n  def forward(self, q, k, v, causal):\n    raise ValueError('no')\n")
        mine = ("check", "flash_forward", "--mine", "me=flash.py:Raises", "--impl", "me", "--cases", "3", "-k", "repeats")
        verdict = self.lines(*mine, expect=3)[-1]
        self.assertEqual([verdict[field] for field in ("type", "verdict", "exit", "chosen_by")], ["verdict", "NOT CHECKED", 3, "-k repeats"])
        held = self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/naive_attention.so", "--impl", "me", "--cases", "3", "-k",
                          "repeats")[-1]
        self.assertEqual((held["verdict"], held["held"], held["of"]), ("PASS", 1, 1))

    def test_deep_tries_a_thousand(self):
        self.syslab("check", "flash_forward", "--mine", f"me={PLUGINS}/naive_attention.so", "--impl", "me", "--deep", "-k",
                    "refusal")
        self.assertEqual({cases for (cases,) in self.sql("SELECT cases_run FROM check_result")}, {1000})
        self.syslab("check", "flash_forward", "--deep", "--cases", "5", expect=2)

    def test_the_first_failure_ends_it_and_the_rest_is_told_as_not_begun(self):
        *_, verdict = self.lines("check", "flash_forward", "--mine", f"me={PLUGINS}/faulty_attention.so", "-x", "--cases", "10", expect=1)
        self.assertEqual(self.sql("SELECT status FROM v_attempt"), [("check_failed",)])
        self.assertEqual([verdict[field] for field in ("handout", "verdict", "held", "of")], ["2026", "FAIL", 0, 3])
        self.assertIn("attention.large_scores", verdict["never_tried"]["not begun"])

    def test_last_failed_asks_what_failed_and_all_once_nothing_does(self):
        library = self.folder / "mine.so"
        shutil.copy(f"{PLUGINS}/faulty_attention.so", library)
        mine = ("check", "flash_forward", "--mine", f"me={library}", "--cases", "5")

        def asked(*options, expect):
            *_, verdict = self.lines(*mine, *options, expect=expect)
            [(run,)] = self.sql("SELECT uid FROM run ORDER BY id DESC LIMIT 1")
            return verdict["chosen_by"], dict(self.sql("SELECT law || ' ' || (params ->> '$.contract'), ending FROM v_attempt"
                                                       " WHERE run_uid = ?", run))

        chosen_by, first = asked("--last-failed", expect=1)
        self.assertEqual(chosen_by, None)  # none is known to have failed: all are searched
        failed = {law for law, ending in first.items() if ending == "failed"}
        self.assertTrue(0 < len(failed) < len(first))
        asked("-k", "rows_sum_to_one", expect=0)  # of those that failed it says nothing
        chosen_by, second = asked("--last-failed", expect=1)
        self.assertEqual((chosen_by, set(second)), ("--last-failed", failed))
        shutil.copy(f"{PLUGINS}/naive_attention.so", library)  # mended, under the same name
        self.assertEqual(set(asked("--last-failed", expect=0)[1]), failed)
        self.assertEqual(set(asked("--last-failed", expect=0)[1]), set(first))

    def test_until_draws_on_for_its_time_and_refuses_what_is_none(self):
        mine = ("check", "flash_forward", "--mine", f"me={PLUGINS}/naive_attention.so", "-k", "refusal")
        began = time.monotonic()
        *_, verdict = self.lines(*mine, "--until", "3s")
        self.assertGreater(time.monotonic() - began, 2)
        self.assertTrue(all(cases >= 100 for (cases,) in self.sql("SELECT cases_run FROM check_result")))
        self.assertEqual((verdict["until"], verdict["chosen_by"]), ("3s", "-k refusal"))
        for until in ("long", "0s"):
            self.assertIn(f"--until '{until}' is no duration", self.refused(*mine, "--until", until))


if __name__ == "__main__":
    unittest.main()
