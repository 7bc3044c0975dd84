#include "check/search.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include "core/refusal.hpp"

namespace syslab::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kNowAndThen = "it strikes now and then";

// The implementation could not be asked at all: its process is gone or the machine has no memory left. That is no
// answer to the property, and asking again for smaller inputs would only shrink towards "anything fails".
bool unanswered(const Error& error) { return error.kind() == ErrorKind::comm || error.kind() == ErrorKind::oom; }

Finding finding_of(const Error& error) {
  if (const auto* known = dynamic_cast<const FoundFault*>(&error)) {
    return {.kind = known->finding(), .about = known->details().about, .cause = known->details().cause};
  }
  return {.kind = error.kind() == ErrorKind::check ? FindingKind::wrong_value : FindingKind::unanswered};
}

[[noreturn]] void fail_case(const std::string& why) {
  throw rc::detail::CaseResult(rc::detail::CaseResult::Type::Failure, why);
}

// The property between RapidCheck and its budget. One object lives through one search.
class Watched {
 public:
  Watched(const LawRequest& request, const std::function<void(Observation&)>& property, bool limited)
      : request_(request), property_(property), limited_(limited) {}

  void operator()() {
    left_out_ = limited_ && out_of_time();
    if (left_out_ || (limited_ && (spent() || hopeless()))) return;  // "holds": every further shrink is refused
    if (failed_at_) ++calls_since_failure_;
    last_ = {};
    last_held_ = gone_ = false;
    finding_ = {};
    lacks_.reset();
    try {
      run();
      last_held_ = answered_ = true;
      ++held_;
    } catch (const rc::detail::CaseResult& result) {
      if (result.type == rc::detail::CaseResult::Type::Failure) {
        answered_ = true;
        if (finding_.kind == FindingKind::none) finding_.kind = FindingKind::wrong_value;  // of RC_ASSERT
        // A crash shrinks to a crash, a wrong answer to a wrong answer, and what no tolerance excuses to such.
        if (limited_ && failed_at_ &&
            (gone_ != was_gone_ || is_severe(finding_.kind) != is_severe(was_.kind) ||
             lacks_.has_value() != was_lacking_.has_value())) {
          return;
        }
        if (!failed_at_) failed_at_ = Clock::now();
        was_gone_ = gone_;
        was_ = finding_;
        was_lacking_ = lacks_;
      }
      keep_worst();
      throw;
    }
    keep_worst();
  }

  const Observation& last() const { return last_; }
  const Observation& worst() const { return worst_; }
  bool last_held() const { return last_held_; }
  bool left_out() const { return left_out_; }  // the last try, since there was no time for it
  bool was_gone() const { return was_gone_; }  // in the last failure it could not be asked at all
  const Finding& was() const { return was_; }  // the last failure
  const std::optional<Lack>& was_lacking() const { return was_lacking_; }  // in the last failure
  const std::optional<Lack>& refused_for() const { return refused_for_; }  // in the last refusal
  const std::string& unsupported_because() const { return unsupported_because_; }
  // Refused so often, without one answer, that asking on would only take time.
  bool hopeless() const { return !answered_ && refusals_ >= kMostRefusals; }

 private:
  static constexpr int kMostRefusals = 20;

  bool out_of_time() const {
    constexpr int kMostOverrun = 4;  // of the first few
    if (request_.most_time.count() == 0 || failed_at_ || held_ == 0) return false;
    const auto most = request_.most_time * (held_ < LawRequest::kFewestCases ? kMostOverrun : 1);
    return (request_.spent ? request_.spent() : Clock::now() - began_) >= most;
  }

  bool spent() const {
    if (!failed_at_) return false;
    if (was_gone_ && !request_.revives) return true;
    constexpr int kWhereEachIsWaitedFor = 5;  // a try that hangs takes its limit, and one that crashes a new process
    const auto most = request_.shrink_time * (was_gone_ ? kWhereEachIsWaitedFor : 1);
    return calls_since_failure_ >= request_.shrink_tries || Clock::now() - *failed_at_ >= most;
  }

  [[noreturn]] void discard(const std::string& why) {
    ++refusals_;
    unsupported_because_ = why;
    throw rc::detail::CaseResult(rc::detail::CaseResult::Type::Discard, why);
  }

