// How many launches a point gets, and until when.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compare/session.hpp"
#include "core/text/format_seconds.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "session/command_selection.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

// Mean of what launches of the newest comparison of that case took, whichever sides it had; nothing: there was none.
std::optional<double> seconds_before(const store::Store& store, const plan::ComparisonPoint& point) {
  const store::ResultSet found = store.query(
      "SELECT avg(one.value) FROM comparison c, json_each(c.facts, '$.launch_seconds') one"
      " WHERE c.id = (SELECT max(id) FROM comparison WHERE experiment = ?1 AND params = ?2 AND launches > 0)",
      {store::text_cell(point.a.experiment->id), store::text_cell(json_text(point.shared.to_json()))});
  if (found.rows.empty() || found.rows[0][0].type != store::Cell::Type::real) return std::nullopt;
  return found.rows[0][0].real;
}

int launches_wanted(const MeasuredPoint& measured, const stats::PairedStopRule& rule) {
  return measured.blocks.empty() ? rule.first_look : stats::launches_wanted(for_stats(measured.blocks), rule);
}

std::string_view to_string(stats::PairedStop stop) {
  return stop == stats::PairedStop::precision ? "precision" : "max_launches";
}

}  // namespace

void short_of_time(verdict::Judgement& judgement, const MeasuredPoint& measured) {
  const int launches = measured.launches();
  judgement = verdict::unclear(judgement, {.cause = verdict::Cause::out_of_time});
  judgement.launches = launches;
  if (launches == 0) {
    judgement.reason.seconds = measured.cut_after.count();
    judgement.note = "Give more time, or choose fewer cases (-a).";
    return;
  }
  const double one = measured.seconds_per_launch();
  judgement.note =
      fmt::format("A launch took {}: {} take {}, the {} that are usual {}.", format_seconds(one),
                  verdict::kFewestLaunches, format_seconds(verdict::kFewestLaunches * one),
                  stats::PairedStopRule{}.first_look, format_seconds(stats::PairedStopRule{}.first_look * one));
}

void ComparisonSession::tell_plan() const {
  const stats::PairedStopRule rule;
  double seconds = 0;
  bool known = true;
  for (const plan::ComparisonPoint& point : plan_.points) {
    const std::optional<double> before = seconds_before(store_, point);
    known = known && before;
    seconds += before.value_or(0);
  }
  std::string text = fmt::format("{} of {} to {} launches a side",
                                 counted(static_cast<std::int64_t>(plan_.points.size()), "comparison"), rule.first_look,
                                 rule.max_launches);
  if (known) {
    text += fmt::format("; {} to {} if each takes what it took last time", format_seconds(rule.first_look * seconds),
                        format_seconds(rule.max_launches * seconds));
  }
  if (const double budget = Seconds(conditions_.budget).count(); budget > 0) {
    text += fmt::format("; at most {} (--budget)", format_seconds(budget));
    if (!conditions_.keeps_budget) {
      text += fmt::format(", but {} launches each", verdict::kFewestLaunches);
    } else if (known && budget < verdict::kFewestLaunches * seconds) {
      text += fmt::format(", less than the {} that the {} launches of a verdict may take: expect no verdict",
                          format_seconds(verdict::kFewestLaunches * seconds), verdict::kFewestLaunches);
    }
  }
  context_.console.note(text);
}

void ComparisonSession::tell_forecast(double seconds) const {
  const stats::PairedStopRule rule;
  const double of_one = static_cast<double>(plan_.points.size()) * seconds;
  const double least = of_one * rule.first_look, most = of_one * rule.max_launches;
  std::string text =
      fmt::format("{} of {} to {} launches, {} each: {} to {}",
                  counted(static_cast<std::int64_t>(plan_.points.size()), "comparison"), rule.first_look,
                  rule.max_launches, format_seconds(seconds), format_seconds(least), format_seconds(most));
  if (const double budget = Seconds(conditions_.budget).count(); budget > 0 && budget < most) {
    const std::string after = format_seconds(budget);
    text += conditions_.keeps_budget ? fmt::format("; --budget ends it after {}", after)
                                     : fmt::format("; it ends after {} where --budget does not say more", after);
    text += ", and what is not clear by then is called so";
  }
  context_.console.note(text);
}

