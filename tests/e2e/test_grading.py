"""`syslab grade`: a folder of submissions by a rubric, and what becomes of those that misbehave."""
import csv
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree

from lab import Lab, torch_is_older
from submitted import BOTH_FLASHES, HOSTILE, hostile_zips, make, make_parallel, rubric, zip_of

ATTENTION = rubric(BOTH_FLASHES, ("essay", 3, [{"points": 3, "written": True}]))
PARALLEL = rubric(("naive_ddp", 4, [{"points": 4, "function": "get_ddp", "experiment": "naive_ddp"}]),
                  ("fsdp", 6, [{"points": 6, "function": "get_fsdp", "experiment": "fsdp",
                               "laws": ["fsdp.equals_one_process", "fsdp.real_numbers", "fsdp.waits"]}]))  # fp16 needs torch 2.1


def marked(mark):
    """Processes with this word in their environment."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(process))
        except OSError:
            pass
    return found


class CommandLines(threading.Thread):
    """Those of what this process starts, and of what that starts, as any process may read them, from their start on."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.ended = set(), threading.Event()

    def look(self, process, generations):
        try:
            for task in os.listdir(f"/proc/{process}/task") if generations > 0 else ():
                with open(f"/proc/{process}/task/{task}/children") as file:
                    for child in file.read().split():
                        self.look(child, generations - 1)
            with open(f"/proc/{process}/cmdline") as file:
                self.seen.add(file.read())
        except OSError:  # it has ended
            pass

    def run(self):
        own = os.getpid()
        while not self.ended.is_set():
            self.look(own, 2)  # grade, and what it starts: often enough to see each before it covers anything

    def all(self):
        self.ended.set()
        self.join()
        return self.seen


