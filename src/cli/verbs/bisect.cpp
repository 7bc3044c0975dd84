// Finds the commit that made a case slower: revisions are built, and each is measured in turns beside the first.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bisect_memory.hpp"
#include "cli/bisect_report.hpp"
#include "cli/verbs/verbs.hpp"
#include "compare/advice.hpp"
#include "compare/bisection.hpp"
#include "compare/kept_builds.hpp"
#include "compare/loss.hpp"
#include "compare/revisions.hpp"
#include "compare/session.hpp"
#include "compare/stretches.hpp"
#include "compare/told_delta.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/machine_code.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "measure/protocol.hpp"
#include "runner/environment.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "store/cells.hpp"
#include "words/comparison_words.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLaunches = 20;  // of a step, where --launches does not say

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
        report_(context.console),
        asked_delta_(options.delta ? std::optional(percent_option("--delta", *options.delta)) : std::nullopt),
        recipe_(recipe()),
        builds_(context.console, recipe_),
        store_(open_for_writing(context)),
        machine_(runner::comparability_key(runner::environment_facts())),
        end_(std::chrono::steady_clock::now() + duration_option("--budget", options.budget)) {
    const std::string good = commit(options.good), bad = commit(options.bad);
    if (good == bad)
      throw Error(ErrorKind::usage, fmt::format("'{}' and '{}' are the same commit; expected two\ntry: an earlier GOOD",
                                                options.good, options.bad));
    commits_ = commits_between(recipe_.repository, good, bad);
  }

  Exit run() {
    first_bad_ = static_cast<int>(commits_.size()) - 1;
    try {
      return search();
    } catch (const Stopped&) {
      return ended(End::interrupted, "finished comparisons and builds are kept; the same command continues from them");
    } catch (const BudgetSpent& spent) {
      const std::string so_far = whole_known_ ? fmt::format("; so far {} has less than half of the loss and {} more",
                                                            named(last_good_), named(first_bad_))
                                              : "";
      return ended(
          End::budget,
          fmt::format("--budget {} is spent{}{}; the same command continues from finished comparisons and builds",
                      options_.budget, spent.during, so_far));
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
    const Change whole = measure(0, last, [](const Change& so_far) { return loss_of(so_far) != Loss::unclear; });
    report_.step(at(last), named(last), std::nullopt, whole);
    if (whole.failed) return worse(ended(End::failed, words::reason(*whole.failed)), exit_of(*whole.failed, false));
    const std::string over = fmt::format("{} against {}, over {} launches a side: {}", named(last), named(0),
                                         whole.launches, text_of(whole));
    switch (loss_of(whole)) {
      case Loss::not_above:
        return is_gain(whole) ? ended(End::faster, over + " time; exchange the two to find what made it faster")
                              : ended(End::not_slower, not_more_in_all(over, whole));
      case Loss::unclear:
        return ended(End::unclear, fmt::format("{}; {}{}", over, why_unclear(whole), told_by_ends(whole, whole)));
      case Loss::above:
        break;
    }
    whole_known_ = true;
    against_first_[last] = whole.interval;
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
      throw Error(
          ErrorKind::usage,
          fmt::format("'{}' is not in a git repository; expected a folder of one\ntry: --repository FOLDER", where));
    };
    if (options_.selection.mine.empty()) {
      BuildRecipe made = recipe_of_syslab(top("."));
      if (!options_.build_command.empty()) made.command = options_.build_command;
      if (!options_.artifact.empty()) made.artifact = options_.artifact;
      return made;
    }
    if (options_.selection.mine.size() > 1)
      throw Error(
          ErrorKind::usage,
          fmt::format("--mine was given {} times; expected one, whose history is searched\ntry: one --mine NAME=FILE",
                      options_.selection.mine.size()));
    mine_ = plan::split_mine(options_.selection.mine[0]);
    const fs::path file = fs::weakly_canonical(mine_->file);
    fs::path folder = file.parent_path();
    while (!fs::is_directory(folder) && folder.has_relative_path()) folder = folder.parent_path();
    BuildRecipe made{top(folder.string()), options_.build_command, {}};
    const fs::path within = file.lexically_relative(fs::weakly_canonical(made.repository));
    if (within.empty() || *within.begin() == "..") {
      throw Error(
          ErrorKind::usage,
          fmt::format("--mine {} is outside of the repository {}; expected a file in it\ntry: --repository FOLDER",
                      mine_->file, made.repository));
    }
    mine_->file = within.string();
    return made;
  }

  std::string commit(const std::string& revision) const {
    const std::optional<std::string> found = commit_of(recipe_.repository, revision);
    if (found) return *found;
    throw Error(
        ErrorKind::usage,
        fmt::format("'{}' is not a revision of {}; expected a commit, a branch or a tag\ntry: git -C {} log --oneline",
                    revision, recipe_.repository, shell_word(recipe_.repository)));
  }

  // Of the user's file: ":Flash", or nothing.
  std::string behind() const { return mine_->inside.empty() ? "" : ":" + mine_->inside; }

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
    const std::string code = library_code_digest(fs::path(built.path) / mine_->file);
    return code.empty() && recipe_.command.empty() ? tree_of(recipe_.repository, at(index)) : code;
  }

  plan::ComparisonPlan plan_of(int a, int b) {
    SelectionOptions words = options_.selection;
    const Built built_a = built_of(a), built_b = built_of(b);
    std::vector<std::string> text;
    if (mine_) {
      const auto spec = [&](int index, const Built& built) {
        return fmt::format("at_{}={}{}", named(index), (fs::path(built.path) / mine_->file).string(), behind());
      };
      words.mine = {spec(a, built_a), spec(b, built_b)};
      text = {"A:impl=at_" + named(a), "B:impl=at_" + named(b)};
    } else {
      text = {"A:build=" + built_a.path, "B:build=" + built_b.path};
    }
    worker::choose_python_interpreter(words.python);
    const plan::Selection selection = to_selection(context_, words);
    plan::ComparisonPlan plan =
        plan::make_comparison_plan(*selection.registry, selection, plan::take_sides(text), false);
    if (plan.points.size() != 1) {
      throw Error(
          ErrorKind::usage,
          fmt::format("the words after -- name {} cases; expected one\ntry: -a AXIS=VALUE and --impl NAME after --",
                      plan.points.size()));
    }
    if (!plan.mine.empty() && !looked_at_mine_) {
      looked_at_mine_ = true;
      check_mine(plan.mine);
      tell_missing_walls(context_.console);
    }
    return plan;
  }

  // What is measured, but for the two revisions and the case's parameters: only what agrees in all of it is remembered.
  std::string label_of(const plan::ComparisonPlan& plan, const ComparisonConditions& conditions) const {
    const plan::PlannedCase& planned = plan.points[0].a;
    Json what{{"builds", builds_.key()},
              {"implementation", mine_ ? mine_->file + behind() : planned.implementation},
              {"device", to_string(planned.device)},
              {"world_size", planned.world_size},
              {"protocol", conditions.protocol},
              {"data", conditions.data},
              {"handout", options_.selection.handout}};
    if (mine_) {
      what["python"] = worker::python_interpreter();
      // Of checkouts the sources are the commit's; these two are those of the user's folder, and may change.
      const Comparison* const with = plan.mine[0].comparison();
      for (const std::string& place : with ? std::vector{with->reference, with->inputs} : std::vector<std::string>(2))
        what["beside"].push_back({place, place.empty() ? "" : sha256_hex_of_file(file_of(place))});
    }
    return "bisect " + sha256_hex(json_text(what)).substr(0, 16);
  }

  SideBuild side_build(const std::string& path, const plan::ComparisonPlan& plan) {
    if (path.empty()) return this_build();
    const auto known = asked_.find(path);
    return known != asked_.end()
               ? known->second
               : asked_.emplace(path, ask_build(path, {plan.points[0].a.experiment->id})).first->second;
  }

  // A load matters to what runs on the CPU.
  std::optional<Crowd> crowd_of(const plan::ComparisonPlan& plan) const {
    return plan.points[0].a.device == DeviceKind::cpu ? crowd_ : std::nullopt;
  }

  // Launches until `clear`, or the most.
  Change measure(int a, int b, const std::function<bool(const Change&)>& clear) {
    const plan::ComparisonPlan plan = plan_of(a, b);
    const int most = options_.launches.value_or(kMostLaunches);
    ComparisonConditions conditions;
    conditions.protocol =
        measure::find_protocol(options_.protocol.value_or(own_protocol({plan.points[0].a}, false))).name;
    conditions.data = options_.data;
    const std::string label = label_of(plan, conditions);
    if (const auto before = remembered(store_, plan, label, machine_, asked_delta_);
        before && (clear(*before) || (before->launches >= most && !is_spoiled(*before, crowd_of(plan))))) {
      return *before;
    }
    conditions.launches = most;
    conditions.delta = asked_delta_;
    conditions.timeout = duration_option("--timeout", options_.timeout);
    conditions.memory_limit_bytes = bytes_option("--memory-limit", options_.memory_limit);
    demand_time();
    ComparisonSession session(context_, store_, "bisect", label, plan, conditions, side_build(plan.sides.a.build, plan),
                              side_build(plan.sides.b.build, plan));
    MeasuredPoint measured;
    measured.point = &plan.points[0];
    measured.crowd = crowd_of(plan);
    if (measured.crowd && !std::exchange(crowd_told_, true)) note(busy_text(*measured.crowd));
    measured.failed = session.obstacle(plan.points[0]);
    Change found;
    bool spent = false;
    for (const int look : looks_until(most)) {
      if (measured.failed) break;
      while (!measured.failed && !spent && measured.launches() < look) {
        spent = std::chrono::steady_clock::now() >= end_;
        if (!spent) session.launch(measured, 1, look, end_);
      }
      if (spent) measured.stop = "budget";
      if (measured.failed || spent) break;
      if (is_unresolved(measured)) continue;  // further launches may give it a time
      found = change_of(turns_of(measured.blocks), asked_delta_);
      found.launch_seconds = measured.seconds_per_launch();
      found.crowd = measured.crowd;
      measured.stop = "launches";
      if (clear(found)) break;
    }
    refuse_unresolved(measured);
    if (measured.failed || !measured.blocks.empty()) session.keep(measured, session.judged(measured));
    if (session.interrupted()) throw Stopped();
    if (spent) throw BudgetSpent{measured.failed ? ": " + words::reason(*measured.failed) : ""};
    found.failed = measured.failed;
    if (found.failed) found.failed->reason = verdict::differing(words::reason(*found.failed, named(a), named(b)));
    return found;
  }

  // Of a revision against the first one (answer_of).
  Answer ask(int index, double half) {
    const std::string code = code_of(index);
    if (const auto same = answers_.find(code); !code.empty() && same != answers_.end()) {
      report_.step(at(index), named(index), same->second.first,
                   fmt::format("the same code as {}: not measured", named(same->second.second)));
      against_first_[index] = same->second.second == 0 ? stats::Interval{} : against_first_.at(same->second.second);
      return same->second.first;
    }
    const Change found =
        measure(0, index, [half](const Change& so_far) { return answer_of(so_far, half) != Answer::unknown; });
    const Answer answer = answer_of(found, half);
    report_.step(at(index), named(index), answer, found);
    if (answer == Answer::unknown && !found.failed) unclear_.emplace(index, found);
    if (!found.failed && found.launches >= verdict::kFewestLaunches) against_first_[index] = found.interval;
    if (!code.empty() && answer != Answer::unknown) answers_[code] = {answer, index};
    return answer;
  }

  // What is known of the suspects before the last: measured in vain, with what would do, or not at all.
  std::string why_several(const std::vector<int>& suspects, const Change& whole) const {
    const double half = whole.log_ratio / 2;
    const auto in_vain = std::ranges::count_if(suspects, [this](int index) { return unclear_.contains(index); });
    const auto others = static_cast<std::int64_t>(suspects.size()) - 1 - in_vain;
    const char* const have = others == 1 ? "has" : "have";
    if (in_vain == 0) {
      return fmt::format("{} of them {} no time, for the reasons above; the loss may be in any of these:", others,
                         have);
    }
    const Change* worst = nullptr;  // that takes most launches
    std::string parts;
    for (const auto& [index, change] : unclear_) {
      if (std::ranges::find(suspects, index) == suspects.end()) continue;
      const auto takes_more = [half](const Change& one, const Change& other) {
        const Doubt own = doubt_of(one, half), others = doubt_of(other, half);
        return own.half_width * others.beside > others.half_width * own.beside;
      };
      if (worst == nullptr || takes_more(change, *worst)) worst = &change;
      if (parts.empty() && is_part_of(change, whole)) {
        parts = fmt::format(" More than one commit made the loss: {} against {} is {} of {}.", named(index), named(0),
                            text_of(change), text_of(whole));
      }
    }
    return fmt::format("of {} of those before the last the interval reaches across half of what was lost, {}{}.{} {}",
                       in_vain, words::change_text(half),
                       others > 0 ? fmt::format(", {} {} no time", others, have) : "", parts,
                       what_would_do(doubt_of(*worst, half), worst->crowd));
  }

  Exit halve(const Change& whole) {
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
        report_.step(at(*next), named(*next), Answer::unknown, "left out: " + built.failed);
      }
      search.take(*next, answer);
    }
    last_good_ = search.last_good();
    first_bad_ = search.first_bad();
    return search.suspects().size() > 1 ? several(search, whole)
                                        : confirm(search.last_good(), search.first_bad(), whole);
  }

  // Commits are left that the search could not part. What was measured may do without it.
  Exit several(const Bisection& search, const Change& whole) {
    const std::vector<Stretch> all = stretches_of(against_first_);
    const std::vector<Stretch> left = between(all, search.last_good(), search.first_bad());
    const std::optional<Stretch> sure = surely_above(left, whole.delta);
    if (const auto suspect = sure ? sure : only_candidate(left, whole.delta)) {
      return confirm(suspect->from, suspect->to, whole);
    }
    const std::vector<int> suspects = search.suspects();
    const std::string counts = counted(static_cast<std::int64_t>(suspects.size()), "commit") + " are left";
    std::string list;
    for (const int one : suspects) list += "\n  " + titled(one);
    if (none_above(left, whole.delta)) {
      const std::string none = fmt::format("{}, and none of them lost more than {:g} %; the whole loss is {}", counts,
                                           100 * whole.delta, text_of(whole));
      return none_alone(none, all, left, whole, list);
    }
    return ended(End::several, fmt::format("{}: {}{}{}", counts, why_several(suspects, whole),
                                           told_now({delta_within(most_lost(all).bounds, whole)}, whole), list));
  }

  // None of the commits that are `left` lost more than δ, as `why` says: has another one?
  Exit none_alone(const std::string& why, const std::vector<Stretch>& all, const std::vector<Stretch>& left,
                  const Change& whole, const std::string& list) const {
    if (!none_above(all, whole.delta)) {
      const Stretch most = most_lost(all);
      return ended(
          End::elsewhere,
          fmt::format("{}. Between {} and {} up to {} may have been lost; try: the same command with these two.{}{}",
                      why, named(most.from), named(most.to), words::change_text(most.bounds.high),
                      told_now({delta_above(most.bounds)}, whole), list));
    }
    const bool parted = std::ranges::all_of(all, [](const Stretch& one) { return one.commits() == 1; });
    const std::optional<Stretch> largest = surely_above(left, 0);
    const std::optional<double> smaller = largest ? delta_below(largest->bounds) : std::nullopt;
    return ended(
        End::no_single,
        fmt::format(
            "{}{}{}{}", why, parted ? "" : "; a loss that the next commit won back is not seen",
            smaller ? fmt::format("; try: --delta {}, to name {}", delta_option(*smaller), named(largest->to)) : "",
            list));
  }

  static std::string told_now(const std::vector<std::optional<double>>& deltas, const Change& whole) {
    const std::string told = would_tell_now(deltas, whole);
    return told.empty() ? told : " " + told;
  }
  // By the ends of its interval.
  static std::string told_by_ends(const Change& change, const Change& whole) {
    return told_now({delta_below(change.interval), delta_above(change.interval)}, whole);
  }

  // A commit is named only if it lost more than δ itself, measured against the one before it.
  Exit confirm(int good, int bad, const Change& whole) {
    const bool measured = good == 0 && static_cast<std::size_t>(bad) + 1 == commits_.size();
    const Change found =
        measured ? whole : measure(good, bad, [](const Change& so_far) { return loss_of(so_far) != Loss::unclear; });
    if (found.failed) return worse(ended(End::failed, words::reason(*found.failed)), exit_of(*found.failed, false));
    const std::string pair = fmt::format("{} against {}: ", named(bad), named(good));
    switch (loss_of(found)) {
      case Loss::not_above:
        return none_alone(pair + why_no_single(found, whole), known_with({good, bad, found.interval}),
                          {{good, bad, found.interval}}, whole, "");
      case Loss::unclear:
        return ended(End::unclear,
                     fmt::format("{}{}; {}{}", pair, text_of(found), why_unclear(found), told_by_ends(found, whole)));
      case Loss::above:
        break;
    }
    const std::string more = what_else_was_lost(found, whole);
    const std::string text = fmt::format("{}\nagainst the commit before it, in turns, {} launches a side: {} time{}",
                                         titled(bad), found.launches, text_of(found), more.empty() ? "" : "\n" + more);
    return report_.ended(
        End::found, text + into_branch(context_.arguments, options_, branch_merged_by(recipe_.repository, at(bad))),
        searched(), at(bad), &found);
  }

  // What is known of the history; `measured` by itself.
  std::vector<Stretch> known_with(const Stretch& measured) const {
    std::vector<Stretch> all = stretches_of(against_first_);
    replace(all, measured);
    return all;
  }

  void note(const std::string& text) const { context_.console.note(text); }

  std::int64_t searched() const { return static_cast<std::int64_t>(commits_.size()) - 1; }
  Exit ended(End end, const std::string& text) const { return report_.ended(end, text, searched()); }

  const Context& context_;
  const BisectOptions& options_;
  BisectReport report_;
  std::optional<double> asked_delta_;
  std::optional<plan::MineWords> mine_;
  BuildRecipe recipe_;
  KeptBuilds builds_;
  store::Store store_;
  std::string machine_, untrusted_;            // a code
  std::chrono::steady_clock::time_point end_;  // of --budget
  std::vector<std::string> commits_;
  std::map<std::string, std::pair<Answer, int>> answers_;  // by code; of which commit
  std::map<int, Change> unclear_;                          // measured in vain
  std::map<int, stats::Interval> against_first_;           // of all that were measured, or have the code of one
  std::map<std::string, SideBuild> asked_;                 // by path
  const std::optional<Crowd> crowd_ = crowd();  // before this builds or measures anything: its own load counts later
  bool looked_at_mine_ = false, whole_known_ = false, crowd_told_ = false;
  int last_good_ = 0, first_bad_ = 0;
};

}  // namespace

Exit execute(const Context& context, const BisectOptions& options) { return Search(context, options).run(); }

}  // namespace syslab::cli
