#include "worker/kernel_code.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(KernelCodeOfACase, IsAskedOfOurOwnOnAGpuAlone) {
  CaseRequest request;
  EXPECT_TRUE(code_of_case(request, kPatience).is_null()) << "the CPU's";
  request.device = "cuda";
  request.world_size = 2;
  EXPECT_TRUE(code_of_case(request, kPatience).is_null());
  request.world_size = 1;
  request.mine = MineRequest{.name = "me", .path = "me.so"};
  EXPECT_NE(code_of_case(request, kPatience).at("why").get<std::string>().find("process of its own"),
            std::string::npos);
}

// A case that was measured must not end as one that took too long.
TEST(KernelCodeOfACase, IsAskedWithinWhatIsLeftOfItsTime) {
  using std::chrono::seconds, std::chrono::minutes;
  EXPECT_EQ(patience_within(minutes(9)), seconds(60));
  EXPECT_EQ(patience_within(seconds(30)), seconds(25));
  EXPECT_EQ(patience_within(seconds(10)), seconds(5));
  for (const seconds left : {seconds(9), seconds(0), seconds(-3)}) EXPECT_EQ(patience_within(left), seconds(0));
  CaseRequest request;
  request.device = "cuda";
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
  request.task = "code";
  const CaseRequest back = case_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_TRUE(back.kernel_code);
  EXPECT_EQ(back.task, "code");
}

}  // namespace
}  // namespace syslab::worker
