#include "worker/wire/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "worker/wire/fields.hpp"
#include "worker/wire/metric_range.hpp"

namespace syslab::worker {
namespace {

constexpr std::int64_t kLastIndex = std::int64_t{1}
                                    << 53;  // beyond that, integers are not exact in a reader that uses doubles

// Empty fields are left out rather than null, so that a record shows only what it says.
void put(Json& object, const char* name, const std::optional<double>& value) {
  if (value) object[name] = number_to_json(*value);
}

Json numbers_to_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number_to_json(value));
  return list;
}

// A field that holds JSON as text inside the program and as JSON on the wire.
Json parse_object(const std::string& text, const char* field) {
  Json parsed = json_or_discarded(text);
  if (parsed.is_object()) return parsed;
  throw Error(ErrorKind::internal, fmt::format("{} must be a JSON object, found '{}'", field, text));
}

Json body(const MetricRecord& record) {
  Json json{{"type", "metric"}, {"name", record.name}, {"unit", record.unit}, {"rank", record.rank}};
  put(json, "value", record.value);
  put(json, "low", record.low);
  put(json, "high", record.high);
  if (record.n) json["n"] = *record.n;
  if (!record.note.empty()) json["note"] = record.note;
  return json;
}

Json body(const SampleRecord& record) {
  Json json{{"type", "sample"},
            {"series", record.series},
            {"unit", record.unit},
            {"launch", record.launch},
            {"rank", record.rank},
            {"first_index", record.first_index},
            {"values", numbers_to_json(record.values)}};
  if (!record.flags.empty()) json["flags"] = record.flags;
  return json;
}

Json body(const CheckRecord& record) {
  Json json{{"type", "check"},
            {"name", record.name},
            {"outcome", to_string(record.outcome)},
            {"cases_run", record.cases_run},
            {"shrinks_tried", record.shrinks_tried},
            {"shrinks_taken", record.shrinks_taken},
            {"seed", record.seed},
            {"fraction_checked", number_to_json(record.fraction_checked)}};
  put(json, "worst_error", record.worst_error);
  put(json, "tolerance", record.tolerance);
  if (!record.reproduce.empty()) json["reproduce"] = record.reproduce;
  if (!record.counterexample_json.empty()) {
    json["counterexample"] = parse_object(record.counterexample_json, "a counterexample");
  }
  if (!record.message.empty()) json["message"] = record.message;
  if (record.contract) json["contract"] = to_string(*record.contract);
  put(json, record.finding);
  return json;
}

Json body(const ArtifactRecord& record) {
  return {{"type", "artifact"}, {"kind", record.kind}, {"media_type", record.media_type}, {"content", record.content}};
}

Json body(const MemoryEventRecord& record) {
  return {{"type", "memory"},  {"t_ns", record.t_ns},         {"delta_bytes", record.delta_bytes},
          {"tag", record.tag}, {"category", record.category}, {"rank", record.rank}};
}

Json body(const KernelStatRecord& record) {
  return {{"type", "kernel"},        {"phase", record.phase},       {"kernel", record.kernel},
          {"calls", record.calls},   {"total_ns", record.total_ns}, {"min_ns", record.min_ns},
          {"max_ns", record.max_ns}, {"rank", record.rank}};
}

Json body(const SpanRecord& record) {
  return {{"type", "span"},
          {"track", record.track},
          {"name", record.name},
          {"category", record.category},
          {"start_ns", record.start_ns},
          {"end_ns", record.end_ns},
          {"rank", record.rank}};
}

Json body(const ProgressRecord& record) {
  return {{"type", "progress"}, {"text", record.text}, {"fraction", number_to_json(record.fraction)}};
}

Json body(const FactRecord& record) { return {{"type", "fact"}, {"facts", parse_object(record.json, "facts")}}; }

Json body(const EndRecord& record) {
  Json json{{"type", "end"}, {"status", to_string(record.status)}, {"detail", record.detail}};
  if (record.fault) json["fault"] = to_string(*record.fault);
  return json;
}

constexpr std::size_t kLongestMessage = 64U << 10;

// Texts of a worker, made safe to show to people.
std::string said(const Fields& fields, const char* name) {
  return cut_to(printable(fields.text(name)), kLongestMessage);
}

std::string said_or(const Fields& fields, const char* name, const char* fallback) {
  return cut_to(printable(fields.text_or(name, fallback)), kLongestMessage);
}

void require_in_range(const Fields& fields, const std::string& name, int rank, const std::string& unit, double value) {
  const std::string problem = range_problem(unit, value);
  if (!problem.empty()) fields.fail(fmt::format("'{}' of rank {} is {}", name, rank, problem));
}