def minds_hangups():
    """Whoever ran the tests with nohup made them ignore SIGHUP, and with them what they start."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Grading(Lab):
    def setUp(self):
        super().setUp()
        self.more = {}
        self.temporary, self.batch = self.folder / "tmp", self.folder / "submissions"
        self.temporary.mkdir()
        self.batch.mkdir()
        (self.folder / "rubric.toml").write_text(ATTENTION)

    def environment(self):
        # Whoever takes gigabytes would have them filled first, since the tests' runner asks the allocator to.
        taken = {name: value for name, value in super().environment().items() if name != "MALLOC_PERTURB_"}
        return {**taken, "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"], "TMPDIR": str(self.temporary), **self.more}

    def grade(self, *arguments, output="grades", expect=0, **options):
        return self.syslab("grade", "submissions", "--handout", "2026", "--rubric", "rubric.toml", "-o", output, "--cases", "3",
                           *arguments, expect=expect, timeout=500, **options)

    def table(self, output="grades"):
        with open(self.folder / output / "grades.csv", newline="", encoding="utf-8") as file:
            return {row["student"]: row for row in csv.DictReader(file)}

    def digests(self, *folders):
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest()
                for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()}

    def test_a_batch_has_a_table_and_a_page_each_and_goes_on_where_it_was(self):
        make(self.batch / "ada")
        zip_of(make(self.folder / "src", "NoScale"), self.batch / "bob.zip")
        before = self.digests(self.batch)
        self.grade("--jobs", "2")
        table = self.table()
        self.assertEqual(sorted(table), ["ada", "bob"])
        self.assertEqual((table["ada"]["points"], table["ada"]["checked"], table["ada"]["open"]), ("6", "10", "3"))
        self.assertEqual(table["bob"]["points"], "2")  # one law of three: it answers, and neither O nor L is right
        grades = self.folder / "grades"
        self.assertEqual(stat.S_IMODE(grades.stat().st_mode), 0o700)
        page = (grades / "students/bob/evidence.md").read_text()
        self.assertIn(json.loads((grades / ".work/bob.json").read_text())["record"]["digest"], page)
        self.assertIn("does not hold with batch 1", page)
        self.assertNotIn(", gain", page)  # as usual: not worth a word
        self.assertIn("syslab check flash_forward --handout 2026 --mine me=. --cases 3", page)
        self.assertNotIn("ada", page)
        self.assertNotIn("seed", page)
        results = json.loads((grades / "students/bob/results.json").read_text())
        self.assertEqual((results["score"], [test["max_score"] for test in results["tests"]]), (2, [6, 4]))
        suites = xml.etree.ElementTree.parse(grades / "junit.xml").getroot()
        self.assertEqual([(suite.get("name"), suite.get("failures")) for suite in suites], [("ada", "1"), ("bob", "2")])
        for name in ("grades.md", "grades.html"):
            self.assertIn("bob", (grades / name).read_text())

        zip_of(make(self.folder / "new", "Fp32Only"), self.batch / "carol.zip")
        pages = self.digests(grades / "students")
        done = self.grade()
        self.assertEqual(done.stderr.count("(as before)"), 2)
        self.assertEqual(self.table()["carol"]["points"], "6")
        self.assertLessEqual(pages.items(), self.digests(grades / "students").items())
        self.assertEqual(self.digests(self.batch) | before, self.digests(self.batch))
        self.assertEqual(list(self.temporary.iterdir()), [])

    def at_work(self):
        """A grading of two: one is checked, and the other is being checked, which would take minutes."""
        words = ("grade", "submissions", "--handout", "2026", "--rubric", "rubric.toml", "-o", "grades", "--cases", "3", "--seed", "7654321")
        process = subprocess.Popen(self.command(*words), cwd=self.folder, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=minds_hangups)
        assert process.stderr is not None
        told = next((line for line in process.stderr if line.startswith("[1/2] ada")), "")
        self.assertTrue(told, "it ended before the first was checked")
        until = time.monotonic() + 60
        while not list(self.temporary.glob("syslab-held-*/2/output")) and time.monotonic() < until:
            time.sleep(0.05)
        return process, words

    def test_a_signal_ends_it_and_the_same_command_continues(self):
        make(self.batch / "ada")
        slow = "import time\nfrom cs336_systems import flash\nflash.IgnoresCausal.forward = staticmethod(lambda *_: time.sleep(300))\n"
        make(self.batch / "bob", head=slow)
        self.more = {"MARK_OF_THIS_TEST": self.folder.name}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                process, words = self.at_work()
                process.send_signal(number)
                out, _ = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 3, out)
                command = " ".join(words).replace("7654321", "SEED")
                self.assertEqual(out.splitlines(), ["interrupted: 1 of 2 submissions checked, and kept in 'grades'; no table was written",
                                                    f"next: syslab {command}"])
                self.assertEqual(list(self.temporary.iterdir()), [])
                self.assertFalse((self.folder / "grades/lab.db-wal").exists())
                self.assertTrue((self.folder / "grades/.work/ada.json").exists())
                self.assertFalse((self.folder / "grades/.work/bob.json").exists())
                self.assertEqual(marked(self.folder.name), [])
        process, words = self.at_work()
        process.kill()
        process.communicate()
        self.assertEqual(len(list(self.temporary.iterdir())), 1)
        shutil.rmtree(self.batch / "bob")
        make(self.batch / "bob")
        done = self.syslab(*words, timeout=500)
        self.assertIn("1 temporary folder of a killed run removed", done.stderr)
        self.assertEqual(done.stderr.count("(as before)"), 1)
        self.assertEqual(sorted(self.table()), ["ada", "bob"])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_parallel_training_earns_points_by_its_laws(self):
        (self.folder / "rubric.toml").write_text(PARALLEL)
        make_parallel(self.batch / "ada")
        make_parallel(self.batch / "bob", ddp="AverageForgotten")
        self.grade()
        table = self.table()
        self.assertEqual([table["ada"][name] for name in ("points", "checked", "naive_ddp", "fsdp")], ["10", "10", "4", "6"])
        self.assertEqual([table["bob"][name] for name in ("points", "checked", "naive_ddp", "fsdp")], ["6.8", "10", "0.8", "6"])
        record = json.loads((self.folder / "grades/.work/bob.json").read_text())["record"]
        searched = {law["experiment"] for row in record["adapters"] for law in row["laws"]}
        self.assertEqual(searched, {"naive_ddp", "fsdp"})  # what earns no point is not searched
        self.assertIn("not divided by 2", (self.folder / "grades/students/bob/evidence.md").read_text())
        self.grade("--device", "cuda", "--despite-open")  # another question, which the answer for the CPU does not settle
        page = (self.folder / "grades/students/bob/evidence.md").read_text()
        if "needs a GPU" in page:  # else there is one
            self.assertEqual([self.table()["bob"][name] for name in ("points", "checked", "open")], ["0", "0", "10"])
        else:
            self.assertIn("--device cuda", page)

    def test_a_dry_run_tells_what_would_stay_open_and_writes_nothing(self):
        (self.folder / "rubric.toml").write_text(PARALLEL)
        make_parallel(self.batch / "ada")
        make_parallel(self.batch / "bob", tail="\n\nimport einops_of_nobody\n")
        project = '[project]\nname = "bob"\nversion = "1"\nrequires-python = ">=3.8"\ndependencies = [\n  "einops_of_nobody",\n  "torch~=2.11.0",\n]\n'
        (self.batch / "bob/pyproject.toml").write_text(project)
        before = self.digests(self.folder)
        run = ("grade", "submissions", "--handout", "2026", "--rubric", "rubric.toml", "--dry-run")
        said = self.syslab(*run, timeout=500).stdout
        self.assertRegex(said, "ada +2 of 2 functions +0 of 10 points")
        self.assertRegex(said, r"bob +0 of 2 functions +Python >=3.8, torch ~=2.11.0 +10 of 10 points +get_ddp needs what this Python lacks: this Python has no "
                               "package 'einops_of_nobody'")
        self.assertTrue(said.endswith("at least 1 of 2 submissions would be mostly open; no law was searched\n"), said)
        self.assertEqual(self.digests(self.folder), before)
        self.assertFalse((self.folder / "grades").exists())
        shutil.copytree(self.batch / "bob", self.batch / "carol")
        for refused in (self.syslab(*run, expect=2, timeout=500), self.grade(expect=2)):
            self.assertIn("2 of 3 submissions would be mostly open; expected", refused.stderr)
            self.assertRegex(refused.stderr, "\ntry: --python FILE .*--despite-open")
        self.assertFalse((self.folder / "grades").exists())
        self.grade("--despite-open")
        table = self.table()
        self.assertEqual([table["carol"][name] for name in ("points", "checked", "open")], ["0", "0", "10"])
        self.assertIn("needs what this Python lacks", table["carol"]["note"])
        self.assertEqual(table["ada"]["points"], "10")

    def test_a_link_to_nothing_is_left_out_and_any_other_refused(self):
        for name, target in (("ada", "/of/somebody/else"), ("bob", "/etc/passwd")):
            (make(self.batch / name) / "data").symlink_to(target)
        said = self.grade().stderr
        self.assertIn("left out: 1 link to nothing: data", said)
        table = self.table()
        self.assertEqual((table["ada"]["points"], table["bob"]["points"]), ("6", "0"))
        self.assertIn("'data' is a symbolic link", table["bob"]["note"])
        self.assertIn("Left out: 1 link to nothing: data", (self.folder / "grades/students/ada/evidence.md").read_text())
        again = self.grade().stderr
        self.assertIn("(as before)", again)
        self.assertIn("left out: 1 link to nothing: data", again)

    def test_what_an_older_torch_lacks_costs_no_points(self):
        (self.folder / "rubric.toml").write_text(PARALLEL)
        lacks = "\n\ndef get_fsdp(module, compute_dtype=None):\n    module.of_a_later_torch\n"
        make_parallel(self.batch / "ada", tail=lacks)
        make_parallel(self.batch / "bob", tail=lacks.replace("module.of_a_later_torch", "raise AttributeError('needs torch >= 2.1')"))
        self.grade()
        table = self.table()
        self.assertEqual([table["ada"][name] for name in ("points", "checked", "open")], ["4", *(("4", "6") if torch_is_older() else ("10", "0"))])
        self.assertEqual([table["bob"][name] for name in ("points", "checked", "open")], ["4", "10", "0"])
        parts = [table["ada"][name] for name in ("possible", "naive_ddp", "naive_ddp.open", "fsdp", "fsdp.open", "fsdp.possible")]
        self.assertEqual(parts, ["10", "4", "0", "0", "6" if torch_is_older() else "0", "6"])

    def test_a_library_in_disguise_is_listed_and_costs_no_points(self):
        make(self.batch / "ada", head="def same():\n    from torch.nn.functional import scaled_dot_product_attention\n")
        (self.batch / "ada/old.py").write_bytes(b"# coding: latin-1\nimport xformers; name = 'caf\xe9'\n")
        make(self.batch / "bob")
        done = self.grade()
        self.assertIn("2 places to look at", done.stderr)
        with open(self.folder / "grades/suspicions.csv", newline="", encoding="utf-8") as file:
            old, row = csv.DictReader(file)
        self.assertEqual((old["file"], old["text"]), ("old.py", "import xformers; name = 'caf\ufffd'"))
        self.assertEqual((row["student"], row["file"], row["line"], row["why"]), ("ada", "tests/adapters.py", "2", "calls torch's own attention"))
        self.assertIn("own attention", (self.folder / "grades/suspicions.md").read_text())
        table = self.table()
        self.assertEqual((table["ada"]["points"], table["bob"]["points"]), ("6", "6"))
        self.assertNotIn("own attention", (self.folder / "grades/students/ada/evidence.md").read_text())
        self.assertEqual(self.grade().stderr.count("2 places to look at"), 1)  # of what is known already, too

    def test_the_newest_of_several_hand_ins_counts(self):
        for when, name in (("2026-05-03T17:00", "IgnoresCausal"), ("2026-04-30", "NoScale")):
            zip_of(make(self.folder / name, name), self.batch / f"ada@{when}.zip")
        make(self.batch / "ada", "NoScale")
        make(self.batch / "ad", "NoScale")
        done = self.grade()
        table = self.table()
        self.assertEqual({name: row["points"] for name, row in table.items()}, {"ad": "2", "ada": "6"})
        self.assertIn("ada@2026-05-03T17:00.zip of 3 hand-ins: the newest counts", done.stderr)
        zip_of(self.folder / "NoScale", self.batch / "ada.zip")
        self.assertIn("would both be called ada", self.grade(expect=2).stderr)

    def test_the_same_submission_gets_the_same_grade_and_a_hidden_seed_is_told_to_nobody(self):
        make(self.batch / "ada", "NoScale")
        shutil.copytree(self.batch / "ada", self.batch / "twin")
        make(self.batch / "lacks", head="import a_package_of_nobody\n")
        make(self.batch / "asks", head="import os\nraise RuntimeError('whose clock: ' + os.environ.get('SYSLAB_GPU_MEMORY', 'anybody'))\n")
        lines = CommandLines()
        lines.start()
        self.grade("--seed", "-", input="80808\n")  # its own command line does not have it either
        seen = lines.all()
        self.assertTrue(any("\0check\0" in line for line in seen), seen)
        self.assertEqual([line for line in seen if "80808" in line], [])
        pages = [(self.folder / f"grades/students/{name}/evidence.md").read_text().replace(name, "") for name in ("ada", "twin")]
        self.assertEqual(*pages)
        told = "".join(file.read_text() for file in (self.folder / "grades/students").rglob("*") if file.is_file())
        self.assertNotIn("80808", told)
        self.assertNotIn("found", told)  # numbers that were made of hidden inputs
        self.assertIn("does not hold", told)
        # Before there are inputs nothing can be told of them.
        for page in ("evidence.md", "results.json"):
            self.assertIn("package 'a_package_of_nobody' is missing", (self.folder / "grades/students/lacks" / page).read_text())
            # What others have handed in is timed by the clock of the lab: what grade starts is asked to.
            self.assertIn("whose clock: shared", (self.folder / "grades/students/asks" / page).read_text())

    def test_what_misbehaves_costs_its_own_line_and_the_batch_goes_on(self):
        watched = self.folder / "submissions"
        for name, (head, _) in HOSTILE.items():
            make(self.batch / name, head=head.replace("WATCHED", repr(str(watched))))
        make(self.batch / "neighbour")
        (self.batch / "secret.zip").write_bytes(b"no zip")
        reasons = hostile_zips(self.batch)
        before = self.digests(self.batch)
        self.grade("--jobs", "2", "--timeout", "45s", "--limit", "3m")
        table = self.table()
        self.assertEqual(set(table), set(HOSTILE) | {"neighbour", "secret"} | set(reasons))
        self.assertEqual(table["neighbour"]["points"], "6")
        for name, reason in reasons.items():
            self.assertEqual(table[name]["points"], "0", name)
            self.assertIn(reason, table[name]["note"])
            self.assertNotIn("\n", table[name]["note"])
        for name, (_, reason) in HOSTILE.items():
            page = (self.folder / f"grades/students/{name}/evidence.md").read_text()
            self.assertEqual(table[name]["points"], "6" if reason is None else "0", page)
            if reason is not None:
                self.assertIn(reason, page)
        self.assertEqual(self.digests(self.batch), before)
        self.assertFalse(list(self.folder.rglob("written_by_a_submission")))
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual(marked(str(self.temporary)), [])

    def test_zips_of_a_list_tell_nobody_the_names_beside_them(self):
        zips = self.folder / "zips"
        zips.mkdir()
        for name, head in (("ada", HOSTILE["lists"][0].replace("WATCHED", repr(str(zips)))), ("zenobia", "")):
            zip_of(make(self.folder / "projects" / name, head=head), zips / f"{name}.zip")
        (self.folder / "list.csv").write_text("student,path\nada,zips/ada.zip\nzen,zips/zenobia.zip\n")
        self.syslab("grade", "list.csv", "--handout", "2026", "--rubric", "rubric.toml", "-o", "grades", "--cases", "2", "--quiet", timeout=300)
        table = self.table()
        self.assertEqual((table["ada"]["points"], table["ada"]["note"]), (table["zen"]["points"], ""), table)

    def test_what_ran_out_of_time_is_called_so_and_tried_again_unless_told(self):
        make(self.batch / "ada", head="import time\ntime.sleep(1000)\n")
        said = self.grade("--limit", "3s").stderr
        self.assertIn("1 submission ran out of time; the next `grade` tries it again, unless --no-retry is given", said)
        self.assertEqual((self.table()["ada"]["points"], self.table()["ada"]["note"]), ("0", "it ran out of time: stopped after 3 s"))
        self.assertEqual(self.grade("--limit", "3s").stderr.count("(as before)"), 0)
        self.assertEqual(self.grade("--limit", "3s", "--no-retry").stderr.count("(as before)"), 1)

    def test_written_parts_and_names_are_merged(self):
        make(self.batch / "ada")
        (self.folder / "written.csv").write_text('student,item,points\nada,essay,2.5\n')
        (self.folder / "roster.csv").write_text('id,name\nada,"Lovelace, Ada"\nbob,Bob\n')
        self.grade("--written", "written.csv", "--roster", "roster.csv")
        package = self.folder / "site/new-1.0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Name: new\nVersion: 1.0\n")
        self.more["PYTHONPATH"] = str(package.parent)  # what failed for want of it may hold now
        for known in (0, 1):
            again = self.grade("--written", "written.csv", "--roster", "roster.csv").stderr
            self.assertEqual(again.count("(as before)"), known, again)
        table = self.table()
        self.assertEqual([table["ada"][name] for name in ("name", "points", "checked", "open", "essay")],
                         ["Lovelace, Ada", "8.5", "13", "0", "2.5"])
        self.assertEqual([table["bob"][name] for name in ("points", "open", "possible", "essay", "essay.open", "note")],
                         ["0", "0", "13", "0", "0", "nothing handed in"])
        page = (self.folder / "grades/students/ada/evidence.md").read_text()
        self.assertIn("essay: 2.5 of 3 points", page)
        self.assertNotIn("Lovelace", page)
        for line, reason in (("ada,essay,4", "no points from 0 to 3"), ("eve,essay,1", "no submission of 'eve'"),
                             ("ada,novel,1", "no item 'novel'"), ("ada,flash_forward (a),1", "not graded by a person")):
            (self.folder / "written.csv").write_text(f"student,item,points\n{line}\n")
            refused = self.grade("--written", "written.csv", expect=2)
            self.assertIn("written.csv, line 2: ", refused.stderr)
            self.assertNotIn("[1/1]", refused.stderr)  # before anything is checked
            self.assertIn(reason, refused.stderr)

    def test_who_is_not_on_the_roster_keeps_the_reason_of_the_row(self):
        (self.batch / "eve.zip").write_bytes(b"PK")
        (self.folder / "roster.csv").write_text("id,name\nbob,Bob\n")
        self.grade("--roster", "roster.csv")
        self.assertRegex(self.table()["eve"]["note"], "^'eve.zip' is refused: .*; not on the roster$")
        page = (self.folder / "grades/students/eve/evidence.md").read_text()
        self.assertEqual(page.count("is refused"), 1)
        self.assertIn("Handed in: eve.zip", page)

    def test_a_rubric_with_a_mistake_is_refused_with_its_line(self):
        make(self.batch / "ada")
        for wrong, reason in ((ATTENTION.replace("points = 6", "points = 5"), "the items of 'flash_forward' have 9 points"),
                              (ATTENTION.replace("part = \"b\"", "prat = \"b\""), "unknown key 'prat'"),
                              (ATTENTION.replace("points = 3\nwritten", "points = \nwritten"), "line "),
                              (ATTENTION.replace("2026", "2025"), "rubric of hand-out 2025"),
                              (ATTENTION.replace("written = true", ""), "either `written = true` or a `function`")):
            (self.folder / "rubric.toml").write_text(wrong)
            self.assertIn(reason, self.grade(expect=2).stderr)
            self.assertFalse((self.folder / "grades").exists())

    def test_a_zip_for_gradescope_in_no_folder_is_refused_with_options_that_grade_has(self):
        wheel = self.folder / "syslab-1-py3-none-any.whl"
        wheel.touch()
        refused = self.refused("grade", "--handout", "2026", "--gradescope", "nowhere/a.zip", "--wheel", wheel)
        self.assertRegex(refused, r"there is no folder 'nowhere'; make it first \(mkdir -p 'nowhere'\) or choose another place$")

    def test_a_word_for_the_clock_is_refused_before_anything_is_graded_or_asks_anew(self):
        make(self.batch / "ada", head="import os\nraise RuntimeError('whose clock: ' + os.environ['SYSLAB_GPU_MEMORY'])\n")
        self.more = {"SYSLAB_GPU_MEMORY": "mine"}
        self.assertIn("SYSLAB_GPU_MEMORY is 'mine'", self.grade(expect=2).stderr)
        for word, known in (("trusted", 0), ("trusted", 1), ("copied", 0)):
            self.more = {"SYSLAB_GPU_MEMORY": word}
            self.assertEqual(self.grade().stderr.count("(as before)"), known)
            self.assertIn(f"whose clock: {word}", (self.folder / "grades/students/ada/evidence.md").read_text())

    def test_a_page_of_evidence_says_which_walls_were_missing(self):
        make(self.batch / "ada", head="raise RuntimeError('not today')\n")
        self.more = {"SYSLAB_WALLS": "none"}
        self.grade()
        self.assertIn("\nJudged without these walls: all", (self.folder / "grades/students/ada/evidence.md").read_text())

    def test_folders_that_cannot_be_graded_are_refused(self):
        self.assertIn("neither folders nor zips", self.grade(expect=2).stderr)
        make(self.batch / "ada")
        self.assertIn("may not lie in", self.grade(output="submissions/grades", expect=2).stderr)
        zip_of(self.batch / "ada", self.batch / "ada.zip")
        self.assertIn("would both be called ada", self.grade(expect=2).stderr)
        self.assertIn("is no folder", self.refused("grade", "nowhere", "--handout", "2026", "-o", "g"))


if __name__ == "__main__":
    unittest.main()
