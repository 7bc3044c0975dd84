#include "worker/operator_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/buffer.hpp"
#include "device/launch.hpp"
#include "tests/worker/operator_case_fixture.hpp"
#include "worker/input_sets.hpp"

namespace syslab::worker {
namespace {

TEST(OperatorCase, ChecksThenMeasures) {
  const Outcome outcome = run(doubling());
  EXPECT_EQ(outcome.failure, "");
  EXPECT_EQ(outcome.check("reference:y").outcome, "passed");
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
  asked.device = "cuda";
  EXPECT_THROW(run(doubling(), asked), Unsupported);
  OperatorCase there = doubling();
  there.device = device::Kind::cuda;
  EXPECT_THROW(run(there), Unsupported);
}

TEST(OperatorCase, OnAGpuThatIsNotThereSaysWhyThereIsNone) {
  if (device::gpu_count() > 0) return;  // nothing to say there
  CaseRequest asked = request();
  asked.device = "cuda";
  OperatorCase there = doubling();
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
  EXPECT_EQ(facts.at("input_sets"), 1);
  EXPECT_GT(facts.at("calls_per_sample"), 1);  // 256 elements take far less than 200 µs
  EXPECT_GE(facts.at("verified"), 1);
  for (const char* name : {"stop", "precision", "warmup_calls", "threads", "blas", "data"}) {
    EXPECT_TRUE(facts.contains(name)) << name;
  }
}

TEST(OperatorCase, AWrongElementIsNamedAndNothingIsTimed) {
  OperatorCase wrong = doubling();
  wrong.call = [right = doubling().call](const Tensors& tensors) {
    right(tensors);
    data(tensors.outputs[0])[3 * kColumns + 7] += 1;
  };
  const Outcome outcome = run(wrong);
  const CheckRecord& check = outcome.check("reference:y");
  EXPECT_EQ(check.outcome, "falsified");
  EXPECT_NE(check.message.find("y[3, 7]"), std::string::npos) << check.message;
  EXPECT_NEAR(*check.worst_error, 1.0, 1e-6);
  EXPECT_EQ(*check.tolerance, 1e-6);
  EXPECT_EQ(check.seed, "11");
  EXPECT_NE(outcome.failure, "");
  EXPECT_TRUE(outcome.all<SampleRecord>().empty());
  EXPECT_TRUE(outcome.all<MetricRecord>().empty());
}

TEST(OperatorCase, AForgottenElementIsNotAPass) {
  OperatorCase forgetful = doubling();
  forgetful.call = [](const Tensors& tensors) {
    const float* x = tensors.inputs[0].as<float>();
    for (std::int64_t i = 0; i + 1 < kElements; ++i) data(tensors.outputs[0])[i] = 2 * x[i];
  };
  EXPECT_NE(run(forgetful).failure.find("1 of 256 elements were never written"), std::string::npos);
}

TEST(OperatorCase, AForgottenElementIsSeenWhereTheOracleDidNotLook) {
  OperatorCase forgetful = doubling();
  forgetful.call = [](const Tensors& tensors) {
    const float* x = tensors.inputs[0].as<float>();
    for (std::int64_t i = 0; i + 1 < kElements; ++i) data(tensors.outputs[0])[i] = 2 * x[i];
  };
  forgetful.expect = [whole = doubling().expect](const Tensors& tensors) {
    auto expected = whole(tensors);
    expected[0].value.back() = std::numeric_limits<double>::quiet_NaN();
    return expected;
  };
  EXPECT_NE(run(forgetful).failure.find("never written"), std::string::npos);
}

TEST(OperatorCase, ANanIsSeenWhereTheOracleDidNotLook) {
  OperatorCase partly = doubling();
  partly.call = [right = doubling().call](const Tensors& tensors) {
    right(tensors);
    data(tensors.outputs[0])[kElements - 1] = std::numeric_limits<float>::quiet_NaN();
  };
  partly.expect = [whole = doubling().expect](const Tensors& tensors) {
    auto expected = whole(tensors);
    expected[0].value.back() = std::numeric_limits<double>::quiet_NaN();
    expected[0].fraction = 255.0 / 256.0;
    return expected;
  };
  const Outcome outcome = run(partly);
  EXPECT_NE(outcome.failure.find("NaN"), std::string::npos) << outcome.failure;
  EXPECT_EQ(outcome.check("reference:y").fraction_checked, 255.0 / 256.0);
}

TEST(OperatorCase, AWriteBeyondTheOutputFails) {
  OperatorCase careless = doubling();
  careless.call = [right = doubling().call](const Tensors& tensors) {
    right(tensors);
    data(tensors.outputs[0])[kElements] = 0;  // inside the guard zone
  };
  EXPECT_NE(run(careless).failure.find("after the last element"), std::string::npos);
}

// Without this the oracle would be asked about the changed inputs and agree.
TEST(OperatorCase, AKernelThatChangesItsInputsFails) {
  OperatorCase cheat = doubling();
  cheat.call = [](const Tensors& tensors) {
    auto* x = const_cast<float*>(tensors.inputs[0].as<float>());
    for (std::int64_t i = 0; i < kElements; ++i) x[i] = data(tensors.outputs[0])[i] = 0;
  };
  EXPECT_NE(run(cheat).failure.find("changed its input 'x'"), std::string::npos);
}

TEST(OperatorCase, AKernelThatRepeatsItsFirstAnswerIsCaughtByATimedSample) {
  OperatorCase lazy = doubling();
  auto answer = std::make_shared<std::vector<float>>();
  lazy.call = [answer, right = doubling().call](const Tensors& tensors) {
    float* y = data(tensors.outputs[0]);
    if (answer->empty()) {
      right(tensors);
      answer->assign(y, y + kElements);
    }
    std::copy(answer->begin(), answer->end(), y);
  };
  const Outcome outcome = run(lazy);
  EXPECT_NE(outcome.failure.find("a timed sample is wrong"), std::string::npos) << outcome.failure;
  EXPECT_EQ(outcome.check("reference:y").outcome, "passed");
  EXPECT_EQ(outcome.check("sample:y").outcome, "falsified");
  EXPECT_TRUE(outcome.all<SampleRecord>().empty());
}

// Doubling into bf16, with a bound so loose that only the comparison with the naive kernel can fail.
OperatorCase half_doubling() {
  OperatorCase half = doubling();
  half.outputs[0].tensor.dtype = DType::bf16;
  half.call = [](const Tensors& tensors) {
    const float* x = tensors.inputs[0].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) tensors.outputs[0].as<bf16>()[i] = to_bf16(2 * x[i]);
  };
  half.expect = [exact = doubling().expect](const Tensors& tensors) {
    auto expected = exact(tensors);
    expected[0].tolerance = {1.0};
    return expected;
  };
  return half;
}

TEST(OperatorCase, HalfPrecisionMustStayWithinTwiceTheNaiveKernel) {
  OperatorCase half = half_doubling();
  half.naive_error = [](const Tensors&, const std::vector<Expectation>&) { return std::vector<double>{0.02}; };
  const Outcome good = run(half);
  EXPECT_EQ(good.failure, "");
  EXPECT_EQ(good.check("naive:y").outcome, "passed");
  EXPECT_EQ(*good.check("naive:y").tolerance, 0.04);

  half.naive_error = [](const Tensors&, const std::vector<Expectation>&) { return std::vector<double>{1e-4}; };
  const Outcome bad = run(half);
  EXPECT_EQ(bad.check("naive:y").outcome, "falsified");
  EXPECT_NE(bad.failure.find("naive"), std::string::npos);
}

TEST(OperatorCase, HalfPrecisionWithoutAYardstickIsNotCalledCompared) {
  const Outcome none = run(half_doubling());
  EXPECT_EQ(none.failure, "");
  EXPECT_EQ(none.check("naive:y").outcome, "not_run");
  EXPECT_NE(none.check("naive:y").message.find("no naive kernel in bf16"), std::string::npos);

  OperatorCase overflown = half_doubling();
  for (const double error : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    overflown.naive_error = [error](const Tensors&, const std::vector<Expectation>&) { return std::vector{error}; };
    const Outcome outcome = run(overflown);
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(outcome.check("naive:y").outcome, "not_run") << error;
    EXPECT_FALSE(outcome.check("naive:y").tolerance.has_value());
  }
  EXPECT_THROW(run(doubling()).check("naive:y"), std::runtime_error) << "fp32 is not asked";
}

TEST(OperatorCase, AllImplementationsMeetTheSameInputsAndAnotherSeedOthers) {
  const auto first_inputs = [](const CaseRequest& asked) {
    OperatorCase watched = doubling();
    std::vector<double> seen;
    watched.call = [&seen, right = doubling().call](const Tensors& tensors) {
      if (seen.empty()) seen = to_doubles(tensors.inputs[0]);
      right(tensors);
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
  OperatorCase watched = doubling();
  bool all_zero = true;
  watched.call = [&all_zero, right = doubling().call](const Tensors& tensors) {
    for (const double value : to_doubles(tensors.inputs[0])) all_zero = all_zero && value == 0;
    right(tensors);
  };
  EXPECT_EQ(run(watched, request("zeros")).facts().at("data"), "zeros");
  EXPECT_TRUE(all_zero);
  run(watched);
  EXPECT_FALSE(all_zero);
  EXPECT_THROW(run(watched, request("gauss")), Error);
}

TEST(OperatorCase, CountsScratchMemoryOfTheCall) {
  OperatorCase hungry = doubling();
  hungry.call = [right = doubling().call](const Tensors& tensors) {
    const device::Buffer scratch(1 << 20, "scratch");
    right(tensors);
  };
  EXPECT_EQ(*run(hungry).metric("peak_scratch_bytes").value, 1 << 20);
  EXPECT_EQ(*run(doubling()).metric("peak_scratch_bytes").value, 0);
}

TEST(OperatorCase, SeesMemoryThatNoLogKnows) {
  constexpr std::size_t kBytes = 64U << 20;
  OperatorCase hungry = doubling();
  hungry.call = [right = doubling().call](const Tensors& tensors) {
    std::vector<char> hidden(kBytes, 1);
    right(tensors);
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
  OperatorCase prepared = doubling();
  prepared.inputs.push_back({.tensor = {"negated", DType::f32, {kRows, kColumns}}});
  prepared.prepare = [](std::vector<TensorView>& inputs, device::Stream) {
    for (std::int64_t i = 0; i < kElements; ++i) data(inputs[1])[i] = -data(inputs[0])[i];
  };
  prepared.call = [](const Tensors& tensors) {
    const float* negated = tensors.inputs[1].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) data(tensors.outputs[0])[i] = -2 * negated[i];
  };
  EXPECT_EQ(run(prepared).failure, "");
}

TEST(OperatorCase, LeavesAloneWhatPrepareWrites) {
  OperatorCase kept = doubling();
  kept.inputs.push_back({.tensor = {"kept", DType::f32, {1}}, .prepared = true});
  int times = 0, filled = 0;
  kept.prepare = [&](std::vector<TensorView>& inputs, device::Stream) {
    if (times++ > 0 && data(inputs[1])[0] != 5) ++filled;
    data(inputs[1])[0] = 5;
  };
  EXPECT_EQ(run(kept).failure, "");
  EXPECT_GT(times, 1);
  EXPECT_EQ(filled, 0);
}

TEST(OperatorCase, CountsWhatACallHoldsAtMost) {
  OperatorCase hungry = doubling();
  hungry.call = [right = hungry.call](const Tensors& tensors) {
    const device::Buffer scratch(1000, "scratch");
    right(tensors);
  };
  EXPECT_DOUBLE_EQ(*run(hungry).metric("peak_bytes").value, 2.0 * 4 * kElements + 1000);
}

TEST(InputSets, HoldDifferentContentThatChangesWithEveryRefresh) {
  const OperatorCase operator_case = doubling();
  CaseContext context(request(), [](const Record&) {});
  InputSets sets(context, operator_case);
  sets.grow(3);
  ASSERT_EQ(sets.count(), 3);
  EXPECT_EQ(sets.bytes_per_set(), 2U * kElements * 4);
  const auto first = to_doubles(sets.tensors(0).inputs[0]);
  EXPECT_NE(first, to_doubles(sets.tensors(1).inputs[0]));
  sets.refresh(0);
  const auto second = to_doubles(sets.tensors(0).inputs[0]);
  EXPECT_NE(first, second);

  InputSets again(context, operator_case);
  EXPECT_EQ(first, to_doubles(again.tensors(0).inputs[0]));
  again.refresh(0);
  EXPECT_EQ(second, to_doubles(again.tensors(0).inputs[0]));
}

TEST(InputSets, OfALargeInputStripesAreNewEachTimeAndElsewhere) {
  constexpr std::int64_t kMany = 5 << 20;  // 20 MiB
  OperatorCase large = doubling();
  large.inputs[0].tensor.shape = Shape{kMany};
  CaseContext context(request(), [](const Record&) {});
  InputSets sets(context, large);
  const auto content = [&] {
    const float* x = sets.tensors(0).inputs[0].as<float>();
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
