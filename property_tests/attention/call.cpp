#include "property_tests/attention/call.hpp"

namespace syslab::attention {
namespace {

using property::input;
using property::output;
using property::strides_of;

std::optional<check::GuardedTensor> lent_workspace(const Rung& rung, const Problem& problem, Direction direction) {
  const std::size_t bytes = rung.workspace_bytes ? rung.workspace_bytes(problem, direction) : 0;
  const auto elements = static_cast<std::int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
  if (elements == 0) return std::nullopt;
  return output("workspace", DType::f32, Shape{elements}, Strides{1});
}

ops::Workspace as_workspace(const std::optional<check::GuardedTensor>& tensor) {
  if (!tensor) return {};
  return {tensor->view().data, tensor->spec().bytes()};
}

DType lse_dtype(const Problem& problem) { return problem.dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

ForwardCall call_forward(const Rung& rung, const Sample& sample, bool lend) {
  const Problem& problem = sample.problem;
  const Shape query = sample.query_shape(), key = sample.key_shape(), lse = sample.lse_shape();
  const Strides query_in = strides_of(query, sample.layout_in), key_in = strides_of(key, sample.layout_in);
  ForwardCall call{input("q", problem.dtype, query, query_in, sample.q),
                   input("k", problem.dtype, key, key_in, sample.k),
                   input("v", problem.dtype, key, key_in, sample.v),
                   output("out", problem.dtype, query, strides_of(query, sample.layout_out)),
                   output("lse", lse_dtype(problem), lse, property::loose_strides_of(lse, sample.layout_out)),
                   lend ? lent_workspace(rung, problem, Direction::forward) : std::nullopt};
  const ForwardArgs args{call.q.view(), call.k.view(), call.v.view(), call.out.view(), call.lse.view()};
  rung.forward(problem, args, as_workspace(call.workspace), {});
  return call;
}

BackwardCall call_backward(const Rung& rung, const Sample& sample, bool lend) {
  const Problem& problem = sample.problem;
  const Shape query = sample.query_shape(), key = sample.key_shape();
  const Strides query_out = strides_of(query, sample.layout_out), key_out = strides_of(key, sample.layout_out);
  BackwardCall call{call_forward(rung, sample, lend),
                    input("dout", problem.dtype, query, strides_of(query, sample.layout_in), sample.dout),
                    output("dq", problem.dtype, query, query_out),
                    output("dk", problem.dtype, key, key_out),
                    output("dv", problem.dtype, key, key_out),
                    lend ? lent_workspace(rung, problem, Direction::backward) : std::nullopt};
  const ForwardCall& forward = call.forward;
  const BackwardArgs args{forward.q.view(), forward.k.view(), forward.v.view(), forward.out.view(), forward.lse.view(),
                          call.dout.view(), call.dq.view(),   call.dk.view(),   call.dv.view()};
  rung.backward(problem, args, as_workspace(call.workspace), {});
  return call;
}

ForwardValues forward_values(const Rung& rung, const Sample& sample) {
  const ForwardCall call = call_forward(rung, sample);
  return {to_doubles(call.out.view()), to_doubles(call.lse.view())};
}

}  // namespace syslab::attention
