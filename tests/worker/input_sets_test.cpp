#include "worker/cases/input_sets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/worker/operator_case_fixture.hpp"

namespace syslab::worker {
namespace {

TEST(InputSets, HoldDifferentContentThatChangesWithEveryRefresh) {
  const Operation operation = doubling();
  CaseContext context(request(), [](const Record&) {});
  InputSets sets(context, operation);
  sets.grow(3);
  ASSERT_EQ(sets.count(), 3);
  EXPECT_EQ(sets.bytes_per_set(), 2U * kElements * 4);
  const auto first = to_doubles(sets.inputs(0)[0]);
  EXPECT_NE(first, to_doubles(sets.inputs(1)[0]));
  sets.refresh(0);
  const auto second = to_doubles(sets.inputs(0)[0]);
  EXPECT_NE(first, second);

  InputSets again(context, operation);
  EXPECT_EQ(first, to_doubles(again.inputs(0)[0]));
  again.refresh(0);
  EXPECT_EQ(second, to_doubles(again.inputs(0)[0]));
}

// Whoever knows the seed, or guesses it, could prepare the answers.
TEST(InputSets, OfSomebodyElsesImplementationTheSeedMakesTheCheckedContentAndNoTimedOne) {
  const Operation operation = doubling();
  CaseRequest asked = request();
  asked.mine = submitted_of("theirs", "/theirs.so", "");
  const auto contents = [&](const CaseRequest& of) {
    CaseContext context(of, [](const Record&) {});
    InputSets sets(context, operation);
    sets.grow(2);
    std::vector<std::vector<double>> found{to_doubles(sets.inputs(0)[0]), to_doubles(sets.inputs(1)[0])};
    sets.refresh(0);
    found.push_back(to_doubles(sets.inputs(0)[0]));
    return found;
  };
  const auto once = contents(asked), again = contents(asked), ours = contents(request());
  EXPECT_EQ(once[0], again[0]);
  EXPECT_EQ(once[0], ours[0]);
  for (const std::size_t timed : {1, 2}) {
    EXPECT_NE(once[timed], again[timed]);
    EXPECT_NE(once[timed], ours[timed]);
  }
  EXPECT_EQ(ours, contents(request()));
}

// Else the rows that have changed could be computed, and those of the call before given again.
TEST(InputSets, OfSomebodyElsesImplementationALargeInputIsNewEverywhere) {
  constexpr std::int64_t kMany = 5 << 20;  // 20 MiB
  Operation large = doubling();
  large.inputs[0].shape = Shape{kMany};
  CaseRequest asked = request();
  asked.mine = submitted_of("theirs", "/theirs.so", "");
  CaseContext context(asked, [](const Record&) {});
  InputSets sets(context, large);
  const float* x = sets.inputs(0)[0].as<float>();
  const std::vector<float> before(x, x + kMany);
  sets.refresh(0);
  std::int64_t same = 0;
  for (std::int64_t i = 0; i < kMany; ++i) same += x[i] == before[static_cast<std::size_t>(i)] ? 1 : 0;
  EXPECT_LT(same, kMany / 1000);
}

TEST(InputSets, OfALargeInputStripesAreNewEachTimeAndElsewhere) {
  constexpr std::int64_t kMany = 5 << 20;  // 20 MiB
  Operation large = doubling();
  large.inputs[0].shape = Shape{kMany};
  CaseContext context(request(), [](const Record&) {});
  InputSets sets(context, large);
  const auto content = [&] {
    const float* x = sets.inputs(0)[0].as<float>();
    return std::vector<float>(x, x + kMany);
  };
  std::vector<float> before = content();
  std::vector<std::int64_t> first_changes;
  for (int time = 0; time < 3; ++time) {
    sets.refresh(0);
    const std::vector<float> now = content();
    std::int64_t changed = 0, first = -1;
    std::vector<std::int64_t> in_eighth(8);
    for (std::int64_t i = 0; i < kMany; ++i) {
      if (now[static_cast<std::size_t>(i)] == before[static_cast<std::size_t>(i)]) continue;
      if (changed++ == 0) first = i;
      ++in_eighth[static_cast<std::size_t>(i * 8 / kMany)];
    }
    EXPECT_NEAR(static_cast<double>(changed), 4 << 20, 1 << 12);  // 16 MiB, less what was drawn equal
    EXPECT_GT(*std::min_element(in_eighth.begin(), in_eighth.end()), kMany / 16);
    first_changes.push_back(first);
    before = now;
  }
  EXPECT_NE(first_changes[0], first_changes[1]);
  EXPECT_NE(first_changes[1], first_changes[2]);
  EXPECT_EQ(sets.changed_inputs(0), std::nullopt);
}

}  // namespace
}  // namespace syslab::worker
