// Kernels between two products. Each reads and writes whole matrices of scores in memory, to show what that costs: an
// element of fp32 read and written is 8 B, and 3 TB/s move 0.37e12 of them a second. A block takes a row, and its
// threads take four elements at a time.
//
// What waits for what (landed, left: device/cuda/ptx.cuh; the numbers stand in the code), in over_block():
//   (1) block  left: all threads have read the warps' values of the last call, which are overwritten next. (Before the
//              first call it has no job.) Landed: nothing.
//   (2) block  landed: the values of all warps are there for all threads. Left: nothing; that is (1) of the next call.
// Matrices need no barrier: a thread reads again only elements that no other thread writes. Ordinary launches order the
// kernels.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include <type_traits>

#include "device/cuda/cuda.cuh"
#include "ops/attention/scores_cuda.hpp"

namespace syslab::attention::scores {
namespace {

constexpr int kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffU;

template <typename T>
__device__ T from_real(float value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}
template <typename T>
__device__ T from_real(double value) {
  static_assert(std::is_same_v<T, double>);
  return value;
}
__device__ float to_real(__half value) { return __half2float(value); }
__device__ float to_real(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ float to_real(float value) { return value; }
__device__ double to_real(double value) { return value; }

// Calls function(T{}) with the type of the elements of a matrix of weights.
template <typename Function>
void with_weights(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32:
      return function(float{});
    case DType::f16:
      return function(__half{});
    case DType::bf16:
      return function(__nv_bfloat16{});
    case DType::f64:
      break;
  }
  throw Error(ErrorKind::internal, "weights in fp64 beside scores in fp32");
}

template <typename Real, typename Combine>
__device__ Real over_block(Real value, Combine combine) {
  __shared__ Real of_warp[kWarps];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  __syncthreads();  // (1)
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();  // (2)
  value = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) value = combine(value, of_warp[warp]);
  return value;
}
template <typename Real>
__device__ Real sum_over_block(Real value) {
  return over_block(value, [](Real a, Real b) { return a + b; });
}
template <typename Real>
__device__ Real max_over_block(Real value) {
  return over_block(value, [](Real a, Real b) { return a > b ? a : b; });
}

__device__ std::int64_t visible_keys(const Rows& rows, std::int64_t row) {
  if (rows.mask == Mask::none) return rows.seq_k;
  const std::int64_t shift = rows.mask == Mask::bottom_right ? rows.seq_k - rows.seq_q : 0;
  return max(std::int64_t{0}, min((rows.first + row) % rows.seq_q + 1 + shift, rows.seq_k));
}

template <typename Real, typename Pointer>
__device__ Real& lse_at(const BasicLse<Pointer>& lse, const Rows& rows, std::int64_t row) {
  const std::int64_t flat = rows.first + row, head = flat / rows.seq_q;
  return static_cast<Real*>(lse.data)[head / rows.heads_q * lse.batch_stride + head % rows.heads_q * lse.head_stride +
                                      flat % rows.seq_q * lse.row_stride];
}

// --- fused ----------------------------------------------------------------------------------------------------------

// Four neighbours, read and written as one where they are aligned.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T at[4];
};

// body(j, count) for all elements of a row, threads side by side: count is 4 where rows are multiples of 4, else 1.
template <typename Body>
__device__ void over_row(std::int64_t length, bool by_four, Body body) {
  if (by_four) {
    for (std::int64_t j = 4 * threadIdx.x; j < length; j += 4 * kThreads) body(j, std::integral_constant<int, 4>{});
  } else {
    for (std::int64_t j = threadIdx.x; j < length; j += kThreads) body(j, std::integral_constant<int, 1>{});
  }
}
template <typename T, int Count>
__device__ void read(const T* from, T (&to)[Count]) {
  if constexpr (Count == 4) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
    for (int n = 0; n < 4; ++n) to[n] = four.at[n];
  } else {
    to[0] = *from;
  }
}
template <typename T, int Count>
__device__ void write(const T (&from)[Count], T* to) {
  if constexpr (Count == 4) {
    *reinterpret_cast<Four<T>*>(to) = {from[0], from[1], from[2], from[3]};
  } else {
    *to = from[0];
  }
}

