// The machine that this program runs on, as a plan sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "plan/machine.hpp"
#include "session/context.hpp"

namespace syslab::cli {

// Its GPU by NVML, and by a short child that asks CUDA itself, which this process never does: what CUDA may use is what
// counts (CUDA_VISIBLE_DEVICES, a driver too old). The child is only started where there is something to ask and an
// implementation that would run there; about a second.
plan::Machine this_machine(const registry::Registry& registry);
// The same, with as many ranks and GPUs as a launch of several processes has. Without `gpu` no GPU is asked for.
plan::Machine machine_of(const Context& context, bool gpu);

// What a plan needs to know, from what the child prints. `gpu_bytes_per_s` is of NVML's making.
plan::Machine machine_from(const std::string& probe_json, double gpu_bytes_per_s);

// How much memory a case may have: the machine's, or the limit of a container or scheduler job.
std::uint64_t physical_memory_bytes();
// The smallest limit of the control groups that this process is in, of either version of them; nothing without one.
// `root` stands for "/" in tests.
std::optional<std::uint64_t> control_group_limit(const std::filesystem::path& root = "/");

}  // namespace syslab::cli
