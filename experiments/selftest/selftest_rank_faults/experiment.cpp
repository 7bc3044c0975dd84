// A rank killed or stopped at any moment: the others end, the attempt names it in time, and nothing is left.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "experiments/selftest/counted_faults.hpp"
#include "experiments/selftest/scratch_lab.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_rank_faults {
namespace {

using namespace std::chrono_literals;
using namespace selftest;
using Seconds = std::chrono::duration<double>;

constexpr int kRanks = 3;
constexpr auto kGrace = 3s;      // beyond the ranks' limit, for the attempt to be told
constexpr auto kPatience = 60s;  // for what must come in the end
constexpr int kTriesPerFault = 3;

class RankFaults {
 public:
  explicit RankFaults(worker::CaseContext& context)
      : context_(context),
        stops_(context.params().text("kind").starts_with("stop")),
        early_(context.params().text("kind").ends_with("start")),
        planted_(context.params().text("planted")),
        limit_(context.params().integer("limit_ms")),
        random_(context.stream("moments")) {}

  void strike_all(std::int64_t count) {
    for (std::int64_t round = 0; faults_ < count && round < kTriesPerFault * count; ++round) {
      strike();
      context_.progress(static_cast<double>(faults_) / static_cast<double>(count),
                        fmt::format("{} faults, {} named", faults_, named_));
    }
    tell(count);
  }

 private:
  double up_to(double most) { return most * static_cast<double>(random_.uniform(drawn_++)); }

  // The process of that rank, once it is there and, unless the fault is to come during the start, all others are.
  static std::optional<pid_t> await(const Running& lab, int rank, bool all) {
    const auto wanted = static_cast<std::size_t>(all ? kRanks : rank + 1);
    for (const auto deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
      const std::vector<pid_t> workers = workers_of(lab.process.pid());
      if (workers.size() >= wanted) return workers[static_cast<std::size_t>(rank)];
      std::this_thread::sleep_for(200us);
    }
    return std::nullopt;
  }

  void strike() {
    const int rank = std::min(kRanks - 1, static_cast<int>(up_to(kRanks)));
    Running lab = lab_.start({"run", "selftest_collectives", "-a", fmt::format("world_size={}", kRanks), "-a",
                              fmt::format("limit_ms={}", limit_.count()), "-a", "steps=4000", "--json"});
    Lines lines(lab.output.get());
    const std::optional<pid_t> victim = await(lab, rank, !early_);
    std::this_thread::sleep_for(early_ ? Seconds(up_to(0.02)) : Seconds(0.2 + up_to(0.6)));
    const auto struck = Clock::now();
    if (victim) ::kill(*victim, stops_ ? SIGSTOP : SIGKILL);
    std::optional<Json> attempt;
    while (const auto line = lines.next(struck + limit_ + kPatience)) {
      if (attempt = attempt_of(*line); attempt) break;
    }
    const Seconds took = Clock::now() - struck;
    while (lines.next(Clock::now() + kPatience)) {
    }
    if (!lines.ended()) lab.process.kill_group(SIGKILL);  // it hangs, and no attempt was told
    lab.process.wait();
    judge(rank, victim.has_value(), attempt, took);
    look_around();
  }

  void judge(int rank, bool struck, const std::optional<Json>& attempt, Seconds took) {
    if (!struck || (attempt && attempt->at("status") == "ok")) return;  // it was over before the fault
    ++faults_;
    slowest_ = std::max(slowest_, took);
    if (took > limit_ + kGrace) ++late_;
    const std::string detail = attempt ? attempt->at("detail").get<std::string>() : "no attempt was told";
    const int blamed = planted_ == "unnamed" ? rank + 1 : rank;
    if (detail.starts_with(fmt::format("rank {}: ", blamed)) || detail.starts_with(fmt::format("rank {} ", blamed))) {
      ++named_;
    } else if (unnamed_.empty()) {
      unnamed_ = fmt::format("; the first: rank {} was {}, and told was: {}", rank, stops_ ? "stopped" : "killed",
                             detail.substr(0, detail.find('\n')));
    }
  }

