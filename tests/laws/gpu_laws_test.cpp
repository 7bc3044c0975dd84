// The laws of every operator for every rung on a GPU, a test a rung. Few cases by default: each is a call or two and
// copies there and back. SYSLAB_LAW_TIMES, SYSLAB_LAW_MOST and SYSLAB_LAW_SEED as in search_test.hpp.
//
//   build/tests/laws/laws_gpu --gtest_filter='*flash_mma*'
//   SYSLAB_LAW_MOST=2 compute-sanitizer --tool memcheck build/tests/laws/laws_gpu
#include <iostream>
#include <vector>

#include "device/memory.hpp"
#include "ops/attention/autograd.hpp"
#include "property_tests/adamw/laws.hpp"
#include "property_tests/attention/laws.hpp"
#include "property_tests/copy/laws.hpp"
#include "property_tests/cross_entropy/laws.hpp"
#include "property_tests/elementwise/laws.hpp"
#include "property_tests/embedding/laws.hpp"
#include "property_tests/gemm/laws.hpp"
#include "property_tests/global_norm/laws.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/rms_norm/laws.hpp"
#include "property_tests/rope/laws.hpp"
#include "property_tests/swiglu/laws.hpp"
#include "property_tests/weighted_sum/laws.hpp"
#include "tests/device/gpu_work.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::property {
namespace {

struct RungLaws {
  std::string name;  // "attention_flash_mma"
  std::function<std::vector<check::Law>()> laws;
};

void PrintTo(const RungLaws& rung, std::ostream* stream) { *stream << rung.name; }

std::vector<RungLaws> rungs_on_a_gpu() {
  std::vector<RungLaws> found;
  const auto add = [&found](const std::string& operation, const auto& ladder, const auto& laws) {
    for (const auto& rung : ladder) {
      if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
      found.push_back({operation + "_" + rung.name, [rung, laws] { return laws(rung); }});
    }
  };
  add("attention", attention::ladder(), attention::laws);
  // The one that keeps its weights; on the ladder stands the one that makes them again.
  add("autograd", std::vector{attention::as_rung(attention::find_autograd_rung("naive_cuda"))}, attention::laws);
  add("adamw", adamw::ladder(), adamw::laws);
  add("copy", copy::ladder(), copy::laws);
  add("cross_entropy", cross_entropy::ladder(), cross_entropy::laws);
  add("elementwise", elementwise::ladder(), elementwise::laws);
  add("embedding", embedding::ladder(), embedding::laws);
  add("gemm", gemm::ladder(), gemm::laws);
  add("global_norm", global_norm::ladder(), global_norm::laws);
  add("rms_norm", rms_norm::ladder(), rms_norm::laws);
  add("rope", rope::ladder(), rope::laws);
  add("swiglu", swiglu::ladder(), swiglu::laws);
  add("weighted_sum", weighted_sum::ladder(), weighted_sum::laws);
  return found;
}

class LawsOnAGpu : public testing::TestWithParam<RungLaws> {};

TEST_P(LawsOnAGpu, Hold) {
  if (const auto reason = OnDevice::refusal(device::Kind::cuda)) GTEST_SKIP() << GetParam().name << " " << *reason;
  int held = 0;
  for (const check::Law& law : GetParam().laws()) {
    for (const auto contract : {check::Contract::full, check::Contract::handout}) {
      const check::LawRequest request = ci_request(contract, 20);
      const check::LawResult result = law.search(request);
      if (result.outcome == check::Outcome::not_run) {
        EXPECT_FALSE(result.message.empty()) << law.id;
        std::cout << law.id << " (" << to_string(contract) << "): not run: " << result.message << "\n";
        continue;
      }
      EXPECT_EQ(to_string(result.outcome), "passed") << story(law, result);
      if (result.outcome == check::Outcome::passed) {
        EXPECT_EQ(result.cases_run, request.max_success) << law.id;
        ++held;
      }
    }
  }
  EXPECT_GT(held, 1) << "no law was searched";
}

INSTANTIATE_TEST_SUITE_P(Ladders, LawsOnAGpu, testing::ValuesIn(rungs_on_a_gpu()),
                         [](const auto& info) { return info.param.name; });

// A rung whose forward pass makes its output in memory of its own and copies it from there, 200 µs later: right while
// one call waits for the other, and wrong where two are on their way in different streams.
attention::Rung through_shared_memory(const attention::Rung& inner) {
  attention::Rung rung = inner;
  rung.name = "through_shared_memory";
  rung.forward = [inner](const attention::Problem& problem, const attention::ForwardArgs& args,
                         ops::Workspace workspace, device::Stream stream) {
    static const device::Buffer shared(std::size_t{64} << 20, "shared", stream);
    attention::ForwardArgs there = args;
    there.out.data = shared.data();
    inner.forward(problem, there, workspace, stream);
    device::spin(200'000, stream);
    const auto extent = static_cast<std::size_t>(extent_elements(args.out.shape, args.out.strides));
    device::copy(args.out.data, shared.data(), extent * size_of(args.out.dtype), stream);
  };
  return rung;
}

TEST(LawsInStreams, FindWhatOnlyCallsInSeveralStreamsShow) {
  if (const auto reason = OnDevice::refusal(device::Kind::cuda)) GTEST_SKIP() << *reason;
  const attention::Rung rung = through_shared_memory(attention::find_rung("flash_fp32"));
  for (const check::Law& law : attention::laws_of(rung, Pass::forward)) {
    if (law.id != "attention.repeats" && law.id != "attention.equals_oracle") continue;
    // Under the hand-out's contract tensors are contiguous.
    check::LawRequest request = ci_request(check::Contract::handout, 5);
    request.shrink_tries = 20;
    const check::LawResult result = law.search(request);
    if (law.id == "attention.equals_oracle") {
      EXPECT_EQ(to_string(result.outcome), "passed") << "one call at a time is right: " << story(law, result);
      continue;
    }
    EXPECT_EQ(to_string(result.outcome), "falsified") << story(law, result);
    EXPECT_NE(result.message.find("at once, in 4 streams"), std::string::npos) << result.message;
  }
}

}  // namespace
}  // namespace syslab::property
