#include "worker/cases/operator_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "device/cuda/launch.hpp"
#include "measure/protocol.hpp"
#include "tests/worker/operator_case_fixture.hpp"

namespace syslab::worker {
namespace {

TEST(OperatorCase, ChecksThenMeasures) {
  const Outcome outcome = run(doubling());
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.check("reference:y").outcome, syslab::Outcome::passed);
  EXPECT_EQ(outcome.check("reference:y").fraction_checked, 1.0);
  EXPECT_GE(outcome.check("samples:y").cases_run, 1);

  const auto samples = outcome.all<SampleRecord>();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].series, "time");
  EXPECT_EQ(samples[1].series, "warmup");
  const MetricRecord& time = outcome.metric("time");
  EXPECT_EQ(time.n, static_cast<std::int64_t>(samples[0].values.size()));
  EXPECT_GT(*time.value, 0);
  EXPECT_LE(*time.low, *time.value);
  EXPECT_GE(*time.high, *time.value);
  EXPECT_LE(*outcome.metric("time_min").value, *outcome.metric("time_q1").value);
  EXPECT_LE(*outcome.metric("time_q1").value, *outcome.metric("time_q3").value);
  EXPECT_DOUBLE_EQ(*outcome.metric("tflops").value, kElements * 1e-12 / *time.value);
  EXPECT_DOUBLE_EQ(*outcome.metric("gbps").value, 8e-9 * kElements / *time.value);
  EXPECT_EQ(*outcome.metric("error_y").value, 0.0);
  EXPECT_EQ(*outcome.metric("tolerance_y").value, 1e-6);
}

TEST(OperatorCase, OfAnotherDeviceThanWasAskedForIsUnsupported) {
  CaseRequest asked = request();
  asked.device = DeviceKind::cuda;
  EXPECT_THROW(run(doubling(), asked), Unsupported);
  Operation there = doubling();
  there.device = device::Kind::cuda;
  EXPECT_THROW(run(there), Unsupported);
}

TEST(OperatorCase, OnAGpuThatIsNotThereSaysWhyThereIsNone) {
  if (device::gpu_count() > 0) return;  // nothing to say there
  CaseRequest asked = request();
  asked.device = DeviceKind::cuda;
  Operation there = doubling();
  there.device = device::Kind::cuda;
  try {
    run(there, asked);
    FAIL() << "ran without a GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_GT(std::string(error.what()).size(), std::string("'ours' needs a GPU: ").size()) << error.what();
  }
}

TEST(OperatorCase, TellsHowItWasMeasured) {
  const Json facts = run(doubling()).facts();
  EXPECT_EQ(facts.at("protocol").at("name"), "quick");
  EXPECT_EQ(facts.at("cache"), "hot");
  EXPECT_GT(facts.at("calls_per_sample"), 1);  // 256 elements take far less than 200 µs
  EXPECT_EQ(facts.at("input_sets"), facts.at("calls_per_sample")) << "content of its own for each call";
  EXPECT_GE(facts.at("verified"), 1);
  EXPECT_GE(facts.at("timed_calls"), facts.at("verified"));
  EXPECT_EQ(facts.at("protocol").at("version"), measure::kMeasuringVersion);
  for (const char* name : {"stop", "precision", "warmup_calls", "threads", "blas", "data"}) {
    EXPECT_TRUE(facts.contains(name)) << name;
  }
}

TEST(OperatorCase, AWrongElementIsNamedAndNothingIsTimed) {
  Operation wrong = doubling();
  wrong.call = [right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    data(out[0])[3 * kColumns + 7] += 1;
  };
  const Outcome outcome = run(wrong);
  const CheckRecord& check = outcome.check("reference:y");
  EXPECT_EQ(check.outcome, syslab::Outcome::falsified);
  EXPECT_NE(check.message.find("y[3, 7]"), std::string::npos) << check.message;
  EXPECT_NEAR(*check.worst_error, 1.0, 1e-6);
  EXPECT_EQ(*check.tolerance, 1e-6);
  EXPECT_EQ(check.seed, "11");
  EXPECT_NE(outcome.failure, "");
  EXPECT_TRUE(outcome.all<SampleRecord>().empty());
  EXPECT_TRUE(outcome.all<MetricRecord>().empty());
}

TEST(OperatorCase, AForgottenElementIsNotAPass) {
  Operation forgetful = doubling();
  forgetful.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    const float* x = in[0].as<float>();
    for (std::int64_t i = 0; i + 1 < kElements; ++i) data(out[0])[i] = 2 * x[i];
  };
  EXPECT_NE(run(forgetful).failure.find("1 of 256 elements were never written"), std::string::npos);
}

