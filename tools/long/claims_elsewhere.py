#!/usr/bin/env python3
"""Claims made on one machine and verified on another: true ones, which must be confirmed, and the same with 3 % too
much, which must be refuted. By hand, on machines of one kind that do nothing else.

    python3 tools/long/claims_elsewhere.py make build/syslab FOLDER [--device cpu] [--seconds 390] [--public]
    python3 tools/long/claims_elsewhere.py verify build/syslab FOLDER ...     # there, with FOLDER brought along

Small ones: work of known length, two copies of one library, rungs beside each other whose ratio was measured where the
claim was made; a `.claim` says one percent less than that, and a `.false` of the same measurement three percent more.
--public: the statements of reports/examples/claims.md too, with the figure that was published or, where that does not
hold, one that does. One at a time on each GPU of CUDA_VISIBLE_DEVICES; a line of JSON each in made.jsonl and
verified.jsonl, as they come. Exit code of `verify`, 1: fewer than 19 of 20 true ones confirmed, or a false one that was
not refuted; otherwise 3, and so of `make`: for lack of time not all were begun, those that were not are named last. A
claim that an earlier call has verified counts as it did then.
"""
import argparse
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from claim_seal import sealed, slowed  # noqa: E402

LESS, MORE, ENOUGH = 0.99, 1.03, 0.95
LAST_WORDS_S = 15
SECONDS = {"small": 60, "public": 150}  # of one claim
LAUNCHES = {"small": "4", "public": "3"}
FORWARD = {"batch": 1, "heads": 16, "causal": "true"}


def at(**axes):
    return [word for name, value in axes.items() for word in ("-a", f"{name}={value}")]


def functions(file, reference, cases, *names):
    path = os.path.relpath(ROOT / "reports/examples/claims" / file)
    return [*(word for name in names for word in ("--mine", f"{name}={path}:{name}")), "--reference",
            f"{path}:{reference}", "--inputs", f"{path}:{cases}"]


def small_claims(options, copies):
    """name → (faster, slower, known ratio or None, files, the rest of the question)"""
    same = ["--mine", f"a={copies[0]}", "--mine", f"b={copies[1]}"]
    claims: dict[str, tuple] = {
        f"chain_{steps}_{slower}":
            ("slowdown=0", f"slowdown={slower}", 1 + slower / 100, [], ["selftest_compare", *at(steps=steps)])
        for steps, slower in ((200000, 0.001), (300000, 0.001), (200000, 2), (300000, 5), (400000, 10), (200000, 30))}
    if options.device == "cpu":
        claims["copy"] = ("a", "b", 1, same,
                          ["flash_forward", *at(seq=128, head_dim=32, dtype="fp32", batch=1, heads=2, causal="true")])
        return claims
    for seq, dim, dtype in ((4096, 128, "bf16"), (2048, 64, "fp16"), (4096, 64, "bf16"), (1024, 64, "fp32"),
                            (2048, 128, "fp16")):
        claims[f"copy_{seq}_{dim}_{dtype}"] = ("a", "b", 1, same,
                                               ["flash_forward", *at(seq=seq, head_dim=dim, dtype=dtype, **FORWARD)])
    for seq, dim in ((4096, 128), (2048, 128), (4096, 64)):
        claims[f"rungs_{seq}_{dim}"] = ("flash_wgmma", "flash_mma", None, [],
                                        ["flash_forward", *at(seq=seq, head_dim=dim, dtype="bf16", **FORWARD)])
    for verb in ("flash_forward", "flash_backward"):
        claims[f"naive_{verb}"] = ("flash_mma", "naive_cuda", None, [],
                                   [verb, *at(seq=2048, head_dim=64, dtype="bf16", **FORWARD)])
    claims["products"] = ("dtype=bf16", "dtype=fp32", None, [], ["ceiling_gemm", *at(size=2048), "--impl", "cublas"])
    claims["sums"] = ("dtype=bf16", "dtype=fp32", None, [],
                      ["weighted_sum", *at(rows=65536, dim=1024), "-a", "pass=forward", "--impl", "tiled_cuda"])
    return claims


