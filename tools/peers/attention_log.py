"""PyTorch's attention as a log for `syslab import`: what tools/peers/attention.py times becomes cases of flash_forward
and flash_backward, in whose tables and figures it then stands beside ours.
"""
import json
import pathlib
import statistics
from collections import namedtuple

Case = namedtuple("Case", "batch heads seq head_dim causal")
OUTPUTS = {"forward": ("out",), "backward": ("dq", "dk", "dv")}
BACKWARD = 2.5  # products of a backward pass over those of a forward pass


def operations(case, which):
    """4·B·H·pairs·D forward and 2.5 times that backward, whoever computes what."""
    pairs = case.seq * (case.seq + 1) // 2 if case.causal else case.seq**2
    return 4 * case.batch * case.heads * pairs * case.head_dim * (BACKWARD if which == "backward" else 1)


def log_head(protocol, environment=None):
    """`environment`: a file that `syslab env --json` wrote on the machine that measures."""
    head = {"type": "run", "author": "pytorch", "label": "attention of PyTorch", "protocol": {"name": protocol}}
    if environment:
        head["environment"] = json.loads(pathlib.Path(environment).read_text())["environment"]
    return head


def log_of(peer, version, case, dtype, which, milliseconds, errors):
    """The lines of a case, of all `milliseconds` that were measured; none where an output misses its bound. `errors`:
    {output: (its error, the error allowed)}."""
    errors = {name: errors[name] for name in OUTPUTS[which]}
    if not all(error <= most for error, most in errors.values()):  # NaN is no error allowed
        return []
    params = {"batch": case.batch, "heads": case.heads, "heads_kv": 0, "seq": case.seq, "seq_k": 0,
              "head_dim": case.head_dim,
              "dtype": dtype, "causal": case.causal, "align": "top_left"}
    seconds = [1e-3 * one for one in milliseconds]
    median = statistics.median(seconds)
    return [{"type": "case", "experiment": f"flash_{which}", "implementation": peer, "language": "Python",
             "digest": f"torch {version}", "params": params},
            *({"type": "check", "name": f"reference:{name}", "outcome": "passed", "worst_error": error,
               "tolerance": most}
              for name, (error, most) in errors.items()),
            {"type": "sample", "series": "time", "unit": "s", "values": seconds},
            {"type": "metric", "name": "time", "unit": "s", "value": median, "n": len(seconds)},
            {"type": "metric", "name": "tflops", "unit": "TFLOP/s", "value": 1e-12 * operations(case, which) / median},
            {"type": "end", "status": "ok"}]


def written(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)