TEST(OperatorCase, AForgottenElementIsSeenWhereTheOracleDidNotLook) {
  Operation forgetful = doubling();
  forgetful.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    const float* x = in[0].as<float>();
    for (std::int64_t i = 0; i + 1 < kElements; ++i) data(out[0])[i] = 2 * x[i];
  };
  forgetful.expect = [whole = doubling().expect](const Inputs& in) {
    auto expected = whole(in);
    expected[0].value.back() = std::numeric_limits<double>::quiet_NaN();
    return expected;
  };
  EXPECT_NE(run(forgetful).failure.find("never written"), std::string::npos);
}

TEST(OperatorCase, ANanIsSeenWhereTheOracleDidNotLook) {
  Operation partly = doubling();
  partly.call = [right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    data(out[0])[kElements - 1] = std::numeric_limits<float>::quiet_NaN();
  };
  partly.expect = [whole = doubling().expect](const Inputs& in) {
    auto expected = whole(in);
    expected[0].value.back() = std::numeric_limits<double>::quiet_NaN();
    expected[0].fraction = 255.0 / 256.0;
    return expected;
  };
  const Outcome outcome = run(partly);
  EXPECT_NE(outcome.failure.find("NaN"), std::string::npos) << outcome.failure;
  EXPECT_EQ(outcome.check("reference:y").fraction_checked, 255.0 / 256.0);
}

TEST(OperatorCase, AWriteBeyondTheOutputFails) {
  Operation careless = doubling();
  careless.call = [right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    data(out[0])[kElements] = 0;  // inside the guard zone
  };
  EXPECT_NE(run(careless).failure.find("after the last element"), std::string::npos);
}

// Without this the oracle would be asked about the changed inputs and agree.
TEST(OperatorCase, AKernelThatChangesItsInputsFails) {
  Operation cheat = doubling();
  cheat.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    auto* x = const_cast<float*>(in[0].as<float>());
    for (std::int64_t i = 0; i < kElements; ++i) x[i] = data(out[0])[i] = 0;
  };
  EXPECT_NE(run(cheat).failure.find("changed its input 'x'"), std::string::npos);
}

TEST(OperatorCase, AKernelThatRepeatsItsFirstAnswerIsCaughtByATimedSample) {
  Operation lazy = doubling();
  auto answer = std::make_shared<std::vector<float>>();
  lazy.call = [answer, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    float* y = data(out[0]);
    if (answer->empty()) {
      right(in, out, stream);
      answer->assign(y, y + kElements);
    }
    std::copy(answer->begin(), answer->end(), y);
  };
  const Outcome outcome = run(lazy);
  EXPECT_NE(outcome.failure.find("a timed sample is wrong"), std::string::npos) << outcome.failure;
  EXPECT_EQ(outcome.check("reference:y").outcome, syslab::Outcome::passed);
  EXPECT_EQ(outcome.check("sample:y").outcome, syslab::Outcome::falsified);
  EXPECT_TRUE(outcome.all<SampleRecord>().empty());
}

// Doubling into bf16, with a bound so loose that only the comparison with the naive kernel can fail.
Operation half_doubling() {
  Operation half = doubling();
  half.outputs[0].dtype = DType::bf16;
  half.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    const float* x = in[0].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) out[0].as<bf16>()[i] = to_bf16(2 * x[i]);
  };
  half.expect = [exact = doubling().expect](const Inputs& in) {
    auto expected = exact(in);
    expected[0].tolerance = {1.0};
    return expected;
  };
  return half;
}

// The same, off by `error` in one element whose exact value is 0.
OperationCall off_by(float error) {
  return [error](const Inputs& in, const Outputs& out, device::Stream) {
    const float* x = in[0].as<float>();
    for (std::int64_t i = 1; i < kElements; ++i) out[0].as<bf16>()[i] = to_bf16(2 * x[i]);
    out[0].as<bf16>()[0] = to_bf16(error);
  };
}

// Its first element is 0, so that errors there are known; others are off by 2⁻⁵ at most, as bf16 numbers below 16 are.
Operation half_doubling_from_zero() {
  Operation half = half_doubling();
  half.prepare = [](std::vector<TensorView>& inputs, device::Stream) { data(inputs[0])[0] = 0; };
  half.call = off_by(0.25F);
  return half;
}

TEST(OperatorCase, HalfPrecisionMustStayWithinTwiceTheNaiveKernel) {
  Operation half = half_doubling_from_zero();
  half.naive = off_by(0.125F);
  const Outcome good = run(half);
  EXPECT_EQ(good.failure, "");
  EXPECT_EQ(good.check("naive:y").outcome, syslab::Outcome::passed);
  EXPECT_EQ(*good.check("naive:y").tolerance, 0.25);

  half.naive = off_by(0.0625F);
  const Outcome bad = run(half);
  EXPECT_EQ(bad.check("naive:y").outcome, syslab::Outcome::falsified);
  EXPECT_NE(bad.failure.find("naive"), std::string::npos);
}

