// The framework's operations on a GPU. Kernels branch on dtypes at run time: the branch is the same for all threads,
// and memory latency hides its cost.
//
//   element by element   a thread an element, or four neighbours where all operands take 8 or 16 bytes at once.
//                        Contiguous dimensions are merged first; n dimensions then take n − 1 divisions, so none if
//                        everything is contiguous.
//   rows                 a block a row; lanes of a warp in a butterfly, then the warps in order
//   columns              a block 8 columns (a sector of memory); 64 slices of rows, then the slices in order
//
// Napkin, H100 (3.0 TB/s): a product of two fp32 tensors is 12 B an element, 0.25e12 elements a second; of bf16 twice
// that.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code)
//   (1) row_kernel, block      landed: the results of all warps are there for the first thread.
//   (2) column_kernel, block   landed: the sums of all slices are there for the first.
//   Left: nothing. Neither kernel overwrites shared memory after it. Ordinary launches order the kernels.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include "device/cuda/cuda.cuh"
#include "ops/framework/operations.hpp"

namespace syslab::framework {
namespace {

constexpr int kThreads = 256, kWarp = 32, kMostWarps = 32;
constexpr int kColumns = 8, kSlices = 64;
constexpr unsigned kAllLanes = 0xffffffffU;

__device__ float read(const void* data, DType dtype, std::int64_t at) {
  switch (dtype) {
    case DType::f16:
      return __half2float(static_cast<const __half*>(data)[at]);
    case DType::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
    default:
      return static_cast<const float*>(data)[at];
  }
}

__device__ void write(void* data, DType dtype, std::int64_t at, float value) {
  switch (dtype) {
    case DType::f16:
      static_cast<__half*>(data)[at] = __float2half_rn(value);
      return;
    case DType::bf16:
      static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
      return;
    default:
      static_cast<float*>(data)[at] = value;
  }
}

// kWidth neighbours from `at` on; all the same where the innermost stride is 0.
template <int kWidth>
__device__ void read_several(const Operand& operand, std::int64_t inner, std::int64_t at, float (&values)[kWidth]) {
  if (kWidth == 1 || inner == 0) {
    const float one = read(operand.data, operand.dtype, at);
    for (int i = 0; i < kWidth; ++i) values[i] = one;
  } else if (operand.dtype == DType::f32) {
    const float4 four = *reinterpret_cast<const float4*>(static_cast<const float*>(operand.data) + at);
    const float list[4] = {four.x, four.y, four.z, four.w};
    for (int i = 0; i < kWidth; ++i) values[i] = list[i];
  } else {
    const uint2 four = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(operand.data) + at);
    const std::uint32_t bits[4] = {four.x & 0xffffU, four.x >> 16, four.y & 0xffffU, four.y >> 16};
    for (int i = 0; i < kWidth; ++i) {
      const auto half = static_cast<unsigned short>(bits[i]);
      values[i] = operand.dtype == DType::bf16 ? __uint_as_float(bits[i] << 16) : __half2float(__ushort_as_half(half));
    }
  }
}

__device__ std::uint32_t bits_of(DType dtype, float value) {
  return dtype == DType::bf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(value))
                              : __half_as_ushort(__float2half_rn(value));
}

template <int kWidth>
__device__ void write_several(const Result& operand, std::int64_t at, const float (&values)[kWidth]) {
  if constexpr (kWidth == 1) {
    write(operand.data, operand.dtype, at, values[0]);
  } else if (operand.dtype == DType::f32) {
    *reinterpret_cast<float4*>(static_cast<float*>(operand.data) + at) = {values[0], values[1], values[2], values[3]};
  } else {
    const uint2 four = {bits_of(operand.dtype, values[0]) | bits_of(operand.dtype, values[1]) << 16,
                        bits_of(operand.dtype, values[2]) | bits_of(operand.dtype, values[3]) << 16};
    *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(operand.data) + at) = four;
  }
}

// Where element `index` (in row-major order) of each operand is.
struct Offsets {
  std::int64_t a = 0, b = 0, y = 0;
};
__device__ Offsets offsets_of(const ElementWise& work, std::int64_t index) {
  Offsets at;
#pragma unroll
  for (int dim = kMaxRank - 1; dim > 0; --dim) {
    if (dim >= work.rank) continue;
    const std::int64_t size = work.sizes[dim];
    std::int64_t quotient, rest;
    if (index >> 32 == 0) {  // a division of 32 bits costs a quarter of one of 64; sizes are no larger than indices
      const auto low = static_cast<std::uint32_t>(index), by = static_cast<std::uint32_t>(size);
      quotient = size >> 32 == 0 ? low / by : 0;
      rest = index - quotient * size;
    } else {
      quotient = index / size;
      rest = index - quotient * size;
    }
    at.a += rest * work.a.strides[dim];
    at.b += rest * work.b.strides[dim];
    at.y += rest * work.y.strides[dim];
    index = quotient;
  }
  at.a += index * work.a.strides[0];
  at.b += index * work.b.strides[0];
  at.y += index * work.y.strides[0];
  return at;
}