MetricRecord metric_from(const Fields& fields) {
  MetricRecord record;
  record.name = said(fields, "name");
  record.unit = said(fields, "unit");
  record.value = fields.optional_number("value");
  record.low = fields.optional_number("low");
  record.high = fields.optional_number("high");
  record.n = fields.optional_integer("n");
  record.note = said_or(fields, "note", "");
  record.rank = fields.count_or("rank", 0);
  if (record.value) require_in_range(fields, record.name, record.rank, record.unit, *record.value);
  for (const std::optional<double>& end : {record.low, record.high}) {  // of a time near 0 the interval may begin below
    if (end) require_in_range(fields, record.name, record.rank, record.unit, std::abs(*end));
  }
  if (!record.value && record.note.empty()) {
    fields.fail(fmt::format("'{}' has neither a value nor a note that says why", record.name));
  }
  return record;
}

SampleRecord sample_from(const Fields& fields) {
  SampleRecord record;
  record.series = said(fields, "series");
  record.unit = said(fields, "unit");
  record.launch = fields.count_or("launch", 0);
  record.rank = fields.count_or("rank", 0);
  record.first_index = fields.integer_or("first_index", 0);
  if (record.first_index < 0 || record.first_index > kLastIndex) {
    fields.fail(fmt::format("field 'first_index' must be from 0 to 2^53, found {}", record.first_index));
  }
  record.values = fields.numbers("values");
  // A loss that is NaN is a finding of its experiment; a time that is NaN is an error.
  for (const double value : record.values) {
    if (record.unit != "1") require_in_range(fields, record.series, record.rank, record.unit, value);
  }
  record.flags = fields.integers_or_none("flags");
  if (!record.flags.empty() && record.flags.size() != record.values.size()) {
    fields.fail(fmt::format("{} flags for {} values", record.flags.size(), record.values.size()));
  }
  return record;
}

Outcome outcome_in(const Fields& fields) {
  std::array<std::string_view, kOutcomes.size()> words;
  std::ranges::transform(kOutcomes, words.begin(), [](Outcome one) { return to_string(one); });
  return *outcome_of(fields.one_of("outcome", words));
}

Finding finding_from(const Fields& fields) {
  Finding finding;
  if (const std::string kind = fields.text_or("finding", ""); !kind.empty()) {
    const auto known = finding_kind_of(kind);
    if (!known) fields.fail(fmt::format("field 'finding' has '{}', which is no kind of fault", kind));
    finding.kind = *known;
  }
  finding.promised = fields.flag_or("promised", false);
  finding.seldom = fields.flag_or("seldom", false);
  finding.about = said_or(fields, "about", "");
  finding.cause = said_or(fields, "cause", "");
  finding.input = said_or(fields, "input", "");
  finding.first_wrong = said_or(fields, "first_wrong", "");
  finding.never_drawn = said_or(fields, "never_drawn", "");
  finding.small = fields.flag_or("small", false);
  return finding;
}

CheckRecord check_from(const Fields& fields) {
  CheckRecord record;
  record.name = said(fields, "name");
  record.outcome = outcome_in(fields);
  record.cases_run = fields.integer_or("cases_run", 0);
  record.shrinks_tried = fields.integer_or("shrinks_tried", 0);
  record.shrinks_taken = fields.integer_or("shrinks_taken", 0);
  record.seed = fields.text_or("seed", "0");
  record.reproduce = fields.text_or("reproduce", "");
  record.counterexample_json = fields.object_or_none("counterexample");
  record.message = said_or(fields, "message", "");
  record.worst_error = fields.optional_number("worst_error");
  record.tolerance = fields.optional_number("tolerance");
  record.fraction_checked = fields.optional_number("fraction_checked").value_or(1.0);
  if (const std::string contract = fields.text_or("contract", ""); !contract.empty()) {
    record.contract = contract_of(contract);
    if (!record.contract) fields.fail(fmt::format("field 'contract' is '{}'; expected handout or full", contract));
  }
  record.finding = finding_from(fields);
  if (!(record.fraction_checked >= 0 && record.fraction_checked <= 1)) {
    fields.fail(fmt::format("field 'fraction_checked' must be from 0 to 1, found {}", record.fraction_checked));
  }
  if (record.cases_run < 0) {
    fields.fail(fmt::format("field 'cases_run' must not be negative, found {}", record.cases_run));
  }
  return record;
}

MemoryEventRecord memory_from(const Fields& fields) {
  MemoryEventRecord record;
  record.t_ns = fields.integer("t_ns");
  record.delta_bytes = fields.integer("delta_bytes");
  record.tag = said_or(fields, "tag", "");
  record.category = said_or(fields, "category", "");
  record.rank = fields.count_or("rank", 0);
  return record;
}

