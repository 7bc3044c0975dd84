#include "paper/block_memory.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/integers.hpp"

namespace syslab::parallel {

void validate(const BlockModel& model) {
  const auto require = [](const char* name, std::int64_t size, std::int64_t largest) {
    if (size >= 1 && size <= largest) return;
    throw Error(ErrorKind::usage, fmt::format("{} is {}; it must be between 1 and {}", name, size, largest));
  };
  // 16 bytes a parameter: 2^4 · 2 · 2^20 · 2^20 · 2^16 = 2^61.
  require("d_model", model.d_model, std::int64_t{1} << 20);
  require("d_ff", model.d_ff, std::int64_t{1} << 20);
  require("blocks", model.blocks, std::int64_t{1} << 16);
}

std::int64_t parameter_count(const BlockModel& model) { return 2 * model.d_model * model.d_ff * model.blocks; }

BlockStateBytes state_bytes(const BlockModel& model) {
  const std::int64_t parameters = parameter_count(model);
  return {4 * parameters, 4 * parameters, 8 * parameters};
}

std::int64_t activation_bytes_per_token(const BlockModel& model) {
  return 2 * (model.d_model + model.d_ff) * model.blocks;
}

std::int64_t devices_for(std::int64_t bytes, std::int64_t device_bytes) { return ceil_div(bytes, device_bytes); }

double sharded_bytes(std::int64_t state, std::int64_t activations, std::int64_t shards) {
  const double half = static_cast<double>(activations) / 2;
  return (static_cast<double>(state) + half) / static_cast<double>(shards) + half;
}

std::optional<std::int64_t> shards_for(std::int64_t state, std::int64_t activations, std::int64_t device_bytes) {
  const std::int64_t room = 2 * device_bytes - activations;
  if (room <= 0) return std::nullopt;
  return ceil_div(2 * state + activations, room);
}

}  // namespace syslab::parallel