__device__ bool idle(const Unless& unless) {
  return (unless.not_zero != nullptr && *unless.not_zero != 0) || (unless.any != nullptr && *unless.any != 0) ||
         (unless.number != nullptr && *unless.number == unless.equals);
}

template <Operation kOperation, int kWidth>
__global__ void __launch_bounds__(kThreads) element_kernel(const __grid_constant__ ElementWise work) {
  const std::int64_t index = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (index >= work.elements || idle(work.unless)) return;
  const Offsets at = offsets_of(work, index);
  float a[kWidth] = {}, b[kWidth] = {}, y[kWidth];
  if constexpr (operands_of(kOperation) > 0) read_several(work.a, work.a.strides[work.rank - 1], at.a, a);
  if constexpr (operands_of(kOperation) > 1) read_several(work.b, work.b.strides[work.rank - 1], at.b, b);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) y[i] = result_of<kOperation>(a[i], b[i], work.number);
  write_several(work.y, at.y, y);
}

__global__ void __launch_bounds__(kThreads)
    join_kernel(const __grid_constant__ ElementWise first, const __grid_constant__ ElementWise second) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= first.elements) return;
  const Offsets one = offsets_of(first, index), other = offsets_of(second, index);
  write(first.y.data, first.y.dtype, one.y, read(first.a.data, first.a.dtype, one.a));
  write(second.y.data, second.y.dtype, other.y, read(second.a.data, second.a.dtype, other.a));
}

template <typename Pointer>
struct BasicMatrix {
  Pointer data;
  DType dtype;
  std::int64_t rows, columns, row_stride, column_stride;

  explicit BasicMatrix(const BasicTensorView<Pointer>& x)
      : data(x.data),
        dtype(x.dtype),
        rows(x.size(0)),
        columns(x.size(1)),
        row_stride(x.stride(0)),
        column_stride(x.stride(1)) {}
  __device__ float at(std::int64_t row, std::int64_t column) const {
    return read(data, dtype, row * row_stride + column * column_stride);
  }
  __device__ void set(std::int64_t row, std::int64_t column, float value) const {
    write(data, dtype, row * row_stride + column * column_stride, value);
  }
};
using Matrix = BasicMatrix<const void*>;

struct Vector {
  void* data;
  DType dtype;
  std::int64_t stride;

  explicit Vector(const TensorView& y) : data(y.data), dtype(y.dtype), stride(y.stride(0)) {}
  __device__ void set(std::int64_t i, float value) const { write(data, dtype, i * stride, value); }
};

struct Found {
  float value;
  std::int64_t where;
};

// The first of equal values; a NaN comes before all numbers.
__device__ Found larger(const Found& a, const Found& b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (a_nan || a.value == b.value) return a.where < b.where ? a : b;
  return a.value > b.value ? a : b;
}

template <RowOperation kOperation>
__device__ Found combined(const Found& a, const Found& b) {
  if constexpr (kOperation == RowOperation::largest) return larger(a, b);
  return {a.value + b.value, 0};
}

template <RowOperation kOperation>
__global__ void row_kernel(const Matrix x, const Vector y, std::int64_t* where) {
  __shared__ Found of_warp[kMostWarps];
  const std::int64_t row = blockIdx.x;
  Found found{kOperation == RowOperation::largest ? -CUDART_INF_F : 0.0F, x.columns};
#pragma unroll 4
  for (std::int64_t column = threadIdx.x; column < x.columns; column += blockDim.x) {
    found = combined<kOperation>(found, {x.at(row, column), column});
  }
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    const Found other{__shfl_xor_sync(kAllLanes, found.value, apart), __shfl_xor_sync(kAllLanes, found.where, apart)};
    found = combined<kOperation>(found, other);
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = found;
  __syncthreads();  // (1)
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) found = combined<kOperation>(found, of_warp[warp]);
  if (kOperation == RowOperation::mean) found.value /= static_cast<float>(x.columns);
  y.set(row, found.value);
  if (where != nullptr) where[row] = found.where;
}