// Reads the row twice: the second time from a cache, up to about ten thousand keys.
template <typename Real, typename Weight>
__global__ void __launch_bounds__(kThreads) softmax_kernel(Rows rows, const Real* scores, Weight* weights, Lse lse) {
  const std::int64_t row = blockIdx.x, length = rows.seq_k, visible = visible_keys(rows, row);
  const Real* from = scores + row * length;
  Weight* to = weights + row * length;
  const bool by_four = length % 4 == 0;
  const Real nothing = -static_cast<Real>(CUDART_INF);
  Real largest = nothing;
  over_row(visible, by_four, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Real four[Count];
    read(from + j, four);
    for (int n = 0; n < Count; ++n) {
      if (j + n < visible) largest = four[n] > largest ? four[n] : largest;
    }
  });
  largest = max_over_block(largest);
  Real sum = 0;
  over_row(visible, by_four, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Real four[Count];
    read(from + j, four);
    for (int n = 0; n < Count; ++n) {
      if (j + n < visible) sum += exp(four[n] - largest);
    }
  });
  sum = sum_over_block(sum);
  const Real inverse = visible > 0 ? 1 / sum : 0;
  over_row(length, by_four, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Real four[Count];
    Weight result[Count];
    read(from + j, four);
    for (int n = 0; n < Count; ++n) {
      result[n] = from_real<Weight>(j + n < visible ? exp(four[n] - largest) * inverse : Real{0});
    }
    write(result, to + j);
  });
  if (threadIdx.x == 0) lse_at<Real>(lse, rows, row) = visible > 0 ? largest + log(sum) : nothing;
}

template <typename Weight>
__global__ void __launch_bounds__(kThreads)
    softmax_gradient_kernel(Rows rows, const Weight* weights, const float* dp, Weight* ds) {
  const std::int64_t row = blockIdx.x, length = rows.seq_k, begin = row * length;
  const bool by_four = length % 4 == 0;
  float dot = 0;
  over_row(length, by_four, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Weight weight[Count];
    float gradient[Count];
    read(weights + begin + j, weight);
    read(dp + begin + j, gradient);
    for (int n = 0; n < Count; ++n) dot += to_real(weight[n]) * gradient[n];
  });
  dot = sum_over_block(dot);
  over_row(length, by_four, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Weight weight[Count], result[Count];
    float gradient[Count];
    read(weights + begin + j, weight);
    read(dp + begin + j, gradient);
    for (int n = 0; n < Count; ++n) result[n] = from_real<Weight>(to_real(weight[n]) * (gradient[n] - dot));
    write(result, ds + begin + j);
  });
}

template <typename Real, typename T>
__global__ void __launch_bounds__(kThreads) from_lse_kernel(Rows rows, GradientFromLse of, ConstLse lse) {
  const std::int64_t row = blockIdx.x, length = rows.seq_k, visible = visible_keys(rows, row), begin = row * length;
  const T *out = static_cast<const T*>(of.out) + row * of.head_dim,
          *dout = static_cast<const T*>(of.dout) + row * of.head_dim;
  Real dot = 0;
  for (std::int64_t d = threadIdx.x; d < of.head_dim; d += kThreads) dot += to_real(out[d]) * to_real(dout[d]);
  dot = sum_over_block(dot);
  const Real of_row = lse_at<const Real>(lse, rows, row);
  const Real *scores = static_cast<const Real*>(of.scores) + begin, *dp = static_cast<const Real*>(of.dp) + begin;
  T *weights = static_cast<T*>(of.weights) + begin, *ds = static_cast<T*>(of.ds) + begin;
  over_row(length, length % 4 == 0, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    Real score[Count], gradient[Count];
    T weight[Count], result[Count];
    read(scores + j, score);
    read(dp + j, gradient);
    for (int n = 0; n < Count; ++n) {
      const bool seen = j + n < visible;
      const Real probability = seen ? exp(score[n] - of_row) : Real{0};
      weight[n] = from_real<T>(probability);
      result[n] = from_real<T>(seen ? probability * (gradient[n] - dot) : Real{0});
    }
    write(weight, weights + j);
    write(result, ds + j);
  });
}

// --- an operation a kernel ------------------------------------------------------------------------------------------

// to[j] = function(row, j, from[j]) for every element.
template <typename To, typename Function>
__global__ void __launch_bounds__(kThreads)
    map_kernel(std::int64_t length, const float* from, To* to, Function function) {
  const std::int64_t row = blockIdx.x, begin = row * length;
  over_row(length, length % 4 == 0, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    float value[Count];
    To result[Count];
    read(from + begin + j, value);
    for (int n = 0; n < Count; ++n) result[n] = from_real<To>(function(row, j + n, value[n]));
    write(result, to + begin + j);
  });
}

