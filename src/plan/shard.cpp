#include "plan/shard.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/error.hpp"

namespace syslab::plan {

Shard parse_shard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  bool read = index.ec == std::errc{} && index.ptr != end && *index.ptr == '/';
  if (read) {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    read = count.ec == std::errc{} && count.ptr == end;
  }
  if (!read || shard.index < 1 || shard.index > shard.count) {
    throw Error(ErrorKind::usage,
                fmt::format("--shard '{}' is no part of a plan; write 1/8 for the first of eight, 8/8 "
                            "for the last",
                            text));
  }
  return shard;
}

void keep_shard(Plan& plan, const Shard& shard) {
  std::vector<PlannedCase> kept;
  const auto step = static_cast<std::size_t>(shard.count);
  for (auto at = static_cast<std::size_t>(shard.index - 1); at < plan.cases.size(); at += step) {
    kept.push_back(std::move(plan.cases[at]));
    kept.back().index = static_cast<int>(kept.size()) - 1;
  }
  plan.cases = std::move(kept);
}

}  // namespace syslab::plan
