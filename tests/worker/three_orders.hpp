// The host's side of a paired launch, as a test: it orders three bursts.
#pragma once

#include <vector>

#include "worker/cases/bursts.hpp"

namespace syslab::worker {

class ThreeOrders final : public BurstLine {
 public:
  void started() override {}
  void say(const Ready& ready) override { told.push_back(ready); }
  void say(const Burst& burst) override { bursts.push_back(burst.seconds_per_call); }
  bool ordered() override { return bursts.size() < 3; }
  std::vector<Ready> told;
  std::vector<double> bursts;
};

}  // namespace syslab::worker
