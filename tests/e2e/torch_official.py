"""The hand-out's attention tests, in our words, through src/python/syslab_torch.py and libsyslab.so: on the CPU, and on
the GPU where torch sees one.

Shapes, order of drawing, seed and tolerances are those of the official tests: (4, 128, 64), fp32, seed 0, q then k then v
then dO, 1e-2. The official ones call the CPU implementation without a mask; here it is called with one, too. More follows
that the course does not ask. Exits 77 where torch cannot be imported. `--device cuda` insists on a GPU.
"""
import math
import pathlib
import sys

try:
    import torch
except ImportError as error:
    print(f"SKIP: torch cannot be imported: {error}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))
import syslab_torch  # noqa: E402
from syslab_torch import FlashAttention  # noqa: E402

TOLERANCE = {"rtol": 1e-2, "atol": 1e-2}


def draw(shape=(4, 128, 64), dtype=torch.float32):
    torch.manual_seed(0)
    q, k, v, do = (torch.randn(shape).to(dtype) for _ in range(4))
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), do


def expected(q, k, v, causal):
    """Attention by its definition: O and L."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[-2:]
        later = torch.arange(m) > torch.arange(n)[:, None]
        scores = scores.masked_fill(later, -1e6)
    return torch.softmax(scores, dim=-1) @ v, torch.logsumexp(scores, dim=-1)


def gradients(outputs, inputs, do):
    return torch.autograd.grad(outputs, inputs, do)


def check_library_has_the_device():
    """Small and plain: what fails here fails everywhere."""
    q = torch.zeros(1, 16, 16)
    assert FlashAttention.apply(q, q, q).device == q.device


def check_forward(causal):
    q, k, v, _ = draw()
    o = FlashAttention.apply(q, k, v, causal)
    o_expected, l_expected = expected(q, k, v, causal)
    torch.testing.assert_close(o, o_expected, **TOLERANCE)
    rows = [t for t in o.grad_fn.saved_tensors if t.shape == (q.shape[0], q.shape[1])]
    assert len(rows) == 1, f"{len(rows)} saved tensors have the shape of L"
    torch.testing.assert_close(rows[0], l_expected, **TOLERANCE)


def check_backward(causal):
    q, k, v, do = draw()
    found = gradients(FlashAttention.apply(q, k, v, causal), (q, k, v), do)
    wanted = gradients(expected(q, k, v, causal)[0], (q, k, v), do)
    for name, a, b in zip(("dq", "dk", "dv"), found, wanted):
        torch.testing.assert_close(a, b, **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")


def check_is_causal_is_optional():
    q, k, v, do = draw((2, 16, 16))
    o = FlashAttention.apply(q, k, v)
    torch.testing.assert_close(o, FlashAttention.apply(q, k, v, False), rtol=0, atol=0)
    o.backward(do)
    assert q.grad is not None and k.grad is not None and v.grad is not None


def check_tight_in_every_dtype():
    """Far inside the course's tolerance: fp32 to 1e-5, half precision to a few of its own steps."""
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 4e-2)):
        for causal in (False, True):
            q, k, v, do = draw((2, 37, 24), dtype)
            found = (FlashAttention.apply(q, k, v, causal),)
            found += gradients(found[0], (q, k, v), do)
            exact = [t.detach().double().requires_grad_() for t in (q, k, v)]
            wanted = (expected(*exact, causal)[0],)
            wanted += gradients(wanted[0], exact, do.double())
            for a, b in zip(found, wanted):
                torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)


def check_upstream_gradients_of_any_layout():
    q, k, v, do = draw((2, 32, 16))
    wanted = gradients(FlashAttention.apply(q, k, v, True), (q, k, v), do)
    transposed = do.transpose(1, 2).contiguous().transpose(1, 2)  # strides (512, 1, 32)
    assert not transposed.is_contiguous()
    found = gradients(FlashAttention.apply(q, k, v, True), (q, k, v), transposed)
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    # sum() sends a gradient whose strides are all zero
    found = gradients(FlashAttention.apply(q, k, v, True).sum(), (q, k, v), None)
    wanted = gradients(FlashAttention.apply(q, k, v, True), (q, k, v), torch.ones(2, 32, 16))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def check_views_are_read_where_they_lie():
    """q, k and v cut from one packed projection (B, S, 3, H, D), seen as (B, H, S, D)."""
    torch.manual_seed(0)
    packed = torch.randn(2, 24, 3, 4, 16, requires_grad=True)
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    o = FlashAttention.apply(q, k, v, True)
    torch.testing.assert_close(o, expected(q, k, v, True)[0], rtol=1e-5, atol=1e-5)
    found, wanted = (torch.autograd.grad(out.square().sum(), packed)[0] for out in (o, expected(q, k, v, True)[0]))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def check_grouped_queries_and_other_lengths():
    torch.manual_seed(0)
    q = torch.randn(2, 6, 20, 8, requires_grad=True)
    k, v = (torch.randn(2, 2, 33, 8, requires_grad=True) for _ in range(2))
    wanted = expected(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), False)[0]
    o = FlashAttention.apply(q, k, v)
    torch.testing.assert_close(o, wanted, rtol=1e-5, atol=1e-5)
    do = torch.randn_like(o)
    for a, b in zip(gradients(o, (q, k, v), do), gradients(wanted, (q, k, v), do)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def check_values_whose_sign_memory_does_not_hold():
    torch.manual_seed(0)
    q, k, v = (torch._neg_view(torch.randn(2, 9, 4)) for _ in range(3))  # x.conj().imag is one, with a stride of 2
    wanted = FlashAttention.apply(q.resolve_neg(), k.resolve_neg(), v.resolve_neg())
    torch.testing.assert_close(FlashAttention.apply(q, k, v), wanted, rtol=0, atol=0)


def check_calls_go_by_operators_where_torch_has_them():
    has_them = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 10)
    why = syslab_torch.WHY_CTYPES
    assert why == "" if has_them else "torch 2.10 or newer" in why, why


