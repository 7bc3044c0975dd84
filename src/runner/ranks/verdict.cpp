#include "runner/ranks/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "runner/slowest.hpp"
#include "runner/united_facts.hpp"

namespace syslab::runner {
namespace {

constexpr std::size_t kOthersTold = 4;     // in the reason; the facts have all
constexpr std::size_t kLongestWord = 240;  // of another rank's reason

std::string seen(const Ending& ending) {
  return ending.last_progress.empty() ? "" : fmt::format("; last seen: {}", ending.last_progress);
}

// Which rank is at fault for its bad end: by its own report, its exit code or its signal.
Fault fault_of(const Ending& ending) {
  if (ending.end && ending.end->fault) return *ending.end->fault;
  if (!ending.end && ending.exit && !ending.exit->signalled)
    return fault_of_exit_code(ending.exit->code).value_or(Fault::own);
  return Fault::own;
}

bool blames_others(const Ending& ending) {
  const Fault fault = fault_of(ending);
  return fault == Fault::peer || fault == Fault::late || fault == Fault::rendezvous;
}

std::string short_first_line(const std::string& text) {
  std::string line = first_line(text);
  if (line.size() > kLongestWord) line = line.substr(0, kLongestWord) + "…";
  return line;
}

class Verdicts {
 public:
  Verdicts(std::vector<RankEnding>& ranks, const MeasureSpec& spec, const OomWitness& witness)
      : ranks_(ranks), spec_(spec) {
    for (RankEnding& rank : ranks) {
      judged_.push_back(judge(rank.ending, spec, witness));
      if (!rank.silenced) continue;
      judged_.back().status = Status::aborted;
      judged_.back().detail = "killed when another rank had ended";
    }
  }

  Launch joined() {
    Launch launch;
    decide(launch);
    for (std::size_t i = 0; i < judged_.size(); ++i) take_records(static_cast<int>(i), launch.records);
    if (launch.status == Status::ok) {
      const worker::EndRecord end = believed({Status::ok, ""}, launch.records);
      launch.status = end.status;
      launch.detail = end.detail;
    }
    for (worker::MetricRecord& metric : metrics_of_all_ranks(launch.records))
      launch.records.emplace_back(std::move(metric));
    launch.facts_json = facts();
    return launch;
  }

