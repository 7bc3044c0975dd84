// Which kernels a call ran, and their machine code, as CUPTI tells: the same each time, another where another runs. A
// program of its own, for a module is told once a process: when it is loaded.
#include <gtest/gtest.h>

#include "device/cuda/other_context.hpp"
#include "device/fill_random.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "trace/code_watch.hpp"

namespace syslab::trace {
namespace {

// Begun before anything works on a GPU.
struct Listening {
  std::string why;
  std::unique_ptr<CodeWatch> watch = CodeWatch::start(why);
};

Listening& listening() {
  static Listening one;
  return one;
}

class GpuKernelCode : public device::GpuTest {
 protected:
  static void SetUpTestSuite() { listening(); }
  void SetUp() override {
    device::GpuTest::SetUp();
    if (IsSkipped()) return;
    if (listening().watch == nullptr) GTEST_SKIP() << listening().why;
    memory_ = device::Buffer(kElements * sizeof(float), "numbers", stream);
  }

  template <typename Call>
  CodeOfCall code_of(const Call& call) {
    CodeWatch& watch = *listening().watch;
    call();
    device::synchronize(stream);
    watch.begin();
    call();
    device::synchronize(stream);
    return watch.end();
  }
  void turn() const { device::come_to_turn(stream); }
  void fill(std::int64_t elements) {
    device::fill_random(TensorView(memory_.as<float>(), DType::f32, {elements}), RandomStream::derive(7, "a", "b", "c"),
                        Distribution::normal, 1.0F, 0, stream);
  }

  static constexpr std::int64_t kElements = 1 << 20;
  device::Buffer memory_;
};

TEST_F(GpuKernelCode, IsTheSameEachTimeAndNamesTheKernels) {
  const CodeOfCall once = code_of([&] { fill(kElements); }), again = code_of([&] { fill(kElements); });
  ASSERT_EQ(once.why, "");
  EXPECT_EQ(once.digest.size(), 64U);
  EXPECT_EQ(once.digest, again.digest);
  ASSERT_FALSE(once.kernels.empty());
  EXPECT_EQ(once.kernels[0].code.size(), 64U);
  EXPECT_GE(once.kernels[0].launches, 1);
}

TEST_F(GpuKernelCode, IsAnotherOfAnotherKernelAnotherShapeAndAnotherOrder) {
  const std::string turned = code_of([&] { turn(); }).digest, filled = code_of([&] { fill(kElements); }).digest;
  ASSERT_NE(turned, "");
  EXPECT_NE(turned, filled);
  EXPECT_NE(code_of([&] { fill(kElements / 4); }).digest, filled);
  EXPECT_NE(code_of([&] { turn(), fill(kElements); }).digest, code_of([&] { fill(kElements), turn(); }).digest);
}

TEST_F(GpuKernelCode, OfNothingIsNone) {
  EXPECT_EQ(code_of([] {}).why, "no kernel ran");
}

}  // namespace
}  // namespace syslab::trace
