#include "ops/attention/operation.hpp"

#include <algorithm>
#include <memory>

#include "core/text/text.hpp"
#include "ops/attention/dispatch.hpp"
#include "ops/attention/handout_tolerance.hpp"
#include "ops/attention/oracle/glimpse.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "ops/attention/oracle/oracle_cuda.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/kept_workspace.hpp"

namespace syslab::attention {
namespace {

// Multiply-adds that one check may cost: it covers a part of the rows of large problems, and all rows of small ones.
constexpr double kOracleBudget = 1e8;
// Scores and weights of the naive kernel that is compared with a half-precision one.
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

Expected part_of(Expected expected, double fraction) {
  expected.fraction = fraction;
  return expected;
}

using Expectations = std::vector<Expected>;

Expectations expect_forward(const Problem& p, const Part& part, const Inputs& in) {
  ForwardOracle oracle = forward_oracle(p, in[0], in[1], in[2], part);
  Expectations expected;
  expected.push_back(part_of(std::move(oracle.out), oracle.fraction));
  expected.push_back(part_of(std::move(oracle.lse), oracle.fraction));
  return expected;
}

Expectations expect_backward(const Problem& p, const Part& part, const Inputs& in, const ConstTensorView& dout) {
  BackwardOracle oracle = backward_oracle(p, in[0], in[1], in[2], dout, part);
  Expectations expected;
  for (Expected* one : {&oracle.dq, &oracle.dk, &oracle.dv}) {
    expected.push_back(part_of(std::move(*one), oracle.fraction));
  }
  return expected;
}

// Other rows each time: who knows the seed of a case must not know which rows will be compared.
class Parts {
 public:
  explicit Parts(const Part& first) : next_(std::make_shared<Part>(first)) {}
  Part next() const {
    const Part part = *next_;
    ++next_->seed;
    return part;
  }
  Part around(std::int64_t include) const {
    Part part = next();
    part.include = include;
    return part;
  }

