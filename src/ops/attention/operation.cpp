#include "ops/attention/operation.hpp"

#include <algorithm>
#include <memory>

#include "core/text.hpp"
#include "ops/attention/oracle.hpp"
#include "ops/kept_workspace.hpp"

namespace syslab::attention {
namespace {

// Multiply-adds that one check may cost: a part of the rows of large problems, all rows of small ones.
constexpr double kOracleBudget = 1e8;
// Scores and weights of the naive kernel that is run beside one in half precision.
constexpr double kMostNaiveBytes = 0x1p30;

// L of the oracle rung is as exact as the rest of it.
DType lse_dtype(const Problem& p) { return p.dtype == DType::f64 ? DType::f64 : DType::f32; }

TensorSpec of_queries(const Problem& p, const char* name) {
  return {name, p.dtype, {p.batch, p.heads_q, p.seq_q, p.head_dim}};
}
TensorSpec of_keys(const Problem& p, const char* name) {
  return {name, p.dtype, {p.batch, p.heads_kv, p.seq_k, p.head_dim}};
}
TensorSpec of_lse(const Problem& p) { return {"lse", lse_dtype(p), {p.batch, p.heads_q, p.seq_q}}; }

ops::Expected taken(Expected expected, double fraction) {
  return {std::move(expected.value), std::move(expected.tolerance), fraction};
}

using Expectations = std::vector<ops::Expected>;

Expectations expect_forward(const Problem& p, const Part& part, const ops::Inputs& in) {
  ForwardOracle oracle = forward_oracle(p, in[0], in[1], in[2], part);
  Expectations expected;
  expected.push_back(taken(std::move(oracle.out), oracle.fraction));
  expected.push_back(taken(std::move(oracle.lse), oracle.fraction));
  return expected;
}

Expectations expect_backward(const Problem& p, const Part& part, const ops::Inputs& in, const ConstTensorView& dout) {
  BackwardOracle oracle = backward_oracle(p, in[0], in[1], in[2], dout, part);
  Expectations expected;
  for (Expected* one : {&oracle.dq, &oracle.dk, &oracle.dv}) {
    expected.push_back(taken(std::move(*one), oracle.fraction));
  }
  return expected;
}

ops::Operation forward(const Problem& p, const Rung& rung, const Part& part) {
  ops::Operation made;
  made.inputs = {of_queries(p, "q"), of_keys(p, "k"), of_keys(p, "v")};
  made.outputs = {of_queries(p, "out"), of_lse(p)};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Direction::forward));
  made.call = [p, rung, workspace](const ops::Inputs& in, const ops::Outputs& out) {
    rung.forward(p, {in[0], in[1], in[2], out[0], out[1]}, workspace.lend(), {});
  };
  made.expect = [p, part](const ops::Inputs& in) { return expect_forward(p, part, in); };
  return made;
}

ops::Operation backward(const Problem& p, const Rung& rung, const Part& part) {
  ops::Operation made;
  made.inputs = {of_queries(p, "q"),   of_keys(p, "k"), of_keys(p, "v"),
                 of_queries(p, "out"), of_lse(p),       of_queries(p, "dout")};
  made.outputs = {of_queries(p, "dq"), of_keys(p, "dk"), of_keys(p, "dv")};
  const Rung& ours = dispatch(p, Direction::forward, device::Kind::cpu);
  made.prepare = [p, &ours](std::vector<TensorView>& in) {
    ours.forward(p, {in[0], in[1], in[2], in[3], in[4]}, {}, {});
  };
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Direction::backward));
  made.call = [p, rung, workspace](const ops::Inputs& in, const ops::Outputs& out) {
    rung.backward(p, {in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2]}, workspace.lend(), {});
  };
  made.expect = [p, part](const ops::Inputs& in) { return expect_backward(p, part, in, in[5]); };
  return made;
}

