#include "check/search.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include "core/refusal.hpp"

namespace syslab::check {
namespace {

using Clock = std::chrono::steady_clock;

// The implementation could not be asked at all: its process is gone or the machine has no memory left. That is no
// answer to the property, and asking again for smaller inputs would only shrink towards "anything fails".
bool unanswered(const Error& error) { return error.kind() == ErrorKind::comm || error.kind() == ErrorKind::oom; }

[[noreturn]] void fail_case(const std::string& why) {
  throw rc::detail::CaseResult(rc::detail::CaseResult::Type::Failure, why);
}

// The property between RapidCheck and its budget. One object lives through one search.
class Watched {
 public:
  Watched(const LawRequest& request, const std::function<void(Observation&)>& property, bool limited)
      : request_(request), property_(property), limited_(limited) {}

  void operator()() {
    if (limited_ && (spent() || hopeless())) return;  // "holds": every further shrink is refused
    if (failed_at_) ++calls_since_failure_;
    last_ = {};
    last_held_ = false;
    try {
      run();
      last_held_ = answered_ = true;
    } catch (const rc::detail::CaseResult& result) {
      if (result.type == rc::detail::CaseResult::Type::Failure && !failed_at_) failed_at_ = Clock::now();
      if (result.type == rc::detail::CaseResult::Type::Failure) answered_ = true;
      keep_worst();
      throw;
    }
    keep_worst();
  }

  const Observation& last() const { return last_; }
  const Observation& worst() const { return worst_; }
  bool last_held() const { return last_held_; }
  const std::string& unanswered_because() const { return unanswered_because_; }
  const std::string& unsupported_because() const { return unsupported_because_; }
  // Refused so often, and never answered, that asking on would only take time.
  bool hopeless() const { return !answered_ && refusals_ >= kMostRefusals; }

 private:
  static constexpr int kMostRefusals = 20;

  bool spent() const {
    if (!unanswered_because_.empty()) return true;
    if (!failed_at_) return false;
    return calls_since_failure_ >= request_.shrink_tries || Clock::now() - *failed_at_ >= request_.shrink_time;
  }

  [[noreturn]] void discard(const std::string& why) {
    ++refusals_;
    unsupported_because_ = why;
    throw rc::detail::CaseResult(rc::detail::CaseResult::Type::Discard, why);
  }

  void keep_worst() {
    if (last_.worst_error) worst_.record(*last_.worst_error, last_.tolerance.value_or(0));
  }

  // Turns what the property throws into RapidCheck's verdict, with the text a reader needs and nothing before it.
  void run() {
    try {
      property_(last_);
    } catch (const rc::detail::CaseResult&) {  // RC_ASSERT, RC_PRE
      throw;
    } catch (const rc::GenerationFailure&) {
      throw;
    } catch (const Unsupported& reason) {  // this input is not for this implementation
      discard(reason.what());
    } catch (const Refusal& reason) {  // one law asks whether it may; for all others there is nothing to look at
      discard(reason.what());
    } catch (const Error& error) {
      if (unanswered(error)) unanswered_because_ = error.what();
      if (error.kind() == ErrorKind::check) fail_case(error.what());
      fail_case(fmt::format("threw Error({}): {}", to_string(error.kind()), error.what()));
    } catch (const std::exception& error) {
      fail_case(fmt::format("threw: {}", error.what()));
    } catch (...) {
      fail_case("threw an object that is no std::exception");
    }
  }

  const LawRequest& request_;
  const std::function<void(Observation&)>& property_;
  bool limited_;
  std::optional<Clock::time_point> failed_at_;
  std::int64_t calls_since_failure_ = 0;
  Observation last_, worst_;
  bool last_held_ = false, answered_ = false;
  std::int64_t refusals_ = 0;
  std::string unanswered_because_, unsupported_because_;
};

std::map<std::string, std::string> named(const rc::detail::Example& example) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : example) {
    std::string key = name;
    for (int copy = 2; values.count(key) != 0; ++copy) key = fmt::format("{} #{}", name, copy);
    values[key] = value;
  }
  return values;
}

// Counts, and notes the smallest failure as it happened: RapidCheck describes a failure by running it again at the end,
// when the budget may be spent or the implementation gone.
class Notes : public rc::detail::TestListenerAdapter {
 public:
  explicit Notes(LawResult& result) : result_(result) {}
  void onTestCaseFinished(const rc::detail::CaseDescription& description) override {
    if (description.result.type == rc::detail::CaseResult::Type::Discard) return;
    ++result_.cases_run;
    if (description.result.type == rc::detail::CaseResult::Type::Failure) note(description);
  }
  void onShrinkTried(const rc::detail::CaseDescription& shrink, bool accepted) override {
    ++result_.shrinks_tried;
    if (!accepted) return;
    ++result_.shrinks_taken;
    note(shrink);
  }

 private:
  void note(const rc::detail::CaseDescription& failure) {
    result_.message = failure.result.description;
    result_.counterexample = named(failure.example());
  }

