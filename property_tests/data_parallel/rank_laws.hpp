// A table of laws whose bodies need nothing but the ranks: of sharded optimizers and of full sharding.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "core/call_channel.hpp"

namespace syslab::data_parallel {

struct RankLaw {
  const char* id;
  const char* statement;
  void (*body)(CallChannel&, check::Contract);
  LawInfo::Bound bound = LawInfo::Bound::all;
  bool beyond = false;  // its inputs are not of the form of the hand-out's tests, whatever is drawn
};
inline constexpr bool kBeyond = true;

using AskedByHandout = bool (*)(const RankLaw&);

// The table must outlive the laws. `limits`: what no input of them goes beyond.
std::vector<check::Law> laws_of_ranks(std::span<const RankLaw> table, AskedByHandout asked,
                                      std::shared_ptr<CallChannel> ranks, const std::string& limits);
std::vector<LawInfo> infos_of_ranks(std::span<const RankLaw> table, AskedByHandout asked);

}  // namespace syslab::data_parallel
