#include "property_tests/attention/call.hpp"

#include "check/forgotten.hpp"
#include "property_tests/on_device.hpp"

namespace syslab::attention {
namespace {

using property::input;
using property::OnDevice;
using property::output;
using property::strides_of;

std::optional<check::GuardedTensor> lent_workspace(const Rung& rung, const Problem& problem, Pass pass) {
  const std::size_t bytes = rung.workspace_bytes ? rung.workspace_bytes(problem, pass) : 0;
  const auto elements = static_cast<std::int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
  if (elements == 0) return std::nullopt;
  return output("workspace", DType::f32, Shape{elements}, Strides{1});
}

ops::Workspace as_workspace(const std::optional<check::GuardedTensor>& tensor, OnDevice& there) {
  if (!tensor) return {};
  return {there.view(*tensor).data, tensor->spec().bytes()};
}

DType lse_dtype(const Problem& problem) { return problem.dtype == DType::f64 ? DType::f64 : DType::f32; }

ForwardArgs args_of(const ForwardCall& call, OnDevice& there) {
  return {there.view(call.q), there.view(call.k), there.view(call.v), there.view(call.out), there.view(call.lse)};
}
BackwardArgs args_of(const BackwardCall& call, OnDevice& there) {
  const ForwardCall& forward = call.forward;
  return {there.view(forward.q),   there.view(forward.k),   there.view(forward.v),
          there.view(forward.out), there.view(forward.lse), there.view(call.dout),
          there.view(call.dq),     there.view(call.dk),     there.view(call.dv)};
}

void queue(const Rung& rung, const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
           device::Stream stream) {
  rung.forward(problem, args, workspace, stream);
}
void queue(const Rung& rung, const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
           device::Stream stream) {
  rung.backward(problem, args, workspace, stream);
}

template <typename Call>
void run_once(const Rung& rung, const Problem& problem, const Call& call) {
  OnDevice there(rung.device);
  const auto args = args_of(call, there);
  queue(rung, problem, args, as_workspace(call.workspace, there), there.stream());
  there.finish();
}

template <typename Call>
void run_at_once(const Rung& rung, std::span<const Sample* const> samples, const std::vector<Call>& calls) {
  std::vector<OnDevice> there;
  std::vector<decltype(args_of(calls.front(), there.front()))> args;
  std::vector<ops::Workspace> workspaces;
  for (const Call& call : calls) {
    OnDevice& one = there.emplace_back(rung.device, static_cast<int>(there.size()));
    args.push_back(args_of(call, one));
    workspaces.push_back(as_workspace(call.workspace, one));
  }
  for (const OnDevice& one : there) one.await_inputs();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    queue(rung, samples[i]->problem, args[i], workspaces[i], there[i].stream());
  }
  for (OnDevice& one : there) one.finish();
}

void run(const Rung& rung, const Problem& problem, ForwardCall& call) {
  run_once(rung, problem, call);
  check::GuardedTensor* const outputs[] = {&call.out, &call.lse};
  check::settle_forgotten(outputs, [&] { run_once(rung, problem, call); });
}

void run(const Rung& rung, const Problem& problem, BackwardCall& call) {
  run_once(rung, problem, call);
  check::GuardedTensor* const outputs[] = {&call.dq, &call.dk, &call.dv};
  check::settle_forgotten(outputs, [&] { run_once(rung, problem, call); });
}

// Its tensors, before the call.
ForwardCall made_forward(const Rung& rung, const Sample& sample, bool lend) {
  const Problem& problem = sample.problem;
  const Shape query = sample.query_shape(), key = sample.key_shape(), lse = sample.lse_shape();
  const auto in = [&](const Shape& shape, std::size_t steps) {
    return strides_of(shape, sample.apart(sample.layout_in, steps));
  };
  return {input("q", problem.dtype, query, in(query, 2), sample.q),
          input("k", problem.dtype, key, in(key, 0), sample.k),
          input("v", problem.dtype, key, in(key, 1), sample.v),
          output("out", problem.dtype, query, strides_of(query, sample.layout_out)),
          output("lse", lse_dtype(problem), lse, property::loose_strides_of(lse, sample.layout_out)),
          lend ? lent_workspace(rung, problem, Pass::forward) : std::nullopt};
}

// The same behind `forward`, whose forward pass has run or will.
BackwardCall made_backward(const Rung& rung, const Sample& sample, ForwardCall forward, bool lend) {
  const Problem& problem = sample.problem;
  const Shape query = sample.query_shape(), key = sample.key_shape();
  const auto out = [&](const Shape& shape, std::size_t steps) {
    return strides_of(shape, sample.apart(sample.layout_out, steps));
  };
  return {std::move(forward),
          input("dout", problem.dtype, query, strides_of(query, sample.apart(sample.layout_in, 1)), sample.dout),
          output("dq", problem.dtype, query, out(query, 1)),
          output("dk", problem.dtype, key, out(key, 2)),
          output("dv", problem.dtype, key, out(key, 3)),
          lend ? lent_workspace(rung, problem, Pass::backward) : std::nullopt};
}

}  // namespace

ForwardCall call_forward(const Rung& rung, const Sample& sample, bool lend) {
  ForwardCall call = made_forward(rung, sample, lend);
  run(rung, sample.problem, call);
  return call;
}

BackwardCall call_backward(const Rung& rung, const Sample& sample, bool lend) {
  BackwardCall call = made_backward(rung, sample, call_forward(rung, sample, lend), lend);
  run(rung, sample.problem, call);
  return call;
}

std::vector<ForwardCall> call_forward_at_once(const Rung& rung, std::span<const Sample* const> samples) {
  std::vector<ForwardCall> calls;
  for (const Sample* const sample : samples) calls.push_back(made_forward(rung, *sample, true));
  run_at_once(rung, samples, calls);
  return calls;
}

std::vector<BackwardCall> call_backward_at_once(const Rung& rung, std::span<const Sample* const> samples) {
  std::vector<ForwardCall> forward = call_forward_at_once(rung, samples);
  std::vector<BackwardCall> calls;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    calls.push_back(made_backward(rung, *samples[i], std::move(forward[i]), true));
  }
  run_at_once(rung, samples, calls);
  return calls;
}

void call_again(const Rung& rung, const Sample& sample, ForwardCall& call) {
  property::assign(call.q.view(), sample.q);
  property::assign(call.k.view(), sample.k);
  property::assign(call.v.view(), sample.v);
  call.out.poison();
  call.lse.poison();
  run(rung, sample.problem, call);
}

void call_backward_again(const Rung& rung, const Sample& sample, BackwardCall& call) {
  property::assign(call.dout.view(), sample.dout);
  call.dq.poison();
  call.dk.poison();
  call.dv.poison();
  run(rung, sample.problem, call);
}

ForwardValues values_of(const ForwardCall& call) { return {to_doubles(call.out.view()), to_doubles(call.lse.view())}; }

ForwardValues forward_values(const Rung& rung, const Sample& sample) { return values_of(call_forward(rung, sample)); }

}  // namespace syslab::attention
