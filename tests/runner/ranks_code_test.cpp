#include "runner/ranks/code.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/expect_contains.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

Json kernel(const std::string& code, int launches, const std::string& name = "k") {
  return {{"name", name}, {"code", code}, {"launches", launches}};
}

Json rank(const std::vector<Json>& kernels) { return {{"digest", "in its order"}, {"kernels", kernels}}; }

std::string digest(const std::vector<Json>& ranks) { return joined_code(ranks).at("digest"); }

TEST(CodeOfRanks, IsTheSameInWhateverOrderStreamsRanTheSame) {
  const Json one = rank({kernel("a", 2), kernel("b", 1)}), other = rank({kernel("b", 1), kernel("a", 2)});
  EXPECT_EQ(digest({one, one}), digest({one, other}));
  EXPECT_EQ(digest({one, one}), digest({rank({kernel("a", 1), kernel("b", 1), kernel("a", 1)}), one}));
  EXPECT_EQ(digest({one}), digest({rank({kernel("a", 2, "built elsewhere"), kernel("b", 1)})}))
      << "names are for people";
  EXPECT_NE(digest({one, one}), digest({one}));
  EXPECT_NE(digest({one, one}), digest({one, rank({kernel("a", 2), kernel("b", 2)})}));
  EXPECT_NE(digest({one, one}), digest({one, rank({kernel("a", 2), kernel("c", 1)})}));
}

TEST(CodeOfRanks, HasTheKernelsOfAllAndTellsWhoRanOthers) {
  const Json one = rank({kernel("a", 2)}), other = rank({kernel("a", 2), kernel("b", 1, "cast")});
  const Json same = joined_code({one, one});
  EXPECT_EQ(same.at("kernels"), Json::array({kernel("a", 4)}));
  EXPECT_FALSE(same.contains("ranks_differ"));
  const Json mixed = joined_code({one, other, one});
  EXPECT_EQ(mixed.at("kernels"), Json::array({kernel("a", 6), kernel("b", 1, "cast")}));
  EXPECT_EQ(mixed.at("ranks_differ"), Json::array({1}));
}

TEST(CodeOfRanks, HalfOfItIsNone) {
  const Json one = rank({kernel("a", 2)});
  const auto why = [](const std::vector<Json>& ranks) {
    const Json code = joined_code(ranks);
    EXPECT_FALSE(code.contains("digest"));
    return code.at("why").get<std::string>();
  };
  EXPECT_EQ(why({one, {{"why", "no CUPTI"}}}), "rank 1: no CUPTI");
  EXPECT_EQ(why({Json::object(), one}), "rank 0: it told of no kernels");
  EXPECT_EQ(why({Json::object({{"why", 7}}), one}), "rank 0: it told of no kernels");
  EXPECT_FALSE(why({one, {{"digest", "d"}, {"kernels", {{{"name", 7}}}}}}).empty());
  EXPECT_FALSE(why({one, {{"digest", "d"}}}).empty());
  EXPECT_FALSE(why({}).empty());
}

// What workers of a case say when they could tell.
const std::string kCan = R"({"code": {"why": "w"}, "threads": 3,
                             "ranks": [{"code": {"why": "w"}, "clock": 1}, {"code": {"why": "w"}}]})";

std::string asked(const std::string& facts, Clock::duration left, const std::string& fault = "none") {
  worker::CaseRequest request;
  request.experiment = "selftest_ranks";
  request.params = {
      {"fault", fault}, {"steps", std::int64_t{6}}, {"share_us", std::int64_t{500}}, {"limit_ms", std::int64_t{1000}}};
  request.implementation = "selftest";
  request.world_size = 2;
  const Interruption interruption;
  Watch watch(interruption);
  return with_code_of_ranks(facts, request, {worker_host(), {}, {}}, 1s, Clock::now() + left, watch);
}

TEST(CodeOfRanks, IsAskedOnlyOfThoseWhoCanTell) { EXPECT_EQ(asked(R"({"threads":3})", 1h), R"({"threads":3})"); }

TEST(CodeOfRanks, NothingThatWasMeasuredIsLostWhenItFails) {
  const auto code = [](const std::string& text) {
    const Json facts = Json::parse(text);
    EXPECT_EQ(facts.at("threads"), 3);
    EXPECT_EQ(facts.at("ranks"), Json::parse(R"([{"clock": 1}, {}])"));
    return facts.at("code").at("why").get<std::string>();
  };
  expect_contains(code(asked(kCan, 3s)), "--timeout");
  expect_contains(code(asked(kCan, 1h, "throw")), "the ranks that listen: rank");
  expect_contains(code(asked(kCan, 1h)), "rank 0: it told of no kernels");  // a body that does not know the task
}

}  // namespace
}  // namespace syslab::runner
