// The parent killed at any moment: what it acknowledged is there, and nothing of it is left.
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/selftest/counted_faults.hpp"
#include "experiments/selftest/scratch_lab.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_crash {
namespace {

using namespace std::chrono_literals;
using namespace selftest;

// SECURITY.md promises a second; twice as much again is for a busy machine.
constexpr auto kDying = 3s;
constexpr auto kNoPromise = 60s;
constexpr std::int64_t kCases = 40;
constexpr int kTriesPerKill = 4;

// When to kill: `after` so many promises (0: from the start), and so much later.
struct Moment {
  std::int64_t promises = 0;
  std::chrono::microseconds delay{0};
};

class Kills {
 public:
  explicit Kills(worker::CaseContext& context)
      : context_(context),
        kind_(context.params().text("kind")),
        planted_(context.params().text("planted")),
        random_(context.stream("moments")) {}

  void strike_all(std::int64_t count) {
    for (std::int64_t round = 0; kills_ < count && round < kTriesPerKill * count; ++round) {
      if (kind_ == "start" && round > 0) {
        look_for_acknowledged();
        lab_.start_afresh();
      }
      strike();
      context_.progress(static_cast<double>(kills_) / static_cast<double>(count),
                        fmt::format("{} kills, {} attempts acknowledged", kills_, acknowledged_in_all_));
    }
    if (planted_ == "lost") acknowledge("01900000-0000-7000-8000-000000000000");
    look_for_acknowledged();
    tell(count);
  }

