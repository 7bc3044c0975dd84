#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "worker/cases/checked_operator.hpp"

namespace syslab::worker {
namespace {

MetricRecord told(double less) {
  std::vector<MetricRecord> metrics;
  CaseContext context({}, [&](const Record& record) { metrics.push_back(std::get<MetricRecord>(record)); });
  tell_device_taken(context, less);
  return metrics.at(0);
}

TEST(DeviceTaken, IsWhatTheDriverHasLess) {
  EXPECT_EQ(told(2097152).value, 2097152);
  EXPECT_EQ(told(0).value, 0);
}

// Seen where a process ended on the same GPU: a negative number of bytes ended the case as an error.
TEST(DeviceTaken, IsUnknownWhereAnotherProcessGaveMoreBack) {
  const MetricRecord metric = told(-2031616);
  EXPECT_EQ(metric.name, "device_taken_bytes");
  EXPECT_FALSE(metric.value);
  EXPECT_NE(metric.note.find("another process"), std::string::npos);
}

}  // namespace
}  // namespace syslab::worker
