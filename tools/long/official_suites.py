#!/usr/bin/env python3
"""The hand-outs' own tests through our adapters, and on published submissions beside what `syslab check` says of them;
under the torch that this Python has, on the CPU and, where there is one, on a GPU:

    python3 tools/long/official_suites.py --suite 2025=DIR --suite 2026=DIR --program build/syslab
        --library build/src/capi/libsyslab.so
                                          [--repositories DIR] [--only ours,repositories] [-o counts.json]
    python3 tools/long/official_suites.py ... --pack official.tar.gz      # all of it for another machine; --bundle:
        what tools/bundle made
    tar xf official.tar.gz && python3 official/official_suites.py         # there, without options

A suite is the hand-out's folder `tests`, or what holds it (test_*.py, common.py; fixtures/*.pt are drawn anew where
they are missing). Repositories are folders DIR/YEAR/NAME, as they were published; nothing in them is changed, and what
is printed of them are counts, and laws that do not hold. pytest, einops, jaxtyping and cs336_basics.model are stubbed
where this Python has none (official_stubs.py), and that is said. In a copy of the suite's common.py the port is
another, so that files of tests run side by side, with `check` beside them, and a rank that does not end within --limit
says where each of its threads stands, and ends. Ranks are forked by a server that has imported torch, and not started
anew a test (--start spawn), since importing it takes longer than all else: each test is said with its seconds as it
ends.
Exit code 1: one of our own does not pass, or less than 95 % of the tests agree. Otherwise 3 if not everything was tried
for lack of time: a file of tests was stopped, or the time of `check` was over before its laws had found anything out;
what that is of is said last.
"""
import argparse
import concurrent.futures
import importlib
import importlib.util
import inspect
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import official_check  # noqa: E402
import official_stubs  # noqa: E402

ROOT = HERE.parents[1]
OF_A_FILE = 900  # seconds, of all its tests
OF_A_RANK = 120  # of one test, from the moment on when it has imported the suite
AGREEMENT = 0.95

# --- one file of tests, in a process of its own ---


def cases_of(function):
    """(name, arguments) for each set of parameters, or a text: why it is skipped."""
    sets: list = [[("", {})]]
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "skipif" and mark.args[0]:
            return mark.kwargs.get("reason", "skipped")
        if mark.name == "parametrize":
            names = ([name.strip() for name in mark.args[0].split(",")] if isinstance(mark.args[0], str)
                     else list(mark.args[0]))
            ids = mark.kwargs.get("ids")
            values = [value if len(names) > 1 else (value,) for value in mark.args[1]]
            sets.append([(ids[i] if ids else "-".join(getattr(one, "__name__", str(one)) for one in value),
                          dict(zip(names, value)))
                         for i, value in enumerate(values)])
    cases = []
    for chosen in itertools.product(*sets):
        arguments = {name: value for _, some in chosen for name, value in some.items()}
        cases.append(("-".join(part for part, _ in chosen if part), arguments))
    wanted = set(inspect.signature(function).parameters)
    return cases if all(set(arguments) == wanted for _, arguments in cases) else "asks for a fixture"


