"""Training steps of ours beside PyTorch's, from the same weights and the same tokens: one trajectory, two programs.

    python3 tests/e2e/trajectory.py PATH/TO/trajectory      exits 77 where torch cannot be imported

fp64 on the CPU must agree to rounding; on a GPU each precision to its own, in every variant.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as error:
    print(f"SKIP: torch cannot be imported: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "tools" / "peers"
sys.path.insert(0, str(PEERS))
import json  # noqa: E402

import tensor_file  # noqa: E402

LR, MAX_NORM, STEPS = "3e-3", "1.0", "8"
LAYOUT = {"2025": ("interleaved", "after"), "2026": ("halves", "before")}
# Relative distance of final weights, of losses. The update divides by the root of the second moment: an element whose
# gradient is near 0 turns its rounding into a step of the learning rate, so weights are off by more than u.
BOUNDS = {"fp64": (1e-9, 1e-11), "fp32": (1e-4, 1e-5), "tf32": (1e-2, 1e-2), "bf16_amp": (2e-2, 2e-2),
          "bf16_fused": (2e-2, 2e-2)}


def peer(*words):
    done = subprocess.run([sys.executable, str(PEERS / "transformer.py"), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def distance(found, expected):
    difference = sum(float(((found[n].double() - e.double()) ** 2).sum()) for n, e in expected.items())
    norm = sum(float((e.double() ** 2).sum()) for e in expected.values())
    return (difference / norm) ** 0.5


def main():
    program, failures = pathlib.Path(sys.argv[1]).resolve(), 0
    runs = [("fp64", "fused", "cpu"), ("fp32", "fused", "cpu")]
    if torch.cuda.is_available():
        runs += [(precision, variant, "cuda") for precision in ("fp32", "tf32", "bf16_amp", "bf16_fused")
                 for variant in ("eager", "fused", "graph")]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        start, tokens = folder / "start.safetensors", folder / "tokens.safetensors"
        peer("draw", "--to", start, "--tokens", tokens, "--steps", STEPS)
        for handout, (layout, order) in LAYOUT.items():
            theirs = folder / f"torch{handout}"
            peer("trajectory", "--weights", start, "--tokens", tokens, "--dtype", "fp64", "--lr", LR, "--max-norm", MAX_NORM,
                 "--layout", layout, "--decay-order", order, "--to", theirs)
            expected, _ = tensor_file.read(theirs / "final.safetensors")
            losses = [step["loss"] for step in json.loads((theirs / "steps.json").read_text())["steps"]]
            for precision, variant, device in runs:
                ours = folder / f"{handout}{precision}{variant}{device}"
                done = subprocess.run([program, start, tokens, precision, variant, device, LR, MAX_NORM, handout, ours],
                                      capture_output=True, text=True)
                name = f"{handout} {precision} {variant} {device}"
                if done.returncode != 0:
                    failures += 1
                    print(f"FAIL {name}: {done.stderr.strip()}")
                    continue
                found, _ = tensor_file.read(ours / "final.safetensors")
                told = [float(line.split()[0]) for line in (ours / "losses.txt").read_text().splitlines()]
                weights = distance(found, expected)
                worst = max(abs(a - b) / b for a, b in zip(told, losses, strict=True))
                passed = weights <= BOUNDS[precision][0] and worst <= BOUNDS[precision][1]
                failures += not passed
                print(f"{'ok  ' if passed else 'FAIL'} {name}: weights {weights:.2e} off (at most {BOUNDS[precision][0]:.0e}), "
                      f"losses {worst:.2e} (at most {BOUNDS[precision][1]:.0e})")
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
