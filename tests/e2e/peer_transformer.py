"""PyTorch's side of the model's comparisons (tools/peers/): is it the hand-outs' model, and does it compute what it says?

On the CPU, in float64. Exits 77 where torch cannot be imported.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as error:
    print(f"SKIP: torch cannot be imported: {error}")
    sys.exit(77)

PEERS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "peers"
sys.path.insert(0, str(PEERS))
import tensor_file  # noqa: E402
from basics import (AdamW, Config, Transformer, clip_gradients, cross_entropy, gradient_norm,  # noqa: E402
                    learning_rate, sizes)

TINY = Config(vocab=31, context=8, d_model=16, layers=2, heads=2, d_ff=24)


def tiny(layout="interleaved"):
    torch.manual_seed(0)
    return Transformer(Config(**{**TINY.__dict__, "layout": layout}), torch.float64)


def batch():
    torch.manual_seed(1)
    return torch.randint(TINY.vocab, (2, TINY.context)), torch.randint(TINY.vocab, (2, TINY.context))


def check_parameters_have_the_hand_outs_names_order_and_number():
    names = list(tiny().state_dict())
    assert names[0] == "token_embeddings.weight" and names[-2:] == ["ln_final.weight", "lm_head.weight"], names
    parts = ["attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.output_proj", "ffn.w1", "ffn.w2", "ffn.w3", "ln1", "ln2"]
    assert names[1:10] == [f"layers.0.{part}.weight" for part in parts], names
    assert sum(p.numel() for p in tiny().parameters()) == TINY.parameters()
    counts = {"small": 128_625_408, "medium": 423_183_360, "large": 969_411_840, "xl25": 1_998_235_200,
              "xl26": 3_406_809_600, "10B": 12_832_823_808}
    assert {name: sizes(name, 512).parameters() for name in counts} == counts


def check_a_token_changes_no_logits_before_it():
    model, (ids, _) = tiny(), batch()
    other = ids.clone()
    other[:, 5] = (other[:, 5] + 1) % TINY.vocab
    before, after = model(ids), model(other)
    assert torch.equal(before[:, :5], after[:, :5]) and not torch.allclose(before[:, 5:], after[:, 5:])


def check_the_layout_of_rope_changes_nothing_downstream():
    ids, _ = batch()
    torch.testing.assert_close(tiny("interleaved")(ids), tiny("halves")(ids), rtol=1e-12, atol=1e-12)
    x = torch.randn(1, 1, TINY.context, 8, dtype=torch.float64)
    pairs, halves = (tiny(layout).layers[0].attn.rope(x) for layout in ("interleaved", "halves"))
    assert torch.equal(pairs[..., 0::2], halves[..., :4]) and torch.equal(pairs[..., 1::2], halves[..., 4:])
    assert torch.equal(pairs[..., 0, :], x[..., 0, :]), "position 0 is not turned"


def check_the_loss_is_pytorchs():
    model, (ids, targets) = tiny(), batch()
    logits = model(ids)
    theirs = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(cross_entropy(logits, targets), theirs, rtol=1e-13, atol=0)


def steps(model, optimizer, count=3):
    ids, targets = batch()
    for _ in range(count):
        optimizer.zero_grad()
        cross_entropy(model(ids), targets).backward()
        optimizer.step()
    return list(model.parameters())


def check_corrected_and_before_is_pytorchs_adamw():
    options = dict(lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)
    theirs, ours = tiny(), tiny()
    wanted = steps(theirs, torch.optim.AdamW(theirs.parameters(), **options))
    found = steps(ours, AdamW(ours.parameters(), decay_order="before", eps_mode="corrected", **options))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


def check_one_number_of_each_order_and_mode_by_hand():
    lr, beta2, eps, decay, p, g = 0.1, 0.96, 0.5, 0.25, 2.0, 3.0  # m̂ = g whatever beta1 is; √v = 0.2·3
    step = {"uncorrected": lr * 0.2 * g / (0.6 + eps), "corrected": lr * g / (g + eps)}
    for mode, update in step.items():
        for order, wanted in (("after", (p - update) * (1 - lr * decay)), ("before", p * (1 - lr * decay) - update)):
            weight = torch.nn.Parameter(torch.tensor([p], dtype=torch.float64))
            weight.grad = torch.tensor([g], dtype=torch.float64)
            AdamW([weight], lr, (0.9, beta2), eps, decay, order, mode).step()
            assert abs(weight.item() - wanted) < 1e-12, (mode, order, weight.item(), wanted)


def check_clipping_and_schedule():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert gradient_norm([weight]).item() == 5
    assert abs(clip_gradients([weight], gradient_norm([weight]), 1.0) - 0.2) < 1e-6
    assert abs(gradient_norm([weight]).item() - 1) < 1e-6
    assert clip_gradients([weight], gradient_norm([weight]), 10.0) == 1
    rates = [learning_rate(i, 1.0, 0.1, 4, 8) for i in (0, 2, 4, 6, 8, 9)]
    assert all(abs(a - b) < 1e-12 for a, b in zip(rates, (0, 0.5, 1, 0.55, 0.1, 0.1))), rates


def check_files_come_back_and_broken_ones_are_refused(folder):
    path = folder / "x.safetensors"
    tensors = {"a": torch.randn(3, 4), "b": torch.randn(5).to(torch.bfloat16), "empty": torch.zeros(0, 2),
               "ids": torch.arange(6).reshape(1, 2, 3), "one": torch.tensor(2.5, dtype=torch.float64)}
    for by_hand_out in (False, True):
        for by_hand_in in (False, True):
            tensor_file.write(path, tensors, {"heads": "2"}, own=by_hand_out)
            found, metadata = tensor_file.read(path, own=by_hand_in)
            assert metadata == {"heads": "2"} and set(found) == set(tensors)
            for name, tensor in tensors.items():
                assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
    whole = path.read_bytes()
    for cut in (0, 7, 20, len(whole) - 1):
        path.write_bytes(whole[:cut])
        refuses(path)
    path.write_bytes(whole + b"x")
    refuses(path)
    path.write_bytes(b"{\"not\": \"a tensor file\"}")
    refuses(path)


def refuses(path):
    for own in (False, True):
        try:
            tensor_file.read(path, own=own)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            raise AssertionError(f"{path.stat().st_size} bytes were taken for a file")


def check_a_trajectory_from_files(folder):
    def tool(*arguments):
        subprocess.run([sys.executable, str(PEERS / "transformer.py"), *arguments], check=True, cwd=folder,
                       stdout=subprocess.DEVNULL)

    tool("draw", "--to", "start", "--tokens", "tokens", "--vocab", "31", "--d-model", "16", "--heads", "2", "--d-ff", "24",
         "--seq", "8", "--steps", "4")
    for dtype in ("fp64", "fp32"):
        tool("trajectory", "--weights", "start", "--tokens", "tokens", "--dtype", dtype, "--to", dtype, "--max-norm", "0.5")
    wide, narrow = (json.loads((folder / dtype / "steps.json").read_text()) for dtype in ("fp64", "fp32"))
    assert len(wide["steps"]) == 4 and wide["model"]["heads"] == 2
    for a, b in zip(wide["steps"], narrow["steps"]):
        assert abs(a["loss"] - b["loss"]) < 1e-5 * a["loss"] and a["loss"] != b["loss"]
        assert abs(a["clip_factor"] - 0.5 / (a["gradient_norm"] + 1e-6)) < 1e-12
    # The same by hand: the first step's gradients, and the weights after all.
    weights, _ = tensor_file.read(folder / "start")
    tokens, _ = tensor_file.read(folder / "tokens")
    first, _ = tensor_file.read(folder / "fp64" / "first.safetensors")
    final, _ = tensor_file.read(folder / "fp64" / "final.safetensors")
    model = Transformer(TINY, torch.float64)
    model.load_state_dict({name: tensor.double() for name, tensor in weights.items()})
    optimizer = torch.optim.SGD(model.parameters(), 0)
    optimizer.zero_grad()
    cross_entropy(model(tokens["inputs"][0]), tokens["targets"][0]).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(first[f"grad.{name}"], parameter.grad, rtol=1e-12, atol=1e-15)
        assert not torch.equal(final[name], parameter) and final[name].dtype == torch.float64


def lines_of(folder, *arguments):
    done = subprocess.run([sys.executable, str(PEERS / "data_parallel.py"), *arguments, "--device", "cpu", "--ranks", "2",
                           "--samples", "2", "--warmup", "1"], cwd=folder, check=True, capture_output=True, text=True, timeout=100)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_ranks_take_the_steps_of_one_process_on_all_rows(folder):
    variants = ("none", "naive", "flat", "ddp_1", "zero", "fsdp")
    lines = {line["variant"]: line for line in lines_of(
        folder, "steps", "--models", "tiny", "--contexts", "16", "--batch", "4", "--precisions", "fp32", "--variants",
        ",".join(variants), "--to", "lines")}
    assert [json.loads(line) for line in (folder / "lines").read_text().splitlines()] == list(lines.values())
    assert tuple(lines) == variants
    torch.manual_seed(0)
    model = Transformer(sizes("tiny", 16))
    rows = []
    for rank in range(2):
        torch.manual_seed(1 + rank)
        rows.append([torch.randint(101, (2, 16)) for _ in range(2)])
    ids, targets = (torch.cat(parts) for parts in zip(*rows))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    for _ in range(1 + 3 * 2):  # alone, queued, in parts
        optimizer.zero_grad()
        loss = cross_entropy(model(ids), targets)
        loss.backward()
        optimizer.step()
    for variant, line in lines.items():
        if variant == "fsdp" and line["status"] == "unsupported":  # this PyTorch is old
            continue
        assert line["status"] == "ok", line
        assert line["n"] == len(line["samples_ms"]) == 2 and min(line["per_rank_ms"]) > 0 and line["pipelined_ms"] > 0, line
        assert line["replicas_equal"] is {"none": False, "fsdp": None}.get(variant, True), line
        apart = abs(line["loss"] - loss.item())
        if variant not in ("none", "fsdp"):  # AdamW's steps say nothing of the gradients' scale
            assert abs(line["gradient_norm"] / gradient_norm(model.parameters()).item() - 1) < 1e-4, line
        assert apart < 1e-5 if variant != "none" else apart > 1e-4, (variant, line["loss"], loss.item())
    assert lines["naive"]["parts_ms"].keys() - lines["ddp_1"]["parts_ms"].keys() == {"communication"}


def check_collectives_of_ranks_are_right_and_their_rates_follow_from_their_times(folder):
    lines = lines_of(folder, "collectives", "--bytes", "1000,100000", "--operations", "all_reduce,all_gather,broadcast")
    found = {(line["operation"], line["bytes"]): line for line in lines if line["status"] == "ok"}
    assert {("all_reduce", 1000), ("all_reduce", 100000), ("broadcast", 1000)} <= set(found), lines
    assert all(line["status"] == "ok" or "gloo has no" in line["note"] for line in lines), lines
    for (operation, size), line in found.items():
        rate = 1e-6 * size / line["pipelined_ms"]
        assert abs(line["pipelined_algbw"] - rate) < 1e-9 * rate
        assert line["single_busbw"] == line["single_algbw"] * (0.5 if operation == "all_gather" else 1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, check in list(globals().items()):
            if name.startswith("check_"):
                check(*([pathlib.Path(folder)] if "folder" in check.__code__.co_varnames[:1] else []))
                print(f"ok: {name[6:].replace('_', ' ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
