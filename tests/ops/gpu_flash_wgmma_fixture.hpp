// Tests of one of flash_wgmma's rungs, skipped where there is no Hopper GPU or no code for it.
#pragma once

#include "device/properties.hpp"
#include "tests/ops/gpu_attention_fixture.hpp"

namespace syslab::attention {

class FlashWgmmaTest : public device::GpuTest {
 protected:
  explicit FlashWgmmaTest(const char* rung) : rung_(find_rung(rung)) {}

  void SetUp() override {
    device::GpuTest::SetUp();
    if (testing::Test::IsSkipped()) return;
    if (!rung_.unavailable.empty()) GTEST_SKIP() << rung_.unavailable;
    const int sm = device::properties(device::place_of(stream)).sm;
    if (sm != 90) GTEST_SKIP() << "needs a GPU of compute capability 9.0, not " << sm / 10 << "." << sm % 10;
  }

  const Rung& rung_;
};

}  // namespace syslab::attention
