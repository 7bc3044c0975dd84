// How much memory a case may have: the machine's, or the limit of a container or scheduler job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace syslab::cli {

std::uint64_t physical_memory_bytes();

// The smallest limit of the control groups that this process is in, of either version of them; nothing without one.
// `root` stands for "/" in tests.
std::optional<std::uint64_t> control_group_limit(const std::filesystem::path& root = "/");

}  // namespace syslab::cli
