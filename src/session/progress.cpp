#include "session/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "session/command_selection.hpp"
#include "session/no_time.hpp"
#include "session/selection.hpp"
#include "session/summary.hpp"
#include "verdict/gist.hpp"

namespace syslab::cli {
namespace {

const worker::MetricRecord* find_metric(const runner::AttemptResult& result, std::string_view name) {
  for (const worker::Record& record : result.records) {
    const auto* metric = std::get_if<worker::MetricRecord>(&record);
    if (metric != nullptr && metric->name == name && metric->value) return metric;
  }
  return nullptr;
}

// "12 calls compared", and what of them nothing judges; empty: of a law, say.
std::string how_compared(const runner::AttemptResult& result) {
  std::int64_t calls = 0;
  for (const worker::Record& record : result.records) {
    const auto* check = std::get_if<worker::CheckRecord>(&record);
    if (check != nullptr && check->name.starts_with("samples:")) calls = std::max(calls, check->cases_run);
  }
  if (calls == 0) return {};
  std::string text = counted(calls, "call") + " compared";
  for (const stats::TimingWarning& one : timing_warnings(result.facts_json)) {
    if (one.code == stats::WarningCode::bound_exceeds_values) {
      text += fmt::format(", {} of the elements of '{}' with a bound as large as they are",
                          stats::percent_of(one.number), one.about);
    }
    if (one.code != stats::WarningCode::elements_unjudged) continue;
    text += fmt::format(", {} of the elements of '{}' not judged", stats::percent_of(one.number), one.about);
  }
  return text;
}

std::int64_t cases_searched(const runner::AttemptResult& result) {
  std::int64_t cases = 0;
  for (const worker::Record& record : result.records) {
    if (const auto* check = std::get_if<worker::CheckRecord>(&record)) cases += check->cases_run;
  }
  return cases;
}

// Cuts at `width` bytes, but never within a UTF-8 character.
std::string cut(std::string line, std::size_t width) {
  if (line.size() <= width) return line;
  while (width > 0 && (static_cast<unsigned char>(line[width]) & 0xC0U) == 0x80U) --width;
  line.resize(width);
  return line;
}

}  // namespace

std::size_t terminal_width() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string budget_words(Nanoseconds left) {
  return left.count() > 0 ? format_duration(left) + " of the budget left" : "the budget is used up";
}

std::string progress_line(int number, int total, const std::string& label, const std::string& text,
                          std::optional<Nanoseconds> eta, std::optional<Nanoseconds> budget_left, std::size_t width) {
  std::string line = fmt::format("case {}/{}, {}", number, total, label);
  if (!text.empty()) line += ", " + text.substr(0, text.find('\n'));
  line = one_line(line);
  std::string end = eta ? ", ETA " + format_duration(*eta) : "";
  if (budget_left) end += ", " + budget_words(*budget_left);
  if (end.size() >= width) return cut(line, width);
  return cut(line, width - end.size()) + end;  // the label is shortened, the ETA stays
}

std::string result_line(const runner::AttemptResult& result, const std::string& same_as) {
  std::string line = fmt::format("{:<12} {}", syslab::to_string(result.status), label_of(*result.planned));
  if (result.status == Status::ok) {
    if (const auto* time = find_metric(result, "time"); time != nullptr && time->unit == "s") {
      line += "  " + text_of(quantity_of(*result.planned), *time->value);
    }
    if (const auto* rate = find_metric(result, "tflops")) line += fmt::format("  {:.4g} GFLOP/s", *rate->value * 1e3);
    if (const std::string compared = how_compared(result); !compared.empty()) line += "  " + compared;
    if (result.planned->task == plan::Task::law) line += "  " + counted(cases_searched(result), "case");
  } else if (!same_as.empty()) {
    line += ": the same as " + same_as;
  } else if (!result.detail.empty()) {
    line += ": " + result.detail.substr(0, result.detail.find('\n'));  // the summary shows a traceback whole
  }
  return one_line(line);
}

Progress::Progress(const Console& console, const plan::Plan& plan, Eta eta, Nanoseconds budget)
    : line_(console, budget), total_(static_cast<int>(plan.cases.size())), eta_(std::move(eta)) {}

void Progress::started(const plan::PlannedCase& planned) {
  ++number_;
  text_.clear();
  case_began_ = std::chrono::steady_clock::now();
  draw(planned);
}

void Progress::said(const plan::PlannedCase& planned, const std::string& text) {
  text_ = text;
  draw(planned);
}

void Progress::heartbeat(const plan::PlannedCase& planned) { draw(planned); }

void Progress::finished(const runner::AttemptResult& result) {
  const bool skipped = result.planned->skip_reason.has_value() || result.status == Status::skipped;
  if (skipped || !result.planned->predicted_oom.empty()) ++number_;
  eta_.finished(*result.planned, result.wall);
  line_.clear();
  if (line_.mode() == ProgressLine::Mode::none || skipped) return;
  std::string same_as;
  if (result.planned->task == plan::Task::law && !result.detail.empty()) {
    const std::string said = result.planned->implementation + " " + verdict::gist(finding_of(result), result.detail);
    const auto [first, is_new] = told_.emplace(said, law_label(*result.planned));
    if (!is_new) same_as = first->second;
  }
  // Not tried for a reason that stands above already: no news.
  if (!same_as.empty() && result.status == Status::unsupported) return;
  if (line_.mode() == ProgressLine::Mode::terminal) {
    to_error(fmt::format("{}\n", result_line(result, same_as)));
    return;
  }
  const auto eta = eta_.remaining(Seconds(0));
  std::string ahead = eta && eta->count() > 0 && number_ < total_ ? ", ETA " + format_duration(*eta) : "";
  if (const auto left = line_.budget_left()) ahead += ", " + budget_words(*left);
  const bool tried = result.planned->predicted_oom.empty();
  const std::string aside = tried ? fmt::format(" ({}{})", format_duration(result.wall), ahead) : "";
  to_error(fmt::format("{} {}/{} {}{}\n", utc_now(), number_, total_, result_line(result, same_as), aside));
}

void Progress::left_out(const plan::PlannedCase& planned) {
  ++number_;
  eta_.finished(planned, Seconds(0));
}

void Progress::draw(const plan::PlannedCase& planned) {
  const Seconds spent = std::chrono::steady_clock::now() - case_began_;
  line_.draw(progress_line(number_, total_, label_of(planned), text_, eta_.remaining(spent), line_.budget_left(),
                           terminal_width() - 1));
}

}  // namespace syslab::cli