 private:
  std::shared_ptr<Part> next_;
};

// Which query row of out or lse, or which key/value head of a gradient, holds an element.
std::int64_t row_of_forward(const Problem& p, std::size_t output, std::int64_t element) {
  return output == 0 ? element / p.head_dim : element;
}
std::int64_t group_of_gradient(const Problem& p, std::size_t output, std::int64_t element) {
  if (output > 0) return element / (p.seq_k * p.head_dim);
  return element / (p.seq_q * p.head_dim) / (p.heads_q / p.heads_kv);
}

// The oracle on the device of the tensors, for rungs on a GPU. The inputs: q, k, v, and for a backward pass dO at
// `dout`.
void set_expect_there(Operation& made, const Problem& p, const AutogradRung& rung, Pass pass, const Parts& parts,
                      std::size_t dout) {
  if constexpr (ops::kBuiltWithCuda) {
    if (rung.device != device::Kind::cuda) return;
    made.expect_there = [p, pass, parts, dout](const Inputs& in, device::Stream stream) {
      Part whole = parts.next();
      whole.budget = kDeviceBudget;
      Expectations expected;
      if (pass != Pass::backward) expected = forward_expected_cuda(p, in[0], in[1], in[2], stream, whole);
      if (pass == Pass::forward) return expected;
      for (Expected& one : backward_expected_cuda(p, in[0], in[1], in[2], in[dout], stream, whole)) {
        expected.push_back(std::move(one));
      }
      return expected;
    };
  }
}

Operation forward_operation(const Problem& p, const AutogradRung& rung, const Parts& parts) {
  Operation made;
  made.inputs = {of_queries(p, "q"), of_keys(p, "k"), of_keys(p, "v")};
  made.outputs = {of_queries(p, "out"), of_lse(p)};
  const ops::KeptWorkspace saved(rung.saved_bytes(p)), workspace(rung.workspace_bytes(p, Pass::forward));
  made.call = [p, rung, saved, workspace](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.forward(p, {in[0], in[1], in[2], out[0], out[1]}, saved.lend(stream), workspace.lend(stream), stream);
  };
  made.expect = [p, parts](const Inputs& in) { return expect_forward(p, parts.next(), in); };
  made.expect_around = [p, parts](const Inputs& in, std::size_t output, std::int64_t element) {
    return expect_forward(p, parts.around(row_of_forward(p, output, element)), in);
  };
  set_expect_there(made, p, rung, Pass::forward, parts, 0);
  made.glimpse = [p](const Inputs& in, const Outputs&, std::uint64_t random) {
    return forward_glimpse(p, in[0], in[1], in[2], random);
  };
  return made;
}

std::size_t bytes_of(const ConstTensorView& view) {
  return static_cast<std::size_t>(view.elements()) * size_of(view.dtype);
}

// The forward pass that writes `saved`, in memory that the backward pass already has if it is large enough.
void make_saved(const Problem& p, const AutogradRung& rung, const std::vector<TensorView>& in,
                const ops::KeptWorkspace& workspace, device::Stream stream) {
  const std::size_t needed = rung.workspace_bytes(p, Pass::forward);
  device::Buffer own;
  ops::Workspace lent = workspace.held();
  if (lent.bytes < needed) {
    own = device::Buffer(needed, "workspace", stream);
    lent = {own.data(), own.bytes()};
  }
  rung.forward(p, {in[0], in[1], in[2], in[3], in[4]}, {in[6].data, bytes_of(in[6])}, lent, stream);
}

Operation backward_operation(const Problem& p, const AutogradRung& rung, const Parts& parts) {
  Operation made;
  made.inputs = {of_queries(p, "q"),   of_keys(p, "k"), of_keys(p, "v"),
                 of_queries(p, "out"), of_lse(p),       of_queries(p, "dout")};
  made.outputs = {of_queries(p, "dq"), of_keys(p, "dk"), of_keys(p, "dv")};
  made.prepared = {"out", "lse"};
  const ops::KeptWorkspace workspace(rung.workspace_bytes(p, Pass::backward));
  const bool keeps = rung.saved_bytes(p) > 0;
  if (keeps) {
    made.inputs.push_back({"saved", DType::f32, {static_cast<std::int64_t>(rung.saved_bytes(p) / sizeof(float))}});
    made.prepared.emplace_back("saved");
    made.prepare = [p, rung, workspace](std::vector<TensorView>& in, device::Stream stream) {
      make_saved(p, rung, in, workspace, stream);
    };
  } else {
    const Rung& ours = *dispatch(p, Pass::forward, {rung.device}).rung;
    made.prepare = [p, &ours](std::vector<TensorView>& in, device::Stream stream) {
      ours.forward(p, {in[0], in[1], in[2], in[3], in[4]}, {}, stream);
    };
  }
  made.call = [p, rung, workspace, keeps](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.backward(p, {in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2]},
                  keeps ? Saved(in[6].data, bytes_of(in[6])) : Saved(), workspace.lend(stream), stream);
  };
  made.expect = [p, parts](const Inputs& in) { return expect_backward(p, parts.next(), in, in[5]); };
  made.expect_around = [p, parts](const Inputs& in, std::size_t output, std::int64_t element) {
    return expect_backward(p, parts.around(group_of_gradient(p, output, element)), in, in[5]);
  };
  set_expect_there(made, p, rung, Pass::backward, parts, 5);
  made.glimpse = [p](const Inputs& in, const Outputs&, std::uint64_t random) {
    return backward_glimpse(p, {in[0], in[1], in[2], in[3], in[4], in[5]}, random);
  };
  return made;
}

Operation both(const Problem& p, const AutogradRung& rung, const Parts& parts) {
  Operation made;
  made.inputs = {of_queries(p, "q"), of_keys(p, "k"), of_keys(p, "v"), of_queries(p, "dout")};
  made.outputs = {of_queries(p, "out"), of_lse(p), of_queries(p, "dq"), of_keys(p, "dk"), of_keys(p, "dv")};
  // One workspace for both passes, as one step of training would have.
  const ops::KeptWorkspace saved(rung.saved_bytes(p)),
      workspace(std::max(rung.workspace_bytes(p, Pass::forward), rung.workspace_bytes(p, Pass::backward)));
  const auto elapsed = std::make_shared<Nanoseconds>();  // by the implementation's own clock, if it has one
  made.call = [p, rung, saved, workspace, elapsed](const Inputs& in, const Outputs& out, device::Stream stream) {
    const auto own_time = [&] { return rung.last_call_time ? rung.last_call_time() : Nanoseconds{}; };
    rung.forward(p, {in[0], in[1], in[2], out[0], out[1]}, saved.lend(stream), workspace.lend(stream), stream);
    *elapsed = own_time();
    rung.backward(p, {in[0], in[1], in[2], out[0], out[1], in[3], out[2], out[3], out[4]}, saved.lend(stream),
                  workspace.lend(stream), stream);
    *elapsed += own_time();
  };
  if (rung.last_call_time) made.self_time = [elapsed] { return *elapsed; };
  const auto expect = [p](const Inputs& in, const Part& rows, const Part& heads) {
    Expectations expected = expect_forward(p, rows, in);
    for (Expected& one : expect_backward(p, heads, in, in[3])) expected.push_back(std::move(one));
    return expected;
  };
  made.expect = [expect, parts](const Inputs& in) { return expect(in, parts.next(), parts.next()); };
  made.expect_around = [p, expect, parts](const Inputs& in, std::size_t output, std::int64_t element) {
    if (output < 2) return expect(in, parts.around(row_of_forward(p, output, element)), parts.next());
    return expect(in, parts.next(), parts.around(group_of_gradient(p, output - 2, element)));
  };
  set_expect_there(made, p, rung, Pass::both, parts, 3);
  made.glimpse = [p](const Inputs& in, const Outputs& out, std::uint64_t random) {
    std::vector<Glimpse> glimpses = forward_glimpse(p, in[0], in[1], in[2], random);
    for (Glimpse& one : backward_glimpse(p, {in[0], in[1], in[2], out[0], out[1], in[3]}, random)) {
      one.output += 2;
      glimpses.push_back(std::move(one));
    }
    return glimpses;
  };
  return made;
}

Operation passes(const Problem& p, Pass pass, const AutogradRung& rung, const Parts& parts) {
  switch (pass) {
    case Pass::forward:
      return forward_operation(p, rung, parts);
    case Pass::backward:
      return backward_operation(p, rung, parts);
    case Pass::both:
      break;
  }
  return both(p, rung, parts);
}

template <typename AnyRung>
std::optional<std::string> first_refusal(const AnyRung& rung, const Problem& problem, Pass pass) {
  for (const Pass one : one_by_one(pass)) {
    if (auto reason = rung.supports(problem, one)) return reason;
  }
  return std::nullopt;
}

// The naive rung of that device, with a backward pass that reads the given O and L, like the rungs compared with it;
// null where there is none.
const Rung* naive_on(device::Kind kind) {
  const Rung& rung = find_rung(kind == device::Kind::cpu ? "naive" : "naive_cuda");
  return rung.unavailable.empty() ? &rung : nullptr;
}

// Memory that a call needs in addition to its tensors.
double room_of(const AutogradRung& rung, const Problem& problem, Pass pass) {
  std::size_t workspace = 0;
  for (const Pass one : one_by_one(pass)) {
    workspace = std::max(workspace, rung.workspace_bytes(problem, one));
  }
  return static_cast<double>(rung.saved_bytes(problem)) + static_cast<double>(workspace);
}

}  // namespace