  void keep_worst() {
    if (last_.worst_error) worst_.record(*last_.worst_error, last_.tolerance.value_or(0));
  }

  // Turns what the property throws into RapidCheck's verdict, with only the text that a reader needs.
  void run() {
    try {
      property_(last_);
    } catch (const rc::detail::CaseResult&) {  // RC_ASSERT, RC_PRE
      throw;
    } catch (const rc::GenerationFailure&) {
      throw;
    } catch (const Unsupported& reason) {  // this input is not for this implementation
      discard(reason.what());
    } catch (const Refusal& reason) {  // one law tests refusals themselves; for all others there is nothing to check
      refused_for_ = reason.lacks();
      discard(reason.what());
    } catch (const Error& error) {
      gone_ = unanswered(error);
      finding_ = finding_of(error);
      if (const auto* fault = dynamic_cast<const FoundFault*>(&error)) lacks_ = fault->lacks();
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
  Clock::time_point began_ = Clock::now();
  std::optional<Clock::time_point> failed_at_;
  std::int64_t calls_since_failure_ = 0, held_ = 0;
  Observation last_, worst_;
  bool last_held_ = false, left_out_ = false, answered_ = false, gone_ = false, was_gone_ = false;
  Finding finding_, was_;
  std::optional<Lack> lacks_, was_lacking_, refused_for_;
  std::int64_t refusals_ = 0;
  std::string unsupported_because_;
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
  Notes(LawResult& result, const Watched& watched) : result_(result), watched_(watched) {}
  void onTestCaseFinished(const rc::detail::CaseDescription& description) override {
    if (description.result.type == rc::detail::CaseResult::Type::Discard || watched_.left_out()) return;
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
    result_.finding = watched_.was();
  }

  LawResult& result_;
  const Watched& watched_;
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

// What `text` contains for `id`; Error(usage) if it is not a reproduce string or belongs to another law or contract.
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

// Goes on where a search has found nothing, with other seeds, until its time is spent. A round that gives up tells
// nothing that the first did not.
void search_on(Watched& watched, const rc::detail::TestMetadata& metadata, const LawRequest& request, Notes& notes,
               Clock::time_point until, rc::detail::TestResult& verdict) {
  LawRequest round = request;
  while (Clock::now() < until && !watched.hopeless()) {
    ++round.seed;
    const rc::detail::TestResult again = ask(watched, metadata, round, notes, {});
    if (again.is<rc::detail::SuccessResult>() || again.is<rc::detail::GaveUpResult>()) continue;
    verdict = again;
    return;
  }
}

void keep_observation(const Observation& observation, LawResult& result) {
  result.worst_error = observation.worst_error;
  result.tolerance = observation.tolerance;
}

// Asks one other input now and then, whatever comes of it, between tries of what strikes now and then: a fault that
// counts calls might else meet every try at the same count.
// False where that ended the process that is asked, for good.
bool ask_another(const LawRequest& request, const rc::detail::TestMetadata& metadata,
                 const std::function<void(Observation&)>& property, int tries) {
  constexpr int kSeldom = 32;  // a tenth of the time: others are larger than what was shrunk
  if (tries % kSeldom != 1) return true;
  LawRequest other = request;
  other.seed += static_cast<std::uint64_t>(tries);
  other.max_success = 1;
  other.shrink_tries = 0;
  Watched watched(other, property, true);
  rc::detail::TestListenerAdapter silent;
  ask(watched, metadata, other, silent, {});
  return request.revives || !watched.was_gone();
}

// A counterexample that held, asked again alone, so often and for so long: what strikes now and then. (A replay by
// RapidCheck runs every larger input that it was shrunk from, each time.)
class AskedAgain {
 public:
  AskedAgain(Watched& watched, const rc::detail::Reproduce& reproduce) {
    const rc::detail::Property asked = rc::detail::toProperty([&watched] { watched(); });
    at_ = rc::shrinkable::walkPath(asked(reproduce.random, reproduce.size), reproduce.shrinkPath);
  }

  // Nothing where it held again; or cannot be found, since the property draws otherwise than it did.
  std::optional<rc::detail::CaseDescription> fails() const {
    if (!at_) return std::nullopt;
    rc::detail::CaseDescription description = at_->value();
    if (description.result.type != rc::detail::CaseResult::Type::Failure) return std::nullopt;
    return description;
  }

 private:
  rc::Maybe<rc::Shrinkable<rc::detail::CaseDescription>> at_;
};

// Runs the counterexample alone and without a limit, as a replay will, to get its message. One that holds is asked
// again, as a replay will, too.
void confirm(const rc::detail::FailureResult& failure, const rc::detail::TestMetadata& metadata,
             const LawRequest& request, const std::function<void(Observation&)>& property, LawResult& result) {
  constexpr int kMostTries = 100;
  const Clock::time_point until = Clock::now() + request.shrink_time;
  Watched watched(request, property, false);
  const AskedAgain counterexample(watched, failure.reproduce);
  int tries = 0;
  while (tries < kMostTries && (tries == 0 || Clock::now() < until)) {
    if (tries > 0 && !ask_another(request, metadata, property, tries)) break;
    const auto confirmed = counterexample.fails();
    ++tries;
    if (!confirmed) continue;
    result.message = confirmed->result.description;
    result.counterexample = named(confirmed->example());
    result.finding = watched.was();
    keep_observation(watched.last(), result);
    result.finding.seldom = tries > 1;
    if (tries > 1) result.message += fmt::format("\n{}: run again it was seen at try {}", kNowAndThen, tries);
    return;
  }
  result.finding.seldom = true;
  result.message += fmt::format("\n{}: it held when run again, {} times; the implementation does not repeat itself",
                                kNowAndThen, tries);
}

// What a replay met behind its first try.
void note_struck(const rc::detail::CaseDescription& struck, int tries, const Watched& watched, LawResult& result) {
  result.outcome = watched.was_gone() ? Outcome::error : Outcome::falsified;
  result.message = fmt::format("{}\n{}: seen again at try {}", struck.result.description, kNowAndThen, tries);
  result.counterexample = named(struck.example());
  result.finding = watched.was();
  result.finding.seldom = true;
}

bool is_replay(const LawRequest& request) { return !request.reproduce.empty(); }

bool has_failed(const LawResult& result) {
  return result.outcome == Outcome::falsified || result.outcome == Outcome::error;
}

// A replay's tries, the first included, and a failure in one behind the first.
struct Retries {
  int tries = 1;
  std::optional<rc::detail::CaseDescription> struck;
};

// Asks a counterexample that held again, until it fails or its tries and its time are over.
Retries ask_until_it_strikes(Watched& watched, const rc::detail::Reproduce& reproduce,
                             const rc::detail::TestMetadata& metadata, const LawRequest& request,
                             const std::function<void(Observation&)>& property, Clock::time_point until) {
  Retries retries;
  const AskedAgain counterexample(watched, reproduce);
  while (!retries.struck && retries.tries < request.replay_tries && Clock::now() < until + request.replay_time) {
    if (!ask_another(request, metadata, property, retries.tries)) break;
    ++retries.tries;
    retries.struck = counterexample.fails();
  }
  return retries;
}

void note_failure(const rc::detail::FailureResult& failure, const rc::detail::TestMetadata& metadata,
                  const LawRequest& request, const std::function<void(Observation&)>& property, const Watched& watched,
                  LawResult& result) {
  result.reproduce = is_replay(request) ? request.reproduce : reproduce_string(metadata.id, failure.reproduce);
  result.outcome = watched.was_gone() ? Outcome::error : Outcome::falsified;
  if (is_replay(request)) {
    result.message = failure.description;
    result.counterexample = named(failure.counterExample);
    result.finding = watched.was();
  } else if (result.outcome == Outcome::falsified || request.revives) {
    confirm(failure, metadata, request, property, result);
  }
}

// A success, a search that gave up, or an error.
void note_no_failure(const rc::detail::TestResult& verdict, bool replaying, int tries, const Watched& watched,
                     LawResult& result) {
  rc::detail::GaveUpResult gave_up;
  rc::detail::Error error;
  if (verdict.match(gave_up)) {
    const bool refused = !watched.unsupported_because().empty();
    result.outcome = refused && result.cases_run == 0 ? Outcome::not_run : Outcome::gave_up;
    result.message = refused ? watched.unsupported_because() : gave_up.description;
  } else if (verdict.match(error)) {
    // RapidCheck reports an error if a replayed counterexample does not fail; for us that is a pass.
    const bool mended = replaying && watched.last_held();
    result.outcome = mended ? Outcome::passed : Outcome::error;
    result.message = !mended ? error.description
                             : fmt::format("the counterexample held in {}",
                                           tries > 1 ? fmt::format("all {} tries", tries) : "its one try");
  } else {
    result.outcome = result.cases_run > 0 ? Outcome::passed : Outcome::not_run;
    if (result.cases_run == 0) result.message = "no case was asked for";
  }
}

// What the outcome says of the finding, and of what the implementation lacks.
void conclude(const LawRequest& request, const Watched& watched, LawResult& result) {
  const bool failed = has_failed(result);
  if (!failed) result.finding = {};
  result.lacks = failed                                                                     ? watched.was_lacking()
                 : result.outcome == Outcome::not_run || result.outcome == Outcome::gave_up ? watched.refused_for()
                                                                                            : std::nullopt;
  result.finding.promised = failed && request.contract == Contract::handout;
}

}  // namespace

void look_in_promised(const LawRequest& request, LawResult& found,
                      const std::function<LawResult(const LawRequest&)>& search_promised) {
  if (!has_failed(found) || !is_severe(found.finding.kind) || found.finding.promised || is_replay(request)) return;
  LawRequest asked = request;
  asked.contract = Contract::handout;
  asked.search_time = asked.shrink_time = {};
  asked.shrink_tries = 0;
  asked.revives = false;
  if (asked.most_time.count() == 0) asked.most_time = kMostOfPromised;
  const Clock::time_point began = Clock::now();
  const auto so_far = [&]() -> std::chrono::nanoseconds {
    return request.spent ? request.spent() : Clock::now() - began;
  };
  const std::chrono::nanoseconds before = so_far();
  asked.spent = [&] { return so_far() - before; };
  const LawResult inside = search_promised(asked);
  found.looking_in_promised = asked.spent();
  if (!has_failed(inside) || !is_severe(inside.finding.kind)) return;
  found.finding.promised = true;
  std::string input;
  for (const auto& [name, value] : inside.counterexample) input += fmt::format(" {}={}", name, value);
  found.message += fmt::format("\nit fails on inputs of the hand-out as well:{}", input);
}

LawResult search(const std::string& id, const LawRequest& request, const std::function<void(Observation&)>& property) {
  LawResult result;
  result.seed = request.seed;
  // The generators depend on the contract, so a reproduce string is bound to it.
  const rc::detail::TestMetadata metadata{fmt::format("{}/{}", id, to_string(request.contract)), id};
  const bool replaying = is_replay(request);
  std::unordered_map<std::string, rc::detail::Reproduce> reproduce;
  if (replaying) reproduce[metadata.id] = parse_reproduce(request.reproduce, metadata.id);

  Watched watched(request, property, !replaying);
  Notes notes(result, watched);
  const Clock::time_point until = Clock::now() + request.search_time;
  rc::detail::TestResult verdict = ask(watched, metadata, request, notes, reproduce);
  if (!replaying && result.cases_run > 0 && verdict.is<rc::detail::SuccessResult>()) {
    search_on(watched, metadata, request, notes, until, verdict);
  }
  Retries retries;
  if (replaying && watched.last_held()) {
    retries = ask_until_it_strikes(watched, reproduce.at(metadata.id), metadata, request, property, until);
  }
  if (replaying) result.cases_run = retries.tries;
  keep_observation(replaying ? watched.last() : watched.worst(), result);

  rc::detail::FailureResult failure;
  if (retries.struck) {
    note_struck(*retries.struck, retries.tries, watched, result);
    result.reproduce = request.reproduce;
  } else if (watched.hopeless() && !replaying) {
    result.outcome = Outcome::not_run;
    result.cases_run = 0;
    result.message = watched.unsupported_because();
  } else if (verdict.match(failure)) {
    note_failure(failure, metadata, request, property, watched, result);
  } else {
    note_no_failure(verdict, replaying, retries.tries, watched, result);
  }
  conclude(request, watched, result);
  return result;
}

}  // namespace syslab::check
