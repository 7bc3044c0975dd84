"""The hand-outs' transformer LM in PyTorch: how long its steps take, and what they compute.

    python3 tools/peers/transformer.py time --models small,xl26 --contexts 512 --precisions fp32,bf16_amp
        --variants eager,compiled
    python3 tools/peers/transformer.py draw --to start.safetensors --tokens tokens.safetensors --steps 10
    python3 tools/peers/transformer.py trajectory --weights start.safetensors --tokens tokens.safetensors --dtype fp64
        --to out

`time` measures a training step on a GPU and prints one JSON line a case and phase (`--to` also writes them). Variants:
eager, with the basics AdamW (basics.py); compiled, by torch.compile, with PyTorch's fused AdamW. Phases: `forward` (no
graph is kept), `forward_backward`, `step` (zero_grad, forward, loss, backward, optimizer; one call), all with the GPU
idle before each sample; `pipelined` (steps queued one behind the other: the time of all by their number); and the parts
of a step by events between them: `step_forward`, `step_loss`, `step_backward`, `step_optimizer`. Times are CUDA
events', --warmup and --samples each phase. `peak_bytes` is the most that tensors held at once in the phase,
`reserved_bytes` what the allocator held. A case that does not fit is an answer: status "oom".

`trajectory` takes weights and tokens from safetensors files, makes as many AdamW steps as there are batches, and leaves
in the folder --to: steps.json (loss, global gradient norm, clip factor and learning rate of each step),
final.safetensors (weights) and first.safetensors (the first batch's logits and the first gradients, as grad.NAME).
Weights bear the names of `syslab`'s model and may be of any float dtype; tokens are `inputs` and `targets`, int64,
(steps, batch, seq). `draw` makes such files from a seed.
"""
import argparse
import gc
import itertools
import json
import math
import pathlib
import statistics
import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import torch

import tensor_file
from basics import (DECAY_ORDERS, EPS_MODES, LAYOUTS, AdamW, Config, Transformer, clip_gradients, cross_entropy,
                    gradient_norm, learning_rate, sizes)

PRECISIONS = ("fp32", "tf32", "bf16_amp", "fp16_amp")
VARIANTS = ("eager", "compiled")
DTYPES = {"fp32": torch.float32, "fp64": torch.float64}


# --- time -------------------------------------------------------------------------------------------------------------


def placed_on(device):
    """What is made inside lies there from the beginning."""
    return nullcontext() if device == "cpu" else torch.device(device)


