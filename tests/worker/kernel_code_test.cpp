#include "worker/cases/kernel_code.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "worker/judged/call.hpp"

namespace syslab::worker {
namespace {

constexpr std::chrono::seconds kPatience{1};
const Json kEnd{{"type", "end"}, {"status", "error"}, {"detail", "device: no GPU"}};

TEST(KernelCodeOfACase, IsWhatTheProcessSaysAmongItsFacts) {
  const Json code{{"digest", "c0de"}, {"kernels", Json::array()}};
  const Json facts{{"type", "fact"}, {"facts", {{"code", code}}}}, others{{"type", "fact"}, {"facts", {{"k", 4}}}};
  EXPECT_EQ(code_among({others, facts, kEnd}), code);
}

TEST(KernelCodeOfACase, WithoutOneTheReasonIsSaid) {
  EXPECT_EQ(code_among({kEnd}), (Json{{"why", "device: no GPU"}}));
  for (const std::vector<Json>& said : {std::vector<Json>{},
                                        {Json("no object")},
                                        {{{"type", "fact"}, {"facts", {{"code", 7}}}}},
                                        {{{"type", "end"}}}}) {
    EXPECT_FALSE(code_among(said).at("why").get<std::string>().empty());
  }
}

TEST(KernelCodeOfACase, IsAskedOnAGpuAlone) {
  CaseRequest request;
  EXPECT_TRUE(code_of_case(request, kPatience).is_null()) << "the CPU's";
  request.device = DeviceKind::cuda;
  request.world_size = 2;
  EXPECT_NE(code_of_case(request, kPatience).at("why").get<std::string>().find("all ranks"), std::string::npos)
      << "no rank starts a process by itself";
  request.device = DeviceKind::cpu;
  EXPECT_TRUE(code_of_case(request, kPatience).is_null());
}

// Names come of whatever a judged process has loaded.
TEST(KernelsOfACall, TravelWithItsReply) {
  const auto told = [](Json reply) {
    reply.update({{"type", "returned"}, {"elapsed_ns", 1}});
    return std::get<Returned>(call_reply_from_json(reply)).kernels;
  };
  EXPECT_FALSE(told(Json::object()).has_value());
  const auto one = told({{"kernels", {{{"name", "a\x1b[2J"}, {"launches", 2}}, {{"name", "b"}, {"launches", -1}}}}});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->kernels, (std::vector<KernelsOfCall::Kernel>{{"a\\x1b[2J", 2}, {"b", 0}}));
  KernelsOfCall both = *one;
  both.add({.kernels = {{"b", 4}, {"c", 1}}, .why = "not all"});
  EXPECT_EQ(to_json(both).dump(),
            R"([{"launches":2,"name":"a\\x1b[2J"},{"launches":4,"name":"b"},{"launches":1,"name":"c"}])");
  EXPECT_EQ(both.why, "not all");
  EXPECT_EQ(told({{"kernels", Json::array()}, {"no_kernels", "no CUPTI"}})->why, "no CUPTI");
  EXPECT_THROW(told({{"kernels", 7}}), Error);
  EXPECT_THROW(told({{"kernels", {{{"name", 7}, {"launches", 1}}}}}), Error);
  CallRequest request;
  EXPECT_FALSE(to_json(request).contains("kernels"));
  request.kernels = true;
  EXPECT_TRUE(call_request_from_json(Json::parse(to_json(request).dump())).kernels);
}

// A case that was measured must not end as one that took too long.
TEST(KernelCodeOfACase, IsAskedWithinWhatIsLeftOfItsTime) {
  using std::chrono::seconds, std::chrono::minutes;
  EXPECT_EQ(patience_within(minutes(9)), seconds(60));
  EXPECT_EQ(patience_within(seconds(30)), seconds(25));
  EXPECT_EQ(patience_within(seconds(10)), seconds(5));
  for (const seconds left : {seconds(9), seconds(0), seconds(-3)}) EXPECT_EQ(patience_within(left), seconds(0));
  CaseRequest request;
  request.device = DeviceKind::cuda;
  EXPECT_NE(code_of_case(request, seconds(0)).at("why").get<std::string>().find("--timeout"), std::string::npos);
  EXPECT_FALSE(to_json(request).contains("timeout_ns"));
  request.kernel_code = true;
  request.timeout = seconds(7);
  EXPECT_EQ(case_request_from_json(Json::parse(to_json(request).dump())).timeout, seconds(7));
}

TEST(KernelCodeOfACase, TravelsAsAQuestion) {
  CaseRequest request;
  request.experiment = "x";
  EXPECT_FALSE(to_json(request).contains("kernel_code"));
  request.kernel_code = true;
  request.task = Task::code;
  const CaseRequest back = case_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_TRUE(back.kernel_code);
  EXPECT_EQ(back.task, Task::code);
}

}  // namespace
}  // namespace syslab::worker
