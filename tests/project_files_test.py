#!/usr/bin/env python3
"""Files for GitHub, editors and pre-commit parse, name what exists, and agree with .ci/run and tools/packages.sh.

    project_files_test.py ROOT      exits 77 where this Python has no yaml
"""
import configparser
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print(f"SKIP: {sys.executable} has no yaml (Debian: python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
WORKFLOW = ".github/workflows/ci.yml"
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
KINDS_OF_FIELDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
PINNED = r"^debian:12\.\d+$|^ubuntu:[\w.-]+-\d{8}$|@sha256:[0-9a-f]{64}$"
PAGE = re.compile(r"\b(?:docs/[\w-]+|[A-Z]{4,})\.md\b")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def loaded(name):
    return yaml.safe_load(text_of(name))


def ci_job():
    return loaded(WORKFLOW)["jobs"]["ci"]


def devcontainer():
    return json.loads(text_of(".devcontainer/devcontainer.json"))


def packages(*arrays):
    """What these arrays of tools/packages.sh hold; an array that is not there ends in an error."""
    names = " ".join(f'"${{{array}[@]}}"' for array in arrays)
    done = subprocess.run(["bash", "-euc", f"source tools/packages.sh; printf '%s\\n' {names}"], cwd=ROOT, text=True,
                          capture_output=True, check=True)
    return done.stdout.split()


class Workflow(unittest.TestCase):
    def test_it_runs_what_decides_here(self):
        commands = [step.get("run", "") for step in ci_job()["steps"]]
        self.assertEqual([command for command in commands if ".ci/run" in command], [".ci/run"])
        self.assertTrue((ROOT / ".ci/run").stat().st_mode & 0o100)

    def test_its_image_is_pinned(self):
        self.assertRegex(ci_job()["container"]["image"], PINNED)

    def test_git_is_there_before_the_checkout(self):
        steps = ci_job()["steps"]
        checkout = [step.get("uses", "").partition("@")[0] for step in steps].index("actions/checkout")
        self.assertTrue(any(re.search(r"install .*\bgit\b", step.get("run", "")) for step in steps[:checkout]))

    def test_the_example_for_users_parses(self):
        self.assertIn("gate", loaded("docs/gate-on-github.yml")["jobs"])


class Devcontainer(unittest.TestCase):
    def test_it_is_the_container_of_ci(self):
        self.assertEqual(devcontainer()["image"], ci_job()["container"]["image"])
        self.assertEqual(devcontainer()["runArgs"], shlex.split(ci_job()["container"]["options"]))

    def test_it_installs_what_ci_installs(self):
        install = re.compile(r"ensure_packages 1 (.*?)(?:'$| \|\|)", re.M)
        arrays = [re.findall(r"\$\{(\w+)\[@\]\}", install.findall(text)[0])
                  for text in (devcontainer()["onCreateCommand"], text_of(".ci/run"))]
        self.assertEqual(arrays[0], arrays[1])
        self.assertIn("meson", packages(*arrays[0]))

    def test_its_command_is_one_for_bash(self):
        words = shlex.split(devcontainer()["onCreateCommand"])
        self.assertEqual(words[:2], ["bash", "-c"])
        script = words[2].replace("ensure_packages", "printf '%s\\n'")
        done = subprocess.run(["bash", "-euc", script], cwd=ROOT, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("git", done.stdout.split())


class PreCommit(unittest.TestCase):
    def setUp(self):
        (repository,) = loaded(".pre-commit-config.yaml")["repos"]
        self.assertEqual(repository["repo"], "local", "other repositories are fetched")
        self.hooks = {hook["id"]: hook for hook in repository["hooks"]}

    def run_hook(self, name, *files):
        command = [*shlex.split(self.hooks[name]["entry"]), *files]
        return subprocess.run(command, cwd=ROOT, text=True, capture_output=True).returncode

    def test_each_command_is_here_or_comes_with_the_checks(self):
        known = packages("build_packages", "test_packages", "check_packages")
        for name, hook in self.hooks.items():
            program, *words = shlex.split(hook["entry"])
            self.assertEqual(hook["language"], "system", name)
            if program == ".ci/lint":
                self.assertEqual(words, [name], "a gate of .ci/lint")
            else:
                self.assertIn(program, known, name)
            for script in (word for word in words if word.endswith(".py")):
                self.assertTrue((ROOT / script).is_file(), f"{name}: {script}")

    def test_each_looks_at_files_that_are_there(self):
        files = [file.relative_to(ROOT).as_posix()
                 for folder in ("src", "docs", "tools", "db") for file in (ROOT / folder).rglob("*")]
        for name, hook in self.hooks.items():
            self.assertTrue(any(re.search(hook["files"], file) for file in files), name)

    def test_those_about_the_whole_tree_hold(self):
        whole = [name for name, hook in self.hooks.items() if hook.get("pass_filenames") is False]
        self.assertTrue(whole)
        for name in whole:
            if name not in ("types", "pins"):  # .ci/run asks them, for the packages of its own distribution
                self.assertEqual(self.run_hook(name), 0, name)

    def test_those_about_files_find_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, program, suffix, good, bad in (
                    ("format", "clang-format", "cpp", "int x = 1;\n", "int   x=1 ;\n"),
                    ("python", "flake8", "py", "x = 1\n", "print(y)\n"),
                    ("shell", "shellcheck", "sh", "#!/bin/sh\necho \"$1\"\n", "#!/bin/sh\necho $1\n"),
                    ("spelling", "codespell", "md", "The spelling.\n", "The spel" + "ing.\n"),
                    ("sql", "python3", "sql", "SELECT 1;\n", "select 1;\n")):
                if shutil.which(program) is None:
                    continue  # of check_packages
                file = pathlib.Path(folder) / f"a.{suffix}"
                for text, faulty in ((good, False), (bad, True)):
                    file.write_text(text, encoding="utf-8")
                    self.assertEqual(self.run_hook(name, str(file)) != 0, faulty, (name, text))


class Lint(unittest.TestCase):
    GATES = re.search(r"^gates=\((.*)\)$", text_of(".ci/lint"), re.M)

    def test_run_and_pre_commit_have_each_gate(self):
        assert self.GATES is not None
        gates = self.GATES[1].split()
        self.assertEqual(re.findall(r"^step .* \.ci/lint (\w+)$", text_of(".ci/run"), re.M), gates)
        (repository,) = loaded(".pre-commit-config.yaml")["repos"]
        hooks = [hook["id"] for hook in repository["hooks"] if hook["entry"].startswith(".ci/lint")]
        self.assertEqual(hooks, gates)

    def test_an_unknown_gate_is_refused(self):
        done = subprocess.run([".ci/lint", "colours"], cwd=ROOT, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("expected one of: format python", done.stderr)


class Templates(unittest.TestCase):
    def test_forms_have_what_github_asks_for(self):
        self.assertIsInstance(loaded(".github/ISSUE_TEMPLATE/config.yml")["blank_issues_enabled"], bool)
        forms = [form for form in FORMS if form.name != "config.yml"]
        self.assertGreaterEqual(len(forms), 3)
        for form in forms:
            content = yaml.safe_load(form.read_text(encoding="utf-8"))
            self.assertTrue(content["name"] and content["description"], form.name)
            self.assertLessEqual({field["type"] for field in content["body"]}, KINDS_OF_FIELDS, form.name)
            ids = [field["id"] for field in content["body"] if field["type"] != "markdown"]
            self.assertEqual(len(ids), len(set(ids)), form.name)
            for field in content["body"]:
                self.assertTrue(field["attributes"].get("value" if field["type"] == "markdown" else "label"), form.name)

    def test_pages_that_they_name_are_there(self):
        named = {page for form in FORMS for page in PAGE.findall(form.read_text(encoding="utf-8"))}
        self.assertTrue(named)
        self.assertEqual([page for page in sorted(named) if not (ROOT / page).is_file()], [])

    def test_code_owners_have_paths_that_are_there(self):
        lines = text_of(".github/CODEOWNERS").splitlines()
        paths = [line.split()[0] for line in lines if line and not line.startswith("#")]
        self.assertTrue(paths)
        self.assertEqual([path for path in paths if not (ROOT / path.strip("/")).exists()], [])


class Editors(unittest.TestCase):
    def test_lines_are_as_long_as_the_formatter_makes_them(self):
        settings = configparser.ConfigParser()
        settings.read_string("[top]\n" + text_of(".editorconfig"))
        self.assertEqual(settings["top"]["root"], "true")
        longest = yaml.safe_load(text_of(".clang-format"))["ColumnLimit"]
        code = [section for section in settings.sections() if "cpp" in section or "py" in section]
        self.assertEqual([settings[section]["max_line_length"] for section in code], [str(longest)] * 2)
        style = configparser.ConfigParser()
        style.read_string(text_of(".flake8"))
        self.assertEqual(style["flake8"]["max-line-length"], str(longest))


if __name__ == "__main__":
    unittest.main()
