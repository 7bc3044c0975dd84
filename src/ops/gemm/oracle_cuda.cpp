// The oracle on a GPU: the product in fp64 on its tensor cores, and that of the absolute values, which the bounds are
// made of. 8192³ take 2 · 1.1e12 operations, 40 ms of an H100, and 32 bytes an element of each matrix.
#include "device/buffer.hpp"
#include "device/cuda/cublas.hpp"
#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/gemm/cuda_kernels.hpp"
#include "ops/gemm/oracle.hpp"

namespace syslab::gemm {
namespace {

std::vector<Expected> product_there(const Problem& p, double operand_unit, const ConstTensorView& a,
                                    const ConstTensorView& b, device::Stream stream) {
  const device::CurrentDevice current(stream);
  const auto doubles = [&](std::int64_t count) {
    return device::Buffer(static_cast<std::size_t>(count) * sizeof(double), "gemm oracle", stream);
  };
  const device::Buffer left = doubles(p.m * p.k), right = doubles(p.k * p.n);
  auto result = std::make_shared<device::Buffer>(doubles(2 * p.m * p.n));
  auto* value = result->as<double>();
  double* bound = value + p.m * p.n;
  const auto multiply = [&](double* to) {
    device::dgemm(false, false, p.m, p.n, p.k, 1.0, left.as<double>(), p.k, right.as<double>(), p.n, 0.0, to, p.n,
                  stream);
  };
  widen(a, left.as<double>(), stream);
  widen(b, right.as<double>(), stream);
  multiply(value);
  make_absolute(left.as<double>(), p.m * p.k, stream);
  make_absolute(right.as<double>(), p.k * p.n, stream);
  multiply(bound);
  bounds_from_magnitudes(p, operand_unit, value, bound, stream);
  return {{{}, {}, 1.0, {value, bound, p.m * p.n, std::move(result)}}};
}

}  // namespace

OracleThere oracle_there(const Problem& problem, const Rung& rung) {
  if constexpr (ops::kBuiltWithCuda) {
    // In fp64 it would be the same product by the same library, so not an oracle.
    if (rung.device == device::Kind::cuda && problem.dtype != DType::f64) {
      return [problem, unit = rung.operand_unit](const Inputs& in, device::Stream stream) {
        return product_there(problem, unit, in[0], in[1], stream);
      };
    }
  }
  static_cast<void>(problem);
  static_cast<void>(rung);
  return {};
}

}  // namespace syslab::gemm
