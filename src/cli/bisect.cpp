// Finds the commit that made a case slower: revisions are built, and each is measured in turns beside the first.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/verbs.hpp"
#include "compare/advice.hpp"
#include "compare/bisection.hpp"
#include "compare/kept_builds.hpp"
#include "compare/revisions.hpp"
#include "compare/session.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json_text.hpp"
#include "core/machine_code.hpp"
#include "core/text.hpp"
#include "measure/protocol.hpp"
#include "runner/environment.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "store/cells.hpp"
#include "worker/python_probe.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

// Of every step: of seven steps and a confirmation the chance that any is wrong stays below 8 %, and a wrong step ends
// in a pair of neighbours between which there is no difference, which is then said.
constexpr double kConfidence = 0.99;
constexpr int kMostLaunches = 20;  // of a step, where --launches does not say
constexpr double kDelta = 0.01;    // the loss that counts, where --delta does not say

// Of log(time of the second / time of the first).
struct Ratio {
  double log_ratio = 0, low = 0, high = 0;
  int launches = 0;
  double launch_seconds = 0;  // mean
  std::optional<Judgement> failed;
  bool remembered = false;
};

Ratio ratio_of(std::span<const stats::PairedBlock> blocks) {
  const stats::PairedEstimate estimate = stats::paired_interval(blocks, kConfidence);
  const auto& [low, high] = estimate.interval_95;
  return {.log_ratio = estimate.log_ratio, .low = low, .high = high, .launches = static_cast<int>(estimate.launches)};
}

std::string text_of(const Ratio& ratio) {
  return fmt::format("{} (99 %: {} … {})", change_text(ratio.log_ratio), percent(std::expm1(ratio.low)),
                     percent(std::expm1(ratio.high)));
}

// "me=kernels/flash.py:Flash", split.
struct Mine {
  std::string name, file, behind;  // behind: ":Flash", or nothing
};

Mine split_mine(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorKind::usage, fmt::format("--mine '{}': write NAME=FILE", text));
  }
  Mine mine{text.substr(0, equals), text.substr(equals + 1), {}};
  const std::size_t colon = mine.file.rfind(':');
  if (colon != std::string::npos && mine.file.find('/', colon) == std::string::npos) {
    mine.behind = mine.file.substr(colon);
    mine.file.resize(colon);
  }
  return mine;
}

// Thrown where it cannot go on, and nothing is wrong.
struct Stopped {};    // a signal came
struct BudgetSpent {  // what is stored and built by then is kept
  std::string during;
};

class Search {
 public:
  Search(const Context& context, const BisectOptions& options)
      : context_(context),
        options_(options),
        recipe_(recipe()),
        builds_(context.console, recipe_),
        store_(open_for_writing(context)),
        machine_(runner::comparability_key(runner::environment_facts())),
        end_(std::chrono::steady_clock::now() + duration_option("--budget", options.budget)) {
    const std::string good = commit(options.good), bad = commit(options.bad);
    if (good == bad) throw Error(ErrorKind::usage, "both revisions are the same commit: there is nothing to find");
    commits_ = commits_between(recipe_.repository, good, bad);
  }

  Exit run() {
    first_bad_ = static_cast<int>(commits_.size()) - 1;
    try {
      return search();
    } catch (const Stopped&) {
      return stopped();
    } catch (const BudgetSpent& spent) {
      const bool begun = whole_known_;
      return ended(
          "unclear",
          fmt::format(
              "--budget {} is spent{}{}; the same command goes on", options_.budget, spent.during,
              begun ? fmt::format("; it lies behind {} and not behind {}", named(last_good_), named(first_bad_)) : ""),
          Exit::unclear);
    }
  }