struct Scale {
  float factor;
  __device__ float operator()(std::int64_t, std::int64_t, float value) const { return value * factor; }
};
struct Hide {
  Rows rows;
  __device__ float operator()(std::int64_t row, std::int64_t j, float value) const {
    return j < visible_keys(rows, row) ? value : -CUDART_INF_F;
  }
};
struct Subtract {
  const float* of_row;
  __device__ float operator()(std::int64_t row, std::int64_t, float value) const {
    return value == -CUDART_INF_F ? value : value - of_row[row];  // −∞ − (−∞) would be NaN in a row that sees nothing
  }
};
struct Exponential {
  __device__ float operator()(std::int64_t, std::int64_t, float value) const { return expf(value); }
};
struct Divide {
  const float* of_row;
  __device__ float operator()(std::int64_t row, std::int64_t, float value) const {
    const float sum = of_row[row];
    return value / (sum == 0 ? 1.0F : sum);
  }
};
template <typename Right>
struct Multiply {
  const Right* right;
  std::int64_t length;
  __device__ float operator()(std::int64_t row, std::int64_t j, float value) const {
    return value * to_real(right[row * length + j]);
  }
};
struct AddQuotient {
  const float *dot, *sum;
  __device__ float operator()(std::int64_t row, std::int64_t, float value) const {
    return value - dot[row] / (sum[row] == 0 ? 1.0F : sum[row]);
  }
};

template <typename To, typename Function>
void map(const Rows& rows, const char* name, const float* from, To* to, const Function& function,
         device::Stream stream) {
  map_kernel<<<static_cast<unsigned>(rows.rows), kThreads, 0, device::cuda_stream(stream)>>>(rows.seq_k, from, to,
                                                                                             function);
  device::check_launch(name);
}

template <bool kMax>
__global__ void __launch_bounds__(kThreads) reduce_kernel(std::int64_t length, const float* matrix, float* result) {
  const float* row = matrix + static_cast<std::int64_t>(blockIdx.x) * length;
  float all = kMax ? -CUDART_INF_F : 0.0F;
  over_row(length, length % 4 == 0, [&]<int Count>(std::int64_t j, std::integral_constant<int, Count>) {
    float value[Count];
    read(row + j, value);
    for (int n = 0; n < Count; ++n) all = kMax ? fmaxf(all, value[n]) : all + value[n];
  });
  all = kMax ? max_over_block(all) : sum_over_block(all);
  if (threadIdx.x == 0) result[blockIdx.x] = all;
}

__global__ void __launch_bounds__(kThreads) log_sum_kernel(Rows rows, const float* largest, const float* sum, Lse lse) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < rows.rows) lse_at<float>(lse, rows, row) = largest[row] + logf(sum[row]);  // −∞ + −∞ where nothing is seen
}

// Sizes and strides of four dimensions, as a kernel takes them.
struct Layout {
  std::int64_t of[4];
  explicit Layout(const Strides& strides) : of{strides[0], strides[1], strides[2], strides[3]} {}
  explicit Layout(const Shape& shape) : of{shape[0], shape[1], shape[2], shape[3]} {}
};

template <typename T>
__global__ void __launch_bounds__(kThreads) copy_view_kernel(const T* from, Layout from_strides, T* to,
                                                             Layout to_strides, Layout sizes, std::int64_t elements) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= elements) return;
  std::int64_t rest = index, from_at = 0, to_at = 0;
  for (int dim = 3; dim >= 0; --dim) {
    const std::int64_t at = rest % sizes.of[dim];
    rest /= sizes.of[dim];
    from_at += at * from_strides.of[dim];
    to_at += at * to_strides.of[dim];
  }
  to[to_at] = from[from_at];
}

template <typename T>
void copy_elements(const ConstTensorView& from, const TensorView& to, device::Stream stream) {
  const std::int64_t elements = from.elements();
  const auto blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  copy_view_kernel<<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(
      static_cast<const T*>(from.data), Layout(from.strides), static_cast<T*>(to.data), Layout(to.strides),
      Layout(from.shape), elements);
  device::check_launch("copy of a tensor between layouts");
}

unsigned blocks_of(const Rows& rows) { return static_cast<unsigned>(rows.rows); }

}  // namespace

