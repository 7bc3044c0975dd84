#include "submission/adapters.hpp"

#include <algorithm>
#include <array>

namespace syslab::submission {
namespace {

constexpr std::string_view kAttention = "flash_forward flash_backward";
constexpr std::string_view kPyTorch = "get_flashattention_autograd_function_pytorch";
constexpr std::string_view kTriton = "get_flashattention_autograd_function_triton";

constexpr std::string_view kDdpTimed = "naive_ddp_benchmarking ddp_overlap_individual_parameters_benchmarking";

constexpr std::array kAdapters = std::to_array<Adapter>({
    {kPyTorch, "2025 2026", "flash_forward", kAttention, "get_flashattention_autograd_function_pytorch()",
     DeviceKind::cpu, true},
    {kTriton, "2025 2026", "flash_forward", kAttention, "get_flashattention_autograd_function_triton()",
     DeviceKind::cuda, true, "flash_benchmarking"},
    {"get_ddp_individual_parameters", "2025", "ddp_overlap_individual_parameters",
     "naive_ddp ddp_overlap_individual_parameters", "get_ddp_individual_parameters()", DeviceKind::cpu, false,
     kDdpTimed},
    {"ddp_individual_parameters_on_after_backward", "2025", "ddp_overlap_individual_parameters", "", "",
     DeviceKind::cpu},
    {"get_ddp_bucketed", "2025", "ddp_overlap_bucketed", "ddp_overlap_bucketed", "get_ddp_bucketed()", DeviceKind::cpu,
     false, "ddp_bucketed_benchmarking"},
    {"ddp_bucketed_on_after_backward", "2025", "ddp_overlap_bucketed", "", "", DeviceKind::cpu},
    {"ddp_bucketed_on_train_batch_start", "2025", "ddp_overlap_bucketed", "", "", DeviceKind::cpu},
    {"get_ddp", "2026", "ddp_overlap_individual_parameters", "naive_ddp ddp_overlap_individual_parameters", "get_ddp()",
     DeviceKind::cpu, false, kDdpTimed},
    {"ddp_on_after_backward", "2026", "ddp_overlap_individual_parameters", "", "", DeviceKind::cpu},
    {"get_sharded_optimizer", "2025 2026", "optimizer_state_sharding", "optimizer_state_sharding",
     "get_sharded_optimizer()", DeviceKind::cpu, false, "optimizer_state_sharding_accounting"},
    {"get_fsdp", "2026", "fsdp", "fsdp", "get_fsdp()", DeviceKind::cpu, false, "fsdp_accounting"},
    {"fsdp_on_after_backward", "2026", "fsdp", "", "", DeviceKind::cpu},
    {"fsdp_gather_full_params", "2026", "fsdp", "", "", DeviceKind::cpu},
});

}  // namespace

std::span<const Adapter> adapters() { return kAdapters; }

const Adapter* find_adapter(std::string_view function) {
  const auto found = std::ranges::find(kAdapters, function, &Adapter::function);
  return found == kAdapters.end() ? nullptr : &*found;
}

}  // namespace syslab::submission
