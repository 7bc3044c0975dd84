"""Attention as an operator of torch, on a GPU: what torch's own machinery asks of one, torch.compile, autocast, graphs and
streams. Exits 77 without a GPU or without torch 2.10.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

try:
    import torch
except ImportError as error:
    print(f"SKIP: torch cannot be imported: {error}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))
import syslab_torch  # noqa: E402
from syslab_torch import FlashAttention  # noqa: E402


def draw(shape=(2, 3, 200, 64), dtype=torch.bfloat16, device="cuda"):
    generator = torch.Generator(device).manual_seed(0)
    return [torch.randn(shape, generator=generator, device=device).to(dtype).requires_grad_(i < 3) for i in range(4)]


def pass_through(attend, q, k, v, do):
    o = attend(q, k, v, True)
    return (o.detach(), *torch.autograd.grad(o, (q, k, v), do))


def equal(found, wanted):
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def close(found, wanted, tolerance):
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a.float(), b.float(), rtol=tolerance, atol=tolerance)


def check_keeps_what_torch_asks_of_operators():
    for device in ("cpu", "cuda"):
        q, k, v, do = (t.detach() for t in draw((2, 40, 32), torch.float32, device))
        o, lse = torch.ops.syslab.attention_forward(q, k, v, True, "")
        tests = ("test_schema", "test_faketensor")
        torch.library.opcheck(torch.ops.syslab.attention_forward.default, (q, k, v, True, ""), test_utils=tests)
        torch.library.opcheck(torch.ops.syslab.attention_backward.default, (do, q, k, v, o, lse, True, ""), test_utils=tests)


def check_the_module_may_be_loaded_under_another_name():
    spec = importlib.util.spec_from_file_location("syslab_torch_again", syslab_torch.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    q, k, v, _ = (t.detach() for t in draw())
    equal((again.FlashAttention.apply(q, k, v, True),), (FlashAttention.apply(q, k, v, True),))


def check_gives_the_bits_of_ctypes():
    """Forward; and backward by an implementation that repeats its bits."""
    q, k, v, do = draw()
    found = pass_through(lambda *a: FlashAttention.apply(*a, "flash_mma_deterministic"), q, k, v, do)
    program = ("import sys, torch; sys.path.insert(0, sys.argv[1]); import torch_operators as t;"
               "q, k, v, do = t.draw();"
               "torch.save(t.pass_through(lambda *a: t.FlashAttention.apply(*a, 'flash_mma_deterministic'), q, k, v, do), sys.argv[2])")
    kept = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"torch_operators_{os.getpid()}.pt"
    try:
        subprocess.run([sys.executable, "-c", program, str(pathlib.Path(__file__).parent), str(kept)], check=True,
                       env={**os.environ, "SYSLAB_TORCH_CALLS": "ctypes"})
        equal(found, torch.load(kept))
    finally:
        kept.unlink(missing_ok=True)


def check_says_which_implementation_it_takes_and_why():
    q, k, v, _ = (t.detach() for t in draw((2, 16, 1024, 64)))
    name, why = syslab_torch.choice(q, k, v, True)
    assert name in ("flash_wgmma", "flash_mma") and why, (name, why)
    if torch.cuda.get_device_capability() == (9, 0):
        assert name == "flash_wgmma", (name, why)
    equal((FlashAttention.apply(q, k, v, True),), (FlashAttention.apply(q, k, v, True, name),))
    assert syslab_torch.choice(q.cpu(), k.cpu(), v.cpu(), backward=True)[0] == "flash_tiled"
    assert syslab_torch.choice(q, k, v, True, implementation="flash_mma_deterministic")[0] == "flash_mma_deterministic"


def check_a_gpus_derivative_runs_no_python():
    for shape, kv, dtype, causal in (((2, 3, 200, 64), 3, torch.bfloat16, True), ((2, 3, 129, 128), 3, torch.float16, False),
                                     ((1, 4, 65, 32), 2, torch.float32, True)):
        q, _, _, do = draw(shape, dtype)
        k, v, *_ = draw((shape[0], kv, *shape[2:]), dtype)
        o = FlashAttention.apply(q, k, v, causal)
        assert "ForCpu" in o.grad_fn.name(), o.grad_fn.name()
        by_function = syslab_torch.Attention.apply(q, k, v, causal, "")
        equal((o,), (by_function,))
        close(torch.autograd.grad(o, (q, k, v), do), torch.autograd.grad(by_function, (q, k, v), do), 2e-2)
    some = FlashAttention.apply(q, k.detach(), v.detach(), True)
    assert torch.autograd.grad(some.sum(), q)[0].shape == q.shape
    (once,) = torch.autograd.grad(FlashAttention.apply(q, k, v, True).sum(), q, create_graph=True)
    try:
        torch.autograd.grad(once.sum(), q)
        raise AssertionError("a gradient of gradients was made up")
    except RuntimeError:
        pass


def check_compiles_into_one_graph():
    def attend(q, k, v, causal):
        return FlashAttention.apply(q * 2, k, v, causal) + 1

    inputs = draw()
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    close(pass_through(compiled, *inputs), pass_through(attend, *inputs), 2e-2)


def check_compiles_with_inductor_and_lengths_that_change():
    compiled = torch.compile(lambda *a: FlashAttention.apply(*a) * 1, fullgraph=True, dynamic=True)
    for length in (64, 200, 333):
        inputs = draw((1, 2, length, 64))
        close(pass_through(compiled, *inputs), pass_through(FlashAttention.apply, *inputs), 2e-2)


def check_casts_under_autocast():
    q, k, v, do = draw(dtype=torch.float32)
    with torch.autocast("cuda", torch.bfloat16):
        o = FlashAttention.apply(q, k.bfloat16(), v, True)
    assert o.dtype == torch.bfloat16
    found = torch.autograd.grad(o, (q, v), do.bfloat16())
    assert [t.dtype for t in found] == [torch.float32] * 2
    halves = [t.detach().bfloat16().requires_grad_() for t in (q, k, v)]
    o_of_halves, dq, _, dv = pass_through(FlashAttention.apply, *halves, do.bfloat16())
    close((o, *found), (o_of_halves, dq, dv), 1e-2)
    with torch.autocast("cuda", torch.bfloat16):
        compiled = torch.compile(FlashAttention.apply, backend="aot_eager")(q, k, v, True)
    assert compiled.dtype == torch.bfloat16


def check_can_be_captured():
    q, k, v, _ = (t.detach() for t in draw())
    wanted = FlashAttention.apply(q, k, v, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = FlashAttention.apply(q, k, v, True)
    o.zero_()
    graph.replay()
    equal((o,), (wanted,))


def check_queues_on_the_current_stream():
    q, k, v, _ = (t.detach() for t in draw((1, 1, 64, 64)))
    wanted = FlashAttention.apply(q, k, v, True)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        later = q * 1
        o = FlashAttention.apply(later, k, v, True)  # on any other stream, before `later` is there
    stream.synchronize()
    equal((o,), (wanted,))


def check_refusals_are_exceptions_with_reasons():
    q, k, v, _ = (t.detach() for t in draw((2, 8, 16)))

    def refusal(kinds, *arguments):
        try:
            FlashAttention.apply(*arguments)
        except kinds as error:
            return str(error)
        raise AssertionError("nothing was refused")

    assert "float64" in refusal(TypeError, q.double(), q.double(), q.double())
    assert "q on cuda" in refusal(ValueError, q, k.cpu(), v)
    assert "flash_nothing" in refusal(ValueError, q, k, v, True, "flash_nothing")
    assert "v" in refusal(ValueError, q, k, v[:1])


def main():
    if not torch.cuda.is_available():
        print("SKIP: torch sees no GPU")
        return 77
    if not hasattr(torch, "version") or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
        print(f"SKIP: torch {torch.__version__}: calls go through ctypes ({syslab_torch.WHY_CTYPES})")
        return 77
    assert syslab_torch.WHY_CTYPES == "", syslab_torch.WHY_CTYPES
    checks = [(name[6:].replace("_", " "), check) for name, check in globals().items() if name.startswith("check_")]
    failed = 0
    for name, check in checks:
        try:
            check()
            print(f"pass: {name}", flush=True)
        except Exception as error:  # each check reports, the rest still runs
            failed += 1
            print(f"FAIL: {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