class Step:
    """One case: a model, its optimizer and a random batch, and what can be done with them."""

    def __init__(self, config, batch, precision, variant, compile_what, seed, device="cuda"):
        torch.manual_seed(seed)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        self.device = device
        with placed_on(device):
            self.model = Transformer(config)
        self.draw_batch(config, batch)
        self.loss_of = cross_entropy
        assert sum(p.numel() for p in self.model.parameters()) == config.parameters()
        self.prepare(variant, compile_what)
        dtype = {"bf16_amp": torch.bfloat16, "fp16_amp": torch.float16}.get(precision)
        self.region: Any = (lambda: torch.autocast(device, dtype)) if dtype else nullcontext
        # Without scaling fp16's gradients would vanish, and the scaler's own kernels belong to such a step.
        self.scaler = torch.amp.GradScaler(device) if precision == "fp16_amp" else None

    def draw_batch(self, config, batch):
        with placed_on(self.device):
            self.inputs, self.targets = (torch.randint(config.vocab, (batch, config.context)) for _ in range(2))

    def prepare(self, variant, compile_what):
        parameters = list(self.model.parameters())
        if variant == "compiled":
            self.optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)
            self.loss_of = torch.compile(cross_entropy)
            if compile_what == "blocks":
                for layer in self.model.layers:
                    layer.compile()
            else:
                self.model.compile()
        else:
            self.optimizer = AdamW(parameters, lr=1e-4)

    def forward(self):
        with torch.no_grad(), self.region():
            self.model(self.inputs)

    def forward_backward(self):
        self.step(optimize=False)

    def reduce_gradients(self, mark):
        """Where there are other ranks (data_parallel.py)."""

    def step(self, optimize=True, mark=lambda part: None):
        """`mark` is told of each part's end. Returns the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        mark("begin")
        with self.region():
            logits = self.model(self.inputs)
            mark("forward")
            loss = self.loss_of(logits, self.targets)
        mark("loss")
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        mark("backward")
        self.reduce_gradients(mark)
        if optimize:
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            mark("optimizer")
        return loss.detach()


def event():
    made = torch.cuda.Event(enable_timing=True)
    made.record()
    return made


def each_alone(work, samples):
    """Milliseconds of each call, the GPU idle before it."""
    found = []
    for _ in range(samples):
        torch.cuda.synchronize()
        begin = event()
        work()
        end = event()
        end.synchronize()
        found.append(begin.elapsed_time(end))
    return found


def parts_of(step, samples):
    """Milliseconds of each part of each step, from the end of the part before."""
    found: dict = {}
    for _ in range(samples):
        marks = {}
        torch.cuda.synchronize()
        step.step(mark=lambda part: marks.update({part: event()}))
        torch.cuda.synchronize()
        for (_, before), (part, end) in itertools.pairwise(marks.items()):
            found.setdefault(part, []).append(before.elapsed_time(end))
    return found


def measure(step, phase, warmup, samples):
    """Yields (what, milliseconds of each sample)."""
    work = {"forward": step.forward, "forward_backward": step.forward_backward}.get(phase, step.step)
    for _ in range(warmup):
        work()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    if phase == "parts":
        for part, found in parts_of(step, samples).items():
            yield f"step_{part}", found
    elif phase == "pipelined":
        def queue():
            for _ in range(samples):
                work()
        yield phase, [each_alone(queue, 1)[0] / samples]
    else:
        yield phase, each_alone(work, samples)


def give_back():
    gc.collect()
    torch.cuda.empty_cache()


def time_case(config, case, phases, arguments, tell):
    step = None
    for phase in phases:
        try:
            if step is None:
                step = Step(config, arguments.batch, case["precision"], case["variant"], arguments.compile,
                            arguments.seed)
            for what, found in measure(step, phase, arguments.warmup, arguments.samples):
                tell({**case, "phase": what, "status": "ok", "n": len(found), "mean_ms": statistics.mean(found),
                      "median_ms": statistics.median(found),
                      "std_ms": statistics.stdev(found) if len(found) > 1 else None, "min_ms": min(found),
                      "max_ms": max(found), "samples_ms": found, "peak_bytes": torch.cuda.max_memory_allocated(),
                      "reserved_bytes": torch.cuda.max_memory_reserved()})
        except torch.cuda.OutOfMemoryError as error:
            tell({**case, "phase": phase, "status": "oom", "note": str(error).splitlines()[0]})
        if step is not None:
            step.optimizer.zero_grad(set_to_none=True)
        give_back()


def time_cases(arguments):
    versions = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    phases = chosen(arguments.phases, ("forward", "forward_backward", "step", "parts", "pipelined"))
    file = open(arguments.to, "w", encoding="utf-8") if arguments.to else None

    def tell(line):
        for out in filter(None, (sys.stdout, file)):
            print(json.dumps(line), file=out, flush=True)

    for model, context, precision, variant in itertools.product(
            listed(arguments.models), map(int, listed(arguments.contexts)),
            chosen(arguments.precisions, PRECISIONS), chosen(arguments.variants, VARIANTS)):
        config = sizes(model, context)
        case = {"model": model, **asdict(config), "parameters": config.parameters(), "batch": arguments.batch,
                "precision": precision, "variant": variant, "warmup": arguments.warmup, "seed": arguments.seed,
                **versions}
        if variant == "compiled":
            case["compile"] = arguments.compile
        time_case(config, case, phases, arguments, tell)
        torch.compiler.reset()
        give_back()
    return 0


# --- trajectory -------------------------------------------------------------------------------------------------------


def draw(arguments):
    torch.manual_seed(arguments.seed)
    config = Config(arguments.vocab, arguments.seq, arguments.d_model, arguments.layers, arguments.heads,
                    arguments.d_ff)
    tensor_file.write(arguments.to, Transformer(config).state_dict(), {"heads": str(arguments.heads)})
    shape = (arguments.steps, arguments.batch, arguments.seq)
    batches = {name: torch.randint(config.vocab, shape) for name in ("inputs", "targets")}
    tensor_file.write(arguments.tokens, batches)
    print(f"{config.parameters()} parameters in {arguments.to}, {arguments.steps} batches in {arguments.tokens}")
    return 0


def config_of(weights, metadata, arguments, seq):
    """The model that weights are of; the number of heads is in no shape."""
    heads = arguments.heads or int(metadata.get("heads", 0))
    if heads < 1:
        sys.exit(f"{arguments.weights} does not say how many heads there are; say it with --heads")
    vocab, d_model = weights["token_embeddings.weight"].shape
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    return Config(vocab, seq, d_model, layers, heads, weights["layers.0.ffn.w1.weight"].shape[0], arguments.theta,
                  arguments.layout)


def trajectory(arguments):
    dtype = DTYPES[arguments.dtype]
    torch.backends.cuda.matmul.allow_tf32 = False
    weights, metadata = tensor_file.read(arguments.weights)
    tokens, _ = tensor_file.read(arguments.tokens)
    inputs, targets = (tokens[name].to(arguments.device) for name in ("inputs", "targets"))
    config = config_of(weights, metadata, arguments, inputs.shape[-1])
    model = Transformer(config, dtype)
    model.load_state_dict({name: tensor.to(dtype) for name, tensor in weights.items()})
    model.to(arguments.device)
    parameters = list(model.parameters())
    optimizer = AdamW(parameters, arguments.lr, (arguments.beta1, arguments.beta2), arguments.eps,
                      arguments.weight_decay, arguments.decay_order, arguments.eps_mode)
    folder = pathlib.Path(arguments.to)
    folder.mkdir(parents=True, exist_ok=True)
    steps = []
    for i in range(len(inputs)):
        lr = arguments.lr
        if arguments.cycle:
            lr = learning_rate(i, arguments.lr, arguments.least_lr, arguments.lr_warmup, arguments.cycle)
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs[i])
        loss = cross_entropy(logits, targets[i])
        loss.backward()
        if i == 0:
            first = {"logits": logits, **{f"grad.{name}": p.grad for name, p in model.named_parameters()}}
            tensor_file.write(folder / "first.safetensors", first)
        norm = gradient_norm(parameters)
        factor = clip_gradients(parameters, norm, arguments.max_norm) if arguments.max_norm else 1.0
        optimizer.step()
        steps.append({"loss": loss.item(), "gradient_norm": norm.item(), "clip_factor": factor, "lr": lr})
        if not math.isfinite(steps[-1]["loss"]):
            sys.exit(f"step {i + 1}: the loss is {steps[-1]['loss']}")
    tensor_file.write(folder / "final.safetensors", model.state_dict(), {"heads": str(config.heads)})
    said = ("lr", "beta1", "beta2", "eps", "weight_decay", "decay_order", "eps_mode", "max_norm", "least_lr",
            "lr_warmup",
            "cycle")
    told = {"model": asdict(config), "batch": inputs.shape[1], "dtype": arguments.dtype, "device": arguments.device,
            "torch": torch.__version__, "options": {name: getattr(arguments, name) for name in said}, "steps": steps}
    (folder / "steps.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for i, step in enumerate(steps):
        print(f"step {i + 1}: loss {step['loss']:.9f}, gradient norm {step['gradient_norm']:.9f}")
    return 0


# --- command line -----------------------------------------------------------------------------------------------------


def listed(text):
    return [part for part in text.split(",") if part]


def chosen(text, known):
    for part in listed(text):
        if part not in known:
            sys.exit(f"unknown '{part}'; there are {', '.join(known)}")
    return listed(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)

    verb = verbs.add_parser("time", help="measure training steps on a GPU")
    verb.add_argument("--models", default="small", help="by commas")
    verb.add_argument("--contexts", default="512")
    verb.add_argument("--precisions", default="fp32,tf32,bf16_amp")
    verb.add_argument("--variants", default="eager,compiled")
    verb.add_argument("--phases", default="forward,forward_backward,step,parts,pipelined")
    verb.add_argument("--compile", default="whole", choices=("whole", "blocks"),
                      help="the model in one piece, or each block, which takes as long for one as for all")
    verb.add_argument("--batch", type=int, default=4)
    verb.add_argument("--warmup", type=int, default=5)
    verb.add_argument("--samples", type=int, default=10)
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--to", help="write the lines to this file too")
    verb.set_defaults(call=time_cases)

    verb = verbs.add_parser("draw", help="make a model's first weights and batches of random tokens")
    for name, default in (("vocab", 101), ("d-model", 64), ("layers", 2), ("heads", 4), ("d-ff", 128), ("batch", 2),
                          ("seq", 32), ("steps", 3), ("seed", 0)):
        verb.add_argument(f"--{name}", type=int, default=default)
    verb.add_argument("--to", required=True)
    verb.add_argument("--tokens", required=True)
    verb.set_defaults(call=draw)

    verb = verbs.add_parser("trajectory", help="AdamW steps from given weights and tokens")
    verb.add_argument("--weights", required=True)
    verb.add_argument("--tokens", required=True)
    verb.add_argument("--to", required=True, help="a folder")
    verb.add_argument("--dtype", default="fp64", choices=DTYPES)
    verb.add_argument("--device", default="cpu", help="cpu or cuda")
    verb.add_argument("--heads", type=int, default=0, help="where the weights' file does not say it")
    verb.add_argument("--theta", type=float, default=1e4)
    verb.add_argument("--layout", default="interleaved", choices=LAYOUTS,
                      help="of RoPE: the 2025 or the 2026 hand-out's")
    verb.add_argument("--decay-order", default="after", choices=DECAY_ORDERS, help="2025's or 2026's")
    verb.add_argument("--eps-mode", default="uncorrected", choices=EPS_MODES, help="the hand-outs' or PyTorch's")
    for name, rate in (("lr", 1e-3), ("beta1", 0.9), ("beta2", 0.999), ("eps", 1e-8), ("weight-decay", 0.01)):
        verb.add_argument(f"--{name}", type=float, default=rate)
    verb.add_argument("--max-norm", type=float, default=0, help="clip gradients to this norm; 0: do not")
    verb.add_argument("--cycle", type=int, default=0, help="steps of a cosine schedule; 0: a constant rate")
    verb.add_argument("--lr-warmup", type=int, default=0, help="its steps of linear warm-up")
    verb.add_argument("--least-lr", type=float, default=0, help="its last rate")
    verb.set_defaults(call=trajectory)

    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