 private:
  Moment moment() {
    const auto up_to = [&](double most) { return static_cast<std::int64_t>(most * random_.uniform(drawn_++)); };
    if (kind_ == "start") return {0, std::chrono::microseconds(up_to(40'000))};
    if (kind_ == "ranks") return {0, std::chrono::microseconds(up_to(600'000))};
    const std::int64_t promises = 1 + up_to(static_cast<double>(kCases - 10));
    return {promises, std::chrono::microseconds(kind_ == "between" ? up_to(8'000) : 0)};
  }

  std::vector<std::string> what_is_run() const {
    if (kind_ == "ranks") {
      return {"run", "selftest_ranks", "-a", "world_size=2", "-a", "steps=20,21,22,23,24,25,26,27", "--json"};
    }
    return {"run", "selftest_empty", "-a", fmt::format("repeat=1:{}:1", kCases), "--json"};
  }

  void acknowledge(const std::string& uid) {
    acknowledged_.insert(uid);
    ++acknowledged_in_all_;
  }

  void strike() {
    const Moment moment = this->moment();
    Running running = lab_.start(what_is_run());
    Lines lines(running.output.get());
    std::int64_t promised = 0;
    auto deadline = Clock::now() + (moment.promises == 0 ? Clock::duration(moment.delay) : kNoPromise);
    while (promised < moment.promises || moment.delay > 0us) {
      const auto line = lines.next(deadline);
      if (!line) break;
      const auto attempt = attempt_of(*line);
      if (!attempt) continue;
      acknowledge(attempt->at("attempt").get<std::string>());
      if (++promised == moment.promises) deadline = Clock::now() + moment.delay;
    }
    ::kill(running.process.pid(), SIGKILL);
    const auto last = Clock::now() + kDying;  // what it said before is a promise, too
    while (const auto line = lines.next(last)) {
      if (const auto attempt = attempt_of(*line)) acknowledge(attempt->at("attempt").get<std::string>());
    }
    std::optional<Process> planted;
    if (planted_ == "process" && kills_ == 0) planted.emplace(lab_.plant_process());
    processes_left_ += lab_.processes_left(kDying);
    kills_ += running.process.wait().signalled ? 1 : 0;
    planted.reset();
    reap_orphans();
    go_on_with_it();
  }

  // The next command of the same user finds a database that it can use, and removes what the killed one left.
  void go_on_with_it() {
    const Finished next = lab_.run({"run", "selftest_empty", "--json"});
    if (next.exit.signalled || next.exit.code != 0) ++damaged_;
    for (const std::string& line : next.lines) {
      if (const auto attempt = attempt_of(line)) acknowledge(attempt->at("attempt").get<std::string>());
    }
    if (planted_ == "file" && kills_ == 1) lab_.plant_file();
    files_left_ += lab_.files_left();
  }

  // In the database that is in use, by a process that has no part in what was written.
  void look_for_acknowledged() {
    if (planted_ == "damage") std::ofstream(lab_.database(), std::ios::in | std::ios::out) << "not SQLite";
    const Finished doctor = lab_.run({"doctor"});
    if (doctor.exit.signalled || doctor.exit.code != 0) ++damaged_;
    const Finished query = lab_.run({"query", "SELECT attempt_uid FROM v_attempt WHERE status = 'ok'", "--to", "csv"});
    const std::set<std::string> found(query.lines.begin(), query.lines.end());
    for (const std::string& uid : acknowledged_) lost_ += found.contains(uid) ? 0 : 1;
    acknowledged_.clear();
  }

  void tell(std::int64_t count) {
    context_.metric("kills", "1", static_cast<double>(kills_));
    context_.metric("acknowledged", "1", static_cast<double>(acknowledged_in_all_));
    context_.metric("lost", "1", static_cast<double>(lost_));
    context_.metric("damaged", "1", static_cast<double>(damaged_));
    context_.metric("processes_left", "1", static_cast<double>(processes_left_));
    context_.metric("files_left", "1", static_cast<double>(files_left_));
    CountedFaults counted(context_, kills_);
    // First, because it would explain why attempts are not found.
    counted.expect_none("databases", damaged_, "times the database could not be used, or doctor found it damaged");
    counted.expect_none("acknowledged", lost_,
                        fmt::format("of {} acknowledged attempts are lost", acknowledged_in_all_));
    counted.expect_none("processes", processes_left_, "processes are left");
    counted.expect_none("files", files_left_, "files or folders are left");
    counted.expect_none("kills", count - kills_, "kills are missing: the runs ended before them");
    counted.end();
  }

  worker::CaseContext& context_;
  std::string kind_, planted_;
  RandomStream random_;
  std::uint64_t drawn_ = 0;
  ScratchLab lab_;
  std::set<std::string> acknowledged_;  // in this database
  std::int64_t kills_ = 0, acknowledged_in_all_ = 0, lost_ = 0, damaged_ = 0, processes_left_ = 0, files_left_ = 0;
};

void run_case(worker::CaseContext& context) { Kills(context).strike_all(context.params().integer("count")); }

registry::Experiment describe() {
  return registry::experiment("selftest_crash")
      .title("The parent killed at any moment")
      .question(
          "Is everything that a run acknowledged before it was killed found again, and is nothing of it left but its "
          "database?")
      .tags({"selftest"})
      .axis("count", {std::int64_t{10}}, "kills (SIGKILL) of a `syslab run`")
      .axis("seed", {std::int64_t{1}}, "of the moments")
      .closed_axis("kind", {std::string("start"), std::string("promise"), std::string("between"), std::string("ranks")},
                   "when: while it starts on a new database; right upon an acknowledgement; some milliseconds after "
                   "one; at any moment of a run of several ranks")
      .closed_axis("planted", {std::string("none")}, "a violation made on purpose, which must be found",
                   {std::string("lost"), std::string("damage"), std::string("process"), std::string("file")})
      .preset("smoke", {{"count", {std::int64_t{2}}}})
      .preset("paper", {{"count", {std::int64_t{125}}}, {"seed", {std::int64_t{1}, std::int64_t{2}}}})
      .implementation({.name = "selftest", .teaches = "what a promise of a database is worth"})
      .metric("kills", "1", "runs that were killed before they ended")
      .metric("acknowledged", "1", "attempts that were told as stored before")
      .metric("lost", "1", "of these, not found again")
      .metric("damaged", "1", "times the database could not be used, or was found damaged")
      .metric("processes_left", "1", "3 s after the kill")
      .metric("files_left", "1", "after the next command of the same user")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_crash, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_crash
