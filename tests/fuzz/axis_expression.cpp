// What options hold: -a seq=pow2:7:12, --shard 3/8, sizes and durations.
#include "core/text/units.hpp"
#include "plan/assignment.hpp"
#include "plan/plan.hpp"
#include "plan/shard.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(syslab::fuzz::text_of(data, size));
  syslab::fuzz::read_or_refuse([&] { syslab::plan::parse_assignment(text); });
  syslab::fuzz::read_or_refuse([&] { syslab::plan::parse_shard(text); });
  if (const auto bytes = syslab::parse_bytes(text)) syslab::format_bytes(*bytes);
  if (const auto duration = syslab::parse_duration(text)) syslab::format_duration(*duration);
  return 0;
}
