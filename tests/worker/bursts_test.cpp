#include "worker/cases/bursts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/process/process.hpp"
#include "tests/expect_contains.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::worker {
namespace {

// A host's end and a worker's end of two pipes.
struct Line {
  FileDescriptor host_in, worker_out, worker_in, host_out;
  std::optional<FrameReader> from_host, from_worker;
  std::optional<PipeBurstLine> line;

  Line() {
    std::array<int, 2> up{}, down{};
    if (::pipe(up.data()) != 0 || ::pipe(down.data()) != 0) throw std::runtime_error("no pipe");
    host_in.reset(up[0]);
    worker_out.reset(up[1]);
    worker_in.reset(down[0]);
    host_out.reset(down[1]);
    from_host.emplace(worker_in.get());
    from_worker.emplace(host_in.get());
    line.emplace(*from_host, worker_out.get());
  }
  void order(const char* type) { write_frame(host_out.get(), {{"type", type}}); }
  Json heard() { return Json::parse(from_worker->read(std::chrono::milliseconds(1000)).text); }
};

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::comm);
    return error.what();
  }
  return "accepted";
}

TEST(Bursts, AnswerEachOrderUntilTheHostSaysFinish) {
  Line line;
  for (const char* type : {"burst", "burst", "finish"}) line.order(type);
  double next = 0.5;
  const auto taken = serve_bursts(*line.line, {12, 0.25}, [&] { return next *= 2; });
  EXPECT_EQ(taken, (std::vector<double>{1, 2}));
  EXPECT_EQ(line.heard(), (Json{{"type", "ready"}, {"calls_per_burst", 12}, {"seconds_per_call", 0.25}}));
  EXPECT_EQ(line.heard(), (Json{{"type", "burst"}, {"seconds_per_call", 1.0}}));
  EXPECT_EQ(line.heard(), (Json{{"type", "burst"}, {"seconds_per_call", 2.0}}));
}

TEST(Bursts, ACaseThatHasStartedSaysSoAndWaitsForItsTurn) {
  Line line;
  line.order("go");
  line.line->started();
  EXPECT_EQ(line.heard(), (Json{{"type", "started"}}));
  EXPECT_FALSE(line.line->was_ready());
  line.order("burst");
  expect_contains(failure([&] { line.line->started(); }), "a case that has started takes 'go', found 'burst'");
}

TEST(Bursts, AHostThatGoesAwayOrSaysSomethingElseEndsTheCase) {
  Line gone;
  gone.host_out.reset();
  EXPECT_NE(failure([&] { gone.line->ordered(); }).find("went away"), std::string::npos);
  Line other;
  other.order("bye");
  EXPECT_NE(failure([&] { other.line->ordered(); }).find("found 'bye'"), std::string::npos);
}

TEST(Bursts, NumbersThatMakeNoSenseAreNamed) {
  const Json zero{{"type", "burst"}, {"seconds_per_call", 0}};
  EXPECT_NE(failure([&] { burst_from_json(zero); }).find("'seconds_per_call'"), std::string::npos);
  const Json nan{{"type", "burst"}, {"seconds_per_call", "NaN"}};
  EXPECT_NE(failure([&] { burst_from_json(nan); }).find("'seconds_per_call'"), std::string::npos);
  const Json none{{"type", "ready"}, {"calls_per_burst", 0}, {"seconds_per_call", 1}};
  EXPECT_NE(failure([&] { ready_from_json(none); }).find("'calls_per_burst'"), std::string::npos);
  const Ready ready = ready_from_json(to_json(Ready{3, 0.5}));
  EXPECT_EQ(ready.calls_per_burst, 3);
  EXPECT_EQ(ready.seconds_per_call, 0.5);
}

TEST(Bursts, ACaseOfTaskPairedArrivesWithItsBurst) {
  CaseRequest request;
  request.experiment = "doubling";
  request.task = Task::paired;
  request.burst = std::chrono::milliseconds(5);
  const CaseRequest back = case_request_from_json(to_json(request));
  EXPECT_EQ(back.task, Task::paired);
  EXPECT_EQ(back.burst, std::chrono::milliseconds(5));
}

// --- an operator's case on such a line ---

struct Ordered final : BurstLine {
  int orders = 0;
  std::optional<Ready> ready;
  std::vector<double> bursts;
  std::function<void()> at_order;

