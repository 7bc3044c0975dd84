#include "worker/operator_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "device/buffer.hpp"
#include "device/launch.hpp"
#include "worker/bursts.hpp"
#include "worker/input_sets.hpp"

namespace syslab::worker {
namespace {

constexpr std::int64_t kRows = 8, kColumns = 32;
constexpr std::int64_t kElements = kRows * kColumns;

float* data(const TensorView& view) { return view.as<float>(); }

// y = 2x, with a bound of one rounding (which an exact doubling never uses up).
OperatorCase doubling() {
  OperatorCase made;
  made.inputs = {{.tensor = {"x", DType::f32, {kRows, kColumns}}}};
  made.outputs = {{.tensor = {"y", DType::f32, {kRows, kColumns}}}};
  made.call = [](const Tensors& tensors) {
    const float* x = tensors.inputs[0].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) data(tensors.outputs[0])[i] = 2 * x[i];
  };
  made.expect = [](const Tensors& tensors) {
    Expectation y;
    y.value = to_doubles(tensors.inputs[0]);
    for (double& value : y.value) value *= 2;
    y.tolerance = {1e-6};
    return std::vector<Expectation>{y};
  };
  made.flops = static_cast<double>(kElements);
  made.bytes = 8.0 * kElements;
  return made;
}

// What a case left behind.
struct Outcome {
  std::vector<Record> records;
  std::string failure;  // of CheckFailed

  template <typename T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Record& record : records) {
      if (const T* held = std::get_if<T>(&record)) found.push_back(*held);
    }
    return found;
  }
  const MetricRecord& metric(const std::string& name) const {
    for (const Record& record : records) {
      const auto* held = std::get_if<MetricRecord>(&record);
      if (held != nullptr && held->name == name) return *held;
    }
    throw std::runtime_error("no metric " + name);
  }
  const CheckRecord& check(const std::string& name) const {
    for (const Record& record : records) {
      const auto* held = std::get_if<CheckRecord>(&record);
      if (held != nullptr && held->name == name) return *held;
    }
    throw std::runtime_error("no check " + name);
  }
  Json facts() const { return Json::parse(all<FactRecord>().at(0).json); }
};

CaseRequest request(const std::string& data = "normal", std::uint64_t seed = 11) {
  CaseRequest made;
  made.experiment = "doubling";
  made.implementation = "ours";
  made.case_uid = "case";
  made.seed = seed;
  made.protocol = "quick";
  made.data = data;
  return made;
}

Outcome run(const OperatorCase& operator_case, const CaseRequest& asked = request()) {
  Outcome outcome;
  CaseContext context(asked, [&outcome](const Record& record) { outcome.records.push_back(record); });
  try {
    run_operator_case(context, operator_case);
  } catch (const CheckFailed& failed) {
    outcome.failure = failed.what();
  }
  return outcome;
}

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

TEST(OperatorCase, HalfPrecisionMustStayWithinTwiceTheNaiveKernel) {
  OperatorCase half = doubling();
  half.outputs[0].tensor.dtype = DType::bf16;
  half.call = [](const Tensors& tensors) {
    const float* x = tensors.inputs[0].as<float>();
    for (std::int64_t i = 0; i < kElements; ++i) tensors.outputs[0].as<bf16>()[i] = to_bf16(2 * x[i]);
  };
  half.expect = [exact = doubling().expect](const Tensors& tensors) {
    auto expected = exact(tensors);
    expected[0].tolerance = {1.0};  // as loose as a bound can be: only the comparison with naive can fail
    return expected;
  };
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

TEST(OperatorCase, BelievesAnotherProcessAboutItsTime) {
  OperatorCase foreign = doubling();
  foreign.self_time = [] { return Nanoseconds(std::chrono::milliseconds(2)); };
  EXPECT_DOUBLE_EQ(*run(foreign).metric("time").value, 2e-3);
}

TEST(OperatorCase, ASlowOracleCostsNoSamples) {
  OperatorCase slow = doubling();
  slow.expect = [exact = doubling().expect](const Tensors& tensors) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // more than the whole budget of `quick`
    return exact(tensors);
  };
  const Outcome outcome = run(slow);
  EXPECT_EQ(outcome.facts().at("verified"), 1);
  EXPECT_GE(*outcome.metric("time").n, 8);
}

TEST(OperatorCase, FewSamplesHaveNoInterval) {
  OperatorCase slow = doubling();
  slow.self_time = [] { return Nanoseconds(std::chrono::milliseconds(80)); };  // budget of `quick`: 120 ms
  const MetricRecord time = run(slow).metric("time");
  EXPECT_EQ(*time.n, 2);
  EXPECT_FALSE(time.low.has_value());
  EXPECT_NE(time.note, "");
}