ops::Operation both(const Problem& p, const Rung& rung, const Part& part) {
  ops::Operation made;
  made.inputs = {of_queries(p, "q"), of_keys(p, "k"), of_keys(p, "v"), of_queries(p, "dout")};
  made.outputs = {of_queries(p, "out"), of_lse(p), of_queries(p, "dq"), of_keys(p, "dk"), of_keys(p, "dv")};
  // One workspace for both passes, as one step of training would have.
  const ops::KeptWorkspace workspace(
      std::max(rung.workspace_bytes(p, Direction::forward), rung.workspace_bytes(p, Direction::backward)));
  const auto elapsed = std::make_shared<Nanoseconds>();  // by the implementation's own clock, if it has one
  made.call = [p, rung, workspace, elapsed](const ops::Inputs& in, const ops::Outputs& out) {
    const auto own_time = [&] { return rung.last_call_time ? rung.last_call_time() : Nanoseconds{}; };
    rung.forward(p, {in[0], in[1], in[2], out[0], out[1]}, workspace.lend(), {});
    *elapsed = own_time();
    rung.backward(p, {in[0], in[1], in[2], out[0], out[1], in[3], out[2], out[3], out[4]}, workspace.lend(), {});
    *elapsed += own_time();
  };
  if (rung.last_call_time) made.self_time = [elapsed] { return *elapsed; };
  made.expect = [p, part](const ops::Inputs& in) {
    Expectations expected = expect_forward(p, part, in);
    for (ops::Expected& one : expect_backward(p, part, in, in[3])) expected.push_back(std::move(one));
    return expected;
  };
  return made;
}

ops::Operation passes(const Problem& p, Phase phase, const Rung& rung, const Part& part) {
  switch (phase) {
    case Phase::forward:
      return forward(p, rung, part);
    case Phase::backward:
      return backward(p, rung, part);
    case Phase::both:
      break;
  }
  return both(p, rung, part);
}

std::vector<Direction> directions(Phase phase) {
  if (phase == Phase::both) return {Direction::forward, Direction::backward};
  return {phase == Phase::forward ? Direction::forward : Direction::backward};
}

}  // namespace

std::string_view to_string(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "both";
}

Phase parse_phase(std::string_view text) {
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::both}) {
    if (to_string(phase) == text) return phase;
  }
  const std::vector<std::string> names{"forward", "backward", "both"};
  throw Error(ErrorKind::usage, unknown_name("phase", text, names));
}

ops::Operation operation(const Problem& problem, Phase phase, const Rung& rung, std::uint64_t seed) {
  const Part part{.budget = kOracleBudget, .seed = seed};
  ops::Operation made = passes(problem, phase, rung, part);
  if (!made.self_time) made.self_time = rung.last_call_time;
  made.flops = flops(problem, phase);
  made.bytes = bytes(problem, phase);
  const Rung& naive = find_rung("naive");
  if (size_of(problem.dtype) == 2 && rung.name != naive.name &&
      predicted_bytes(problem, phase, naive.name) - made.bytes <= kMostNaiveBytes) {
    made.naive = passes(problem, phase, naive, part).call;
  }
  return made;
}

std::optional<std::string> refusal(const Rung& rung, const Problem& problem, Phase phase) {
  for (const Direction direction : directions(phase)) {
    if (auto reason = rung.supports(problem, direction)) return reason;
  }
  return std::nullopt;
}

double flops(const Problem& problem, Phase phase) {
  double sum = 0;
  for (const Direction direction : directions(phase)) {
    sum += direction == Direction::forward ? forward_flops(problem) : backward_flops(problem);
  }
  return sum;
}

double bytes(const Problem& problem, Phase phase) {
  double sum = 0;
  for (const Direction direction : directions(phase)) {
    sum += direction == Direction::forward ? forward_bytes(problem) : backward_bytes(problem);
  }
  return sum;
}

double predicted_bytes(const Problem& problem, Phase phase, std::string_view rung) {
  std::size_t workspace = 0;
  for (const Rung& one : ladder()) {
    if (one.name != rung) continue;
    for (const Direction direction : directions(phase)) {
      workspace = std::max(workspace, one.workspace_bytes(problem, direction));
    }
  }
  return bytes(problem, phase) + static_cast<double>(workspace);
}

}  // namespace syslab::attention
