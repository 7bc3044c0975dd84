#include "worker/cases/command_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "measure/burst.hpp"
#include "measure/clock.hpp"
#include "measure/host_load.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "stats/timing_warning.hpp"
#include "worker/cases/bench.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/command_params.hpp"
#include "worker/judged/own_program.hpp"
#include "worker/wire/emit_times.hpp"

namespace syslab::worker {
namespace {

// The first line in which two outputs differ.
std::string difference(const std::string& found, const std::string& expected) {
  const std::vector<std::string> a = split(found, '\n'), b = split(expected, '\n');
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    const auto shown = [i](const std::vector<std::string>& lines) {
      constexpr std::size_t kMost = 80;
      return i < lines.size() ? fmt::format("'{}'", printable(lines[i].substr(0, kMost))) : "nothing";
    };
    return fmt::format("line {} of its output is {}, the reference prints {}", i + 1, shown(a), shown(b));
  }
  return "its output differs from the reference's";
}

class CommandCase {
 public:
  CommandCase(CaseContext& context, const CommandPlace& place)
      : context_(context), program_(place, context.params(), context.request().memory_limit_bytes) {
    if (const std::string& reads = context.params().text(kCommandReads); reads != kProcessTime) pattern_.emplace(reads);
    if (place.reference.empty()) return;
    const std::optional<CommandPlace> reference = parse_command_place(place.reference);
    if (!reference) throw Error(ErrorKind::internal, fmt::format("'{}' is no command", place.reference));
    expected_ =
        without_number(OwnProgram(*reference, context.params(), context.request().memory_limit_bytes).run().output);
  }

  // One process from start to end. Its output is looked at when its time has been taken.
  void call() {
    OwnProgram::Ended ended = program_.run();
    took_ = ended.took;
    if (ended.left_running > 0) {
      context_.warn({{stats::WarningCode::left_running, {}, program_.words().front(), 1.0 * ended.left_running}});
    }
    if (pattern_) {
      const std::optional<NumberPattern::Found> found = pattern_->find(ended.output);
      if (!found) {
        if (const std::optional<std::string> other = pattern_->find_other(ended.output)) {
          throw Error(
              ErrorKind::usage,
              fmt::format("the command printed '{}'; expected a positive number such as 1234.5", one_line(*other)));
        }
        throw Error(ErrorKind::usage,
                    fmt::format("the command prints no '{}': {}", context_.params().text(kCommandReads),
                                ended.output.empty() ? "it prints nothing"
                                                     : "its last line is '" + last_line(ended.output) + "'"));
      }
      told_ = found->seconds;
      // A rate says nothing about how long a call takes.
      if (!pattern_->is_rate())
        took_ = std::max(Nanoseconds(1), std::chrono::duration_cast<Nanoseconds>(Seconds(told_)));
    }
    if (expected_) compare(without_number(std::move(ended.output)));
  }

  void check() {
    call();
    CheckRecord record;
    record.name = expected_ ? "output" : "exit";
    record.outcome = Outcome::passed;
    record.cases_run = 1;
    record.message = expected_ ? "its output is the reference's" : "exit code 0; there is no reference for its output";
    context_.emit(record);
  }

  measure::Subject subject() {
    measure::Subject subject;
    subject.call = [this](int) { call(); };
    subject.self_time = [this] { return took_; };
    if (pattern_) subject.self_told = [this] { return told_; };
    return subject;
  }

  void tell_rate(double seconds) {
    if (pattern_ && pattern_->is_rate()) context_.metric("rate", pattern_->unit(), 1 / seconds);
  }

  Json facts() const {
    Json facts = program_.walls_facts();
    facts["command"] = program_.words();
    return facts;
  }

 private:
  static std::string last_line(const std::string& text) {
    const std::vector<std::string> lines = split(trim(text), '\n');
    return printable(lines.back().substr(0, 80));
  }

  // The number differs from call to call.
  std::string without_number(std::string output) const {
    if (!pattern_) return output;
    if (const auto found = pattern_->find(output)) output.replace(found->begin, found->end - found->begin, "{}");
    return output;
  }

  void compare(const std::string& output) {
    if (output == *expected_) return;
    CheckRecord record;
    record.name = "output";
    record.outcome = Outcome::falsified;
    record.cases_run = 1;
    record.message = difference(output, *expected_);
    context_.emit(record);
    throw CheckFailed(record.message);
  }

  CaseContext& context_;
  OwnProgram program_;
  std::optional<NumberPattern> pattern_;
  std::optional<std::string> expected_;
  Nanoseconds took_{};
  double told_ = 0;  // seconds of what it prints; of a rate the time of one unit, which may be below a nanosecond
};

// Each process begins with whatever caches and clocks the one before has left; grouping calls would spare no clock.
measure::Protocol protocol_of(const CaseRequest& request) {
  measure::Protocol protocol = measure::find_protocol(request.protocol);
  protocol.sample_floor = {};
  protocol.cache = measure::Cache::hot;
  protocol.flush_bytes = 0;
  return protocol;
}

void time_in_bursts(CaseContext& context, CommandCase& one, const measure::Protocol& protocol,
                    const measure::Subject& subject, const Bench& bench) {
  measure::Burst burst(protocol, subject, bench.device(), measure::steady_clock(), context.request().seed,
                       context.request().burst);
  const std::vector<double> seconds = serve_bursts(context.bursts(), {burst.calls(), burst.seconds_per_call()},
                                                   [&] { return burst.take().seconds_per_call; });
  if (!seconds.empty()) {
    emit_times(context, {.seconds = seconds}, {});
    one.tell_rate(stats::summarize(seconds).median);
  }
  Json facts{{"protocol", measure::to_json(protocol)},
             {"bursts", seconds.size()},
             {"calls_per_burst", burst.calls()},
             {"warmup_calls", burst.warmup_calls()}};
  facts.update(bench.facts());
  facts.update(one.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace

void run_command_case(CaseContext& context) {
  const CaseRequest& request = context.request();
  const std::optional<CommandPlace> place = request.mine ? parse_command_place(request.mine->path()) : std::nullopt;
  if (!place) {
    throw Error(ErrorKind::usage, "command is about a program of yours: --command './bench {n}' (docs/any-command.md)");
  }
  if (request.device != DeviceKind::cpu) {
    throw Unsupported("a command decides by itself where it computes; leave --device out");
  }
  const measure::Protocol protocol = protocol_of(request);
  const Bench bench(request, device::Kind::cpu, true);
  context.tells_walls();
  context.progress(0, "checking");
  CommandCase one(context, *place);
  one.check();
  const measure::Subject subject = one.subject();
  if (context.is_paired()) return time_in_bursts(context, one, protocol, subject, bench);
  const measure::HostWatch watch;
  const measure::Samples samples =
      measure::take_samples(protocol, subject, {bench.device()}, request.seed,
                            [&](double fraction, const std::string& text) { context.progress(fraction, text); });
  emit_times(context, samples, {});
  one.tell_rate(stats::summarize(samples.seconds).median);
  Json facts = timing_facts(protocol, samples, watch.finish());
  facts.update(bench.facts());
  facts.update(one.facts());
  context.emit(FactRecord{json_text(facts)});
}

}  // namespace syslab::worker