# name → (faster, slower, published figure, files, the rest of the question)
PUBLIC: dict[str, tuple] = {
    "softmax_naive": ("fused", "reference", 4, ("softmax.py", "naive", "claimed_cases", "fused"), at(columns=4096)),
    "softmax_library": ("fused", "library", 1, ("softmax.py", "naive", "claimed_cases", "fused", "library"),
                        at(columns=4096)),
    "layer_norm": ("fused", "reference", 1, ("layer_norm.py", "library", "claimed_cases", "fused"), at(columns=4096)),
    "flash_efficient": ("flash", "efficient", 1.5, ("attention.py", "plain", "claimed_half_cases", "flash",
                                                    "efficient"), at(shape="ort")),
    "compiled_eager": ("compiled", "reference", 2, ("compiled.py", "eager", "cases", "compiled"), []),
    "fused_foreach": ("fused", "foreach", 1, ("optimiser.py", "plain", "cases", "fused", "foreach"), []),
    **{f"cudnn_flash_{shape}": ("cudnn", "flash", figure, ("attention.py", "plain", "claimed_cases", "cudnn", "flash"),
                                at(shape=shape))
       for shape, figure in (("causal8k", 1.85), ("training", 1.7), ("causal16k64", 1.30), ("full16k", 1.61))},
    **{f"ours_cudnn_{shape}": ("ours", "cudnn", 1, ("attention.py", "plain", "claimed_cases", "ours", "cudnn"),
                               at(shape=shape))
       for shape in ("training", "full16k")},
}


