// A case of several ranks, and every way in which one of them can spoil it: the tests of the runner ask for them by
// name. The ranks meet through files in the folder of their launch, or at a store where they are on several hosts, and
// know nothing of communicators.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous/rendezvous.hpp"
#include "core/rank_error.hpp"
#include "registry/registry.hpp"
#include "stats/summary.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_ranks {
namespace {

using worker::CaseContext;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::int64_t kFaultyStep = 2;
constexpr std::chrono::milliseconds kStarting = 20s;
constexpr auto kStartingLate = 6s;  // where a fault asks for it

// One number of each rank at each step: a file each, or an entry of a store.
class Meeting {
 public:
  explicit Meeting(CaseContext& context) : context_(context), limit_(context.params().integer("limit_ms")) {
    const std::string& rendezvous = context.request().rendezvous;
    if (context.world_size() == 1) return;  // nobody to meet
    if (rendezvous.starts_with("file:")) {
      folder_ = rendezvous.substr(5);
    } else {
      store_ = comm::open_rendezvous({.address = rendezvous,
                                      .rank = context.rank(),
                                      .size = context.world_size(),
                                      .limit = std::max(limit_, kStarting)});
    }
  }

  // The numbers of all ranks, by rank.
  std::vector<double> exchange(std::int64_t step, double own) {
    if (context_.world_size() == 1) return {own};
    tell(step, fmt::format("{}", own));
    std::vector<double> all;
    for (int rank = 0; rank < context_.world_size(); ++rank) {
      all.push_back(rank == context_.rank() ? own : received(step, rank));
    }
    return all;
  }

 private:
  static std::string name(std::int64_t step, int rank) { return fmt::format("{}-{}", step, rank); }

  void tell(std::int64_t step, const std::string& text) {
    if (store_ != nullptr) return store_->set(name(step, context_.rank()), text);
    // A rank that sees the file sees all of it.
    const std::filesystem::path unfinished = folder_ / fmt::format("unfinished-{}", context_.rank());
    std::ofstream(unfinished) << text << '\n';
    std::filesystem::rename(unfinished, folder_ / name(step, context_.rank()));
  }

  double received(std::int64_t step, int rank) const {
    // Processes start one after the other, on a busy machine seconds apart; that is not a fault.
    const std::chrono::milliseconds limit = step == 0 ? std::max(limit_, kStarting) : limit_;
    const std::optional<std::string> text =
        store_ != nullptr ? store_->find(name(step, rank), limit) : text_of_file(folder_ / name(step, rank), limit);
    if (!text) {
      throw RankError(Fault::late,
                      fmt::format("rank {} did not come to step {} within {} ms", rank, step, limit_.count()));
    }
    return std::strtod(text->c_str(), nullptr);  // streams read no NaN
  }

  static std::optional<std::string> text_of_file(const std::filesystem::path& file, std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    std::string text;
    while (!(std::ifstream(file) >> text)) {
      if (Clock::now() >= until) return std::nullopt;
      std::this_thread::sleep_for(200us);
    }
    return text;
  }