 private:
  template <typename Holds>
  std::optional<std::size_t> first_bad(Holds holds) const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!ranks_[i].bad || !holds(ranks_[i].ending)) continue;
      if (!first || *ranks_[i].bad < *ranks_[*first].bad) first = i;
    }
    return first;
  }

  void decide(Launch& launch) const {
    const auto find = [&](auto holds) {
      const auto found = std::find_if(ranks_.begin(), ranks_.end(), holds);
      return found == ranks_.end() ? std::nullopt : std::optional<std::size_t>(found - ranks_.begin());
    };
    if (const auto interrupted = find([](const RankEnding& it) { return it.ending.interrupted != 0; })) {
      launch.status = judged_[*interrupted].status;
      launch.detail = judged_[*interrupted].detail;
      return;
    }
    const auto stopped = stopped_longest();
    if (stopped && ranks_[*stopped].overdue) return blame_stopped(*stopped, launch);
    const auto own = first_bad([](const Ending& it) { return !blames_others(it) && fault_of(it) != Fault::awaited; });
    if (own) return blame(*own, launch);
    // Before those that others guess at, and those that are merely silent: on a busy machine a rank that is well may
    // not beat, and may say nothing in time, too.
    if (stopped) return blame_stopped(*stopped, launch);
    if (const auto awaited = first_bad([](const Ending& it) { return fault_of(it) == Fault::awaited; })) {
      return blame(*awaited, launch);
    }
    const auto other = first_bad([](const Ending&) { return true; });
    const auto silent = find([](const RankEnding& it) { return it.silenced || (it.ending.timed_out && !it.bad); });
    if (other && silent) {
      launch.status = Status::timeout;
      launch.detail = fmt::format("rank {} said nothing while others waited for it, and was killed{}{}", *silent,
                                  seen(ranks_[*silent].ending), others(*silent));
      return;
    }
    if (other) return blame(*other, launch);
    if (silent) {  // no rank has ended badly, and the time is up
      launch.status = Status::timeout;
      launch.detail = fmt::format("stopped after {}", format_duration(spec_.timeout));
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        launch.detail += fmt::format("\nrank {} {}", i, ranks_[i].ending.end ? "had ended ok" : "was killed") +
                         seen(ranks_[i].ending);
      }
      return;
    }
    launch.status = Status::ok;
  }

  std::optional<std::size_t> stopped_longest() const {
    std::optional<std::size_t> longest;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].bad || ranks_[i].stopped_for.count() == 0) continue;
      if (!longest || ranks_[i].stopped_for > ranks_[*longest].stopped_for) longest = i;
    }
    return longest;
  }

  void blame_stopped(std::size_t stopped, Launch& launch) const {
    launch.status = Status::timeout;
    launch.detail = fmt::format("rank {} was stopped (SIGSTOP or its like), and was killed{}{}", stopped,
                                seen(ranks_[stopped].ending), others(stopped));
  }

  void blame(std::size_t culprit, Launch& launch) const {
    launch.status = judged_[culprit].status;
    launch.detail = fmt::format("rank {}: {}{}", culprit, judged_[culprit].detail, others(culprit));
  }

  // What became of those that did not end well after it, a line each.
  std::string others(std::size_t culprit) const {
    std::string text;
    std::size_t told = 0, more = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const bool ended = ranks_[i].bad.has_value(), silent = ranks_[i].silenced || ranks_[i].ending.timed_out;
      if (i == culprit || (!ended && !silent)) continue;
      if (++told > kOthersTold) {
        ++more;
        continue;
      }
      text += ended ? fmt::format("\nrank {} then ended {}: {}", i, to_string(judged_[i].status),
                                  short_first_line(judged_[i].detail))
                    : fmt::format("\nrank {} was killed{}", i, seen(ranks_[i].ending));
    }
    if (more > 0) text += fmt::format("\nand {} more", more);
    return text;
  }

  void take_records(int rank, std::vector<worker::Record>& records) {
    for (worker::Record& record : judged_[rank].records) {
      std::visit(
          [rank](auto& one) {
            if constexpr (requires { one.rank; }) one.rank = rank;
          },
          record);
      if (auto* check = std::get_if<worker::CheckRecord>(&record)) check->name += fmt::format(" (rank {})", rank);
      auto* artifact = std::get_if<worker::ArtifactRecord>(&record);
      if (artifact != nullptr && rank > 0) artifact->kind += fmt::format(" (rank {})", rank);
      records.push_back(std::move(record));
    }
  }

  std::string facts() const {
    std::vector<Json> each;
    for (std::size_t i = 0; i < judged_.size(); ++i) {
      each.push_back(parse_json(judged_[i].facts_json));
      each.back()["status"] = to_string(judged_[i].status);
      if (!judged_[i].detail.empty()) each.back()["detail"] = judged_[i].detail;
      if (ranks_[i].bad) each.back()["fault"] = to_string(fault_of(ranks_[i].ending));
    }
    Json facts = united_facts(each);
    for (const char* own : {"detail", "fault", "exit", "stderr_tail"}) facts.erase(own);
    facts["ranks"] = std::move(each);
    return repaired_json_text(facts);
  }

  std::vector<RankEnding>& ranks_;
  const MeasureSpec& spec_;
  std::vector<Launch> judged_;
};

}  // namespace

Launch judge_ranks(std::vector<RankEnding>& ranks, const MeasureSpec& spec, const OomWitness& witness) {
  return Verdicts(ranks, spec, witness).joined();
}

}  // namespace syslab::runner