bool ComparisonSession::tell_outlook(const MeasuredPoint& measured, double seconds) const {
  if (measured.failed || measured.blocks.empty() || is_unresolved(measured)) return false;
  const double one = measured.seconds_per_launch();
  const int wanted = conditions_.launches.value_or(stats::PairedStopRule{}.max_launches);
  const double fit = measured.launches() + std::floor(std::max(seconds, 0.0) / one);
  const double least = conditions_.keeps_budget ? 0 : verdict::kFewestLaunches;
  const Ahead ahead{static_cast<int>(std::min<double>(std::max(fit, least), wanted)), one, conditions_.border};
  const std::vector<stats::PairedBlock> blocks = for_stats(measured.blocks);
  const Quantity quantity = quantity_of(measured.point->a);
  const std::string text =
      what_will_not_do(blocks, verdict::judge(turns_of(measured.blocks), conditions_.delta, quantity).delta, ahead);
  if (text.empty()) return false;
  context_.console.note(plan_.points.size() == 1 ? text : shown_title(*measured.point) + ": " + text);
  return true;
}

void ComparisonSession::finish(MeasuredPoint& measured, int points_left) {
  const bool on_cpu = measured.point->a.device == DeviceKind::cpu;
  if (on_cpu && !measured.failed && !std::exchange(crowd_asked_, true)) {
    crowd_ = measured.launches() == 0 ? crowd() : std::nullopt;
    if (crowd_) context_.console.note(busy_text(*crowd_));
  }
  if (on_cpu) measured.crowd = crowd_;
  take_launches(measured, points_left);
  refuse_unresolved(measured);
}

void ComparisonSession::take_launches(MeasuredPoint& measured, int points_left) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point point_began = Clock::now();
  const Seconds left = conditions_.budget - (point_began - conditions_.began);
  const double share = conditions_.budget.count() > 0 ? left.count() / std::max(points_left, 1) : HUGE_VAL;
  std::optional<Clock::time_point> until;
  if (conditions_.keeps_budget) until = point_began + std::chrono::duration_cast<Nanoseconds>(Seconds(share));
  const stats::PairedStopRule rule;
  bool outlook_told = measured.launches() > 0;  // by --detect
  while (!measured.failed) {
    if (conditions_.launches && measured.launches() >= *conditions_.launches) {
      measured.stop = "launches";
      return;
    }
    if (!conditions_.launches && !measured.blocks.empty()) {
      const stats::PairedStop stop = stats::paired_enough(for_stats(measured.blocks), rule);
      // A busy moment counts less with each further launch. It is asked of hand-overs, so that no verdict is waited
      // for.
      const bool may_resolve =
          stop == stats::PairedStop::precision && is_unresolved(measured) && measured.launches() < rule.max_launches;
      if (stop != stats::PairedStop::go_on && !may_resolve) {
        measured.stop = to_string(stop);
        return;
      }
    }
    // A verdict needs three launches. One of those that are missing is begun where half of the time that such a launch
    // took is left, since it can do with fewer blocks.
    const double spent = Seconds(Clock::now() - point_began).count();
    const bool enough = measured.launches() >= verdict::kFewestLaunches;
    if ((enough || until) && spent + (enough ? 1 : 0.5) * measured.seconds_per_launch() > share) {
      measured.stop = "budget";
      return;
    }
    // Where the number of launches was asked for, progress tells the same as forecasts.
    if (!conditions_.launches && !std::exchange(plan_told_, true)) tell_plan();
    conditions_.may_go_on = !conditions_.launches;
    const int wanted = std::max(launches_wanted(measured, rule), measured.launches() + 1);
    const Clock::time_point launched = Clock::now();
    if (!launch_once(measured, conditions_.launches.value_or(wanted), until)) {
      measured.stop = "budget";
      measured.cut_after = Clock::now() - launched;
      return;
    }
    if (!conditions_.launches && !std::exchange(forecast_told_, true)) tell_forecast(measured.launch_seconds.back());
    const double seconds = share - Seconds(Clock::now() - point_began).count();
    outlook_told = outlook_told || tell_outlook(measured, seconds);
  }
}

}  // namespace syslab::cli
