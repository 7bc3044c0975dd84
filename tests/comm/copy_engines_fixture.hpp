// Ranks of the backend copy_engines, as threads over the CPU's streams, with slots of a few elements.
#pragma once

#include "comm/copy_engines/copy_engines.hpp"
#include "tests/comm/fake_nccl_fixture.hpp"

namespace syslab::comm {

class CopyEnginesOfRanks : public FakeNccl {
 protected:
  static NcclOptions copying(CopyEngineOptions engines = {.slot_bytes = 1024, .slots = 2, .least_bytes = 0}) {
    NcclOptions options = fake();
    options.copy_engines = engines;
    return options;
  }
};

inline const std::vector<std::string> kTwoWell{"", ""};

}  // namespace syslab::comm
