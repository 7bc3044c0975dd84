#include "ops/attention/dispatch.hpp"

#include <fmt/format.h>

#include <array>

#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

constexpr std::array kRows{
    DispatchRow{"flash_mma", "tensor cores, dQ added up by atomics: the fastest in half precision"},
    DispatchRow{"flash_mma_deterministic",
                "tensor cores, and nothing is added by atomics: equal inputs give equal bits, at four fifths of "
                "flash_mma's rate in the backward pass"},
    DispatchRow{"flash_fp32", "the fastest whose products are as exact as fp32's"},
    DispatchRow{"naive_cuda", "takes every shape and dtype on a GPU, at the price of its matrix of scores"},
    DispatchRow{"reference_cuda", "fp64"},
    DispatchRow{"flash_tiled", "the fastest on the CPU, and holds no matrix of scores"},
    DispatchRow{"naive", "takes every shape on the CPU"},
    DispatchRow{"reference", "fp64"},
};

std::string capability(int sm) { return fmt::format("{}.{}", sm / 10, sm % 10); }

}  // namespace

std::span<const DispatchRow> dispatch_rows() { return kRows; }

Where where_of(device::Stream stream) {
  if (stream.kind == device::Kind::cpu) return {};
  return {stream.kind, ops::require_gpu("attention", stream).sm};
}

std::optional<std::string> reason_against(const Rung& rung, const Problem& problem, Direction direction,
                                          const Where& where, Want want) {
  if (rung.device != where.device) return rung.device == device::Kind::cpu ? "runs on the CPU" : "runs on a GPU";
  if (!rung.unavailable.empty()) return rung.unavailable;
  if (rung.device == device::Kind::cuda && rung.minimum_sm > where.sm) {
    return fmt::format("needs compute capability {}, this GPU has {}", capability(rung.minimum_sm),
                       capability(where.sm));
  }
  if (want == Want::deterministic && !rung.deterministic) return "is not deterministic";
  return rung.supports(problem, direction);
}

Dispatched dispatch(const Problem& problem, Direction direction, const Where& where, Want want) {
  std::string reasons;
  for (const DispatchRow& row : kRows) {
    if (row.applies != nullptr && !row.applies(problem, direction, where)) continue;
    const Rung& rung = find_rung(row.rung);
    const std::optional<std::string> reason = reason_against(rung, problem, direction, where, want);
    if (!reason) return {&rung, std::string(row.because)};
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", rung.name, *reason);
  }
  throw Error(ErrorKind::usage, fmt::format("attention: no implementation takes {}: {}", to_string(problem), reasons));
}

}  // namespace syslab::attention
