#include "measure/protocol.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace syslab::measure {
namespace {

TEST(Protocol, KernelIsTheDefault) {
  EXPECT_EQ(to_json(find_protocol("kernel")), to_json(Protocol{}));
  EXPECT_TRUE(find_protocol("kernel").cache == Cache::rotate);
}

TEST(Protocol, QuickEndsWithinATwentiethOfTheTime) {
  const Protocol quick = find_protocol("quick");
  EXPECT_LE(quick.warmup_limit + quick.wall_budget, std::chrono::milliseconds(300));
  EXPECT_GE(quick.min_samples, 6);  // fewer have no 95 % interval of the median
}

TEST(Protocol, AnUnknownNameIsToldWhichThereAreAndWhichIsNear) {
  try {
    find_protocol("quik");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("kernel"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("did you mean 'quick'"), std::string::npos) << error.what();
  }
}

TEST(Protocol, EveryFieldIsStored) {
  const Json json = to_json(find_protocol("quick"));
  EXPECT_EQ(json.at("name"), "quick");
  EXPECT_EQ(json.at("cache"), "hot");
  EXPECT_EQ(json.at("sample_floor_ns"), 50'000);
  EXPECT_EQ(json.size(), 23U);
}

}  // namespace
}  // namespace syslab::measure