  CaseContext& context_;
  std::chrono::milliseconds limit_;
  std::filesystem::path folder_;
  std::unique_ptr<comm::Rendezvous> store_;
};

using FaultBody = std::function<void(CaseContext&)>;

// What the faulty rank does before it exchanges its number. Those that are not here change the number, or the check.
const std::map<std::string, FaultBody, std::less<>>& faults() {
  static const std::map<std::string, FaultBody, std::less<>> table{
      {"none", [](CaseContext&) {}},
      {"crash",
       [](CaseContext&) {
         ::signal(SIGSEGV, SIG_DFL);
         ::raise(SIGSEGV);
       }},
      {"exit", [](CaseContext&) { std::fputs("leaving the others\n", stderr), ::_exit(71); }},
      {"hang", [](CaseContext&) { std::this_thread::sleep_for(1h); }},
      {"stop", [](CaseContext&) { ::raise(SIGSTOP); }},
      {"stop_among_silent", [](CaseContext&) { ::raise(SIGSTOP); }},
      {"stop_before_others", [](CaseContext&) { ::raise(SIGSTOP); }},
      {"stop_among_starved", [](CaseContext&) { ::raise(SIGSTOP); }},
      {"stop_among_blamed", [](CaseContext&) { ::raise(SIGSTOP); }},
      {"throw", [](CaseContext&) { throw Error(ErrorKind::device, "the fault 'throw' was asked for", "cudaMalloc"); }},
      {"foreign", [](CaseContext&) { throw Error(ErrorKind::comm, "the worker 'fake' ended while running forward"); }},
      {"oom", [](CaseContext&) { throw std::bad_alloc(); }},
      {"unsupported", [](CaseContext&) { throw worker::Unsupported("needs 6 GPUs"); }},
      {"late", [](CaseContext&) { std::this_thread::sleep_for(100ms); }},
      {"nan", [](CaseContext&) {}},
      {"wrong", [](CaseContext&) {}},
      {"all_hang", [](CaseContext&) {}},
      {"leaves_early", [](CaseContext&) {}},
  };
  return table;
}

void check_sum(CaseContext& context, const std::vector<double>& numbers, bool wrong) {
  const int ranks = context.world_size();
  double sum = wrong ? 1 : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (std::isnan(numbers[static_cast<std::size_t>(rank)])) {
      worker::CheckRecord check{.name = "selftest:sum", .outcome = Outcome::falsified, .cases_run = 1};
      check.seed = std::to_string(context.request().seed);
      check.message = fmt::format("the number of rank {} is NaN", rank);
      context.emit(check);
      throw worker::CheckFailed(check.message);
    }
    sum += numbers[static_cast<std::size_t>(rank)];
  }
  const double expected = 0.5 * ranks * (ranks + 1);
  worker::CheckRecord check{
      .name = "selftest:sum", .outcome = sum == expected ? Outcome::passed : Outcome::falsified, .cases_run = 1};
  check.worst_error = std::abs(sum - expected);
  check.tolerance = 0;
  check.seed = std::to_string(context.request().seed);
  check.message = fmt::format("the sum over {} is {}, expected {}",
                              ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), sum, expected);
  context.emit(check);
}

void emit_times(CaseContext& context, const std::vector<double>& seconds) {
  context.emit(worker::SampleRecord{.series = "time", .unit = "s", .values = seconds});
  const stats::Summary summary = stats::summarize(seconds);
  context.emit(worker::MetricRecord{.name = "time",
                                    .unit = "s",
                                    .value = summary.median,
                                    .low = summary.median_95.low,
                                    .high = summary.median_95.high,
                                    .n = summary.n});
}

// The steps of one rank, numbered through.
class Steps {
 public:
  explicit Steps(CaseContext& context)
      : context_(context),
        fault_(context.params().text("fault")),
        share_(context.params().integer("share_us")),
        is_faulty_(context.rank() == context.world_size() - 1),
        meeting_(context) {}

  // Seconds of this rank's share, which ends before it waits for the others.
  double take() {
    const auto began = Clock::now();
    std::this_thread::sleep_for(share_ * (context_.rank() + 1));  // they differ
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    double own = context_.rank() + 1;
    const bool now = step_ == kFaultyStep;
    const bool in_between = context_.rank() > 0 && !is_faulty_;
    if (step_ == 0 && fault_ == "stop_before_others") stop_before_others();
    if (now) {
      context_.progress(0.5, fmt::format("step {} with the fault '{}'", step_, fault_));
      if (in_between && fault_ == "stop_among_blamed") throw RankError(Fault::awaited, "others waited for rank 1");
      if (in_between && fault_ == "stop_among_starved") stop_as_if_starved();
      if (fault_ == "all_hang" || (fault_ == "stop_among_silent" && in_between)) faults().at("hang")(context_);
      if (is_faulty_) faults().at(fault_)(context_);
      if (is_faulty_ && fault_ == "nan") own = std::numeric_limits<double>::quiet_NaN();
    }
    numbers_ = meeting_.exchange(step_++, own);
    if (now) check(is_faulty_ && fault_ == "wrong");
    return seconds;
  }

