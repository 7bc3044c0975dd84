"""Submissions as students hand them in, made in a folder: right, wrong, half done and hostile."""
import json
import pathlib
import shutil
import stat
import zipfile

STUDENTS = pathlib.Path(__file__).parents[1] / "worker" / "mine" / "students.py"

PYTORCH = "get_flashattention_autograd_function_pytorch"
TRITON = "get_flashattention_autograd_function_triton"
ADAPTERS = f'''
import torch


def {PYTORCH}():
    from cs336_systems.flash import {{name}}
    return {{name}}


def {TRITON}():
    """Returns a class."""
    raise NotImplementedError


def get_ddp(module):
    return module


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    raise NotImplementedError("later")
'''


def rubric(*problems, handout="2026"):
    """The TOML of (id, points, its items), an item with the fields of one."""
    lines = [f'handout = "{handout}"']
    for name, points, items in problems:
        lines += ["[[problem]]", f'id = "{name}"', f"points = {points}"]
        for item in items:
            lines += ["[[problem.item]]", *(f"{key} = {json.dumps(value)}" for key, value in item.items())]
    return "\n".join(lines) + "\n"


def flash_item(part, points, function=PYTORCH, **fields):
    return {"part": part, "points": points, "function": function, "experiment": "flash_forward", **fields}


BOTH_FLASHES = ("flash_forward", 10, [flash_item("a", 6), flash_item("b", 4, TRITON)])


def make(folder, name="IgnoresCausal", head=""):
    """A project whose attention is that class of tests/worker/mine/students.py."""
    folder = pathlib.Path(folder)
    for inner in ("tests", "cs336_systems"):
        (folder / inner).mkdir(parents=True)
        (folder / inner / "__init__.py").touch()
    (folder / "tests" / "adapters.py").write_text(head + ADAPTERS.format(name=name))
    shutil.copy(STUDENTS, folder / "cs336_systems" / "flash.py")
    return folder


# The functions of data parallelism and sharding, of classes in tests/worker/mine.
PARALLEL = """
from cs336_systems import parallel, parallel_faults


def made(name, *arguments, **options):
    return getattr(parallel if hasattr(parallel, name) else parallel_faults, name)(*arguments, **options)


def finish(model, optimizer):
    model.finish_gradient_synchronization()


def get_ddp(module):
    return made({ddp!r}, module)


def get_ddp_individual_parameters(module):
    return made({ddp!r}, module)


def get_ddp_bucketed(module, bucket_size_mb):
    return made({bucketed!r}, module, bucket_size_mb)


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    return made({sharded!r}, params, optimizer_cls, **kwargs)


def get_fsdp(module, compute_dtype=None):
    return made({fsdp!r}, module)


def ddp_on_after_backward(ddp_model, optimizer):
    finish(ddp_model, optimizer)


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
    finish(ddp_model, optimizer)


def ddp_bucketed_on_after_backward(ddp_model, optimizer):
    finish(ddp_model, optimizer)


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
    assert optimizer is not None


def fsdp_on_after_backward(fsdp_model, optimizer):
    finish(fsdp_model, optimizer)


def fsdp_gather_full_params(fsdp_model):
    return fsdp_model.gather_full_params()
"""


def make_parallel(folder, tail="", **classes):
    """A project whose parallel adapters are those classes of tests/worker/mine/parallel*.py."""
    folder = pathlib.Path(folder)
    for inner in ("tests", "cs336_systems"):
        (folder / inner).mkdir(parents=True)
        (folder / inner / "__init__.py").touch()
    right = {"ddp": "Individual", "bucketed": "Bucketed", "sharded": "Sharded", "fsdp": "FullySharded"}
    (folder / "tests" / "adapters.py").write_text(PARALLEL.format(**{**right, **classes}) + tail)
    shutil.copy(STUDENTS.with_name("parallel.py"), folder / "cs336_systems")
    for name in ("parallel_variants.py", "parallel_faults.py"):
        text = STUDENTS.with_name(name).read_text()
        (folder / "cs336_systems" / name).write_text(text.replace("from parallel", "from .parallel"))
    return folder


def zip_of(folder, target):
    """As GitHub makes them: everything in one folder."""
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, pathlib.Path("project-main") / file.relative_to(folder))
    return target


def hostile_zips(folder):
    """Zips that are refused, and a word of the reason."""

    def made(name, fill):
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("tests/adapters.py", "")
            fill(archive)

    def link(archive):
        entry = zipfile.ZipInfo("tests/data")
        entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc")

    def many(archive):
        for number in range(100_000):
            archive.writestr(zipfile.ZipInfo(f"f/{number}"), b"")

    def deep(archive):
        for number in range(9_000):
            archive.writestr(zipfile.ZipInfo(f"{number}/" + "f/" * 28), b"")

    def declares_10_gb(archive):
        archive.writestr("large", b"\0" * 1000)

    made("leaves", lambda archive: archive.writestr("../outside.py", "x = 1"))
    made("absolute", lambda archive: archive.writestr("/tmp/syslab_absolute.py", "x = 1"))
    made("linked", link)
    made("many", many)
    made("deep", deep)
    made("large", declares_10_gb)
    # As a bomb has it: the size in its table of contents. Little endian, behind the entry's compressed size.
    content = bytearray((folder / "large.zip").read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 24:place + 28] = (0xFFFFFF00).to_bytes(4, "little")
    (folder / "large.zip").write_bytes(content)
    (folder / "torn.zip").write_bytes(b"PK\x03\x04 and no more")
    return {"leaves": "leaves the folder", "absolute": "leaves the folder", "linked": "symbolic link", "many": "100001 entries",
            "deep": "more than 10000 folders", "large": "GB", "torn": "cannot be unpacked"}


# What a submission may do to the others, to the machine and to whoever waits for it: head of its adapters.py, and a word of the
# one line that the table then has (None: it is graded like any other).
HOSTILE = {
    "hangs": ("import time\ntime.sleep(10_000)\n", "took longer"),
    "needs": ("import a_package_that_nobody_has\n", "package 'a_package_that_nobody_has' is missing"),
    "prints": ("import sys\nfor _ in range(50):\n    sys.stdout.write('x' * 1_000_000)\n    sys.stderr.write('x' * 1_000_000)\n",
               None),
    "greedy": ("kept = [bytes(1 << 30) for _ in range(64)]\n", "MemoryError"),
    "forks": ("import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(10_000)\n", None),
    "writes": ("""import pathlib
here = pathlib.Path(__file__).resolve()
for place in [*here.parents, pathlib.Path(WATCHED), pathlib.Path(WATCHED, "neighbour/tests"), pathlib.Path.home()]:
    try:
        (place / "written_by_a_submission").write_text("x")
    except OSError:
        pass
for file in (here, pathlib.Path(WATCHED, "neighbour/tests/adapters.py")):
    try:
        file.write_text("x")
    except OSError:
        pass
    else:
        raise SystemExit("it could write")
""", None),
    "reads": ("""import pathlib
for file in (pathlib.Path(WATCHED, "neighbour/tests/adapters.py"), pathlib.Path(WATCHED, "secret.zip")):
    try:
        file.read_bytes()
    except OSError:
        pass
    else:
        raise SystemExit("it could read")
""", None),
    "lists": ("""import os
try:
    raise SystemExit(f"it saw {os.listdir(WATCHED)}")
except OSError:
    os.listdir(os.path.dirname(__file__))
""", None),
}