TEST(OperatorCase, HalfPrecisionWithoutAYardstickIsNotCalledCompared) {
  const Outcome none = run(half_doubling());
  EXPECT_EQ(none.failure, "");
  EXPECT_EQ(none.check("naive:y").outcome, syslab::Outcome::not_run);
  EXPECT_NE(none.check("naive:y").message.find("no naive kernel in bf16"), std::string::npos);

  Operation overflown = half_doubling_from_zero();
  for (const float error : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    overflown.naive = off_by(error);
    const Outcome outcome = run(overflown);
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(outcome.check("naive:y").outcome, syslab::Outcome::not_run) << error;
    EXPECT_FALSE(outcome.check("naive:y").tolerance.has_value());
  }
  EXPECT_THROW(run(doubling()).check("naive:y"), std::runtime_error) << "fp32 is not asked";
}

TEST(OperatorCase, AllImplementationsMeetTheSameInputsAndAnotherSeedOthers) {
  const auto first_inputs = [](const CaseRequest& asked) {
    Operation watched = doubling();
    std::vector<double> seen;
    watched.call = [&seen, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
      if (seen.empty()) seen = to_doubles(in[0]);
      right(in, out, stream);
    };
    run(watched, asked);
    return seen;
  };
  CaseRequest theirs = request();
  theirs.implementation = "theirs";
  EXPECT_EQ(first_inputs(request()), first_inputs(theirs));
  EXPECT_NE(first_inputs(request()), first_inputs(request("normal", 12)));
}

TEST(OperatorCase, TimesZerosOnlyWhenAskedTo) {
  Operation watched = doubling();
  bool all_zero = true;
  watched.call = [&all_zero, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    for (const double value : to_doubles(in[0])) all_zero = all_zero && value == 0;
    right(in, out, stream);
  };
  EXPECT_EQ(run(watched, request("zeros")).facts().at("data"), "zeros");
  EXPECT_TRUE(all_zero);
  run(watched);
  EXPECT_FALSE(all_zero);
  EXPECT_THROW(run(watched, request("gauss")), Error);
}

TEST(OperatorCase, CountsScratchMemoryOfTheCall) {
  Operation hungry = doubling();
  hungry.call = [right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    const device::Buffer scratch(1 << 20, "scratch");
    right(in, out, stream);
  };
  EXPECT_EQ(*run(hungry).metric("peak_scratch_bytes").value, 1 << 20);
  EXPECT_EQ(*run(doubling()).metric("peak_scratch_bytes").value, 0);
}

TEST(OperatorCase, SeesMemoryThatNoLogKnows) {
  constexpr std::size_t kBytes = 64U << 20;
  Operation hungry = doubling();
  hungry.call = [right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    std::vector<char> hidden(kBytes, 1);
    right(in, out, stream);
  };
  const Outcome outcome = run(hungry);
  const MetricRecord& metric = outcome.metric("call_rss_bytes");
  if (!metric.value) {
    EXPECT_NE(metric.note, "") << "a missing number says why";
    return;
  }
  EXPECT_GE(*metric.value, 0.95 * kBytes);
  EXPECT_LE(*run(doubling()).metric("call_rss_bytes").value, 0.1 * kBytes);
}

TEST(OperatorCase, PreparesInputsAfterEveryFill) {
  Operation prepared = doubling();
  prepared.inputs.push_back({"negated", DType::f32, {kRows, kColumns}});
  prepared.prepare = [](std::vector<TensorView>& inputs, device::Stream) {
    for (std::int64_t i = 0; i < kElements; ++i) data(inputs[1])[i] = -data(inputs[0])[i];
  };
  prepared.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    const float* negated = in[1].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) data(out[0])[i] = -2 * negated[i];
  };
  EXPECT_EQ(run(prepared).failure, "");
}

TEST(OperatorCase, LeavesAloneWhatPrepareWrites) {
  Operation kept = doubling();
  kept.inputs.push_back({"kept", DType::f32, {1}});
  kept.prepared = {"kept"};
  int times = 0, filled = 0;
  std::set<const float*> prepared;  // of each set of inputs
  kept.prepare = [&](std::vector<TensorView>& inputs, device::Stream) {
    ++times;
    if (!prepared.insert(data(inputs[1])).second && data(inputs[1])[0] != 5) ++filled;
    data(inputs[1])[0] = 5;
  };
  EXPECT_EQ(run(kept).failure, "");
  EXPECT_GT(times, static_cast<int>(prepared.size()));
  EXPECT_EQ(filled, 0);
}

TEST(OperatorCase, CountsWhatACallHoldsAtMost) {
  Operation hungry = doubling();
  hungry.call = [right = hungry.call](const Inputs& in, const Outputs& out, device::Stream stream) {
    const device::Buffer scratch(1000, "scratch");
    right(in, out, stream);
  };
  EXPECT_DOUBLE_EQ(*run(hungry).metric("peak_bytes").value, 2.0 * 4 * kElements + 1000);
}

}  // namespace
}  // namespace syslab::worker