__global__ void __launch_bounds__(kColumns* kSlices) column_kernel(const Matrix x, const Vector y) {
  __shared__ float parts[kSlices][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % kColumns, slice = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + lane;
  float sum = 0;
  if (column < x.columns) {
#pragma unroll 4
    for (std::int64_t row = slice; row < x.rows; row += kSlices) sum += x.at(row, column);
  }
  parts[slice][lane] = sum;
  __syncthreads();  // (2)
  if (slice != 0 || column >= x.columns) return;
  for (int other = 1; other < kSlices; ++other) sum += parts[other][lane];
  y.set(column, sum);
}

__global__ void __launch_bounds__(kThreads) gather_kernel(const Matrix x, const std::int64_t* index, const Vector y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= x.rows) return;
  const std::int64_t column = index[row];
  y.set(row, column >= 0 && column < x.columns ? x.at(row, column) : CUDART_NAN_F);
}

__global__ void __launch_bounds__(kThreads) scatter_kernel(const void* values, DType dtype, std::int64_t stride,
                                                           const std::int64_t* index, const BasicMatrix<void*> y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= y.rows) return;
  const std::int64_t column = index[row];
  const bool inside = column >= 0 && column < y.columns;
  y.set(row, inside ? column : 0, inside ? read(values, dtype, row * stride) : CUDART_NAN_F);
}

unsigned blocks_for(std::int64_t items, std::int64_t of_block) {
  const std::int64_t blocks = (items + of_block - 1) / of_block;
  if (blocks > 0x7fffffff) throw Error(ErrorKind::usage, "a tensor has more elements than one operation can take");
  return static_cast<unsigned>(blocks);
}

// Threads of a block that has one row: enough that a long row is read by many, few enough that a short one wastes none.
unsigned threads_for(std::int64_t rows, std::int64_t columns) { return rows == 1 ? 1024 : columns <= 1024 ? 128 : 256; }

}  // namespace

void launch(const ElementWise& work, device::Stream stream) {
  with_operation(work.operation, [&]<Operation kOperation>() {
    const unsigned blocks = blocks_for(work.elements, std::int64_t{kThreads} * work.width);
    if (work.width == 4) {
      element_kernel<kOperation, 4><<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(work);
    } else {
      element_kernel<kOperation, 1><<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(work);
    }
  });
  device::check_launch("framework_element");
}

void launch_join(const ElementWise& a, const ElementWise& b, device::Stream stream) {
  join_kernel<<<blocks_for(a.elements, kThreads), kThreads, 0, device::cuda_stream(stream)>>>(a, b);
  device::check_launch("framework_join");
}

void launch_rows(RowOperation operation, const ConstTensorView& x, const TensorView& y, std::int64_t* where,
                 device::Stream stream) {
  const unsigned rows = blocks_for(x.size(0), 1), threads = threads_for(x.size(0), x.size(1));
  const Matrix matrix(x);
  const Vector vector(y);
  switch (operation) {
    case RowOperation::sum:
      row_kernel<RowOperation::sum><<<rows, threads, 0, device::cuda_stream(stream)>>>(matrix, vector, where);
      break;
    case RowOperation::mean:
      row_kernel<RowOperation::mean><<<rows, threads, 0, device::cuda_stream(stream)>>>(matrix, vector, where);
      break;
    case RowOperation::largest:
      row_kernel<RowOperation::largest><<<rows, threads, 0, device::cuda_stream(stream)>>>(matrix, vector, where);
      break;
  }
  device::check_launch("framework_rows");
}

void launch_columns(const ConstTensorView& x, const TensorView& y, device::Stream stream) {
  column_kernel<<<blocks_for(x.size(1), kColumns), kColumns * kSlices, 0, device::cuda_stream(stream)>>>(Matrix(x),
                                                                                                         Vector(y));
  device::check_launch("framework_columns");
}

void launch_gather(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream) {
  gather_kernel<<<blocks_for(x.size(0), kThreads), kThreads, 0, device::cuda_stream(stream)>>>(Matrix(x), index,
                                                                                               Vector(y));
  device::check_launch("framework_gather");
}

void launch_scatter(const ConstTensorView& x, const std::int64_t* index, const TensorView& y, device::Stream stream) {
  scatter_kernel<<<blocks_for(y.size(0), kThreads), kThreads, 0, device::cuda_stream(stream)>>>(
      x.data, x.dtype, x.stride(0), index, BasicMatrix<void*>(y));
  device::check_launch("framework_scatter");
}

}  // namespace syslab::framework