  bool leaves_now() const { return is_faulty_ && fault_ == "leaves_early" && step_ > kFaultyStep; }
  void check(bool wrong = false) { check_sum(context_, numbers_, wrong); }

 private:
  // The others are long in starting, as on a busy machine.
  void stop_before_others() {
    context_.progress(0, "about to start");
    if (is_faulty_) faults().at(fault_)(context_);
    std::this_thread::sleep_for(kStartingLate);
  }

  // Later than the faulty rank, but still so when that is noticed.
  void stop_as_if_starved() {
    std::this_thread::sleep_for(600ms);
    ::raise(SIGSTOP);
  }

  CaseContext& context_;
  std::string fault_;
  std::chrono::microseconds share_;
  bool is_faulty_;
  Meeting meeting_;
  std::int64_t step_ = 0;
  std::vector<double> numbers_;
};

// All ranks get the same orders, so that as many steps a burst keep them together.
void take_bursts(CaseContext& context, Steps& steps) {
  constexpr std::int64_t kSteps = 2;
  for (std::int64_t step = 0; step <= kFaultyStep; ++step) steps.take();
  const std::vector<double> seconds = worker::serve_bursts(context.bursts(), {kSteps, 1e-3}, [&] {
    const auto began = Clock::now();
    for (std::int64_t step = 0; step < kSteps; ++step) steps.take();
    return std::chrono::duration<double>(Clock::now() - began).count() / kSteps;
  });
  emit_times(context, seconds);
}

void run_case(CaseContext& context) {
  Steps steps(context);
  if (context.is_paired()) return take_bursts(context, steps);
  std::vector<double> seconds;
  for (std::int64_t step = 0; step < context.params().integer("steps"); ++step) {
    seconds.push_back(steps.take());
    if (steps.leaves_now()) return;
  }
  steps.check();
  emit_times(context, seconds);
  const char* threads = std::getenv("OMP_NUM_THREADS");
  const std::string& rendezvous = context.request().rendezvous;
  context.emit(
      worker::FactRecord{fmt::format(R"({{"threads": "{}", "met_at": "{}"}})", threads == nullptr ? "" : threads,
                                     rendezvous.substr(0, rendezvous.find(':')))});
  context.metric("answer", "1", context.rank() + 1);
  context.emit(worker::MemoryEventRecord{
      .t_ns = 1, .delta_bytes = 64 * (context.rank() + 1), .tag = "share", .category = "other"});
  context.emit(worker::ArtifactRecord{"note", "text/plain",
                                      fmt::format("I was rank {} of {}", context.rank(), context.world_size())});
}

registry::Experiment describe() {
  return registry::experiment("selftest_ranks")
      .title("Ranks that work together")
      .question("Does a case of several processes end as one, in its status, with the rank that is to blame?")
      .tags({"selftest"})
      .closed_axis("fault", {std::string("none")}, "what goes wrong in the last rank",
                   [] {
                     Values names;
                     for (const auto& [name, body] : faults()) {
                       if (name != "none") names.emplace_back(name);
                     }
                     return names;
                   }())
      .axis("steps", {std::int64_t{8}}, "how often the ranks meet")
      .axis("share_us", {std::int64_t{500}},
            "what rank 0 works at a step, in microseconds; rank 1 twice that, and so on")
      .axis("limit_ms", {std::int64_t{10'000}}, "how long a rank waits for another, in milliseconds")
      .limits_waits_by("limit_ms")
      .world_sizes({std::int64_t{2}, std::int64_t{3}})
      .preset("smoke", {{"world_size", {std::int64_t{2}}}})
      .implementation({.name = "selftest", .teaches = "how ranks begin and end together"})
      .metric("answer", "1", "the rank's number, to find again in the store")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_ranks, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_ranks
