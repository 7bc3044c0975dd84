#include "check/law.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace syslab::check {
namespace {

TEST(Observation, KeepsThePairThatIsWorstForItsBound) {
  Observation observation;
  observation.record(0.5, 1.0);
  observation.record(0.3, 0.4);
  observation.record(10.0, 100.0);
  EXPECT_DOUBLE_EQ(*observation.worst_error, 0.3);
  EXPECT_DOUBLE_EQ(*observation.tolerance, 0.4);
}

TEST(Observation, KeepsAnErrorWhereNoneWasAllowedAboveAllOthers) {
  Observation observation;
  observation.record(1e-9, 0.0);
  observation.record(5.0, 1.0);
  EXPECT_DOUBLE_EQ(*observation.worst_error, 1e-9);
}

TEST(Observation, KeepsANaN) {
  Observation observation;
  observation.record(std::nan(""), 1.0);
  observation.record(5.0, 1.0);
  EXPECT_TRUE(std::isnan(*observation.worst_error));
}

TEST(Contract, ReadsItsOwnNames) {
  for (const Contract contract : {Contract::handout, Contract::full}) {
    EXPECT_EQ(parse_contract(to_string(contract)), contract);
  }
  EXPECT_THROW(parse_contract("strict"), Error);
}

TEST(Outcome, OfALawThatDidNotRunIsNotPassed) {
  EXPECT_EQ(LawResult{}.outcome, Outcome::not_run);
  EXPECT_EQ(to_string(LawResult{}.outcome), "not_run");
}

}  // namespace
}  // namespace syslab::check
