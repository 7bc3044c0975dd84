// A wait of rounded gradients that is left out shows: for those that are late, and for a slot that is in use. Races on
// purpose.
#include <gtest/gtest.h>

#include "tests/parallel/rounded_fixture.hpp"

namespace syslab::parallel {
namespace {

using test::RoundedCase;
using test::WaitOf;
using test::wrong_elements;

constexpr int kBuckets = 3;

// With ever longer delays, without which there is nothing to wait for.
bool shows(RoundedCase asked, std::chrono::milliseconds RoundedCase::*delay) {
  for (asked.*delay = std::chrono::milliseconds(1); asked.*delay < std::chrono::seconds(1); asked.*delay *= 2) {
    if (wrong_elements(asked, 2) > 0) return true;
  }
  return false;
}

TEST(RoundedFaults, NoScatterGoesWithoutItsGradients) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      const RoundedCase asked{
          .sharding = sharding, .written = {0, 2}, .slots = 3, .left_out = WaitOf{Wait::gradients_written, bucket}};
      EXPECT_TRUE(shows(asked, &RoundedCase::late_computing)) << to_string(sharding) << " bucket " << bucket;
    }
  }
}

TEST(RoundedFaults, NoSlotIsWrittenBeforeItIsFree) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (int bucket = 1; bucket < kBuckets; ++bucket) {
      const RoundedCase asked{.sharding = sharding,
                              .written = {0, 1, 2, 3},
                              .slots = 1,
                              .left_out = WaitOf{Wait::gradient_slot_sent, bucket}};
      EXPECT_TRUE(shows(asked, &RoundedCase::late_communication)) << to_string(sharding) << " bucket " << bucket;
    }
  }
}

}  // namespace
}  // namespace syslab::parallel