  LawResult& result_;
};

// Explicit arguments all the way: RapidCheck then neither reads RC_PARAMS nor prints its configuration.
rc::detail::TestResult ask(Watched& watched, const rc::detail::TestMetadata& metadata, const LawRequest& request,
                           rc::detail::TestListener& listener,
                           const std::unordered_map<std::string, rc::detail::Reproduce>& reproduce) {
  rc::detail::TestParams params;
  params.seed = request.seed;
  params.maxSuccess = request.max_success;
  params.maxSize = request.max_size;
  return rc::detail::checkTestable([&watched] { watched(); }, metadata, params, listener, reproduce);
}

std::string reproduce_string(const std::string& id, const rc::detail::Reproduce& reproduce) {
  rc::detail::Configuration configuration;
  configuration.reproduce[id] = reproduce;
  return rc::detail::configToMinimalString(configuration);
}

// What `text` holds for `id`; Error(usage) if it is not a reproduce string or belongs to another law or contract.
rc::detail::Reproduce parse_reproduce(const std::string& text, const std::string& id) {
  rc::detail::Configuration configuration;
  try {
    configuration = rc::detail::configFromString(text);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no reproduce string: {}", text, error.what()));
  }
  const auto found = configuration.reproduce.find(id);
  if (found != configuration.reproduce.end()) return found->second;
  const std::string other = configuration.reproduce.empty() ? "no law" : configuration.reproduce.begin()->first;
  throw Error(ErrorKind::usage, fmt::format("this reproduce string belongs to {}, asked was {}", other, id));
}

void keep_observation(const Observation& observation, LawResult& result) {
  result.worst_error = observation.worst_error;
  result.tolerance = observation.tolerance;
}

// Runs the counterexample alone and without a limit: what it says is what a replay will say.
void confirm(const rc::detail::FailureResult& failure, const rc::detail::TestMetadata& metadata,
             const LawRequest& request, const std::function<void(Observation&)>& property, LawResult& result) {
  Watched watched(request, property, false);
  rc::detail::TestListenerAdapter silent;
  const rc::detail::TestResult again = ask(watched, metadata, request, silent, {{metadata.id, failure.reproduce}});
  rc::detail::FailureResult confirmed;
  if (again.match(confirmed)) {
    result.message = confirmed.description;
    result.counterexample = named(confirmed.counterExample);
    keep_observation(watched.last(), result);
  } else {
    result.message += "\nit held when run again: the implementation does not repeat itself";
  }
}

}  // namespace

LawResult search(const std::string& id, const LawRequest& request, const std::function<void(Observation&)>& property) {
  LawResult result;
  result.seed = request.seed;
  // The generators depend on the contract, so a reproduce string is bound to it.
  const rc::detail::TestMetadata metadata{fmt::format("{}/{}", id, to_string(request.contract)), id};
  const bool replaying = !request.reproduce.empty();
  std::unordered_map<std::string, rc::detail::Reproduce> reproduce;
  if (replaying) reproduce[metadata.id] = parse_reproduce(request.reproduce, metadata.id);

  Watched watched(request, property, !replaying);
  Notes notes(result);
  const rc::detail::TestResult verdict = ask(watched, metadata, request, notes, reproduce);
  if (replaying) result.cases_run = 1;
  keep_observation(replaying ? watched.last() : watched.worst(), result);

  rc::detail::SuccessResult success;
  rc::detail::FailureResult failure;
  rc::detail::GaveUpResult gave_up;
  rc::detail::Error error;
  if (watched.hopeless() && !replaying) {
    result.outcome = Outcome::not_run;
    result.cases_run = 0;
    result.message = watched.unsupported_because();
  } else if (verdict.match(success)) {
    result.outcome = result.cases_run > 0 ? Outcome::passed : Outcome::not_run;
    if (result.cases_run == 0) result.message = "no case was asked for";
  } else if (verdict.match(gave_up)) {
    result.outcome = Outcome::gave_up;
    result.message = gave_up.description;
    if (!watched.unsupported_because().empty()) {
      if (result.cases_run == 0) result.outcome = Outcome::not_run;
      result.message = watched.unsupported_because();
    }
  } else if (verdict.match(error)) {
    // RapidCheck calls it an error when a replayed counterexample does not fail; for us that is the good news.
    const bool mended = replaying && watched.last_held();
    result.outcome = mended ? Outcome::passed : Outcome::error;
    result.message = mended ? "the counterexample holds now" : error.description;
  } else if (verdict.match(failure)) {
    result.reproduce = replaying ? request.reproduce : reproduce_string(metadata.id, failure.reproduce);
    result.outcome = watched.unanswered_because().empty() ? Outcome::falsified : Outcome::error;
    if (replaying) {
      result.message = failure.description;
      result.counterexample = named(failure.counterExample);
    } else if (result.outcome == Outcome::falsified) {
      confirm(failure, metadata, request, property, result);
    }
  }
  return result;
}

}  // namespace syslab::check
