#include "ops/framework/framework.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "device/queue.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/framework/host.hpp"
#include "ops/framework/operations.hpp"

namespace syslab::framework {
namespace {

struct Count {
  Launches launches;
  int extra_depth = 0;
};
thread_local Count count;

void count_one() {
  ++count.launches.all;
  if (count.extra_depth > 0) ++count.launches.extra;
}

// Runs on_gpu() or on_host(). In a build without CUDA, on_gpu() has nothing to call.
template <typename OnGpu, typename OnHost>
void on_device(device::Stream stream, const OnGpu& on_gpu, const OnHost& on_host) {
  count_one();
  device::expect_plain(stream, "an operation of a framework");
  if (stream.kind == device::Kind::cpu) return on_host();
  if constexpr (ops::kBuiltWithCuda) {
    const device::CurrentDevice current(stream);
    on_gpu();
  } else {
    throw Error(ErrorKind::internal, "an operation was asked of a GPU by a build without CUDA");
  }
}

void expect_equal(const Shape& found, const Shape& wanted) {
  if (found == wanted) return;
  throw Error(ErrorKind::internal, fmt::format("an operand has shape {}, the result {}", syslab::to_string(found),
                                               syslab::to_string(wanted)));
}

template <typename Pointer>
BasicOperand<Pointer> operand_of(const BasicTensorView<Pointer>& view) {
  return {view.data, view.dtype, view.strides};
}

// Whether one step of `outer` goes as far as all steps of `inner`.
template <typename Pointer>
bool adjoin(const BasicOperand<Pointer>& operand, int outer, int inner, std::int64_t inner_size) {
  const auto o = static_cast<std::size_t>(outer), i = static_cast<std::size_t>(inner);
  return operand.data == nullptr || operand.strides[o] == operand.strides[i] * inner_size;
}

// Drops dimensions of one element and merges those that are contiguous in every operand.
void simplify(ElementWise& work, const Shape& shape) {
  const std::array<Strides*, 3> operands = {&work.a.strides, &work.b.strides, &work.y.strides};
  std::array<std::int64_t, kMaxRank> sizes{};
  std::array<std::array<std::int64_t, kMaxRank>, 3> strides{};
  int rank = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] == 1) continue;
    sizes[static_cast<std::size_t>(rank)] = shape[dim];
    for (std::size_t n = 0; n < 3; ++n) {
      strides[n][static_cast<std::size_t>(rank)] = (*operands[n])[static_cast<std::size_t>(dim)];
    }
    ++rank;
  }
  if (rank == 0) sizes[static_cast<std::size_t>(rank++)] = 1;
  for (std::size_t n = 0; n < 3; ++n) *operands[n] = strides[n];
  for (int outer = rank - 2; outer >= 0; --outer) {
    const auto o = static_cast<std::size_t>(outer);
    const bool join = adjoin(work.a, outer, outer + 1, sizes[o + 1]) &&
                      adjoin(work.b, outer, outer + 1, sizes[o + 1]) && adjoin(work.y, outer, outer + 1, sizes[o + 1]);
    if (!join) continue;
    sizes[o] *= sizes[o + 1];
    for (Strides* of : operands) (*of)[o] = (*of)[o + 1];
    for (auto at = o + 1; at + 1 < static_cast<std::size_t>(rank); ++at) {
      sizes[at] = sizes[at + 1];
      for (Strides* of : operands) (*of)[at] = (*of)[at + 1];
    }
    --rank;
  }
  work.rank = rank;
  work.sizes = sizes;
}

template <typename Pointer>
bool takes_four(const BasicOperand<Pointer>& operand, int rank, bool may_repeat) {
  if (operand.data == nullptr) return true;
  const std::int64_t inner = operand.strides[static_cast<std::size_t>(rank - 1)];
  if (inner != 1 && !(inner == 0 && may_repeat)) return false;
  for (int dim = 0; dim + 1 < rank; ++dim) {
    if (inner == 1 && operand.strides[static_cast<std::size_t>(dim)] % 4 != 0) return false;
  }
  return inner == 0 || reinterpret_cast<std::uintptr_t>(operand.data) % (4 * size_of(operand.dtype)) == 0;
}

ElementWise plan(Operation operation, const ConstTensorView& a, const ConstTensorView& b, float number,
                 const TensorView& y, const Unless& unless) {
  ElementWise work{.operation = operation, .number = number, .unless = unless, .elements = y.elements()};
  const int operands = operands_of(operation);
  if (operands > 0) {
    expect_equal(a.shape, y.shape);
    work.a = operand_of(a);
  }
  if (operands > 1) {
    expect_equal(b.shape, y.shape);
    work.b = operand_of(b);
  }
  work.y = operand_of(y);
  simplify(work, y.shape);
  const bool four = work.sizes[static_cast<std::size_t>(work.rank - 1)] % 4 == 0 &&
                    takes_four(work.a, work.rank, true) && takes_four(work.b, work.rank, true) &&
                    takes_four(work.y, work.rank, false);
  work.width = four ? 4 : 1;
  return work;
}

