#include "device/cuda/gpu_probe.hpp"

#include <gtest/gtest.h>

#include <set>

namespace syslab::device {
namespace {

TEST(GpuProbe, ListsGpusOrSaysWhyThereAreNone) {
  const GpuProbe probe = probe_gpus();
  EXPECT_EQ(probe.gpus.empty(), !probe.why_none.empty()) << probe.why_none;
}

TEST(GpuProbe, DescribesEveryGpu) {
  const GpuProbe probe = probe_gpus();
  if (probe.gpus.empty()) GTEST_SKIP() << probe.why_none;
  EXPECT_FALSE(probe.runtime_version.empty());
  EXPECT_FALSE(probe.driver_version.empty());
  std::set<std::string> uuids;
  for (const Gpu& gpu : probe.gpus) {
    SCOPED_TRACE(gpu.name);
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_GE(gpu.sm, 50);
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_GT(gpu.memory_bytes, std::uint64_t{1} << 30);
    EXPECT_EQ(gpu.uuid.size(), 40U) << gpu.uuid;
    EXPECT_TRUE(uuids.insert(gpu.uuid).second) << "two GPUs share " << gpu.uuid;
  }
}

}  // namespace
}  // namespace syslab::device
