#!/usr/bin/env python3
"""How many of a hundred rows stored by `run` are within 1 % when `run` remakes them in another order.

Of the others, the clocks are printed. By hand, on a machine that does nothing else; five minutes on one GPU.

    python3 tools/long/rows_again.py build/syslab [--device cpu] [--seconds 345] [-o rows.json]

Each GPU that CUDA_VISIBLE_DEVICES names, without it the first alone, has its share of the cases, the same both times.
Exit code 1: fewer than 95 of 100 are.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ENOUGH, NEAR, LONG = 0.95, 0.01, 70e-6  # a share of the rows, a share of a time, seconds
LAST_WORDS_S = 15
FORWARD = {"batch": 1, "heads": 16}


def at(**axes):
    return [word for name, value in axes.items() for word in ("-a", f"{name}={value}")]


ON_GPUS = [
    ["flash_forward", "--impl", "flash_mma,flash_wgmma",
     *at(seq="512,1024,2048,4096", head_dim="64,128", causal="false,true", dtype="bf16", **FORWARD)],
    ["flash_backward", "--impl", "flash_mma", *at(seq="512,1024,2048,4096", head_dim="64,128", causal="true",
                                                  dtype="bf16", **FORWARD)],
    ["flash_forward", "--impl", "flash_fp32,naive_cuda",
     *at(seq="512,1024,2048", head_dim=64, causal="true", dtype="fp32", **FORWARD)],
    ["weighted_sum", "--impl", "tiled_cuda", *at(rows="4096,8192", dim="256,1024", dtype="fp32,bf16"), "-a",
     "pass=forward,backward"],
    ["ceiling_copy", "--impl", "cuda_memcpy,cuda_vectors", *at(bytes="16Mi,32Mi,64Mi,128Mi,192Mi,256Mi")],
    ["ceiling_gemm", "--impl", "cublas", *at(size="1024,1536,2048,3072,4096", dtype="fp32,bf16,fp16")],
]
ON_A_CPU = [
    ["flash_forward", "--impl", "naive,flash_tiled", *at(seq="64,128", head_dim=32, causal="true", dtype="fp32",
                                                         batch=1, heads=2), "--protocol", "quick"],
    ["ceiling_copy", "--impl", "memcpy", *at(bytes="1Mi,4Mi"), "--protocol", "quick"],
]
STORED = """SELECT r.label, a.experiment || ' ' || a.case_text || ' ' || a.implementation AS what, a.status,
  m.value AS time, p.clock_mhz, p.clock_settled,
  p.sm_mhz_before, p.sm_mhz_after, p.celsius_after, p.held_down_after, p.noise
  FROM v_attempt a JOIN run r ON r.id = a.run_id JOIN v_provenance p ON p.attempt_id = a.attempt_id
  LEFT JOIN metric m ON m.attempt_id = a.attempt_id AND m.name = 'time' ORDER BY a.attempt_id"""


def run_all(options, database, label, until):
    """The jobs of each GPU one after the other: a case is remade on the GPU that it was made on."""
    cpu = options.device == "cpu"
    places: list = [None] if cpu else os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")

    def of_place(place, jobs):
        for job in jobs if label == "first" else random.sample(jobs, len(jobs)):
            left = until - time.monotonic()
            if left < 3:
                return
            command = [options.syslab, "run", *job, "--device", options.device, "--laws", "none", "--label", label,
                       "--db", database, "--quiet"]
            environment = {**os.environ, **({} if place is None else {"CUDA_VISIBLE_DEVICES": place})}
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True)
            try:
                said = process.communicate(timeout=left)[0]
            except subprocess.TimeoutExpired:
                process.terminate()  # what has ended is stored
                try:
                    said = process.communicate(timeout=LAST_WORDS_S)[0]
                except subprocess.TimeoutExpired:
                    process.kill()
                    said = process.communicate()[0]
            if process.returncode != 0:
                print(f"{label}: {' '.join(job[:3])} ended with {process.returncode}: {said[-300:]}", flush=True)

    jobs = ON_A_CPU if cpu else ON_GPUS
    threads = [threading.Thread(target=of_place, args=(place, jobs[i::len(places)])) for i, place in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def off(pair):
    return pair["again"]["time"] / pair["first"]["time"] - 1


def tell(rows):
    """Prints the counts and the rows that are not near; the share of those that are."""
    pairs: dict = {}
    for row in rows:
        if row["status"] == "ok" and row["time"]:
            pairs.setdefault(row["what"], {})[row["label"]] = row
    both = [pair for pair in pairs.values() if len(pair) == 2]
    drawn = random.sample(both, min(100, len(both)))
    near = [pair for pair in drawn if abs(off(pair)) <= NEAR]
    lasting = [pair for pair in drawn if pair["first"]["time"] >= LONG]
    print(f"{len(rows)} rows stored; of {len(drawn)} drawn {len(near)} remade within {NEAR:.0%}; of {len(lasting)} "
          f"that take {LONG * 1e6:.0f} us or more {sum(pair in near for pair in lasting)}")
    for pair in sorted(drawn, key=lambda pair: -abs(off(pair))):
        if pair in near:
            break
        print(f"  {100 * off(pair):+.2f} %  {pair['first']['what']}: {pair['first']['time'] * 1e6:.2f} and "
              f"{pair['again']['time'] * 1e6:.2f} us")
        for row in pair.values():
            print(f"      {row['label']}: {row['clock_mhz']} MHz in the samples, {row['sm_mhz_before']} before and "
                  f"{row['sm_mhz_after']} after, settled: {row['clock_settled']}, {row['celsius_after']} °C, held "
                  f"down: {row['held_down_after']}, noise {row['noise']}")
    return len(near) / len(drawn) if drawn else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("syslab", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--seconds", type=float, default=345, help="of all, default %(default)s")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="all rows, as JSON")
    options = parser.parse_args()
    random.seed(1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/rows.db"
        for label, share in (("first", 0.5), ("again", 1)):  # what was not made in half of the time is not remade
            run_all(options, database, label, began + share * options.seconds)
        asked = subprocess.run([options.syslab, "query", STORED, "--db", database, "--to", "json"], text=True,
                               capture_output=True)
    if asked.returncode != 0:
        sys.exit(asked.stderr)
    rows = json.loads(asked.stdout)
    if options.output:
        options.output.write_text(json.dumps(rows) + "\n")
    return 0 if tell(rows) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
