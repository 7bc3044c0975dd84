"""Public statements about speed, measured in turns in one process beside each other. Needs a GPU, PyTorch and Triton.

    python3 tools/peers/public_claims.py -o claims.json [--seconds 90]

Of each statement, `rounds` blocks of A B B A: a burst is as many calls as take 5 ms, timed by two events, each on
inputs that are written anew before it. The ratio is exp of the mean over blocks of log(slower / faster), with Student's
95 % interval over the blocks. That is one process and one machine: weaker than `syslab claim`, which takes fresh
processes for each launch. The statement of our own table is made where SYSLAB_LIBRARY names our library.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / "reports/examples/claims" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


softmax, layer_norm, attention = load("softmax"), load("layer_norm"), load("attention")


def ours(q, k, v, causal):
    sys.path.insert(0, str(HERE / "src/python"))
    import syslab_torch
    return syslab_torch.FlashAttention.apply(q, k, v, causal)


def only(cases, *names):
    return [case for case in cases if not names or list(case["axes"].values())[0] in names]


# name, factor as published, faster, slower, cases
STATEMENTS = [
    ("softmax_naive", 4.0, softmax.fused, softmax.naive, only(softmax.cases())),
    ("softmax_library", 1.0, softmax.fused, softmax.library, only(softmax.cases())),
    ("layer_norm", 1.0, layer_norm.fused, layer_norm.library, only(layer_norm.cases())),
    ("flash_efficient", 1.59, attention.flash, attention.efficient, only(attention.half_cases())),
    ("flash_math", 2.99, attention.flash, attention.math, only(attention.half_cases())),
    ("cudnn_flash_causal8k", 1.85, attention.cudnn, attention.flash, only(attention.cases(), "causal8k")),
    ("cudnn_flash_full16k", 1.61, attention.cudnn, attention.flash, only(attention.cases(), "full16k")),
    ("cudnn_flash_causal16k64", 1.30, attention.cudnn, attention.flash, only(attention.cases(), "causal16k64")),
    ("cudnn_flash_training", 1.7, attention.cudnn, attention.flash, only(attention.cases(), "training")),
]
OURS = ("ours_cudnn", 1.0, ours, attention.cudnn, only(attention.cases(), "causal16k64", "full16k"))


def on_gpu(arguments):
    return {name: value.cuda() if torch.is_tensor(value) else value for name, value in arguments.items()}


def seconds_of(call, arguments, calls):
    tensors = [value for value in arguments.values() if torch.is_tensor(value)]
    tensors[0].normal_()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call(**arguments)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / calls


def student(degrees):
    """97.5 % quantile; Cornish and Fisher's series, right to 0.5 % from 5 degrees on."""
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def measure(faster, slower, case, rounds):
    arguments = on_gpu(case["arguments"](1))
    with torch.no_grad():
        got, expected = faster(**arguments).double(), slower(**arguments).double()
        error = (got - expected).abs().max().item()
        bound = case.get("atol", 1e-5) + case.get("rtol", 1e-5) * expected.abs().max().item()
        del got, expected
        if not error <= bound:
            return {"wrong": f"{error:.3g} apart, {bound:.3g} allowed"}
        calls = {}
        for call in (faster, slower):
            for _ in range(3):
                one = seconds_of(call, arguments, 3)
            calls[call] = max(1, round(0.005 / one))
        warm = time.monotonic() + 0.3
        while time.monotonic() < warm:
            seconds_of(faster, arguments, calls[faster])
        logs = []
        times: dict = {faster: [], slower: []}
        for block in range(rounds):
            order = (faster, slower, slower, faster) if block % 2 == 0 else (slower, faster, faster, slower)
            took: dict = {faster: [], slower: []}
            for call in order:
                took[call].append(seconds_of(call, arguments, calls[call]))
            logs.append(sum(map(math.log, took[slower])) / 2 - sum(map(math.log, took[faster])) / 2)
            for call in took:
                times[call] += took[call]
    mean = sum(logs) / rounds
    half = student(rounds - 1) * math.sqrt(sum((x - mean) ** 2 for x in logs) / (rounds - 1) / rounds)
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half), "blocks": rounds,
            "faster_us": 1e6 * sorted(times[faster])[rounds], "slower_us": 1e6 * sorted(times[slower])[rounds]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
             "statements": []}
    for name, factor, faster, slower, cases in STATEMENTS + [OURS] * ("SYSLAB_LIBRARY" in os.environ):
        for case in cases:
            row = {"statement": name, "published": factor, **case["axes"]}
            if time.monotonic() > until:
                row["not_reached"] = True
            else:
                try:
                    row.update(measure(faster, slower, case, options.rounds))
                except Exception as error:  # one statement's trouble is not the others'
                    row["failed"] = str(error).splitlines()[0][:200]
            found["statements"].append(row)
            print(json.dumps(row), flush=True)
            pathlib.Path(options.output).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
