#include "comm/reduce.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/error.hpp"

namespace syslab::comm {

namespace {

// Of a source's elements that are summed at a time: the accumulators stay in the first-level cache, and every source is
// read before `to`, which may be one of them, is written.
constexpr std::int64_t kBlock = 1024;

template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
Accumulator<T> wide(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T>
T narrow(Accumulator<T> value) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return value;
  } else {
    return from_float<T>(value);
  }
}

template <typename A>
A larger(A a, A b) {
  return b > a || b != b ? b : a;  // against a NaN in `a` every comparison is false: it stays
}
template <typename A>
A smaller(A a, A b) {
  return b < a || b != b ? b : a;
}

template <typename T, typename Combine>
void reduce(std::span<const void* const> sources, void* to, std::int64_t count, Combine combine) {
  std::array<Accumulator<T>, kBlock> sum;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto here = static_cast<std::size_t>(std::min(kBlock, count - begin));
    const T* first = static_cast<const T*>(sources[0]) + begin;
    for (std::size_t i = 0; i < here; ++i) sum[i] = wide(first[i]);
    for (const void* source : sources.subspan(1)) {
      const T* next = static_cast<const T*>(source) + begin;
      for (std::size_t i = 0; i < here; ++i) sum[i] = combine(sum[i], wide(next[i]));
    }
    T* out = static_cast<T*>(to) + begin;
    for (std::size_t i = 0; i < here; ++i) out[i] = narrow<T>(sum[i]);
  }
}

template <typename T>
void reduce(std::span<const void* const> sources, void* to, std::int64_t count, Reduction reduction) {
  using A = Accumulator<T>;
  switch (reduction) {
    case Reduction::sum:
      return reduce<T>(sources, to, count, [](A a, A b) { return a + b; });
    case Reduction::max:
      return reduce<T>(sources, to, count, larger<A>);
    case Reduction::min:
      return reduce<T>(sources, to, count, smaller<A>);
  }
}

}  // namespace

void reduce_in_order(std::span<const void* const> sources, void* to, DType dtype, std::int64_t count,
                     Reduction reduction) {
  if (sources.empty()) throw Error(ErrorKind::internal, "a reduction over no ranks has no result");
  switch (dtype) {
    case DType::f64:
      return reduce<double>(sources, to, count, reduction);
    case DType::f32:
      return reduce<float>(sources, to, count, reduction);
    case DType::f16:
      return reduce<f16>(sources, to, count, reduction);
    case DType::bf16:
      return reduce<bf16>(sources, to, count, reduction);
  }
}

}  // namespace syslab::comm