 private:
  Exit search() {
    const int last = static_cast<int>(commits_.size()) - 1;
    note(fmt::format("{} between {} and {}", counted(last - 1, "commit"), named(0), named(last)));
    for (const int end : {0, last}) {
      const Built built = built_of(end);
      if (!built.failed.empty()) throw Error(ErrorKind::usage, fmt::format("{} {}", named(end), built.failed));
    }
    const Ratio whole = measure(0, last, [](const Ratio& found) { return found.low > 0 || found.high < 0; });
    tell(last, whole, "");
    if (whole.failed)
      return ended("unclear", whole.failed->reason, worse(Exit::unclear, exit_of(*whole.failed, false)));
    if (whole.high < 0) {
      return ended("unclear",
                   fmt::format("{} takes less time than {}, not more; exchange them to find what made it so",
                               named(last), named(0)),
                   Exit::unclear);
    }
    if (whole.low <= 0) {
      const double delta = options_.delta ? percent_option("--delta", *options_.delta) : kDelta;
      const std::string hidden =
          what_may_hide(whole.log_ratio, whole.high, delta, whole.launches, whole.launch_seconds);
      return ended(
          "unclear",
          fmt::format("{} and {} do not differ by what {} launches can tell, {}: nothing to find{}", named(last),
                      named(0), whole.launches, text_of(whole), hidden.empty() ? "" : ", but " + hidden),
          Exit::unclear);
    }
    whole_known_ = true;
    return halve(whole);
  }

  // Throws what ends the search.
  Built built_of(int index) {
    Built built = builds_.build(at(index), end_);
    if (built.interrupted) throw Stopped();
    if (built.late) throw BudgetSpent{fmt::format(" while {} was built", named(index))};
    return built;
  }

  void demand_time() const {
    if (std::chrono::steady_clock::now() >= end_) throw BudgetSpent();
  }

  BuildRecipe recipe() {
    const auto top = [&](const std::string& place) {
      const std::string where = options_.repository.empty() ? place : options_.repository;
      const std::optional<std::string> found = repository_of(where);
      if (found) return *found;
      throw Error(ErrorKind::usage, fmt::format("'{}' lies in no git repository; --repository says which", where));
    };
    if (options_.selection.mine.empty()) {
      BuildRecipe made = recipe_of_syslab(top("."));
      if (!options_.build_command.empty()) made.command = options_.build_command;
      if (!options_.artifact.empty()) made.artifact = options_.artifact;
      return made;
    }
    if (options_.selection.mine.size() > 1)
      throw Error(ErrorKind::usage, "bisect takes one --mine: whose history it is");
    mine_ = split_mine(options_.selection.mine[0]);
    const fs::path file = fs::weakly_canonical(mine_->file);
    fs::path folder = file.parent_path();
    while (!fs::is_directory(folder) && folder.has_relative_path()) folder = folder.parent_path();
    BuildRecipe made{top(folder.string()), options_.build_command, {}};
    const fs::path within = file.lexically_relative(fs::weakly_canonical(made.repository));
    if (within.empty() || *within.begin() == "..") {
      throw Error(ErrorKind::usage,
                  fmt::format("--mine {} does not lie in the repository {}", mine_->file, made.repository));
    }
    mine_->file = within.string();
    return made;
  }

  std::string commit(const std::string& revision) const {
    const std::optional<std::string> found = commit_of(recipe_.repository, revision);
    if (found) return *found;
    throw Error(ErrorKind::usage, fmt::format("'{}' is no revision of {}", revision, recipe_.repository));
  }

  const std::string& at(int index) const { return commits_[static_cast<std::size_t>(index)]; }
  std::string named(int index) const { return short_commit(at(index)); }
  std::string titled(int index) const { return named(index) + " " + subject_of(recipe_.repository, at(index)); }

  // What runs there, where that is known without running it: equal of equal programs. Empty: nobody knows.
  std::string code_of(int index) {
    const std::string code = read_code_of(index);
    return code == untrusted_ ? "" : code;
  }

  std::string read_code_of(int index) {
    const Built built = built_of(index);
    if (built.path.empty()) return {};
    if (!mine_) return machine_code_digest(built.path, at(index));
    const std::string code = machine_code_digest(fs::path(built.path) / mine_->file);
    return code.empty() && recipe_.command.empty() ? tree_of(recipe_.repository, at(index)) : code;
  }

