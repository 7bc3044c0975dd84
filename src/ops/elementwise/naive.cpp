// `reference` and `naive`: one loop a row on the threads of the host; the reference is the loop of fp64 alone.
#include <algorithm>
#include <type_traits>

#include "core/split_float.hpp"
#include "ops/elementwise/rungs.hpp"
#include "ops/host_pieces.hpp"
#include "ops/storage.hpp"

namespace syslab::elementwise {
namespace {

template <typename T>
auto widened(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T, typename Wide>
T rounded(Wide value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

template <typename Body>
void for_rows(const Problem& problem, const Body& body) {
  ops::for_pieces(problem.rows, ops::rows_of_a_piece(problem.dim), problem.dim,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t row = first; row < end; ++row) body(row);
                  });
}

template <typename X, typename Y>
void cast_in(const Problem& problem, const CastArgs& args) {
  for_rows(problem, [&](std::int64_t row) {
    const X* x = args.x.as<X>() + row * args.x.stride(0);
    Y* y = args.y.as<Y>() + row * args.y.stride(0);
    for (std::int64_t d = 0; d < problem.dim; ++d) y[d] = rounded<Y>(widened(x[d]));
  });
}

template <typename A, typename B, typename Y>
void add_in(const Problem& problem, const AddArgs& args) {
  for_rows(problem, [&](std::int64_t row) {
    const A* a = args.a.as<A>() + row * args.a.stride(0);
    const B* b = args.b.as<B>() + row * args.b.stride(0);
    Y* y = args.y.as<Y>() + row * args.y.stride(0);
    for (std::int64_t d = 0; d < problem.dim; ++d) y[d] = rounded<Y>(widened(a[d]) + widened(b[d]));
  });
}

template <typename Y>
void fill_in(const Problem& problem, const FillArgs& args) {
  const Y value = rounded<Y>(args.value);
  for_rows(problem,
           [&](std::int64_t row) { std::fill_n(args.y.as<Y>() + row * args.y.stride(0), problem.dim, value); });
}

void cast(const Problem& problem, const CastArgs& args, device::Stream) {
  ops::with_any_storage(args.x.dtype, [&]<typename X>() {
    ops::with_any_storage(args.y.dtype, [&]<typename Y>() { cast_in<X, Y>(problem, args); });
  });
}

void add(const Problem& problem, const AddArgs& args, device::Stream) {
  ops::with_any_storage(args.a.dtype, [&]<typename A>() {
    ops::with_any_storage(args.b.dtype, [&]<typename B>() {
      constexpr DType kSum = promoted(dtype_of<A>, dtype_of<B>);
      if (args.y.dtype == DType::f32) return add_in<A, B, float>(problem, args);
      if constexpr (kSum == DType::f64) return add_in<A, B, double>(problem, args);
      if constexpr (std::is_same_v<A, B>) return add_in<A, B, A>(problem, args);
    });
  });
}

void fill(const Problem& problem, const FillArgs& args, device::Stream) {
  ops::with_any_storage(args.y.dtype, [&]<typename Y>() { fill_in<Y>(problem, args); });
}

void split_all(const Problem& problem, const SplitArgs& args, device::Stream) {
  for_rows(problem, [&](std::int64_t row) {
    const float* x = args.x.as<float>() + row * args.x.stride(0);
    auto* high = static_cast<std::uint16_t*>(args.high.data) + row * args.high.stride(0);
    auto* low = static_cast<std::uint16_t*>(args.low.data) + row * args.low.stride(0);
    for (std::int64_t d = 0; d < problem.dim; ++d) {
      const SplitFloat halves = split(x[d]);
      high[d] = halves.high;
      low[d] = halves.low;
    }
  });
}

void join_all(const Problem& problem, const JoinArgs& args, device::Stream) {
  for_rows(problem, [&](std::int64_t row) {
    const auto* high = static_cast<const std::uint16_t*>(args.high.data) + args.offsets[row];
    const auto* low = static_cast<const std::uint16_t*>(args.low.data) + args.offsets[row];
    float* y = args.y.as<float>() + row * args.y.stride(0);
    for (std::int64_t d = 0; d < problem.dim; ++d) y[d] = joined({high[d], low[d]});
  });
}

Rung rung_of(const char* name, Role role, const char* teaches, std::vector<DType> dtypes) {
  Rung rung;
  rung.name = name;
  rung.role = role;
  rung.teaches = teaches;
  rung.dtypes = std::move(dtypes);
  rung.cast = cast;
  rung.add = add;
  rung.fill = fill;
  return rung;
}

}  // namespace

Rung reference_rung() {
  return rung_of("reference", Role::reference, "double precision: what the others must equal", {DType::f64});
}

Rung naive_rung() {
  Rung rung = rung_of("naive", Role::naive, "one loop a row, rounded once on store",
                      {DType::f32, DType::f64, DType::f16, DType::bf16});
  rung.split = split_all;
  rung.join = join_all;
  return rung;
}

}  // namespace syslab::elementwise