void run(const ElementWise& work, device::Stream stream) {
  if (work.elements == 0) return;
  on_device(
      stream, [&] { launch(work, stream); }, [&] { host::run(work); });
}

}  // namespace

Launches launches() { return count.launches; }

Extra::Extra() { ++count.extra_depth; }
Extra::~Extra() { --count.extra_depth; }

void apply(Unary operation, const ConstTensorView& x, const TensorView& y, device::Stream stream,
           const Unless& unless) {
  constexpr std::array kOperations = {Operation::copy,      Operation::negate, Operation::exponential,
                                      Operation::logarithm, Operation::root,   Operation::reciprocal_root,
                                      Operation::sigmoid};
  run(plan(kOperations[static_cast<std::size_t>(operation)], x, {}, 0, y, unless), stream);
}

void apply(WithNumber operation, const ConstTensorView& x, float number, const TensorView& y, device::Stream stream,
           const Unless& unless) {
  constexpr std::array kOperations = {Operation::add_number, Operation::multiply_number, Operation::divide_by_number,
                                      Operation::power};
  run(plan(kOperations[static_cast<std::size_t>(operation)], x, {}, number, y, unless), stream);
}

void combine(Binary operation, const ConstTensorView& a, const ConstTensorView& b, const TensorView& y,
             device::Stream stream, const Unless& unless) {
  constexpr std::array kOperations = {Operation::add, Operation::subtract, Operation::multiply, Operation::divide,
                                      Operation::sigmoid_gradient};
  run(plan(kOperations[static_cast<std::size_t>(operation)], a, b, 0, y, unless), stream);
}

void fill(float value, const TensorView& y, device::Stream stream) {
  run(plan(Operation::fill, {}, {}, value, y, {}), stream);
}

void join(const ConstTensorView& a, const ConstTensorView& b, const TensorView& y_of_a, const TensorView& y_of_b,
          device::Stream stream) {
  const ElementWise first = plan(Operation::copy, a, {}, 0, y_of_a, {});
  const ElementWise second = plan(Operation::copy, b, {}, 0, y_of_b, {});
  if (first.rank != second.rank || first.sizes != second.sizes) {
    throw Error(ErrorKind::internal, "the parts that are joined do not lie alike");
  }
  on_device(
      stream, [&] { launch_join(first, second, stream); },
      [&] {
        host::run(first);
        host::run(second);
      });
}

void sum_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream) {
  on_device(
      stream, [&] { launch_rows(RowOperation::sum, x, y, nullptr, stream); },
      [&] { host::rows(RowOperation::sum, x, y, nullptr); });
}

void mean_rows(const ConstTensorView& x, const TensorView& y, device::Stream stream) {
  on_device(
      stream, [&] { launch_rows(RowOperation::mean, x, y, nullptr, stream); },
      [&] { host::rows(RowOperation::mean, x, y, nullptr); });
}

void largest_of_rows(const ConstTensorView& x, const TensorView& y, std::int64_t* where, device::Stream stream) {
  on_device(
      stream, [&] { launch_rows(RowOperation::largest, x, y, where, stream); },
      [&] { host::rows(RowOperation::largest, x, y, where); });
}

void sum_columns(const ConstTensorView& x, const TensorView& y, device::Stream stream) {
  on_device(
      stream, [&] { launch_columns(x, y, stream); }, [&] { host::columns(x, y); });
}

void gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream) {
  on_device(
      stream, [&] { launch_gather(x, index, y, stream); }, [&] { host::gather(x, index, y); });
}

void scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream) {
  on_device(
      stream, [&] { launch_scatter(x, index, y, stream); }, [&] { host::scatter(x, index, y); });
}

ConstTensorView across_columns(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim) {
  return {vector.data, vector.dtype, Shape{rows, dim}, {vector.size(0) == 1 ? 0 : vector.stride(0), 0}};
}

ConstTensorView across_rows(const ConstTensorView& vector, std::int64_t rows, std::int64_t dim) {
  return {vector.data, vector.dtype, Shape{rows, dim}, {0, vector.stride(0)}};
}

ConstTensorView number_at(const float* number, std::int64_t elements) {
  return {number, DType::f32, Shape{elements}, {0}};
}

}  // namespace syslab::framework
