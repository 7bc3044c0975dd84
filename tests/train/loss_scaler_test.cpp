#include "train/loss_scaler.hpp"

#include <gtest/gtest.h>

namespace syslab::train {
namespace {

TEST(LossScaler, BeginsAsPyTorchsDoes) {
  const LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536.0F);
}

TEST(LossScaler, HalvesAtEachOverflowAndSkipsTheStep) {
  LossScaler scaler;
  EXPECT_FALSE(scaler.update(true));
  EXPECT_FALSE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 16384.0F);
}

TEST(LossScaler, DoublesAfterTwoThousandCleanStepsInARow) {
  LossScaler scaler;
  for (int step = 0; step < 1999; ++step) EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 65536.0F);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072.0F);
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072.0F);
  scaler.update(true);  // begins to count anew
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0F);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072.0F);
}

TEST(LossScaler, NeverLeavesTheNumbersOfFp32) {
  LossScaler scaler({.initial_scale = 0x1p127F, .growth_interval = 1});
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p127F);  // doubled, it would be infinite
  for (int step = 0; step < 300; ++step) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p-126F);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p-125F);
}

TEST(LossScaler, GoesOnFromAStateAsIfItHadNeverStopped) {
  LossScaler whole;
  for (int step = 0; step < 1500; ++step) whole.update(step == 100);
  LossScaler resumed({}, whole.state());
  for (int step = 0; step < 1500; ++step) {
    whole.update(false);
    resumed.update(false);
    ASSERT_EQ(resumed.state(), whole.state());
  }
  EXPECT_EQ(resumed.scale(), 65536.0F);
}

}  // namespace
}  // namespace syslab::train