def fork_ranks():
    """What the tests call torch.multiprocessing.spawn forks from a server with torch, in which no device has been
    looked at."""
    import torch.multiprocessing

    def forked(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        return torch.multiprocessing.start_processes(fn, args, nprocs, join, daemon, start_method="forkserver")

    multiprocessing.set_forkserver_preload(["torch"])
    torch.multiprocessing.spawn = forked


def run_file(module_name, start):
    """Prints a JSON line for each test."""
    os.environ["OFFICIAL_TESTS"] = str(os.getpid())
    try:
        if start == "fork":
            fork_ranks()
        module = importlib.import_module(module_name)
    except BaseException as error:  # a submission may raise anything
        print(json.dumps({"test": module_name, "outcome": "failed", "why": f"{type(error).__name__}: {error}"[:300]}),
              flush=True)
        return
    for name, function in list(vars(module).items()):
        if not name.startswith("test_") or not inspect.isfunction(function):
            continue
        cases = cases_of(function)
        if isinstance(cases, str):
            print(json.dumps({"test": name, "outcome": "skipped", "why": cases}), flush=True)
            continue
        for case, arguments in cases:
            line, began = {"test": f"{name}[{case}]" if case else name, "outcome": "passed",
                           "why": ""}, time.perf_counter()
            try:
                function(**arguments)
            except BaseException as error:
                told = [text for text in "".join(traceback.format_exception_only(type(error), error)).splitlines()
                        if text.strip()]
                line.update(outcome="failed", why=(told[-1] if told else type(error).__name__)[:300])
            print(json.dumps({**line, "seconds": round(time.perf_counter() - began, 1)}), flush=True)


# --- folders in which they run ---


def free_port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def tests_of(folder):
    inner = folder / "tests"
    return inner if inner.is_dir() else folder


# Only in ranks: the process that starts them imports this, too, and lives for all tests of a file.
LIMIT_OF_A_RANK = """

import faulthandler

if os.environ.get("OFFICIAL_TESTS") != str(os.getpid()):
    faulthandler.dump_traceback_later(float(os.environ["OFFICIAL_LIMIT"]), exit=True)
"""


def outputs_of(common):
    """Of the model in a suite's own common.py: 5 in 2025, 10 in 2026."""
    import torch
    described = importlib.util.spec_from_file_location("models_of_a_suite", common)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module.ToyModel()(torch.zeros(1, 10)).shape[1]


def put_suite(suite, folder, adapters=None, backend="gloo"):
    """The suite's tests beside adapters.py, which stays the submission's own unless another is given. They name Gloo,
    for GPUs, too; their tensors lie on a GPU where there is one, and any backend of torch.distributed that carries
    those can take its place."""
    tests = folder / "tests"
    tests.mkdir(parents=True, exist_ok=True)
    for file in tests.glob("test_*.py"):
        file.unlink()
    for file in tests_of(suite).glob("*.py"):
        if file.name not in ("adapters.py", "conftest.py"):
            text = file.read_text(encoding="utf-8")
            (tests / file.name).write_text(text.replace('backend="gloo"', f'backend="{backend}"'), encoding="utf-8")
    (tests / "__init__.py").touch()
    common = tests / "common.py"
    common.write_text(re.sub(r'(MASTER_PORT"\] = )"\d+"', r'\1os.environ["OFFICIAL_PORT"]',
                             common.read_text(encoding="utf-8")) + LIMIT_OF_A_RANK,
                      encoding="utf-8")
    if adapters is not None:
        shutil.copy(adapters, tests / "adapters.py")
    fixtures, own = tests / "fixtures", tests_of(suite) / "fixtures"
    if own.is_dir():
        shutil.copytree(own, fixtures, dirs_exist_ok=True)
    if not (fixtures / "ddp_test_data.pt").exists():
        import torch
        fixtures.mkdir(exist_ok=True)
        torch.manual_seed(0)
        torch.save(torch.randn(20, 10), fixtures / "ddp_test_data.pt")
        torch.save(torch.randn(20, outputs_of(tests_of(suite) / "common.py")), fixtures / "ddp_test_labels.pt")


def paths_of(folder):
    """As `check` puts them on Python's path: root, src, and folders of packages."""
    return [folder, folder / "src", *sorted(file.parent for file in folder.glob("*/pyproject.toml"))]


def lines_of(command, folder, environment):
    """(a line of its output as it comes, what it has written beside since the last), then (None, how it ended). After
    OF_A_FILE it is stopped with all that it has started."""
    with tempfile.TemporaryFile("w+b") as beside:
        process = subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                                   stderr=beside, start_new_session=True)
        late = threading.Timer(OF_A_FILE, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        read = 0
        for line in process.stdout or ():
            more = os.pread(beside.fileno(), 1 << 20, read)
            read += len(more)
            yield line, more.decode(errors="replace")
        code = process.wait()
        ended = f"exit code {code}" if late.is_alive() else f"stopped after {OF_A_FILE} s"
        late.cancel()
        yield None, ended


def run_suite(folder, year, device, more_paths, options):
    """{"test_ddp:test_name[case]": (outcome, why)}; each is said as it ends, and where ranks stood that did not end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths_of(folder), *more_paths])),
                   "PYTHONDONTWRITEBYTECODE": "1",
                   "OFFICIAL_LIMIT": str(options.limit)}
    if options.library:
        environment["SYSLAB_LIBRARY"] = str(options.library)
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    else:  # FSDP's tests ask for deterministic algorithms, which cuBLAS has with a workspace of its own alone
        environment.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        environment.setdefault("NCCL_NVLS_ENABLE", "0")  # as libsyslab sets it

    def one(file):
        done, ended = {}, ""
        command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--file", f"tests.{file.stem}", "--start",
                   options.start]
        for line, beside in lines_of(command, folder, {**environment, "OFFICIAL_PORT": str(free_port())}):
            if line is None:
                ended = beside
            elif line.startswith('{"test"'):
                told = json.loads(line)
                done[f"{file.stem}:{told['test']}"] = (told["outcome"], told["why"])
                stuck = beside.find("Timeout (")  # whoever is stopped before the end has seen it, too
                print(f"  {year} {device} {file.stem}:{told['test']}: {told['outcome']}, {told.get('seconds', 0)} s"
                      + (f": {told['why']}" if told["outcome"] == "failed" else "")
                      + (f"\n  where ranks stood:\n{beside[stuck:stuck + 6000]}" if stuck >= 0 else ""),
                      file=sys.stderr, flush=True)
        if ended.startswith("stopped"):  # what it had not begun
            done[f"{file.stem}:"] = ("not tried", ended)
        elif not done or ended != "exit code 0":
            done[f"{file.stem}:"] = ("failed", ended)
        return done

    files = sorted((folder / "tests").glob("test_*.py"))
    with concurrent.futures.ThreadPoolExecutor(max(1, min(len(files), (os.cpu_count() or 2) // 3))) as workers:
        return {name: told for done in workers.map(one, files) for name, told in done.items()}


def counts_of(results):
    return {outcome: sum(1 for found, _ in results.values() if found == outcome)
            for outcome in ("passed", "failed", "skipped", "not tried")}


def in_words(counts):
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count or outcome != "not tried")


# --- both ---


def store(options, report):
    """As it comes: whoever is stopped has counted all the same."""
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def ours(options, suites, stubs, devices, work, report):
    well = True
    for (year, suite), device in itertools.product(sorted(suites.items()), devices):
        folder = work / f"ours-{year}-{device}"
        backend = "gloo" if device == "cpu" else options.backend
        put_suite(suite, folder, options.adapters / f"ours_{year}" / "adapters.py", backend)
        results = run_suite(folder, year, device, [options.python_folder, stubs], options)
        counts = counts_of(results)
        where = device if backend == "gloo" else f"{device}, {backend}"
        report["ours"][f"{year} {where}"] = counts
        store(options, report)
        print(f"ours, {year}, {where}: {in_words(counts)}", flush=True)
        for name, (outcome, why) in results.items():
            if outcome != "passed":
                print(f"  {outcome}: {name.rstrip(':')}: {why}", flush=True)
            if outcome == "not tried":
                report["not tried"].append(f"ours, {year}, {where}, {name.rstrip(':')}: {why}")
        well = well and counts["failed"] == 0 and counts["passed"] + counts["not tried"] > 0
    return well


def published(options, suites, stubs, device, work, report):
    agree = compared = 0
    repositories = sorted(path for path in options.repositories.glob("*/*") if path.is_dir()
                          and path.parent.name in suites)
    for number, repository in enumerate(repositories):
        year, copy = repository.parent.name, work / f"published-{number}"
        shutil.copytree(repository, copy, symlinks=True)
        put_suite(suites[year], copy)
        own_work = work / f"checked-{number}"
        own_work.mkdir()
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            checked = beside.submit(official_check.timed_check, options, repository, year, device, stubs, own_work)
            results = run_suite(copy, year, device, [stubs], options)
            record = checked.result()
        same, differ, aside = 0, [], 0
        for name, (outcome, why) in results.items():
            verdict = official_check.verdict_of(record, year, name)
            if outcome == "not tried":
                report["not tried"].append(f"submission {number + 1}, {year}, {device}, {name.rstrip(':')}: {why}")
            elif outcome != "skipped" and official_check.had_no_time(record, year, name):
                report["not tried"].append(f"submission {number + 1}, {year}, {device}, {name}: check had no time for "
                                           "it")
            if outcome in ("skipped", "not tried") or verdict is None:
                aside += 1
            elif (outcome == "passed") == verdict[0]:
                same += 1
            else:
                differ.append(f"{name}: the test {outcome}{': ' + why if why else ''}; check: "
                              f"{verdict[1] or 'all laws hold'}")
        agree, compared = agree + same, compared + same + len(differ)
        counts = counts_of(results)
        report["published"].append({"number": number + 1, "year": year, **counts, "agree": same, "differ": len(differ),
                                    "not compared": aside})
        store(options, report)
        print(f"submission {number + 1}, {year}, {device}: {in_words(counts)}; check agrees "
              f"on {same} of {same + len(differ)}{', ' + record['error'] if record.get('error') else ''}", flush=True)
        for line in differ:
            print(f"  {line}", flush=True)
    if compared:
        print(f"{len(repositories)} submissions: check agrees on {agree} of {compared} tests, "
              f"{100 * agree / compared:.1f} %", flush=True)
    report["agree"], report["compared"] = agree, compared
    return compared == 0 or agree >= AGREEMENT * compared


def pack(options, suites):
    with tarfile.open(options.pack, "w:gz") as archive:
        for name in ("official_suites.py", "official_check.py", "official_stubs.py"):
            archive.add(HERE / name, f"official/{name}")
        for year, suite in suites.items():
            archive.add(tests_of(suite), f"official/suites/{year}/tests")
        for file in sorted(options.adapters.glob("ours_*/adapters.py")):
            archive.add(file, f"official/adapters/{file.parent.name}/adapters.py")
        if options.repositories:
            archive.add(options.repositories, "official/repositories")
        if options.bundle:
            archive.add(options.bundle, "official/bundle")
    print(f"wrote {options.pack}: {os.path.getsize(options.pack) / 1e6:.1f} MB")


def parsed():
    packed = HERE / "suites"
    bundle = HERE / "bundle"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", default=[], metavar="YEAR=DIR")
    parser.add_argument("--repositories", type=pathlib.Path,
                        default=HERE / "repositories" if (HERE / "repositories").is_dir() else None)
    parser.add_argument("--program", type=pathlib.Path,
                        default=bundle / "syslab" if bundle.is_dir() else ROOT / "build/syslab")
    parser.add_argument("--library", type=pathlib.Path, default=bundle / "lib/libsyslab.so.0" if bundle.is_dir()
                        else ROOT / "build/src/capi/libsyslab.so")
    parser.add_argument("--python-folder", type=pathlib.Path, default=bundle / "python" if bundle.is_dir()
                        else ROOT / "src/python", help="syslab_torch.py and others")
    parser.add_argument("--adapters", type=pathlib.Path,
                        default=HERE / "adapters" if packed.is_dir() else ROOT / "tests/worker/mine")
    parser.add_argument("--bundle", type=pathlib.Path, help="what tools/bundle made, for --pack")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FILE.tar.gz")
    parser.add_argument("--only", default="ours,repositories")
    parser.add_argument("--device", choices=["cpu", "cuda"], action="append",
                        help="default: cpu, and cuda where torch sees one")
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo",
                        help="of our own on GPUs; nccl needs two of them")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="counts, as JSON")
    parser.add_argument("--limit", type=float, default=OF_A_RANK, metavar="SECONDS",
                        help="of a rank, default %(default)s")
    parser.add_argument("--cases", type=int, help="a law of check's; default: its own depth, 20 s an experiment")
    parser.add_argument("--start", choices=["fork", "spawn"], default="fork",
                        help="how ranks are started: spawn as the tests ask for it")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    suites = dict(one.split("=", 1) for one in options.suite)
    if not suites and packed.is_dir():
        suites = {folder.name: folder for folder in packed.iterdir()}
    return options, {year: pathlib.Path(folder).resolve() for year, folder in suites.items()}


def verdict(well, not_tried):
    """The exit code; says what was not tried."""
    if not_tried:
        print("\n  ".join(["not tried for lack of time:", *not_tried]), flush=True)
    return 1 if not well else 3 if not_tried else 0


def main():
    options, suites = parsed()
    if options.file:
        return run_file(options.file, options.start)
    if not suites:
        sys.exit("official_suites: name the hand-outs' tests: --suite 2025=DIR --suite 2026=DIR")
    if options.pack:
        return pack(options, suites)
    import torch
    for name in ("program", "library", "python_folder", "adapters", "repositories"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    devices = options.device or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    report = {"python": sys.version.split()[0], "torch": torch.__version__, "ours": {}, "published": [],
              "not tried": []}
    with tempfile.TemporaryDirectory(prefix="official-") as temporary:
        work = pathlib.Path(temporary)
        report["stubbed"] = official_stubs.write(work / "stubs")
        print(f"Python {report['python']}, torch {report['torch']}; stubbed: "
              f"{', '.join(report['stubbed']) or 'nothing'}", flush=True)
        well = True
        if "ours" in options.only:
            well = ours(options, suites, work / "stubs", devices, work, report) and well
        if "repositories" in options.only and options.repositories:
            well = published(options, suites, work / "stubs", devices[-1], work, report) and well
    store(options, report)
    return verdict(well, report["not tried"])


if __name__ == "__main__":
    sys.exit(main())
