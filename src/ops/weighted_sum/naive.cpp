// `naive`: one running sum in fp32 for each output. dw reads x down its columns, one element of each cache line, which
// the tiles of the next rung avoid.
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {
namespace {

template <typename T>
void forward_in(const Problem& problem, const ForwardArgs& args) {
  const T* x = args.x.as<T>();
  const T* w = args.w.as<T>();
  T* y = args.y.as<T>();
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    float sum = 0;
    for (std::int64_t d = 0; d < problem.dim; ++d) sum += to_float(w[d]) * to_float(x[i * args.x.stride(0) + d]);
    y[i * args.y.stride(0)] = from_float<T>(sum);
  }
}

template <typename T>
void backward_in(const Problem& problem, const BackwardArgs& args) {
  const T* x = args.x.as<T>();
  const T* w = args.w.as<T>();
  const T* dy = args.dy.as<T>();
  T* dx = args.dx.as<T>();
  T* dw = args.dw.as<T>();
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const float g = to_float(dy[i * args.dy.stride(0)]);
    for (std::int64_t d = 0; d < problem.dim; ++d) dx[i * args.dx.stride(0) + d] = from_float<T>(to_float(w[d]) * g);
  }
  for (std::int64_t d = 0; d < problem.dim; ++d) {
    float sum = 0;
    for (std::int64_t i = 0; i < problem.rows; ++i) {
      sum += to_float(x[i * args.x.stride(0) + d]) * to_float(dy[i * args.dy.stride(0)]);
    }
    dw[d] = from_float<T>(sum);
  }
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "one running fp32 sum an output; dw strides down the columns of x";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    with_storage(problem.dtype, [&]<typename T>() { forward_in<T>(problem, args); });
  };
  rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    with_storage(problem.dtype, [&]<typename T>() { backward_in<T>(problem, args); });
  };
  return rung;
}

}  // namespace syslab::weighted_sum
