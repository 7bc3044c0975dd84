// Main of the GPU tests of every room: exit code 77, which Meson counts as skipped, when a test was skipped for want of
// a GPU. The gtest protocol would count that as a failure.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const int failed = RUN_ALL_TESTS(); failed != 0) return failed;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? 77 : 0;
}