void softmax(const Rows& rows, DType scores_dtype, const void* scores, DType weights_dtype, void* weights,
             const Lse& lse, device::Stream stream) {
  const auto launch = [&]<typename Real, typename Weight>(Real, Weight) {
    softmax_kernel<<<blocks_of(rows), kThreads, 0, device::cuda_stream(stream)>>>(
        rows, static_cast<const Real*>(scores), static_cast<Weight*>(weights), lse);
  };
  if (scores_dtype == DType::f64) {
    launch(double{}, double{});
  } else {
    with_weights(weights_dtype, [&]<typename Weight>(Weight) { launch(float{}, Weight{}); });
  }
  device::check_launch("softmax");
}

void softmax_gradient(const Rows& rows, DType weights_dtype, const void* weights, const float* dp, void* ds,
                      device::Stream stream) {
  with_weights(weights_dtype, [&]<typename Weight>(Weight) {
    softmax_gradient_kernel<<<blocks_of(rows), kThreads, 0, device::cuda_stream(stream)>>>(
        rows, static_cast<const Weight*>(weights), dp, static_cast<Weight*>(ds));
  });
  device::check_launch("gradient of softmax");
}

void softmax_gradient_from_lse(const Rows& rows, DType dtype, const GradientFromLse& of, const ConstLse& lse,
                               device::Stream stream) {
  const auto launch = [&]<typename Real, typename T>(Real, T) {
    from_lse_kernel<Real, T><<<blocks_of(rows), kThreads, 0, device::cuda_stream(stream)>>>(rows, of, lse);
  };
  if (dtype == DType::f64) {
    launch(double{}, double{});
  } else {
    with_weights(dtype, [&]<typename T>(T) { launch(float{}, T{}); });
  }
  device::check_launch("gradient of softmax from L");
}

void scale(const Rows& rows, const float* from, float factor, DType to_dtype, void* to, device::Stream stream) {
  with_weights(to_dtype,
               [&]<typename To>(To) { map(rows, "scale", from, static_cast<To*>(to), Scale{factor}, stream); });
}

void mask(const Rows& rows, float* matrix, device::Stream stream) {
  map(rows, "mask", matrix, matrix, Hide{rows}, stream);
}

void row_max(const Rows& rows, const float* matrix, float* largest, device::Stream stream) {
  reduce_kernel<true><<<blocks_of(rows), kThreads, 0, device::cuda_stream(stream)>>>(rows.seq_k, matrix, largest);
  device::check_launch("row maximum");
}

void row_sum(const Rows& rows, const float* matrix, float* sum, device::Stream stream) {
  reduce_kernel<false><<<blocks_of(rows), kThreads, 0, device::cuda_stream(stream)>>>(rows.seq_k, matrix, sum);
  device::check_launch("row sum");
}

void subtract(const Rows& rows, const float* from, const float* of_row, float* to, device::Stream stream) {
  map(rows, "subtract", from, to, Subtract{of_row}, stream);
}

void exponential(const Rows& rows, const float* from, float* to, device::Stream stream) {
  map(rows, "exponential", from, to, Exponential{}, stream);
}

void divide(const Rows& rows, const float* from, const float* of_row, DType to_dtype, void* to, device::Stream stream) {
  with_weights(to_dtype,
               [&]<typename To>(To) { map(rows, "divide", from, static_cast<To*>(to), Divide{of_row}, stream); });
}

void log_sum(const Rows& rows, const float* largest, const float* sum, const Lse& lse, device::Stream stream) {
  const auto blocks = static_cast<unsigned>((rows.rows + kThreads - 1) / kThreads);
  log_sum_kernel<<<blocks, kThreads, 0, device::cuda_stream(stream)>>>(rows, largest, sum, lse);
  device::check_launch("logarithm of the sum");
}

void multiply(const Rows& rows, const float* left, DType right_dtype, const void* right, float* to,
              device::Stream stream) {
  with_weights(right_dtype, [&]<typename Right>(Right) {
    map(rows, "multiply", left, to, Multiply<Right>{static_cast<const Right*>(right), rows.seq_k}, stream);
  });
}

void add_quotient(const Rows& rows, const float* from, const float* dot, const float* sum, float* to,
                  device::Stream stream) {
  map(rows, "add the sum's gradient", from, to, AddQuotient{dot, sum}, stream);
}

void copy_view(const ConstTensorView& from, const TensorView& to, device::Stream stream) {
  switch (size_of(from.dtype)) {
    case 2:
      return copy_elements<std::uint16_t>(from, to, stream);
    case 4:
      return copy_elements<std::uint32_t>(from, to, stream);
    default:
      return copy_elements<std::uint64_t>(from, to, stream);
  }
}

}  // namespace syslab::attention::scores
