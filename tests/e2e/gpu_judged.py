"""What somebody hands in, on a GPU: it is checked, timed and kept apart there; and what shortcuts gain. gpu_lab.py runs these tests."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from lab import SYSLAB, Lab, attempts

HERE = pathlib.Path(__file__).resolve().parent


def has_torch():
    """Also reads torch once, from a disk that may be cold: no test's limit pays for that."""
    began = time.monotonic()
    try:
        found = subprocess.run([os.environ.get("SYSLAB_PYTHON", "python3"), "-c", "import torch; assert torch.cuda.is_available()"],
                               capture_output=True, timeout=240).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        found = False
    print(f"torch {'sees' if found else 'sees no'} GPU: asked for {time.monotonic() - began:.0f} s", flush=True)
    return found


HAS_TORCH = has_torch()

CLASSES = HERE / "gpu_classes.py"
SOURCES = HERE.parents[1] / "src"  # a bundle has none
NVCC = shutil.which("nvcc") if SOURCES.is_dir() else None
SMALL = ("-a", "rows=4096", "-a", "dim=256", "--laws", "none", "--protocol", "quick")
ATTENTION = ("flash_forward", "-a", "seq=256", "-a", "head_dim=64", "-a", "dtype=fp32", "-a", "causal=false", "-a", "heads=1", "--laws", "none",
             "--protocol", "quick")