  void started() override {}
  void say(const Ready& said) override { ready = said; }
  void say(const Burst& burst) override { bursts.push_back(burst.seconds_per_call); }
  bool ordered() override {
    if (at_order) at_order();
    return static_cast<int>(bursts.size()) < orders;
  }
};

Operation doubling(int& calls) {
  Operation made;
  made.inputs = {{"x", DType::f32, {64}}};
  made.outputs = {{"y", DType::f32, {64}}};
  made.call = [&calls](const Inputs& in, const Outputs& out, device::Stream) {
    ++calls;
    for (int i = 0; i < 64; ++i) out[0].as<float>()[i] = 2 * in[0].as<float>()[i];
  };
  made.expect = [](const Inputs& in) {
    Expected y;
    y.value = to_doubles(in[0]);
    for (double& value : y.value) value *= 2;
    y.tolerance = {1e-6};
    return std::vector{y};
  };
  return made;
}

CaseRequest paired() {
  CaseRequest request;
  request.experiment = "doubling";
  request.implementation = "ours";
  request.case_uid = "case";
  request.seed = 11;
  request.protocol = "quick";
  request.task = Task::paired;
  request.burst = std::chrono::milliseconds(2);
  return request;
}

TEST(Bursts, AnOperatorIsCheckedThenTimedInAsManyBurstsAsOrdered) {
  int calls = 0;
  std::vector<Record> records;
  Ordered line;
  line.orders = 7;
  std::vector<int> calls_at_order;
  line.at_order = [&] { calls_at_order.push_back(calls); };
  CaseContext context(
      paired(), [&](const Record& record) { records.push_back(record); }, &line);
  run_operator_case(context, doubling(calls));

  ASSERT_TRUE(line.ready.has_value());
  EXPECT_EQ(line.bursts.size(), 7U);
  for (std::size_t i = 1; i < calls_at_order.size(); ++i) {
    EXPECT_EQ(calls_at_order[i] - calls_at_order[i - 1], line.ready->calls_per_burst) << "burst " << i;
  }
  std::vector<double> series;
  std::vector<std::string> checks;
  bool has_time = false;
  for (const Record& record : records) {
    if (const auto* sample = std::get_if<SampleRecord>(&record)) series = sample->values;
    if (const auto* check = std::get_if<CheckRecord>(&record))
      checks.push_back(check->name + " " + std::string(to_string(check->outcome)));
    if (const auto* metric = std::get_if<MetricRecord>(&record)) has_time = has_time || metric->name == "time";
  }
  EXPECT_EQ(series, line.bursts);
  EXPECT_EQ(checks, (std::vector<std::string>{"reference:y passed", "samples:y passed"}));
  EXPECT_TRUE(has_time);
}

TEST(Bursts, AnOperatorThatIsWrongNeverSaysReady) {
  int calls = 0;
  Operation wrong = doubling(calls);
  wrong.call = [right = wrong.call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    out[0].as<float>()[3] += 1;
  };
  Ordered line;
  CaseContext context(
      paired(), [](const Record&) {}, &line);
  EXPECT_THROW(run_operator_case(context, wrong), CheckFailed);
  EXPECT_FALSE(line.ready.has_value());
}

TEST(Bursts, AnOperatorThatTurnsWrongInItsFirstBurstIsFound) {
  int calls = 0;
  bool turned = false;
  Operation turning = doubling(calls);
  turning.call = [right = turning.call, &turned](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    if (turned) out[0].as<float>()[3] += 1;
  };
  Ordered line;
  line.orders = 1;
  line.at_order = [&] { turned = true; };
  CaseContext context(
      paired(), [](const Record&) {}, &line);
  EXPECT_THROW(run_operator_case(context, turning), CheckFailed);
  EXPECT_TRUE(line.bursts.empty());
}

TEST(Bursts, AForeignClockIsTheOneThatCounts) {
  int calls = 0;
  Operation foreign = doubling(calls);
  foreign.self_time = [] { return Nanoseconds(std::chrono::microseconds(500)); };
  Ordered line;
  line.orders = 2;
  CaseContext context(
      paired(), [](const Record&) {}, &line);
  run_operator_case(context, foreign);
  EXPECT_EQ(line.ready->calls_per_burst, 4);
  EXPECT_EQ(line.bursts, (std::vector<double>{0.0005, 0.0005}));
}

}  // namespace
}  // namespace syslab::worker
