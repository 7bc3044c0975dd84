// Who is told of launched kernels, and what is kept of them.
#include "device/cuda/kernel_watch.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace syslab::device {
namespace {

KernelResources kernel(const char* name, int registers) {
  return {.name = name, .threads = 128, .registers = registers, .shared_bytes = 0, .blocks = 4, .most_threads = 2048};
}

TEST(KernelWatch, KeepsEachKernelOnceInTheOrderOfLaunches) {
  KernelWatch watch;
  for (const int registers : {64, 32, 64}) KernelWatch::of_thread()->note(kernel("one", registers));
  EXPECT_EQ(watch.seen(), (std::vector<KernelResources>{kernel("one", 64), kernel("one", 32)}));
  EXPECT_DOUBLE_EQ(watch.seen().front().occupancy(), 0.25);
}

TEST(KernelWatch, TheInnermostOfAThreadSees) {
  EXPECT_EQ(KernelWatch::of_thread(), nullptr);
  KernelWatch outer;
  {
    KernelWatch inner;
    EXPECT_EQ(KernelWatch::of_thread(), &inner);
    std::thread([] { EXPECT_EQ(KernelWatch::of_thread(), nullptr) << "another thread's launches"; }).join();
  }
  EXPECT_EQ(KernelWatch::of_thread(), &outer);
}

}  // namespace
}  // namespace syslab::device