  plan::ComparisonPlan plan_of(int a, int b) {
    SelectionOptions words = options_.selection;
    const Built built_a = built_of(a), built_b = built_of(b);
    std::vector<std::string> text;
    if (mine_) {
      const auto spec = [&](int index, const Built& built) {
        return fmt::format("at_{}={}{}", named(index), (fs::path(built.path) / mine_->file).string(), mine_->behind);
      };
      words.mine = {spec(a, built_a), spec(b, built_b)};
      text = {"A:impl=at_" + named(a), "B:impl=at_" + named(b)};
    } else {
      text = {"A:build=" + built_a.path, "B:build=" + built_b.path};
    }
    const plan::Selection selection = to_selection(context_, words);
    plan::ComparisonPlan plan = plan::make_comparison_plan(context_.registry, selection, plan::take_sides(text), false);
    if (plan.points.size() != 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("the case after -- names {} cases; bisect takes one: choose with -a and --impl",
                              plan.points.size()));
    }
    if (!plan.mine.empty() && !looked_at_mine_) {
      looked_at_mine_ = true;
      check_mine(plan.mine);
      note_missing_walls(context_.console);
    }
    return plan;
  }

  // What is measured, but for the two revisions and the case's parameters: only what agrees in all of it is remembered.
  std::string label_of(const plan::ComparisonPlan& plan, const ComparisonConditions& conditions) const {
    const plan::PlannedCase& planned = plan.points[0].a;
    Json what{{"builds", builds_.key()},
              {"implementation", mine_ ? mine_->file + mine_->behind : planned.implementation},
              {"device", planned.device},
              {"world_size", planned.world_size},
              {"protocol", conditions.protocol},
              {"data", conditions.data},
              {"handout", options_.selection.handout}};
    if (mine_) {
      what["python"] = worker::python_interpreter();
      // Of checkouts the sources are the commit's; these two are those of the user's folder, and may change.
      for (const std::string& place : {plan.mine[0].reference, plan.mine[0].inputs}) {
        what["beside"].push_back({place, place.empty() ? "" : sha256_hex_of_file(place.substr(0, place.rfind(':')))});
      }
    }
    return "bisect " + sha256_hex(json_text(what)).substr(0, 16);
  }

  // What an earlier call measured of the same pair on such a machine; interrupted ones do not count.
  std::optional<Ratio> remembered(const plan::ComparisonPlan& plan, const std::string& label) const {
    const plan::ComparisonPoint& point = plan.points[0];
    const store::ResultSet found = store_.query(
        "SELECT k.launch, k.log_ratio,"
        " (SELECT avg(l.value) FROM comparison c, json_each(c.facts, '$.launch_seconds') l WHERE c.id = "
        "k.comparison_id)"
        " FROM comparison_block k WHERE k.comparison_id = (SELECT max(comparison_id) FROM v_comparison"
        " WHERE verb = 'bisect' AND label = ?1 AND label_a = ?2 AND label_b = ?3 AND experiment = ?4 AND params = ?5"
        " AND comparability_key = ?6 AND facts ->> '$.stop' = 'launches') ORDER BY 1, k.block",
        {store::text_cell(label), store::text_cell(plan.sides.a.label()), store::text_cell(plan.sides.b.label()),
         store::text_cell(point.a.experiment->id), store::text_cell(json_text(point.shared.to_json())),
         store::text_cell(machine_)});
    std::vector<stats::PairedBlock> blocks;
    for (const auto& row : found.rows) blocks.push_back({static_cast<int>(row[0].integer), row[1].real});
    if (blocks.empty()) return std::nullopt;
    Ratio ratio = ratio_of(blocks);
    ratio.remembered = true;
    if (found.rows[0][2].type == store::Cell::Type::real) ratio.launch_seconds = found.rows[0][2].real;
    return ratio;
  }

  SideBuild side_build(const std::string& path, const plan::ComparisonPlan& plan) {
    if (path.empty()) return this_build();
    const auto known = asked_.find(path);
    return known != asked_.end()
               ? known->second
               : asked_.emplace(path, ask_build(path, {plan.points[0].a.experiment->id})).first->second;
  }

  // Launches until `clear`, or the most.
  Ratio measure(int a, int b, const std::function<bool(const Ratio&)>& clear) {
    const plan::ComparisonPlan plan = plan_of(a, b);
    const int most = options_.launches.value_or(kMostLaunches);
    ComparisonConditions conditions;
    conditions.protocol =
        measure::find_protocol(options_.protocol.value_or(own_protocol({plan.points[0].a}, false))).name;
    conditions.data = options_.data;
    const std::string label = label_of(plan, conditions);
    if (const auto before = remembered(plan, label); before && (clear(*before) || before->launches >= most)) {
      return *before;
    }
    conditions.launches = most;
    conditions.delta = options_.delta ? std::optional(percent_option("--delta", *options_.delta)) : std::nullopt;
    conditions.timeout = duration_option("--timeout", options_.timeout);
    conditions.memory_limit_bytes = bytes_option("--memory-limit", options_.memory_limit);
    demand_time();
    ComparisonSession session(context_, store_, "bisect", label, plan, conditions, side_build(plan.sides.a.build, plan),
                              side_build(plan.sides.b.build, plan));
    MeasuredPoint measured;
    measured.point = &plan.points[0];
    measured.failed = session.obstacle(plan.points[0]);
    Ratio found;
    bool spent = false;
    for (const int look : looks_until(most)) {
      if (measured.failed) break;
      while (!measured.failed && !spent && measured.launches() < look) {
        spent = std::chrono::steady_clock::now() >= end_;
        if (!spent) session.launch(measured, 1, look, end_);
      }
      if (spent) measured.stop = "budget";
      if (measured.failed || spent) break;
      found = ratio_of(for_stats(measured.blocks));
      measured.stop = "launches";
      if (clear(found)) break;
    }
    found.launch_seconds = measured.seconds_per_launch();
    if (measured.failed || !measured.blocks.empty()) session.keep(measured, session.judged(measured));
    if (session.interrupted()) throw Stopped();
    if (spent) throw BudgetSpent();
    found.failed = measured.failed;
    return found;
  }

  // Of a revision beside the first: has it more than half of what the last has?
  Answer ask(int index, double half) {
    const std::string code = code_of(index);
    if (const auto same = answers_.find(code); !code.empty() && same != answers_.end()) {
      say(index, same->second.first, fmt::format("the same code as {}: not measured", named(same->second.second)));
      return same->second.first;
    }
    const Ratio found =
        measure(0, index, [half](const Ratio& so_far) { return so_far.low > half || so_far.high < half; });
    const Answer answer = found.failed        ? Answer::unknown
                          : found.low > half  ? Answer::bad
                          : found.high < half ? Answer::good
                                              : Answer::unknown;
    tell(index, found, answer == Answer::good ? "good" : answer == Answer::bad ? "bad" : "unclear");
    if (answer == Answer::unknown && !found.failed) unclear_.emplace(index, found);
    if (!code.empty() && answer != Answer::unknown) answers_[code] = {answer, index};
    return answer;
  }

  // What is known of the suspects before the last: measured in vain, with what would do, or not at all.
  std::string why_several(const std::vector<int>& suspects, double half) const {
    const auto in_vain = std::ranges::count_if(suspects, [this](int index) { return unclear_.contains(index); });
    const auto others = static_cast<std::int64_t>(suspects.size()) - 1 - in_vain;
    if (in_vain == 0) return "those before the last could not be asked:";
    double half_width = 0, beside = 0, seconds = 0;
    int launches = 0;
    for (const auto& [index, ratio] : unclear_) {
      if (std::ranges::find(suspects, index) == suspects.end()) continue;
      const double width = (ratio.high - ratio.low) / 2, apart = std::abs(ratio.log_ratio - half);
      if (launches == 0 || width * beside > half_width * apart) half_width = width, beside = apart;
      launches = std::max(launches, ratio.launches);
      seconds = std::max(seconds, ratio.launch_seconds);
    }
    return fmt::format("of {} of those before the last the interval reaches across half of what was lost, {}{}. {}",
                       in_vain, change_text(half), others > 0 ? fmt::format(", {} could not be asked", others) : "",
                       what_would_do(half_width, beside, launches, seconds, {}));
  }

  Exit halve(const Ratio& whole) {
    const int last = static_cast<int>(commits_.size()) - 1;
    Bisection search(last);
    // Ends of one code that were measured to differ: what makes them differ is not in it, and it answers for nobody.
    if (code_of(0) == code_of(last)) untrusted_ = code_of(0);
    if (const std::string code = code_of(0); !code.empty()) answers_[code] = {Answer::good, 0};
    if (const std::string code = code_of(last); !code.empty()) answers_[code] = {Answer::bad, last};
    while (const std::optional<int> next = search.next()) {
      last_good_ = search.last_good();
      first_bad_ = search.first_bad();
      demand_time();
      note(fmt::format("{} left, about {}", counted(search.first_bad() - search.last_good(), "suspect"),
                       counted(search.questions_left(), "question")));
      const Built built = built_of(*next);
      Answer answer = Answer::unknown;
      if (built.failed.empty()) {
        answer = ask(*next, whole.log_ratio / 2);
      } else {
        say(*next, Answer::unknown, "left out: " + built.failed);
      }
      search.take(*next, answer);
    }
    const std::vector<int> suspects = search.suspects();
    if (suspects.size() > 1) {
      std::string list;
      for (const int one : suspects) list += "\n  " + titled(one);
      return ended("unclear",
                   fmt::format("it is one of {}; {}{}", counted(static_cast<std::int64_t>(suspects.size()), "commit"),
                               why_several(suspects, whole.log_ratio / 2), list),
                   Exit::unclear);
    }
    return confirm(search.last_good(), search.first_bad(), whole);
  }

  // A commit is named only after it was measured beside the one before it.
  Exit confirm(int good, int bad, const Ratio& whole) {
    const bool measured = good == 0 && static_cast<std::size_t>(bad) + 1 == commits_.size();
    const Ratio found = measured ? whole : measure(good, bad, [](const Ratio& so_far) { return so_far.low > 0; });
    if (found.failed) return ended("unclear", found.failed->reason, Exit::unclear);
    if (found.low <= 0) {
      return ended(
          "unclear",
          fmt::format("{} beside {}: {}; no single commit makes it: it came in small steps, or a step before was "
                      "chance",
                      named(bad), named(good), text_of(found)),
          Exit::unclear);
    }
    culprit_ = at(bad);
    const std::string text = fmt::format("{}\nbeside the one before it, in turns, {} launches a side: {} time",
                                         titled(bad), found.launches, text_of(found));
    return ended("found", text, Exit::well, &found);
  }

  void note(const std::string& text) const { context_.console.note(text); }

  void say(int index, Answer answer, const std::string& text) {
    const char* word = answer == Answer::good ? "good" : answer == Answer::bad ? "bad" : "unclear";
    if (context_.console.json()) {
      context_.console.print_line({{"type", "step"}, {"commit", at(index)}, {"answer", word}, {"text", text}});
    } else {
      context_.console.print(fmt::format("{}  {:<8} {}\n", named(index), word, text));
    }
  }

  void tell(int index, const Ratio& found, const std::string& word) {
    const std::string text =
        found.failed ? found.failed->reason : text_of(found) + (found.remembered ? ", as stored" : "");
    if (context_.console.json()) {
      Json step{{"type", "step"}, {"commit", at(index)}, {"answer", word}, {"text", text}};
      if (!found.failed)
        step.update(
            {{"log_ratio", found.log_ratio}, {"low", found.low}, {"high", found.high}, {"launches", found.launches}});
      step["remembered"] = found.remembered;
      context_.console.print_line(step);
    } else {
      context_.console.print(fmt::format("{}  {:<8} {}\n", named(index), word, text));
    }
  }

  Exit stopped() {
    return ended("interrupted", "what was measured and built is kept; the same command goes on from there",
                 Exit::incomplete);
  }

  Exit ended(const std::string& verdict, const std::string& text, Exit exit, const Ratio* found = nullptr) {
    if (context_.console.json()) {
      Json json{{"type", "bisect"},
                {"verdict", verdict},
                {"text", text},
                {"commits", commits_.size() - 1},
                {"commit", culprit_ ? Json(*culprit_) : Json()}};
      if (found != nullptr) json.update({{"log_ratio", found->log_ratio}, {"low", found->low}, {"high", found->high}});
      context_.console.print_line(json);
    } else {
      context_.console.print(fmt::format(
          "{}: {}\n", context_.console.styled(verdict, exit == Exit::well ? Style::good : Style::bad), text));
    }
    return exit;
  }

  const Context& context_;
  const BisectOptions& options_;
  std::optional<Mine> mine_;
  BuildRecipe recipe_;
  KeptBuilds builds_;
  store::Store store_;
  std::string machine_, untrusted_;            // a code
  std::chrono::steady_clock::time_point end_;  // of --budget
  std::vector<std::string> commits_;
  std::map<std::string, std::pair<Answer, int>> answers_;  // by code; of which commit
  std::map<int, Ratio> unclear_;                           // measured in vain
  std::map<std::string, SideBuild> asked_;                 // by path
  bool looked_at_mine_ = false, whole_known_ = false;
  int last_good_ = 0, first_bad_ = 0;
  std::optional<std::string> culprit_;
};

}  // namespace

Exit execute(const Context& context, const BisectOptions& options) { return Search(context, options).run(); }

}  // namespace syslab::cli