KernelStatRecord kernel_from(const Fields& fields) {
  KernelStatRecord record;
  record.phase = said_or(fields, "phase", "");
  record.kernel = said(fields, "kernel");
  record.calls = fields.integer("calls");
  record.total_ns = fields.integer("total_ns");
  record.min_ns = fields.integer("min_ns");
  record.max_ns = fields.integer("max_ns");
  record.rank = fields.count_or("rank", 0);
  if (record.calls < 1 || record.min_ns < 0 || record.max_ns < record.min_ns || record.total_ns < record.max_ns) {
    fields.fail(
        fmt::format("'{}' has {} calls of {} to {} ns and {} ns in all; wanted: at least one call, min ≤ max ≤ "
                    "total",
                    record.kernel, record.calls, record.min_ns, record.max_ns, record.total_ns));
  }
  return record;
}

SpanRecord span_from(const Fields& fields) {
  SpanRecord record;
  record.track = said_or(fields, "track", "");
  record.name = said(fields, "name");
  record.category = said_or(fields, "category", "");
  record.start_ns = fields.integer("start_ns");
  record.end_ns = fields.integer("end_ns");
  record.rank = fields.count_or("rank", 0);
  if (record.end_ns < record.start_ns) {
    fields.fail(
        fmt::format("'{}' ends at {} ns, before it begins at {} ns", record.name, record.end_ns, record.start_ns));
  }
  return record;
}

// A time per call, of which ratios will be taken.
double seconds_per_call(const Fields& fields) {
  const std::optional<double> seconds = fields.optional_number("seconds_per_call");
  if (!seconds || !(*seconds > 0) || !range_problem("s", *seconds).empty()) {
    fields.fail("field 'seconds_per_call' must be a number above 0, and no more than a century");
  }
  return *seconds;
}

std::size_t levels_of(const Json& value) {
  std::size_t below = 0;
  for (const Json& one : value) {
    if (one.is_structured()) below = std::max(below, levels_of(one));
  }
  return below + 1;
}

FactRecord fact_from(const Fields& fields) {
  const Json& facts = fields.object("facts");
  if (const std::size_t levels = levels_of(facts); levels > kMostFactLevels) {
    throw Error(ErrorKind::comm,
                fmt::format("record 'fact': field 'facts' is nested {} levels deep; expected at most {}", levels,
                            kMostFactLevels));
  }
  return {json_text(facts)};
}

}  // namespace

Json to_json(const Ready& ready) {
  return {{"type", "ready"},
          {"calls_per_burst", ready.calls_per_burst},
          {"seconds_per_call", number_to_json(ready.seconds_per_call)}};
}

Json to_json(const Burst& burst) {
  return {{"type", "burst"}, {"seconds_per_call", number_to_json(burst.seconds_per_call)}};
}

Ready ready_from_json(const Json& json) {
  const Fields fields(json, "message 'ready'");
  const Ready ready{fields.integer("calls_per_burst"), seconds_per_call(fields)};
  if (ready.calls_per_burst < 1) {
    fields.fail(fmt::format("field 'calls_per_burst' must be at least 1, found {}", ready.calls_per_burst));
  }
  return ready;
}

Burst burst_from_json(const Json& json) { return {seconds_per_call(Fields(json, "message 'burst'"))}; }

Json to_json(const CaseRequest& request) {
  Json json{{"type", "case"},
            {"experiment", request.experiment},
            {"params", request.params.to_json()},
            {"implementation", request.implementation},
            {"seed", std::to_string(request.seed)},  // 64 bits do not survive JSON readers that have only doubles
            {"case_uid", request.case_uid},
            {"world_size", request.world_size},
            {"rank", request.rank},
            {"task", to_string(request.task)},
            {"law", request.law},
            {"reproduce", request.reproduce},
            {"protocol", request.protocol},
            {"data", request.data},
            {"law_cases", request.law_cases},
            {"memory_limit_bytes", request.memory_limit_bytes}};
  if (request.own_ranks > 1) json["own_ranks"] = request.own_ranks;
  if (request.task == Task::paired) json["burst_ns"] = request.burst.count();
  if (request.fresh) json["fresh"] = 1;
  if (request.starts) json["starts"] = 1;
  if (request.kernel_code) json["kernel_code"] = 1;
  if (request.law_time.count() > 0) json["law_time_ns"] = request.law_time.count();
  if (request.law_limit.count() > 0) json["law_limit_ns"] = request.law_limit.count();
  if (request.task == Task::law || request.kernel_code) json["timeout_ns"] = request.timeout.count();
  if (request.device != DeviceKind::cpu) json["device"] = to_string(request.device);
  if (request.device_index != 0) json["device_index"] = request.device_index;
  if (!request.rendezvous.empty()) json["rendezvous"] = request.rendezvous;
  if (request.mine) {
    json["mine"] = {{"name", request.mine->name},
                    {"path", request.mine->path()},
                    {"python_class", request.mine->inside()},
                    {"digest", request.mine->digest}};
    if (request.mine->is_function()) {
      json["mine"].update(
          {{"reference", request.mine->comparison()->reference}, {"inputs", request.mine->comparison()->inputs}});
    }
  }
  return json;
}

