#include "cli/bisect_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "compare/told_delta.hpp"
#include "core/text/text.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

// As in --json.
constexpr std::array<const char*, 10> kEnds{"found",      "interrupted", "budget",  "failed",    "unclear",
                                            "not_slower", "faster",      "several", "no_single", "elsewhere"};

const char* because(End end) { return kEnds[static_cast<std::size_t>(end)]; }

std::string verdict_after(End end) {
  switch (end) {
    case End::found:
    case End::interrupted:
      return because(end);
    case End::not_slower:
    case End::faster:
      return "not slower";
    case End::no_single:
      return "no single commit";
    default:
      return "unclear";
  }
}

Exit exit_after(End end) {
  if (end == End::found) return Exit::well;
  return end == End::interrupted ? Exit::incomplete : Exit::unclear;
}

const char* answer_word(Answer answer) {
  return answer == Answer::good ? "good" : answer == Answer::bad ? "bad" : "unclear";
}

std::string line_of(const std::string& named, const std::string& word, const std::string& text) {
  return fmt::format("{}  {:<8} {}\n", named, word, text);
}

}  // namespace

std::string into_branch(std::vector<std::string> words, const BisectOptions& options,
                        const std::optional<MergedBranch>& branch) {
  if (!branch) return "";
  auto at = words.begin();
  const auto case_begins = std::find(words.begin(), words.end(), "--");
  for (const auto& [from, to] : {std::pair{options.good, branch->start}, std::pair{options.bad, branch->tip}}) {
    const auto found = std::find(at, case_begins, from);
    if (found == case_begins) continue;
    *found = short_commit(to);
    at = found + 1;
  }
  std::string command = "syslab";
  for (const std::string& word : words) command += " " + shell_word(word);
  return fmt::format("\nit is a merge, and its branch is not searched yet\nnext: {}", command);
}

std::string not_more_in_all(const std::string& over, const Change& whole) {
  const std::optional<double> smaller = delta_below(whole.interval);
  return fmt::format("{}, not more than {:g} % in all. Nothing was searched; a gain may hide a loss.{}", over,
                     100 * whole.delta, smaller ? fmt::format(" try: --delta {}", delta_option(*smaller)) : "");
}

void BisectReport::step(const std::string& commit, const std::string& named, Answer answer,
                        const std::string& text) const {
  if (!console_.json()) return console_.print(line_of(named, answer_word(answer), text));
  console_.print_line({{"type", "step"}, {"commit", commit}, {"answer", answer_word(answer)}, {"text", text}});
}

void BisectReport::step(const std::string& commit, const std::string& named, std::optional<Answer> answer,
                        const Change& change) const {
  const char* const word = answer ? answer_word(*answer) : "";
  const std::string text =
      change.failed ? words::reason(*change.failed) : text_of(change) + (change.remembered ? ", as stored" : "");
  if (!console_.json()) return console_.print(line_of(named, word, text));
  Json json{{"type", "step"}, {"commit", commit}, {"answer", word}, {"text", text}, {"remembered", change.remembered}};
  if (!change.failed) {
    json.update({{"log_ratio", change.log_ratio},
                 {"low", change.interval.low},
                 {"high", change.interval.high},
                 {"launches", change.launches}});
  }
  console_.print_line(json);
}

Exit BisectReport::ended(End end, const std::string& text, std::int64_t commits,
                         const std::optional<std::string>& culprit, const Change* found) const {
  const Exit exit = exit_after(end);
  if (!console_.json()) {
    console_.print(fmt::format(
        "{}: {}\n", console_.styled(verdict_after(end), exit == Exit::well ? Style::good : Style::bad), text));
    return exit;
  }
  Json json{{"type", "bisect"},        {"verdict", verdict_after(end)},
            {"because", because(end)}, {"text", text},
            {"commits", commits},      {"commit", culprit ? Json(*culprit) : Json()}};
  if (found != nullptr) {
    json.update({{"log_ratio", found->log_ratio}, {"low", found->interval.low}, {"high", found->interval.high}});
  }
  console_.print_line(json);
  return exit;
}

}  // namespace syslab::cli
