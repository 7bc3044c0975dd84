// Times, sizes and rates as people write and read them. Suffixes k, M, G are decimal, Ki, Mi, Gi binary.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace syslab {

using Nanoseconds = std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

std::string format_duration(Nanoseconds duration);  // "1.23 ms", "3 m 10 s"
std::string format_bytes(std::uint64_t bytes);      // "8.00 MiB (8388608 B)": bytes are always printed

std::optional<std::uint64_t> parse_bytes(std::string_view text);   // "25M", "8Mi", "1024"
std::optional<Nanoseconds> parse_duration(std::string_view text);  // "500ms", "10s", "2m", "1.5" (seconds)

std::string utc_now();  // "2026-05-01T12:34:56.789Z"

}  // namespace syslab
