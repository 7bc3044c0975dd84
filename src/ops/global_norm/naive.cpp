// `naive`: pieces on the threads of the host, each with kLanes sums in double so that the compiler may use vectors, and
// the pieces' sums added up in order.
#include <array>
#include <bit>
#include <cstdint>

#include "ops/global_norm/rungs.hpp"
#include "ops/host_pieces.hpp"
#include "ops/storage.hpp"

namespace syslab::global_norm {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 16, kLanes = 8;

struct Part {
  double sum;
  std::int64_t non_finite;
};

std::int64_t pieces(const Problem& problem) { return (problem.elements + kPiece - 1) / kPiece; }

std::uint32_t is_non_finite(float value) {
  constexpr std::uint32_t kExponent = 0x7f800000U;
  return (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
}

template <typename T>
Part part_of(const T* g, std::int64_t count) {
  std::array<double, kLanes> sums{};
  std::array<std::uint32_t, kLanes> bad{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const float value = to_float(g[i + l]);
      sums[static_cast<std::size_t>(l)] += static_cast<double>(value) * static_cast<double>(value);
      bad[static_cast<std::size_t>(l)] += is_non_finite(value);
    }
  }
  Part part{};
  for (; i < count; ++i) {
    const float value = to_float(g[i]);
    part.sum += static_cast<double>(value) * static_cast<double>(value);
    part.non_finite += is_non_finite(value);
  }
  for (const double sum : sums) part.sum += sum;
  for (const std::uint32_t some : bad) part.non_finite += some;
  return part;
}

template <typename T>
void norm_in(const Problem& problem, const NormArgs& args, ops::Workspace workspace) {
  const T* g = args.g.as<T>();
  auto* parts = static_cast<Part*>(workspace.data);
  ops::for_pieces(problem.elements, kPiece, 1, [&](std::int64_t first, std::int64_t end) {
    parts[first / kPiece] = part_of(g + first, end - first);
  });
  Part all{};
  for (std::int64_t piece = 0; piece < pieces(problem); ++piece) {
    all.sum += parts[piece].sum;
    all.non_finite += parts[piece].non_finite;
  }
  const double scale = args.grad_scale.data == nullptr ? 1.0 : static_cast<double>(args.grad_scale.as<float>()[0]);
  const double found = scale * std::sqrt(all.sum);
  args.norm.as<float>()[0] = static_cast<float>(found);
  args.factor.as<float>()[0] = static_cast<float>(clip_factor(found, args.max_norm));
  if (args.non_finite != nullptr) *args.non_finite = all.non_finite + (args.add_to_count ? *args.non_finite : 0);
}

template <typename T>
void scale_in(const Problem& problem, const ScaleArgs& args) {
  T* g = args.g.as<T>();
  const float factor = args.factor.as<float>()[0];
  ops::for_pieces(problem.elements, kPiece, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) g[i] = from_float<T>(to_float(g[i]) * factor);
  });
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "sums of pieces in double, added up in order whoever made them";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = [](const Problem& problem) -> std::size_t {
    return static_cast<std::size_t>(pieces(problem)) * sizeof(Part);
  };
  rung.norm = [](const Problem& problem, const NormArgs& args, ops::Workspace workspace, device::Stream) {
    ops::with_storage(problem.dtype, [&]<typename T>() { norm_in<T>(problem, args, workspace); });
  };
  rung.scale = [](const Problem& problem, const ScaleArgs& args, device::Stream) {
    ops::with_storage(problem.dtype, [&]<typename T>() { scale_in<T>(problem, args); });
  };
  return rung;
}

}  // namespace syslab::global_norm