  void look_around() {
    std::optional<Process> planted;
    if (planted_ == "process" && faults_ == 1) planted.emplace(lab_.plant_process());
    if (planted_ == "file" && faults_ == 1) lab_.plant_file();
    processes_left_ += lab_.processes_left(kGrace);
    planted.reset();
    reap_orphans();
    files_left_ += lab_.files_left();
  }

  void tell(std::int64_t count) {
    context_.metric("faults", "1", static_cast<double>(faults_));
    context_.metric("named", "1", static_cast<double>(named_));
    context_.metric("late", "1", static_cast<double>(late_));
    context_.metric("slowest", "s", slowest_.count());
    context_.metric("processes_left", "1", static_cast<double>(processes_left_));
    context_.metric("files_left", "1", static_cast<double>(files_left_));
    CountedFaults counted(context_, faults_);
    counted.expect_none("named", faults_ - named_, fmt::format("of {} faults are not named{}", faults_, unnamed_));
    counted.expect_none("in time", late_,
                        fmt::format("faults are told later than {} ms and {} s after them; the last took {:.1f} s",
                                    limit_.count(), kGrace.count(), slowest_.count()));
    counted.expect_none("processes", processes_left_, "processes are left");
    counted.expect_none("files", files_left_, "files or folders are left");
    counted.expect_none("faults", count - faults_, "faults are missing: the ranks were done before them");
    counted.end();
  }

  worker::CaseContext& context_;
  bool stops_, early_;
  std::string planted_;
  std::chrono::milliseconds limit_;
  RandomStream random_;
  std::uint64_t drawn_ = 0;
  ScratchLab lab_;
  std::int64_t faults_ = 0, named_ = 0, late_ = 0, processes_left_ = 0, files_left_ = 0;
  Seconds slowest_{0};
  std::string unnamed_;  // how the first that was not named was told
};

void run_case(worker::CaseContext& context) { RankFaults(context).strike_all(context.params().integer("count")); }

registry::Experiment describe() {
  return registry::experiment("selftest_rank_faults")
      .title("Ranks killed and stopped")
      .question(
          "When a rank dies or stops, while the ranks meet or later, does the attempt end in time, name it, and "
          "leave "
          "nothing?")
      .tags({"selftest"})
      .axis("count", {std::int64_t{5}}, "faults, each in a run of its own")
      .axis("seed", {std::int64_t{1}}, "of ranks and moments")
      .closed_axis(
          "kind",
          {std::string("kill_start"), std::string("kill_later"), std::string("stop_start"), std::string("stop_later")},
          "SIGKILL or SIGSTOP; while the ranks start and meet, or later, at some collective")
      .axis("limit_ms", {std::int64_t{2'000}}, "how long a rank waits for another, in milliseconds")
      .closed_axis("planted", {std::string("none")}, "a violation made on purpose, which must be found",
                   {std::string("unnamed"), std::string("process"), std::string("file")})
      .preset("smoke", {{"count", {std::int64_t{1}}}, {"kind", {std::string("kill_later"), std::string("stop_start")}}})
      .preset("paper", {{"count", {std::int64_t{25}}}, {"seed", {std::int64_t{1}, std::int64_t{2}}}})
      .implementation({.name = "selftest", .teaches = "what watches over ranks"})
      .metric("faults", "1", "ranks that were killed or stopped before their work was done")
      .metric("named", "1", "of these, whose rank the attempt names first")
      .metric("late", "1", "of these, told later than the limit and 3 s")
      .metric("slowest", "s", "from a fault to its attempt, at most")
      .metric("processes_left", "1", "3 s after the run's end")
      .metric("files_left", "1", "after the run's end")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_rank_faults, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_rank_faults