class Judged(Lab):
    asked: dict = {}  # variables of one command; what else begins with SYSLAB_ is kept from it

    def environment(self):
        return {**super().environment(), **self.asked}

    def facts(self):
        return [json.loads(text) for (text,) in self.sql("SELECT facts FROM attempt_facts ORDER BY attempt_id")]

    def metrics(self, name):
        return [value for (value,) in self.sql("SELECT value FROM metric WHERE name = ? ORDER BY attempt_id", name)]

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_a_class_of_mine_is_checked_and_timed_there(self):
        for name in ("Here", "ForkAndJoin"):
            lines = self.lines("run", "weighted_sum", "--mine", f"me={CLASSES}:{name}", "--impl", "me", "--device", "cuda", "-a",
                               "pass=forward", "-a", "dtype=fp32", *SMALL)
            self.assertEqual({line["status"] for line in attempts(lines)}, {"ok"}, lines)
        self.assertTrue(all(1e-6 < seconds < 1e-2 for seconds in self.metrics("time")))

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_work_on_a_stream_of_its_own_is_found_out(self):
        for name, said in (("Aside", "read its inputs before"), ("ElsewhereAltogether", "read its inputs before"),
                           ("NeverJoins", "work went on")):
            lines = self.lines("run", "weighted_sum", "--mine", f"me={CLASSES}:{name}", "--impl", "me", "--device", "cuda", "-a",
                               "pass=forward", "-a", "dtype=fp32", *SMALL, expect=None)
            ((status, detail),) = [(line["status"], line["detail"]) for line in attempts(lines)]
            self.assertIn(status, ("check_failed", "error"), name)
            self.assertRegex(detail, said, name)
        self.assertEqual(self.metrics("time"), [])

    def judged(self, name, **environment):
        """Of tests/e2e/hostile/gpu.py: how it ended, its detail, and what is stored of it."""
        self.asked = environment
        return self.ended("weighted_sum", *SMALL, "-a", "pass=forward", "-a", "dtype=fp32", "--mine", f"me={HERE / 'hostile' / 'gpu.py'}:{name}")

    def ended(self, *case):
        lines = self.lines("run", *case, "--impl", "me", "--device", "cuda", expect=None)
        [ended] = attempts(lines)
        facts = json.loads(self.sql("SELECT facts FROM v_attempt ORDER BY attempt_id DESC LIMIT 1")[0][0] or "{}")
        return ended["status"], ended["detail"], facts

    def judged_library(self, hostile="", **environment):
        """The same of tests/e2e/hostile/library.cu, told to do that."""
        self.asked = {"HOSTILE": hostile, **environment}
        return self.ended(*ATTENTION, "--mine", f"me={self.built_library()}")

    @classmethod
    def built_library(cls, source=HERE / "hostile" / "library.cu", *options):
        """Once for all tests."""
        if not hasattr(cls, "folder_of_libraries"):
            cls.folder_of_libraries = tempfile.TemporaryDirectory()
            cls.addClassCleanup(cls.folder_of_libraries.cleanup)
        library = pathlib.Path(cls.folder_of_libraries.name) / f"{source.stem}{''.join(options)}.so"
        if not library.exists():
            subprocess.run([NVCC, "-std=c++20", "-arch=native", "-shared", "-Xcompiler=-fPIC", f"-I{SOURCES}", *options, "-o", library, source], check=True, timeout=240)
        return library

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_the_labs_own_clock_times_a_judged_class(self):
        status, detail, facts = self.judged("Honest", SYSLAB_GPU_MEMORY="shared")
        self.assertEqual((status, facts["gpu_memory"], facts["walls"]), ("ok", "shared", "python"), detail)
        self.assertTrue(any("reduce" in one["name"] for one in facts["code"]["kernels"]), facts["code"])
        self.assertNotIn("suspect", facts)
        status, detail, facts = self.judged("ForgesItsEvents", SYSLAB_GPU_MEMORY="shared")
        self.assertEqual(status, "ok", detail)
        self.assertIn("the lab's is the time", facts["suspect"])
        status, detail, facts = self.judged("Honest", SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "copied", "its own"), detail)
        honest, forged, by_its_events = self.metrics("time")
        self.assertLess(abs(honest / by_its_events - 1), 0.03)
        self.assertLess(abs(forged / by_its_events - 1), 0.05)

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_where_tensors_are_copied_a_forged_time_is_not_believed(self):
        status, detail, facts = self.judged("ForgesItsEvents", SYSLAB_GPU_MEMORY="copied")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "copied", "the lab's"), detail)
        self.assertIn("with copies to the GPU and back", facts["suspect"])
        [forged] = self.metrics("time")
        self.assertGreater(forged, 1e-3)  # it is a millisecond, and says a tenth

    def judged_function(self, name, **environment):
        """The same of tests/e2e/hostile/gpu_functions.py, through no experiment."""
        self.asked, file = environment, HERE / "hostile" / "gpu_functions.py"
        return self.ended("--mine", f"me={file}:{name}", "--reference", f"{file}:reference", "--inputs", f"{file}:cases", "--protocol", "quick")

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_the_labs_own_clock_times_a_function_of_any_arguments(self):
        status, detail, facts = self.judged_function("honest", SYSLAB_GPU_MEMORY="shared")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "shared", "the lab's"), detail)
        self.assertNotIn("suspect", facts)
        for name in ("forges_its_events", "tells_half"):
            status, detail, facts = self.judged_function(name, SYSLAB_GPU_MEMORY="shared")
            self.assertEqual(status, "ok", detail)
            self.assertIn("the lab's is the time", facts["suspect"])
        status, detail, facts = self.judged_function("honest", SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "copied", "its own"), detail)
        *by_the_lab, by_its_events = self.metrics("time")
        for seconds in by_the_lab:
            self.assertLess(abs(seconds / by_its_events - 1), 0.05)
        for name in ("remembers_addresses", "returns_early"):
            status, detail, _ = self.judged_function(name, SYSLAB_GPU_MEMORY="shared")
            self.assertIn(status, ("check_failed", "error"), (name, detail))
        self.assertEqual(len(self.metrics("time")), 4)

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_no_shortcut_of_a_judged_class_is_ranked(self):
        for name in ("SaysDoneAtOnce", "WritesLate", "ReplaysTheLast", "LeavesWithZero"):
            status, detail, _ = self.judged(name, SYSLAB_GPU_MEMORY="shared")
            self.assertIn(status, ("check_failed", "error"), (name, detail))
        self.assertEqual(self.metrics("time"), [])

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_a_judged_class_reaches_nothing(self):
        self.assertIn("reached: nothing.", self.judged("Reaches")[1])
        self.assertRegex(self.judged("Reaches", SYSLAB_WALLS="none")[1], "reached: .*internet")

    @unittest.skipUnless(HAS_TORCH and SOURCES.is_dir(), "torch sees no GPU, or no sources")
    def test_ranks_of_a_class_compute_there(self):
        classes = HERE.parent / "worker" / "mine"
        for file, name, experiment, against in (("parallel.py", "Individual", "ddp_overlap_individual_parameters", set()),
                                                ("parallel.py", "Sharded", "optimizer_state_sharding", set()),
                                                ("parallel_variants.py", "FlatFSDP", "fsdp", set()),
                                                ("parallel_faults.py", "NoWait", "ddp_overlap_individual_parameters", {"ddp.waits"})):
            with self.subTest(name):
                lines = self.lines("check", experiment, "--mine", f"me={classes / file}:{name}", "--device", "cuda", "--contract", "handout", "--cases", "3",
                                   expect=None)
                laws = attempts(lines)
                self.assertEqual({law["device"] for law in laws}, {"cuda"})
                broken = {law["law"] for law in laws if law["status"] != "ok"}
                self.assertTrue(against <= broken and bool(against) == bool(broken), laws)

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_a_judged_library_is_checked_and_timed(self):
        status, detail, facts = self.judged_library(SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual((status, facts.get("gpu_memory"), facts.get("walls")), ("ok", "copied", "native"), detail)
        [seconds] = self.metrics("time")
        self.assertTrue(1e-3 < seconds < 0.1, seconds)
        self.assertNotIn("flags_missing", facts)
        ((clocks,),) = self.sql("SELECT count(*) FROM sample s JOIN series n ON n.id = s.series_id WHERE n.name = 'clock'"
                                " AND s.value BETWEEN 2e8 AND 4e9")
        self.assertGreater(clocks, 0)

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_the_kernels_of_a_judged_class_stand_beside_it(self):
        status, detail, facts = self.judged("Honest")
        self.assertEqual(status, "ok", detail)
        self.assertEqual(facts["code"].get("told_by"), "its own process", facts["code"])
        self.assertTrue(any("reduce" in one["name"] for one in facts["code"]["kernels"]), facts["code"])
        self.assertTrue(all(one["launches"] >= 1 for one in facts["code"]["kernels"]))

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_the_kernels_of_a_judged_library_stand_beside_it(self):
        status, detail, facts = self.judged_library()
        self.assertEqual((status, facts["code"].get("told_by")), ("ok", "its own process"), (detail, facts.get("code")))
        self.assertIn("attend", " ".join(one["name"] for one in facts["code"]["kernels"]), facts["code"])

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_a_judged_library_is_captured_as_a_graph(self):
        library = f"me={self.built_library()}"
        status, detail, _ = self.ended(*ATTENTION[:-1], "graph", "--mine", library)
        self.assertEqual(status, "ok", detail)
        self.asked = {"HOSTILE": "waits"}
        status, detail, _ = self.ended(*ATTENTION[:-1], "graph", "--mine", library)
        self.assertEqual(status, "unsupported", detail)
        self.assertIn("cannot be captured as a graph", detail)

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_operators_of_a_judged_library_are_checked_and_timed(self):
        library = f"me={self.built_library(HERE.parent / 'fixtures' / 'plugins' / 'operators.cu')}"
        status, detail, facts = self.ended("weighted_sum", *SMALL, "-a", "pass=forward", "-a", "dtype=fp32", "--mine", library)
        self.assertEqual((status, facts.get("walls")), ("ok", "native"), detail)
        [seconds] = self.metrics("time")
        self.assertTrue(1e-6 < seconds < 1e-2, seconds)

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_the_labs_own_clock_times_a_judged_library(self):
        status, detail, facts = self.judged_library(SYSLAB_GPU_MEMORY="shared")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "shared", "the lab's"), detail)
        self.assertIn("attend", " ".join(one["name"] for one in facts["code"]["kernels"]), facts["code"])
        self.assertNotIn("suspect", facts)
        status, detail, facts = self.judged_library("clock", SYSLAB_GPU_MEMORY="shared")
        self.assertEqual(status, "ok", detail)
        self.assertIn("the lab's is the time", facts["suspect"])
        status, detail, _ = self.judged_library(SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual(status, "ok", detail)
        honest, forged, by_its_events = self.metrics("time")
        self.assertLess(abs(honest / by_its_events - 1), 0.03)
        self.assertLess(abs(forged / by_its_events - 1), 0.05)

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_no_shortcut_of_a_judged_library_in_shared_memory_is_ranked(self):
        for hostile in ("aside", "before", "again", "less", "leave", "inputs", "behind", "done"):
            status, detail, _ = self.judged_library(hostile, SYSLAB_GPU_MEMORY="shared")
            self.assertIn(status, ("check_failed", "error"), (hostile, detail))
        self.assertEqual(self.metrics("time"), [])

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_no_shortcut_of_a_judged_library_is_ranked(self):
        shortcuts = (("aside", "work went on"), ("before", "read its inputs before"), ("again", "sample"), ("less", "sample"), ("leave", "ended"), ("inputs", "changed its input 'k'"),
                     ("behind", "outside its elements"))
        for hostile, said in shortcuts:
            status, detail, _ = self.judged_library(hostile, SYSLAB_GPU_MEMORY="trusted")
            self.assertIn(status, ("check_failed", "error"), (hostile, detail))
            self.assertIn(said, detail, hostile)
        self.assertEqual(self.metrics("time"), [])

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_a_judged_library_gains_nothing_by_a_word_and_what_it_gains_by_its_events_is_told_as_copied(self):
        status, detail, _ = self.judged_library(SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual(status, "ok", detail)
        status, detail, facts = self.judged_library("done", SYSLAB_GPU_MEMORY="trusted")  # on a GPU nobody reads that word of a library
        self.assertEqual((status, facts["gpu_memory"]), ("ok", "copied"), detail)
        honest, done = self.metrics("time")
        self.assertLess(abs(done / honest - 1), 0.05)
        # SECURITY.md, "The clock on a GPU": not defended, and the row says so.
        status, detail, facts = self.judged_library("clock", SYSLAB_GPU_MEMORY="trusted")
        self.assertEqual((status, facts["gpu_memory"], facts["gpu_clock"]), ("ok", "copied", "its own"), detail)

    def broken_laws(self, judged, law, *, experiments=("flash_forward",), cases=20):
        """{law: what it says} of those that do not hold, in so many inputs each."""
        self.asked = {}
        lines = self.lines("check", *experiments, "--mine", f"me={judged}", "--impl", "me", "--device", "cuda", "--contract", "full", "--cases", str(cases),
                           "-k", law, expect=None)
        laws = attempts(lines)
        self.assertTrue(laws)
        return {one["law"]: one["detail"] for one in laws if one["status"] not in ("ok", "unsupported")}

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_guards_accuse_nobody_who_is_right(self):
        """All laws; whoever is right and accused all the same stands in the message, with the law and what it says."""
        self.maxDiff = None
        rights = {"warp_attention.cu": (self.built_library(HERE.parent / "fixtures" / "plugins" / "warp_attention.cu"), ("flash_forward", "flash_backward"))}
        ours = pathlib.Path(SYSLAB).parent / "src" / "capi" / "libsyslab.so"
        if ours.exists():
            rights["libsyslab.so"] = (ours, ("flash_forward", "flash_backward"))
        if HAS_TORCH:
            rights["gpu_classes.py:Right"] = (f"{CLASSES}:Right", ("flash_forward",))
        accused = {}
        for name, (judged, experiments) in rights.items():
            broken = self.broken_laws(judged, "attention", experiments=experiments, cases=5)
            broken.pop("attention.refusal", None)  # ours takes no rows that begin off 16 bytes, and says so
            if broken:
                accused[name] = broken
        self.assertEqual(accused, {}, f"right, and accused: {', '.join(accused)}")

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_laws_find_what_a_library_shares_between_streams_and_reads_behind_its_inputs(self):
        source = HERE.parent / "fixtures" / "plugins" / "warp_attention.cu"
        for option, law, said in (("-DSHARED_SCRATCH", "repeats", "other streams"), ("-DREAD_PAST_END", "equals_oracle", "past the end of one")):
            with self.subTest(option):
                self.assertEqual(self.broken_laws(self.built_library(source), law), {}, "warp_attention.cu is right, and accused")
                broken = self.broken_laws(self.built_library(source, option), law)
                self.assertTrue(broken)
                self.assertIn(said, " ".join(broken.values()))

    @unittest.skipUnless(HAS_TORCH, "torch sees no GPU")
    def test_laws_find_what_a_class_shares_between_streams_and_changes_in_place(self):
        for name, law, said in (("SharedScratch", "repeats", "other streams"), ("InPlace", "equals_oracle", "changed its input")):
            with self.subTest(name):
                self.assertEqual(self.broken_laws(f"{CLASSES}:Right", law), {}, "gpu_classes.py:Right is right, and accused")
                self.assertIn(said, " ".join(self.broken_laws(f"{CLASSES}:{name}", law).values()))

    @unittest.skipUnless(NVCC, "no nvcc, or no sources")
    def test_a_judged_library_reaches_nothing(self):
        self.assertIn("reached: nothing.", self.judged_library("reach")[1])
        self.assertRegex(self.judged_library("reach", SYSLAB_WALLS="none")[1], "reached: .*internet")

    @unittest.skipUnless(NVCC and shutil.which("compute-sanitizer"), "no nvcc, no sources or no compute-sanitizer")
    def test_compute_sanitizer_sees_into_a_judged_process(self):
        self.asked = {"HOSTILE": "beyond"}
        command = self.command("run", *ATTENTION, "--mine", f"me={self.built_library()}", "--impl", "me", "--device", "cuda")
        done = subprocess.run(["compute-sanitizer", "--target-processes", "all", *command], cwd=self.folder, env=self.environment(),
                              text=True, capture_output=True, timeout=240)
        self.assertRegex(done.stdout, "Invalid __global__ write", done.stderr)
        self.assertIn("under compute-sanitizer", done.stderr)
        self.assertEqual(self.facts()[-1]["walls"], "native")
