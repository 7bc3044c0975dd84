#include "cli/emitted_test.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"

namespace syslab::cli {
namespace {

// {0}: class, {1}: law, {2}: file, {3}: causal, {4}: B, {5}: queries, {6}: keys, {7}: D, {8}: dtype, {9}: q, {10}: k,
// {11}: v, {12}: dout, {13}: whether the backward pass is asked
constexpr const char* kTest =
    R"py("""A counterexample of {1} for {0}, found by `syslab check`. Needs PyTorch and pytest: `pytest FILE`."""
import importlib.util
import math
import pathlib
import sys

import torch

SOURCE = pathlib.Path({2})
CAUSAL = {3}
DTYPE = torch.{8}
Q = torch.tensor({9}, dtype=torch.float64).reshape({4}, {5}, {7})
K = torch.tensor({10}, dtype=torch.float64).reshape({4}, {6}, {7})
V = torch.tensor({11}, dtype=torch.float64).reshape({4}, {6}, {7})
DO = torch.tensor({12}, dtype=torch.float64).reshape({4}, {5}, {7})


def attention(q, k, v):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    if CAUSAL:
        n, m = scores.shape[1:]
        scores = scores.masked_fill(torch.arange(m) > torch.arange(n)[:, None], -math.inf)
    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)


def found():
    """(o, lse, dq, dk, dv) of the class; gradients are None where the forward pass alone is asked."""
    sys.path.insert(0, str(SOURCE.parent))
    spec = importlib.util.spec_from_file_location(SOURCE.stem, SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cls = module.{0}
    if issubclass(cls, torch.autograd.Function):
        q, k, v = (each.to(DTYPE).requires_grad_() for each in (Q, K, V))
        o = cls.apply(q, k, v, CAUSAL)
        [lse] = [saved for saved in o.grad_fn.saved_tensors if saved.shape == q.shape[:2]]
        gradients = torch.autograd.grad(o, (q, k, v), DO.to(DTYPE)) if {13} else (None, None, None)
        return (o, lse, *gradients)
    default = "numpy" if hasattr(module, "np") or hasattr(module, "numpy") else "torch"
    give = (lambda t: t.to(DTYPE).numpy()) if getattr(cls, "tensors", default) == "numpy" else (lambda t: t.to(DTYPE))
    mine, inputs = cls(), [give(each) for each in (Q, K, V)]
    o, lse = mine.forward(*inputs, CAUSAL)
    gradients = mine.backward(*inputs, o, lse, give(DO), CAUSAL) if {13} else (None, None, None)
    return tuple(each if each is None else torch.as_tensor(each) for each in (o, lse, *gradients))


def test_counterexample():
    q, k, v = (each.clone().requires_grad_() for each in (Q, K, V))
    o, lse = attention(q, k, v)
    expected = (o, lse, *torch.autograd.grad(o, (q, k, v), DO))
    for name, mine, right in zip(("o", "lse", "dq", "dk", "dv"), found(), expected):
        if mine is not None:
            torch.testing.assert_close(mine.detach().double(), right.detach(), rtol=1e-2, atol=1e-2, msg=lambda text: f"{{name}}: {{text}}")
)py";

std::string torch_name(const std::string& dtype) {
  return dtype == "bf16" ? "bfloat16" : dtype == "fp16" ? "float16" : "float32";
}

}  // namespace

std::optional<std::string> emitted_test(const std::string& artifact, const Submitted& mine, const std::string& law) {
  const Json parsed = json_or_discarded(artifact);
  if (!parsed.is_object() || !parsed.contains("call")) return std::nullopt;
  try {
    const Json& call = parsed.at("call");
    const auto numbers = [&](const char* name) { return call.at(name).dump(); };
    return fmt::format(fmt::runtime(kTest), mine.inside(), law, Json(mine.path()).dump(),
                       call.at("causal").get<bool>() ? "True" : "False", call.at("batch").get<std::int64_t>(),
                       call.at("queries").get<std::int64_t>(), call.at("keys").get<std::int64_t>(),
                       call.at("dim").get<std::int64_t>(), torch_name(call.at("dtype").get<std::string>()),
                       numbers("q"), numbers("k"), numbers("v"), numbers("dout"),
                       call.at("pass").get<std::string>() == "backward" ? "True" : "False");
  } catch (const nlohmann::json::exception&) {  // another version's
    return std::nullopt;
  }
}

}  // namespace syslab::cli