TEST(OperatorCase, Cs336QuotesMeanAndDeviationOfTenSteps) {
  CaseRequest asked = request();
  asked.protocol = "cs336";
  const Outcome outcome = run(doubling(), asked);
  EXPECT_EQ(outcome.facts().at("stop"), "count");
  EXPECT_EQ(outcome.facts().at("protocol").at("headline").at(0), "time_mean");
  const MetricRecord& mean = outcome.metric("time_mean");
  EXPECT_EQ(mean.n, 10);
  EXPECT_LT(*mean.low, *mean.value);
  EXPECT_GT(*mean.high, *mean.value);
  EXPECT_GE(*outcome.metric("time_stddev").value, 0);
}

// Ten samples of the same two values, in turns or one after the other: the second kind knows its mean far less well.
TEST(OperatorCase, TheMeansIntervalKnowsOfSamplesThatHangTogether) {
  const auto width = [](bool in_turns) {
    OperatorCase timed = doubling();
    int calls = -5;  // of warm-up
    timed.self_time = [&calls, in_turns] {
      const int sample = calls++;
      return Nanoseconds((in_turns ? sample % 2 != 0 : sample >= 5) ? 2'000'000 : 1'000'000);
    };
    CaseRequest asked = request();
    asked.protocol = "cs336";
    const MetricRecord mean = run(timed, asked).metric("time_mean");
    EXPECT_DOUBLE_EQ(*mean.value, 1.5e-3);
    return *mean.high - *mean.low;
  };
  EXPECT_GT(width(false), 3 * width(true));
}

TEST(OperatorCase, DoBenchStoresMeanAndMedian) {
  OperatorCase steady = doubling();
  int calls = 0;
  steady.self_time = [&calls] { return Nanoseconds(++calls % 4 == 0 ? 2'000'000 : 1'000'000); };
  CaseRequest asked = request();
  asked.protocol = "do_bench";
  const Outcome outcome = run(steady, asked);
  EXPECT_EQ(outcome.facts().at("flush_bytes"), 256'000'000);
  EXPECT_EQ(outcome.facts().at("cache_by"), "flush");
  EXPECT_TRUE(outcome.metric("time").value.has_value());
  EXPECT_TRUE(outcome.metric("time_mean").value.has_value());
}

TEST(OperatorCase, AGraphOnTheCpuIsUnsupportedBeforeAnythingIsCalled) {
  OperatorCase watched = doubling();
  watched.call = [](const Tensors&) { FAIL() << "called"; };
  CaseRequest asked = request();
  asked.protocol = "graph";
  EXPECT_THROW(run(watched, asked), Unsupported);
}

TEST(OperatorCase, LabelsNoiseAndWhoeverElseWasThere) {
  const Json facts = run(doubling()).facts();
  ASSERT_TRUE(facts.at("noise").is_array());
  EXPECT_TRUE(facts.contains("load_average"));
  OperatorCase slow = doubling();
  slow.self_time = [] { return Nanoseconds(std::chrono::milliseconds(80)); };
  const Json labels = run(slow).facts().at("noise");
  EXPECT_NE(std::find(labels.begin(), labels.end(), "few_samples"), labels.end()) << labels.dump();
}

// The host's side of a paired launch, as a test.
class ThreeOrders final : public BurstLine {
 public:
  void say(const Ready& ready) override { told = ready; }
  void say(const Burst& burst) override { bursts.push_back(burst.seconds_per_call); }
  bool ordered() override { return bursts.size() < 3; }
  Ready told;
  std::vector<double> bursts;
};

TEST(OperatorCase, IsTimedInBurstsWhenTheHostOrdersThem) {
  OperatorCase steady = doubling();
  steady.self_time = [] { return Nanoseconds(std::chrono::milliseconds(2)); };
  CaseRequest asked = request();
  asked.task = "paired";
  asked.burst = std::chrono::milliseconds(10);
  ThreeOrders host;
  Outcome outcome;
  CaseContext context(
      asked, [&outcome](const Record& record) { outcome.records.push_back(record); }, &host);
  run_operator_case(context, steady);
  EXPECT_EQ(host.told.calls_per_burst, 5);
  EXPECT_DOUBLE_EQ(host.told.seconds_per_call, 2e-3);
  EXPECT_EQ(host.bursts, std::vector<double>(3, 2e-3));
  EXPECT_EQ(outcome.check("reference:y").outcome, "passed");
  EXPECT_GE(outcome.check("samples:y").cases_run, 1);
  EXPECT_EQ(outcome.all<SampleRecord>().at(0).values, host.bursts);
  EXPECT_EQ(outcome.facts().at("bursts"), 3);
}

TEST(OperatorCase, AWrongImplementationIsNeverReadyForBursts) {
  OperatorCase wrong = doubling();
  wrong.call = [](const Tensors& tensors) { std::fill_n(data(tensors.outputs[0]), kElements, 0.0F); };
  CaseRequest asked = request();
  asked.task = "paired";
  ThreeOrders host;
  CaseContext context(
      asked, [](const Record&) {}, &host);
  EXPECT_THROW(run_operator_case(context, wrong), CheckFailed);
  EXPECT_EQ(host.told.seconds_per_call, 0);
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

}  // namespace
}  // namespace syslab::worker
