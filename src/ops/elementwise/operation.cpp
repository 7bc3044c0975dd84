#include "ops/elementwise/operation.hpp"

#include <cmath>

namespace syslab::elementwise {
namespace {

// One rounding to fp32 in between, if the result is not fp64, and one when it is stored.
Expected rounded_once(std::vector<double> exact, DType dtype) {
  Expected expected{std::move(exact), {}};
  const double unit = unit_roundoff(dtype) + (dtype == DType::f64 ? 0 : unit_roundoff(DType::f32));
  const double least = smallest_normal(dtype) * unit_roundoff(dtype);
  expected.tolerance.reserve(expected.value.size());
  for (const double value : expected.value) expected.tolerance.push_back(1.01 * unit * std::abs(value) + least);
  return expected;
}

double elements_of(const Problem& problem) {
  return static_cast<double>(problem.rows) * static_cast<double>(problem.dim);
}
double size(DType dtype) { return static_cast<double>(size_of(dtype)); }

}  // namespace

Operation add_operation(const Problem& p, DType a, DType b, const Rung& rung) {
  const DType to = promoted(a, b);
  Operation made;
  made.device = rung.device;
  made.inputs = {{"a", a, {p.rows, p.dim}}, {"b", b, {p.rows, p.dim}}};
  made.outputs = {{"y", to, {p.rows, p.dim}}};
  made.call = [p, rung](const Inputs& in, const Outputs& out, device::Stream stream) {
    rung.add(p, {in[0], in[1], out[0]}, stream);
  };
  made.expect = [to](const Inputs& in) {
    std::vector<double> sum = to_doubles(in[0]);
    const std::vector<double> other = to_doubles(in[1]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    return std::vector{rounded_once(std::move(sum), to)};
  };
  made.flops = elements_of(p);
  made.bytes = elements_of(p) * (size(a) + size(b) + size(to));
  return made;
}

}  // namespace syslab::elementwise
