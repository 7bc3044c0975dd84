"""What tools/peers/transformer.py timed, as a log that `syslab import` takes, for experiment torch_compile.

    python3 tools/peers/transformer.py time --models small,xl26 --contexts 512 --precisions fp32,bf16_amp
        --to peer.jsonl
    syslab env --json > env.json
    python3 tools/peers/transformer_log.py peer.jsonl --environment env.json > peer.log
    syslab import peer.log

A case a model, context, precision, variant and phase: forward, forward_backward and step become mode forward,
forward_backward and train; the parts of a step and pipelined steps have no case there and are left out. Implementations
are pytorch_eager and pytorch_compiled. No check is claimed, since none was made while timing: the store marks such
attempts, and the table says so.
"""
import argparse
import json
import sys

MODES = {"forward": "forward", "forward_backward": "forward_backward", "step": "train"}


def records(line):
    params = {"model": line["model"], "batch": line["batch"], "context": line["context"],
              "precision": line["precision"],
              "mode": MODES[line["phase"]], "d_model": 0, "d_ff": 0, "layers": 0, "heads": 0, "vocab": 0}
    yield {"type": "case", "experiment": "torch_compile", "implementation": f"pytorch_{line['variant']}",
           "language": "Python",
           "params": params}
    yield {"type": "fact", "facts": {"torch": line["torch"], "cuda": line["cuda"], "gpu": line["gpu"]}}
    if line["status"] == "ok":
        seconds = [1e-3 * value for value in line["samples_ms"]]
        yield {"type": "sample", "series": "time", "unit": "s", "values": seconds}
        for name, key in (("time", "median_ms"), ("time_mean", "mean_ms"), ("time_stddev", "std_ms")):
            if line[key] is not None:
                yield {"type": "metric", "name": name, "unit": "s", "value": 1e-3 * line[key], "n": line["n"]}
        yield {"type": "metric", "name": "peak_bytes", "unit": "B", "value": line["peak_bytes"]}
    yield {"type": "end", "status": line["status"], "detail": line.get("note", "")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="JSON lines of transformer.py time")
    parser.add_argument("--environment", help="what `syslab env --json` printed on that machine")
    parser.add_argument("--author", default="pytorch", help="whose results they are")
    arguments = parser.parse_args()
    run = {"type": "run", "author": arguments.author, "label": "tools/peers/transformer.py",
           "protocol": {"name": "cs336"}}
    if arguments.environment:
        with open(arguments.environment, encoding="utf-8") as file:
            printed = json.load(file)
        # `syslab env --json` prints more than the machine: its facts alone make results of one machine comparable.
        run["environment"] = printed.get("environment", printed)
    print(json.dumps(run))
    with open(arguments.file, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
                if line["phase"] not in MODES:
                    continue
                made = list(records(line))
            except (ValueError, KeyError) as error:
                sys.exit(f"{arguments.file}:{number}: no line of transformer.py time: {error!r}")
            for record in made:
                print(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