def check_without_a_gradient_it_is_the_same():
    q, k, v, _ = draw((2, 16, 16))
    wanted = FlashAttention.apply(q, k, v, True)
    with torch.no_grad():
        found = FlashAttention.apply(q, k, v, True)
    assert not found.requires_grad
    torch.testing.assert_close(found, wanted.detach(), rtol=0, atol=0)


def check_gradients_of_gradients_are_refused():
    q, k, v, do = draw((2, 16, 16))
    (dq,) = torch.autograd.grad(FlashAttention.apply(q, k, v), q, do.requires_grad_(), create_graph=True)
    try:
        dq.sum().backward()
    except RuntimeError as error:
        assert "once_differentiable" in str(error), error
    else:
        raise AssertionError("a gradient of the gradient came from nowhere")


def check_autocast_casts_and_gradients_keep_their_dtype():
    q, k, v, do = draw((2, 16, 16))
    device = q.device.type
    with torch.autocast(device, torch.bfloat16), torch.no_grad():
        assert FlashAttention.apply(q, k, v).dtype == torch.bfloat16
    with torch.autocast(device, torch.bfloat16):
        o = FlashAttention.apply(q, k.bfloat16(), v)
    assert o.dtype == torch.bfloat16
    assert torch.autograd.grad(o, q, do.bfloat16())[0].dtype == torch.float32


def check_refusals_are_exceptions_with_reasons():
    def refusal(*arguments):
        try:
            FlashAttention.apply(*arguments)
        except (TypeError, ValueError) as error:
            return str(error)
        raise AssertionError("nothing was refused")

    q = torch.randn(2, 8, 4)
    assert "not torch.float64" in refusal(q.double(), q.double(), q.double())
    assert "q has shape (8, 4)" in refusal(q[0], q[0], q[0])
    assert "v" in refusal(q, q, torch.randn(2, 9, 4))
    assert "int64" in refusal(q.long(), q.long(), q.long())


def main():
    print(f"torch {torch.__version__}, {syslab_torch.LIBRARY._name}")
    checks = [
        ("the library has the device", check_library_has_the_device),
        ("forward is attention and saves one L", lambda: check_forward(False)),
        ("forward, causal", lambda: check_forward(True)),
        ("backward gives dq, dk, dv", lambda: check_backward(False)),
        ("backward, causal", lambda: check_backward(True)),
        ("is_causal may be left out", check_is_causal_is_optional),
        ("every dtype, far inside the course's tolerance", check_tight_in_every_dtype),
        ("upstream gradients of any layout", check_upstream_gradients_of_any_layout),
        ("views are read where they lie", check_views_are_read_where_they_lie),
        ("grouped queries, other lengths", check_grouped_queries_and_other_lengths),
        ("values whose sign memory does not hold", check_values_whose_sign_memory_does_not_hold),
        ("calls go by operators where torch has them", check_calls_go_by_operators_where_torch_has_them),
        ("without a gradient it is the same", check_without_a_gradient_it_is_the_same),
        ("gradients of gradients are refused", check_gradients_of_gradients_are_refused),
        ("autocast casts, and gradients keep their dtype", check_autocast_casts_and_gradients_keep_their_dtype),
        ("refusals are exceptions with reasons", check_refusals_are_exceptions_with_reasons),
    ]
    devices = sys.argv[2:] if sys.argv[1:2] == ["--device"] else ["cpu"] + ["cuda"] * torch.cuda.is_available()
    failed = 0
    for device in devices:
        if device != "cpu":
            torch.set_default_device(device)  # tensors are drawn there, as the official tests draw them
        for name, check in checks:
            try:
                check()
                print(f"pass: {device}: {name}")
            except Exception as error:  # each check reports, the rest still runs
                failed += 1
                print(f"FAIL: {device}: {name}: {type(error).__name__}: {error}")
    print(f"{len(checks) * len(devices) - failed} passed, {failed} failed, on {' and '.join(devices)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
