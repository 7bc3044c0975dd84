#include "core/nvml.hpp"

#include <gtest/gtest.h>

namespace syslab {
namespace {

TEST(Nvml, IsThereOrSaysWhyNot) {
  const Nvml nvml;
  EXPECT_EQ(nvml.usable(), nvml.why().empty());
  EXPECT_TRUE(nvml.usable() || nvml.device_count() == 0);
}

TEST(Nvml, KnowsNoGpuThatIsNotThere) {
  const Nvml nvml;
  EXPECT_EQ(nvml.device("GPU-00000000-0000-0000-0000-000000000000"), nullptr);
  EXPECT_EQ(nvml.device(nvml.device_count()), nullptr);
  EXPECT_FALSE(nvml.state(nullptr).slowed_by);
  EXPECT_FALSE(nvml.state(nullptr).sm_mhz);
}

}  // namespace
}  // namespace syslab