Operation operation(const Problem& asked, Pass pass, const AutogradRung& rung, std::uint64_t seed) {
  // Somebody's own, which tells its times itself, promises the hand-out's tolerance alone.
  Part first = rung.last_call_time ? at_handout_tolerance(asked) : Part{};
  first.budget = kOracleBudget;
  first.seed = seed;
  const Parts parts(first);
  Problem problem = asked;
  problem.tf32 = rung.tf32;
  Operation made = passes(problem, pass, rung, parts);
  if (!made.self_time) made.self_time = rung.last_call_time;
  made.flops = flops(problem, pass);
  made.bytes = bytes(problem, pass);
  made.device = rung.device;
  const Rung* naive = naive_on(rung.device);
  if (naive != nullptr && size_of(problem.dtype) == 2 && rung.name != naive->name &&
      !first_refusal(*naive, problem, pass)) {
    const AutogradRung yardstick = as_autograd(*naive);
    if (room_of(yardstick, problem, pass) <= kMostNaiveBytes) {
      made.naive = passes(problem, pass, yardstick, parts).call;
    }
  }
  return made;
}

Operation operation(const Problem& problem, Pass pass, const Rung& rung, std::uint64_t seed) {
  return operation(problem, pass, as_autograd(rung), seed);
}

std::optional<std::string> refusal(const AutogradRung& rung, const Problem& problem, Pass pass) {
  return first_refusal(rung, problem, pass);
}

std::optional<std::string> refusal(const Rung& rung, const Problem& problem, Pass pass) {
  return first_refusal(rung, problem, pass);
}

LiveBytes bytes_before_backward(const Problem& problem, const AutogradRung& rung) {
  const double lse = static_cast<double>(of_lse(problem).bytes());
  return {.tensors = forward_bytes(problem) - lse, .kept = lse + static_cast<double>(rung.saved_bytes(problem))};
}

double flops(const Problem& problem, Pass pass) {
  double sum = 0;
  for (const Pass one : one_by_one(pass)) {
    sum += one == Pass::forward ? forward_flops(problem) : backward_flops(problem);
  }
  return sum;
}

double bytes(const Problem& problem, Pass pass) {
  double sum = 0;
  for (const Pass one : one_by_one(pass)) {
    sum += one == Pass::forward ? forward_bytes(problem) : backward_bytes(problem);
  }
  return sum;
}

double predicted_bytes(const Problem& problem, Pass pass, std::string_view rung) {
  const double tensors = pass == Pass::forward ? forward_bytes(problem) : backward_bytes(problem);
  for (const AutogradRung& one : autograd_ladder()) {
    if (one.name != rung || !one.unavailable.empty() || first_refusal(one, problem, pass)) continue;
    return tensors + room_of(one, problem, pass);
  }
  return tensors;
}

}  // namespace syslab::attention