def last_words(process):
    """Of one that is stopped: it stores what it has and ends its workers, and is ended where it does not."""
    process.terminate()
    try:
        return process.communicate(timeout=LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


class Claims:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.until = time.monotonic() + options.seconds
        self.lock = threading.Lock()
        copies = [scratch / f"{side}.so" for side in "ab"]
        for copy in copies:
            shutil.copyfile(os.path.realpath(options.library), copy)
        self.small = small_claims(options, copies)
        self.public = ({name: (*rest[:3], functions(*rest[3]), rest[4]) for name, rest in PUBLIC.items()}
                       if options.public else {})

    def call(self, place, name, kind, words):
        """What `syslab` says, and how it ended: its exit code, or "late"."""
        environment = {**os.environ, "SYSLAB_LIBRARY": str(self.options.library),
                       **({} if place is None else {"CUDA_VISIBLE_DEVICES": place})}
        process = subprocess.Popen([self.options.syslab, *words, "--db", f"{self.scratch}/{name}.db", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment)
        began = time.monotonic()
        try:
            text, errors = process.communicate(timeout=max(min(SECONDS[kind], self.until - began), 1))
            ended = process.returncode
        except subprocess.TimeoutExpired:
            text, errors = last_words(process)
            ended = "late"
        try:
            said = json.loads(text[text.index("{"):])
        except ValueError:
            said = {}
        return {"ended": ended, "seconds": round(time.monotonic() - began, 1), "said": said,
                "errors": "" if said else errors[-600:]}

    def tell(self, file, row):
        with self.lock:
            with open(self.options.folder / file, "a", encoding="utf-8") as rows:
                rows.write(json.dumps(row) + "\n")
            case = (row["said"].get("cases") or [{}])[0]
            print(f"{row['name']:28} {row['statement']}: {row['ended']} in {row['seconds']} s, "
                  f"{row['said'].get('verdict')}, {case.get('times_as_fast')} ({case.get('low')} … {case.get('high')}) "
                  f"{row['errors']}", flush=True)

    def make(self, place, kind, name):
        faster, slower, ratio, files, rest = (self.small if kind == "small" else self.public)[name]
        measured = self.scratch / f"{name}.claim"
        quick = ["--protocol", "quick"] if self.options.device == "cpu" else []
        # Whatever comes out is measured once, and then stated as it should hold.
        row = {"name": name, "kind": kind, "statement": f"{faster} >= 0.01 x {slower}",
               **self.call(place, name, kind, ["claim", f"{faster} >= 0.01 x {slower}", *rest, *files, "--device",
                                               self.options.device, *quick, "--launches",
                                               LAUNCHES[kind], "-o", str(measured)])}
        self.tell("made.jsonl", row)
        if row["ended"] != 0:
            return
        found = row["said"]["cases"][0]
        least = 0.9999 * found["low"]  # what its own times show, whichever way five digits are rounded
        if kind == "public":
            true, known = min(ratio, least), found["times_as_fast"]
        else:
            known = ratio or found["times_as_fast"]
            true = min(LESS * known, least)
        for ending, factor in (("claim", true), ("false", MORE * known)):
            held = json.loads(measured.read_text(encoding="utf-8"))
            # Of a false one the times are forged alike: what its own times do not show is refused without a
            # measurement.
            forged = max(1.01 * factor / found["low"], 1) if ending == "false" else 1
            held = slowed(held, forged) if forged > 1 else held
            held["claim"] = f"{faster} >= {factor:.5g} x {slower} in every case"
            (self.options.folder / f"{name}.{ending}").write_text(json.dumps(sealed(held)), encoding="utf-8")

    def verify(self, place, kind, file):
        path = self.options.folder / file
        files = (self.small if kind == "small" else self.public)[path.stem][3]
        wanted = "confirmed" if path.suffix == ".claim" else "refuted"
        row = {"name": file, "kind": kind, "statement": json.loads(path.read_text(encoding="utf-8"))["claim"],
               **self.call(place, file, kind, ["verify", str(path), *files, "--launches", LAUNCHES[kind]])}
        self.tell("verified.jsonl", {**row, "wanted": wanted, "right": row["said"].get("verdict") == wanted})

    def run(self):
        """The tasks that were not begun when the time was over."""
        tasks: queue.Queue[tuple] = queue.Queue()
        for kind, known in (("small", self.small), ("public", self.public)):
            for name in known:
                if self.options.verb == "make":
                    tasks.put((self.make, kind, name))
                for ending in ("claim", "false") if self.options.verb == "verify" else ():
                    if (self.options.folder / f"{name}.{ending}").exists():
                        tasks.put((self.verify, kind, f"{name}.{ending}"))

        def of_place(place):
            while time.monotonic() < self.until:
                try:
                    job, *arguments = tasks.get_nowait()
                except queue.Empty:
                    return
                job(place, *arguments)

        places: list = [None]
        if self.options.device != "cpu":
            places = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
        threads = [threading.Thread(target=of_place, args=(place,)) for place in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return list(tasks.queue)

    def verdict(self, left):
        """The exit code, where the tasks `left` were not begun."""
        told = self.options.folder / "verified.jsonl"
        lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
        rows = list({row["name"]: row for row in map(json.loads, lines)}.values())  # of each claim the last time
        of = {wanted: [row for row in rows if row["wanted"] == wanted] for wanted in ("confirmed", "refuted")}
        right = {wanted: sum(row["right"] for row in these) for wanted, these in of.items()}
        for wanted, these in of.items():
            print(f"{right[wanted]} of {len(these)} {wanted}; others: "
                  f"{[(row['name'], row['said'].get('verdict'), row['ended']) for row in these if not row['right']]}")
        known = {row["name"] for row in rows}
        not_tried = [name for _, _, name in left if name not in known]
        well = right["confirmed"] >= ENOUGH * len(of["confirmed"]) and right["refuted"] == len(of["refuted"])
        return 1 if not well or not (rows or not_tried) else 3 if not_tried else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "verify"])
    parser.add_argument("syslab", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--library", type=lambda path: pathlib.Path(path).resolve(),
                        help="default: libsyslab.so of the same build")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--seconds", type=float, default=390, help="of all, default %(default)s")
    parser.add_argument("--public", action="store_true", help="the statements of reports/examples/claims.md, too")
    options = parser.parse_args()
    options.library = options.library or pathlib.Path(options.syslab).parent / "src/capi/libsyslab.so"
    if not options.library.exists():
        parser.error(f"there is no {options.library}; name libsyslab.so by --library")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        claims = Claims(options, pathlib.Path(scratch))
        left = claims.run()
    code = claims.verdict(left) if options.verb == "verify" else 3 if left else 0
    print(f"{len(left)} not begun{': ' * bool(left)}{', '.join(name for _, _, name in left)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