Task task_in(const Fields& fields) {
  const std::string word = fields.text_or("task", std::string(to_string(Task::measure)));
  const std::optional<Task> task = task_of(word);
  if (!task)
    fields.fail(fmt::format("field 'task' must be \"measure\", \"law\", \"paired\" or \"code\", found \"{}\"", word));
  return *task;
}

DeviceKind device_in(const Fields& fields) {
  const std::string word = fields.text_or("device", std::string(to_string(DeviceKind::cpu)));
  const std::optional<DeviceKind> device = device_kind_of(word);
  if (!device) fields.fail(fmt::format("field 'device' must be \"cpu\" or \"cuda\", found \"{}\"", word));
  return *device;
}

CaseRequest case_request_from_json(const Json& json) {
  const Fields fields(json, "message 'case'");
  CaseRequest request;
  request.experiment = fields.text("experiment");
  request.params = Params::from_json(fields.object("params"));
  request.implementation = fields.text("implementation");
  request.seed = fields.unsigned_text("seed");
  request.case_uid = fields.text_or("case_uid", "");
  request.world_size = fields.count_or("world_size", 1);
  request.own_ranks = fields.count_or("own_ranks", 1);
  request.rank = fields.count_or("rank", 0);
  request.device_index = fields.count_or("device_index", 0);
  request.rendezvous = fields.text_or("rendezvous", "");
  if (request.rank >= std::max(request.world_size, 1)) {
    fields.fail(fmt::format("field 'rank' must be below 'world_size' {}, found {}", request.world_size, request.rank));
  }
  request.task = task_in(fields);
  request.law = fields.text_or("law", "");
  request.reproduce = fields.text_or("reproduce", "");
  request.protocol = fields.text_or("protocol", "kernel");
  request.data = fields.text_or("data", "normal");
  request.law_cases = fields.count_or("law_cases", 100);
  request.law_time = Nanoseconds(fields.integer_or("law_time_ns", 0));
  request.law_limit = Nanoseconds(fields.integer_or("law_limit_ns", 0));
  request.timeout = Nanoseconds(fields.integer_or("timeout_ns", request.timeout.count()));
  request.memory_limit_bytes = static_cast<std::uint64_t>(fields.integer_or("memory_limit_bytes", 0));
  request.burst = Nanoseconds(fields.integer_or("burst_ns", 0));
  request.fresh = fields.count_or("fresh", 0) != 0;
  request.starts = fields.count_or("starts", 0) != 0;
  request.kernel_code = fields.count_or("kernel_code", 0) != 0;
  request.device = device_in(fields);
  if (const auto found = json.find("mine"); found != json.end() && !found->is_null()) {
    const Fields mine(*found, "message 'case', field 'mine'");
    request.mine = submitted_of(mine.text("name"), mine.text("path"), mine.text_or("python_class", ""),
                                {mine.text_or("reference", ""), mine.text_or("inputs", "")});
    request.mine->digest = mine.text_or("digest", "");
  }
  return request;
}

Json to_json(const Record& record) {
  return std::visit([](const auto& held) { return body(held); }, record);
}

Record record_from_json(const Json& json) {
  const std::string type = Fields(json, "a record").text("type");
  const Fields fields(json, fmt::format("record '{}'", type));
  if (type == "metric") return metric_from(fields);
  if (type == "sample") return sample_from(fields);
  if (type == "check") return check_from(fields);
  if (type == "artifact") {
    return ArtifactRecord{fields.text("kind"), fields.text("media_type"), fields.text("content")};
  }
  if (type == "memory") return memory_from(fields);
  if (type == "kernel") return kernel_from(fields);
  if (type == "span") return span_from(fields);
  if (type == "progress") return ProgressRecord{said(fields, "text"), fields.optional_number("fraction").value_or(0.0)};
  if (type == "fact") return fact_from(fields);
  if (type == "end") {
    return EndRecord{parse_status(fields.text("status")), said_or(fields, "detail", ""),
                     fault_of_word(fields.text_or("fault", ""))};
  }
  throw Error(ErrorKind::comm, fmt::format("unknown record type '{}' (known: metric, sample, check, artifact, memory, "
                                           "kernel, span, progress, fact, end)",
                                           one_line(type)));
}

std::chrono::milliseconds patience_within(Nanoseconds left) {
  using std::chrono::milliseconds, std::chrono::seconds;
  constexpr milliseconds kLongest = seconds(60), kMargin = seconds(5), kLeast = seconds(5);
  const auto most = std::min(kLongest, std::chrono::duration_cast<milliseconds>(left) - kMargin);
  return most < kLeast ? milliseconds(0) : most;
}

}  // namespace syslab::worker
