// What the lab needs to know about training steps on several ranks before any of them runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/axis.hpp"
#include "contract/rung.hpp"
#include "core/value.hpp"

namespace syslab {

struct RankTrainingCases {
  std::vector<Axis> params;
  RungInfos ladder;
  void (*expect)(
      const Params& params);  // includes "world_size"; Error(usage) if the ranks cannot share the rows evenly
  // Why a rung cannot run a case on any machine, judged by the axes alone.
  std::optional<std::string> (*refusal)(const Params& params, std::string_view rung);
};

}  // namespace syslab
