#include "compare/turns.hpp"

#include <fmt/format.h>

namespace syslab::cli {

std::vector<stats::PairedBlock> for_stats(std::span<const runner::PairedBlock> blocks) {
  std::vector<stats::PairedBlock> plain;
  plain.reserve(blocks.size());
  for (const runner::PairedBlock& block : blocks) plain.push_back({block.launch, block.log_ratio});
  return plain;
}

verdict::Turns turns_of(std::span<const runner::PairedBlock> blocks) {
  verdict::Turns turns{for_stats(blocks), {}};
  for (const runner::PairedBlock& block : blocks) {
    for (std::size_t i = 0; i < block.seconds.size(); ++i) {
      turns.calls[block.order[i] == 'A' ? 0 : 1].push_back(block.seconds[i]);
    }
  }
  return turns;
}

verdict::Judgement under_resolution(char side, const NoTime& why) {
  verdict::Judgement it =
      verdict::incomparable({verdict::AboutSide{side, fmt::format("{}: {}", verdict_of(why), in_words(why))}});
  it.code = why.reason;
  return it;
}

}  // namespace syslab::cli
