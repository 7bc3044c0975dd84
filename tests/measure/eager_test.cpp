#include "measure/eager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::microseconds;

Samples take_eagerly(FakeLab& fake, const Subject& subject) {
  return take_eager_samples(find_protocol("graph"), subject, {fake.device, fake.clock, fake.clock}, 42);
}

// Calls of 30 µs on a device that captures graphs.
FakeLab& capturing(FakeLab& fake) {
  fake.device.captures = true;
  fake.duration = [](int) { return microseconds(30); };
  return fake;
}

TEST(EagerSamples, AreNeverGraphsWhateverTheProtocolSays) {
  FakeLab fake;
  const Samples samples = take_eagerly(capturing(fake), fake.subject(21));
  EXPECT_FALSE(samples.graphs);
  EXPECT_EQ(fake.device.captured, 0);
  EXPECT_GE(samples.seconds.size(), 8U);
  EXPECT_DOUBLE_EQ(samples.seconds.front(), 30e-6);
}

TEST(EagerSamples, AreVerifiedAfterTheyWereTaken) {
  FakeLab fake;
  const Samples samples = take_eagerly(capturing(fake), fake.subject(21));
  EXPECT_GE(samples.verified, 1);
  const auto verified = std::find_if(fake.events.begin(), fake.events.end(),
                                     [](const std::string& event) { return event.starts_with("verify"); });
  ASSERT_NE(verified, fake.events.end());
  const std::string call = "call" + verified->substr(6);
  EXPECT_NE(std::find(fake.events.begin(), verified, call), verified) << *verified << " before " << call;
}

TEST(EagerSamples, OfAWrongCallHaveNoTime) {
  FakeLab fake;
  Subject wrong = capturing(fake).subject(21);
  wrong.verify = [](int) -> bool { throw std::runtime_error("wrong"); };
  EXPECT_THROW(take_eagerly(fake, wrong), std::runtime_error);
}

}  // namespace
}  // namespace syslab::measure
