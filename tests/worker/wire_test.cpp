#include "worker/wire/wire.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "worker/judged/call.hpp"
#include "worker/wire/metric_range.hpp"

namespace syslab::worker {
namespace {

// Through text, as on the wire.
template <typename T>
T round_trip(const T& record) {
  return std::get<T>(record_from_json(Json::parse(to_json(Record(record)).dump())));
}

std::string failure(const std::string& text) {
  try {
    record_from_json(Json::parse(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::comm);
    return error.what();
  }
  return "accepted";
}

TEST(Wire, EveryStatusHasAWordThatIsReadBack) {
  for (const Status status : {Status::ok, Status::check_failed, Status::unsupported, Status::skipped, Status::oom,
                              Status::timeout, Status::crashed, Status::error, Status::aborted}) {
    EXPECT_EQ(parse_status(to_string(status)), status);
  }
  EXPECT_THROW(parse_status("fine"), Error);
}

TEST(Wire, ACallOnAGpuSaysWhereAndWhen) {
  CallRequest request;
  request.function = "f";
  EXPECT_FALSE(to_json(request).contains("gpu_memory"));
  request.gpu_memory = "gpu:00";
  request.step = 7;
  const CallRequest back = call_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_EQ(back.gpu_memory, "gpu:00");
  EXPECT_EQ(back.step, 7U);
}

TEST(Wire, ACallSaysWhatIsLentAndWhetherAGraphIsWanted) {
  CallRequest request;
  request.function = "f";
  request.outputs = {{.name = "y", .shape = {3}, .strides = {1}},
                     {.name = "room", .shape = {9}, .strides = {1}, .lent = true}};
  CallRequest back = call_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_FALSE(back.graph);
  EXPECT_FALSE(back.outputs[0].lent);
  EXPECT_TRUE(back.outputs[1].lent);
  request.graph = true;
  back = call_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_TRUE(back.graph);
}

TEST(Wire, AReturnMayTellOfItsGpu) {
  const auto reply = [](const char* more) {
    return std::get<Returned>(
        call_reply_from_json(Json::parse(std::string(R"({"type": "returned", "elapsed_ns": 7)") + more + "}")));
  };
  EXPECT_EQ(reply("").elapsed, Nanoseconds(7));
  EXPECT_FALSE(reply("").clock_hz.has_value());
  EXPECT_EQ(reply(R"(, "clock_hz": 1.5e9, "flags": 2)").clock_hz, 1.5e9);
  EXPECT_EQ(reply(R"(, "clock_hz": 1.5e9, "flags": 2)").flags, 2);
  EXPECT_THROW(reply(R"(, "clock_hz": -1)"), Error);
  EXPECT_THROW(reply(R"(, "clock_hz": 1e300)"), Error);
}

TEST(Wire, OutputsOfAQueuedCallHaveTheirPlaces) {
  const auto reply = call_reply_from_json(
      Json::parse(R"({"type": "queued", "outputs": [{"handle": "gpu:0a", "offset": 512}, null]})"));
  const auto& queued = std::get<Queued>(reply);
  ASSERT_EQ(queued.outputs.size(), 2U);
  EXPECT_EQ(queued.outputs[0].handle, "gpu:0a");
  EXPECT_EQ(queued.outputs[0].offset, 512U);
  EXPECT_TRUE(queued.outputs[1].handle.empty());
  EXPECT_THROW(call_reply_from_json(Json::parse(R"({"type": "queued", "outputs": [{"offset": 1}]})")), Error);
}

// A judged process may claim what its Python lacks; what a process of ours finds out it cannot say.
TEST(Wire, TakesAClaimOfWhatIsLackingAndNoMore) {
  const auto lacks = [](const std::string& kind, const std::string& claim) {
    const std::string text = R"({"type": "failed", "message": "", "kind": ")" + kind + R"(", "lacks": )" + claim + "}";
    return std::get<Failed>(call_reply_from_json(Json::parse(text))).lacks;
  };
  const std::string hook =
      R"({"kind": "attribute", "of": "torch.nn.Module", "name": "hook", "torch": "1", "declared": true})";
  EXPECT_EQ(lacks("exception", hook), (Lack{.kind = LackKind::attribute, .of = "torch.nn.Module", .name = "hook"}));
  EXPECT_FALSE(lacks("exception", hook)->is_established());
  EXPECT_FALSE(lacks("unsupported", hook));
  for (const char* none : {"7", "null", R"({"kind": "attribute", "of": "", "name": "hook"})", R"({"kind": "charm"})",
                           R"({"kind": "module", "of": "", "name": "a b"})"}) {
    EXPECT_FALSE(lacks("exception", none)) << none;
  }
}

TEST(Wire, ACaseArrivesAsItWasAsked) {
  CaseRequest request;
  request.experiment = "flash_forward";
  request.params = {{"causal", true}, {"dtype", std::string("bf16")}, {"scale", 0.5}, {"seq", std::int64_t{1024}}};
  request.implementation = "me";
  request.mine = submitted_of("me", "/home/me/flash.py", "Flash", {"/home/me/plain.py:flash", "/home/me/in.py:cases"});
  request.mine->digest = "abc";
  request.seed = 0xffffffffffffffffU;
  request.case_uid = "c0ffee";
  request.world_size = 4;
  request.rank = 3;
  request.device = DeviceKind::cuda;
  request.device_index = 3;
  request.rendezvous = "file:/tmp/somewhere";
  request.task = Task::law;
  request.law = "attention.causal_prefix";
  request.reproduce = "BcAFAgAJ";
  request.protocol = "quick";
  request.data = "ramp";
  request.law_cases = 7;
  request.own_ranks = 2;
  request.memory_limit_bytes = std::uint64_t{1} << 40;
  const CaseRequest back = case_request_from_json(Json::parse(to_json(request).dump()));
  EXPECT_EQ(to_json(back), to_json(request));
  EXPECT_EQ(back.params, request.params);
  EXPECT_EQ(back.seed, request.seed);
  EXPECT_EQ(back.mine->inside(), "Flash");
  EXPECT_EQ(back.mine->comparison()->reference, "/home/me/plain.py:flash");
  EXPECT_EQ(back.mine->comparison()->inputs, "/home/me/in.py:cases");
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.device_index, 3);
  EXPECT_EQ(back.rendezvous, "file:/tmp/somewhere");
}

TEST(Wire, ARankIsBelowTheNumberOfRanks) {
  const auto asked = [](const char* ranks) {
    return std::string(R"({"type":"case","experiment":"e","params":{},"implementation":"x","seed":"1")") + ranks + "}";
  };
  EXPECT_EQ(case_request_from_json(Json::parse(asked(""))).world_size, 1);
  EXPECT_EQ(case_request_from_json(Json::parse(asked(R"(,"world_size":2,"rank":1)"))).rank, 1);
  for (const char* ranks : {R"(,"rank":1)", R"(,"world_size":2,"rank":2)", R"(,"world_size":0,"rank":1)"}) {
    EXPECT_THROW(case_request_from_json(Json::parse(asked(ranks))), Error) << ranks;
  }
}

TEST(Wire, AnEndSaysWhoseFaultItIsOnlyWhereThatIsKnown) {
  EXPECT_EQ(round_trip(EndRecord{Status::error, "it", Fault::late}).fault, Fault::late);
  EXPECT_FALSE(round_trip(EndRecord{Status::error, "it"}).fault);
  EXPECT_FALSE(to_json(Record(EndRecord{Status::ok, ""})).contains("fault"));
  for (int code = 70; code <= 76; ++code) {
    const std::optional<Fault> fault = fault_of_exit_code(code);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault_of_word(to_string(*fault)), fault);
  }
  EXPECT_FALSE(fault_of_exit_code(69));
}

TEST(Wire, NoWorkerSpeaksForAllRanks) {
  EXPECT_NE(failure(R"({"type": "metric", "name": "time", "unit": "s", "value": 1.0, "rank": -1})"), "accepted");
}

TEST(Wire, ACaseWithoutAnExperimentIsNamedAsSuch) {
  try {
    case_request_from_json(Json::parse(R"({"type":"case","params":{},"implementation":"x","seed":"1"})"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "message 'case': field 'experiment' is missing (wanted a text)");
  }
}

TEST(Wire, MetricsKeepWhatTheySayAndNothingElse) {
  MetricRecord metric;
  metric.name = "time";
  metric.unit = "s";
  metric.value = 0.25;
  metric.low = 0.125;
  metric.n = 20;
  const MetricRecord back = round_trip(metric);
  EXPECT_EQ(back.value, 0.25);
  EXPECT_EQ(back.low, 0.125);
  EXPECT_EQ(back.high, std::nullopt);
  EXPECT_EQ(back.n, 20);
}

TEST(Wire, NumbersThatJsonCannotHoldSurviveWhereTheyAreAFinding) {
  SampleRecord losses;
  losses.series = "loss";
  losses.unit = "1";
  losses.values = {1.0, -std::numeric_limits<double>::infinity()};
  EXPECT_EQ(round_trip(losses).values, losses.values);
  CheckRecord check;
  check.name = "reference:out";
  check.outcome = Outcome::falsified;
  check.worst_error = std::numeric_limits<double>::infinity();
  EXPECT_EQ(round_trip(check).worst_error, check.worst_error);
}

TEST(Wire, AMetricThatNothingCanMeasureIsRefusedWithItsRank) {
  EXPECT_EQ(failure(R"({"type":"metric","name":"time","unit":"s","value":"-Infinity","rank":3})"),
            "record 'metric': 'time' of rank 3 is -Infinity s; wanted: from 0 to 3200000000 s");
  EXPECT_EQ(failure(R"({"type":"metric","name":"loss","unit":"1","value":"NaN"})"),
            "record 'metric': 'loss' of rank 0 is NaN; wanted: a finite number");
  for (const char* text : {R"({"type":"metric","name":"time","unit":"s","value":-1e-9})",
                           R"({"type":"metric","name":"time","unit":"s","value":1e10})",
                           R"({"type":"metric","name":"time","unit":"s","value":1,"high":"Infinity"})",
                           R"({"type":"metric","name":"peak_bytes","unit":"B","value":1e19})",
                           R"({"type":"metric","name":"gbps","unit":"GB/s","value":-1})",
                           R"({"type":"metric","name":"wait","unit":"ms","value":-1})",
                           R"({"type":"metric","name":"wait","unit":"us","value":-1})",
                           R"({"type":"metric","name":"speed","unit":"tokens/s","value":-1})",
                           R"({"type":"metric","name":"speed","unit":"tokens/s","value":"Infinity"})",
                           R"({"type":"sample","series":"time","unit":"s","values":[1,"NaN"]})",
                           R"({"type":"sample","series":"time","unit":"s","values":[1,-1]})"}) {
    EXPECT_NE(failure(text).find("wanted: "), std::string::npos) << text;
  }
  EXPECT_THROW(burst_from_json(Json{{"type", "burst"}, {"seconds_per_call", 1e300}}), Error);
}

TEST(Wire, WhatOurOwnCasesFindIsSentableWhateverItIs) {
  MetricRecord metric{.name = "error_out", .unit = "1", .value = std::nan(""), .high = 1};
  EXPECT_EQ(round_trip(sendable(metric)).value, std::nullopt);
  EXPECT_EQ(sendable(metric).note, "not a number");
  metric.value = std::numeric_limits<double>::infinity();
  metric.note = "of all rows";
  EXPECT_EQ(sendable(metric).note, "infinite; of all rows");
  metric.value = 0.5;
  metric.high = std::numeric_limits<double>::infinity();
  EXPECT_EQ(round_trip(sendable(metric)).value, 0.5);
  EXPECT_EQ(sendable(metric).high, std::nullopt);
}

TEST(Wire, MessagesAreCutAndSteerNoTerminal) {
  EndRecord end{Status::error, std::string(100'000, 'x')};
  const std::string detail = round_trip(end).detail;
  EXPECT_EQ(detail.size(), 65536U);
  EXPECT_TRUE(detail.ends_with("… (cut: 100000 bytes in all)"));
  CheckRecord check;
  check.name = "law\x1b[2J";
  check.outcome = Outcome::falsified;
  check.message = "row 3\x1b]0;owned\x07";
  EXPECT_EQ(round_trip(check).name, "law\\x1b[2J");
  EXPECT_EQ(round_trip(check).message, "row 3\\x1b]0;owned\\x07");
}

TEST(Wire, SamplesChecksArtifactsEventsFactsAndEndsSurvive) {
  SampleRecord sample{"time", "s", 2, 1, 40, {1e-3, 0.1, 3.0000000000000004}, {0, 1, 0}};
  EXPECT_EQ(round_trip(sample).values, sample.values);
  EXPECT_EQ(round_trip(sample).flags, sample.flags);
  EXPECT_EQ(round_trip(sample).first_index, 40);

  CheckRecord check;
  check.name = "attention.shift";
  check.outcome = Outcome::falsified;
  check.cases_run = 12;
  check.shrinks_tried = 30;
  check.shrinks_taken = 4;
  check.seed = "18446744073709551615";
  check.reproduce = "BcAFAgAJ";
  check.counterexample_json = R"({"seq":"17"})";
  check.message = "row 3 is off";
  check.worst_error = 0.5;
  check.tolerance = 1e-6;
  check.fraction_checked = 0.25;
  check.contract = Contract::full;
  const CheckRecord back = round_trip(check);
  EXPECT_EQ(to_json(Record(back)), to_json(Record(check)));
  EXPECT_EQ(back.counterexample_json, check.counterexample_json);
  const Finding finding{.kind = FindingKind::kept_state,
                        .promised = true,
                        .seldom = true,
                        .about = "q",
                        .cause = "state that an earlier call left",
                        .input = "B=1",
                        .first_wrong = "out[0]: found 1",
                        .never_drawn = "fp16",
                        .small = true};
  check.finding = finding;
  EXPECT_EQ(round_trip(check).finding, finding);
  check.finding = {.cause = "no mask\x1b[2J"};
  EXPECT_EQ(round_trip(check).finding, (Finding{.cause = "no mask\\x1b[2J"}));

  EXPECT_EQ(round_trip(ArtifactRecord{"timeline", "text/csv", "a,b\n1,2\n"}).content, "a,b\n1,2\n");
  EXPECT_EQ(round_trip(MemoryEventRecord{12, -4096, "S", "activation", 1}).delta_bytes, -4096);
  EXPECT_EQ(round_trip(KernelStatRecord{"forward", "gemm/sgemm", 3, 90, 20, 40, 1}).max_ns, 40);
  EXPECT_EQ(round_trip(KernelStatRecord{"", "gemm/sgemm", 1, 0, 0, 0, 0}).phase, "");
  EXPECT_EQ(round_trip(SpanRecord{"stream 7", "forward", "phase", -5, 5, 1}).start_ns, -5);
  EXPECT_EQ(round_trip(ProgressRecord{"half", 0.5}).fraction, 0.5);
  EXPECT_EQ(round_trip(FactRecord{R"({"k":4})"}).json, R"({"k":4})");
  EXPECT_EQ(round_trip(EndRecord{Status::oom, "needs 242 GiB"}).status, Status::oom);
}

// Each would be refused by the store, and with it the whole attempt and the run.
TEST(Wire, ValuesThatTheStoreCannotTakeAreTheWorkersFault) {
  for (const char* text : {R"({"type": "check", "name": "a", "outcome": "passed", "contract": "nope"})",
                           R"({"type": "check", "name": "a", "outcome": "passed", "fraction_checked": 1.5})",
                           R"({"type": "check", "name": "a", "outcome": "passed", "fraction_checked": "NaN"})",
                           R"({"type": "check", "name": "a", "outcome": "passed", "cases_run": -1})",
                           R"({"type": "sample", "series": "a", "unit": "s", "values": [1], "first_index": -1})",
                           R"({"type": "span", "name": "a", "start_ns": 5, "end_ns": 4})",
                           R"({"type": "kernel", "kernel": "a", "calls": 0, "total_ns": 0, "min_ns": 0, "max_ns": 0})",
                           R"({"type": "kernel", "kernel": "a", "calls": 2, "total_ns": 5, "min_ns": 1, "max_ns": 6})",
                           R"({"type": "sample", "series": "a", "unit": "s", "values": [1],
                               "first_index": 9223372036854775807})"}) {
    EXPECT_THROW(record_from_json(Json::parse(text)), Error) << text;
  }
}

TEST(Wire, FactsLeaveLevelsForWhatTheyAreStoredIn) {
  const auto nested = [](std::size_t levels) {
    return R"({"type":"fact","facts":{"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}}";
  };
  EXPECT_NO_THROW(record_from_json(Json::parse(nested(kMostFactLevels))));
  EXPECT_EQ(failure(nested(kMostFactLevels + 1)),
            "record 'fact': field 'facts' is nested 91 levels deep; expected at most 90");
}

TEST(Wire, AForeignWorkersMistakeIsReadable) {
  EXPECT_EQ(failure(R"({"type":"metric","name":"time","value":1})"),
            "record 'metric': field 'unit' is missing (wanted a text)");
  EXPECT_EQ(
      failure(R"({"type":"metric","name":"time","unit":"s","value":"fast"})"),
      "record 'metric': field 'value' must be a number (or \"NaN\", \"Infinity\", \"-Infinity\"), found \"fast\"");
  EXPECT_EQ(failure(R"({"type":"metric","name":"time","unit":"s"})"),
            "record 'metric': 'time' has neither a value nor a note that says why");
  EXPECT_EQ(failure(R"({"type":"sample","series":"time","unit":"s","values":[1,2],"flags":[0]})"),
            "record 'sample': 1 flags for 2 values");
  EXPECT_EQ(
      failure(R"({"type":"check","name":"x","outcome":"fine"})"),
      "record 'check': field 'outcome' must be one of passed, falsified, gave_up, error, not_run, found \"fine\"");
  EXPECT_EQ(failure(R"([1])"), "a record: expected a JSON object, found [1]");
  EXPECT_NE(failure(R"({"type":"metrik"})").find("unknown record type 'metrik'"), std::string::npos);
  EXPECT_NE(failure(R"({"type":"end","status":"fine"})").find("'fine' is no status"), std::string::npos);
  EXPECT_EQ(failure(R"({"type":"metric","name":"a","unit":"s","value":1,"rank":-1})"),
            "record 'metric': field 'rank' must be an integer from 0 to 2147483647, found -1");
}

}  // namespace
}  // namespace syslab::worker
