#include "compare/verdict_table.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "report/table.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

using stats::Verdict;

constexpr std::size_t kSentences = 8;  // beyond that, counts say more

// "12 faster, 1 wrong": by verdict, those that have none by what came of them.
std::string counts(const std::vector<VerdictLine>& lines) {
  std::string text;
  for (const Verdict verdict :
       {Verdict::faster, Verdict::slower, Verdict::same, Verdict::unclear, Verdict::incomparable}) {
    std::map<std::string, int> words;
    for (const auto& [title, it] : lines) {
      if (it.verdict == verdict) ++words[words::word_of(it)];
    }
    for (const auto& [word, count] : words) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  return text;
}

}  // namespace

std::string value_text(const Quantity& quantity, const std::optional<double>& seconds) {
  return seconds ? text_of(quantity, *seconds) : "-";
}

std::string verdict_table(const Console& console, const std::vector<VerdictLine>& lines, const std::string& a,
                          const std::string& b) {
  const std::string name_a = a.empty() ? "A" : a, name_b = b.empty() ? "B" : b;
  const std::vector<report::Column> columns{{"case", "1", "s", "left"},
                                            {a.empty() ? "A" : "A " + a, "1", "s", "right"},
                                            {b.empty() ? "B" : "B " + b, "1", "s", "right"},
                                            {"B against A", "1", "s", "right"},
                                            {"95 %", "1", "s", "right"},
                                            {"q", "1", "s", "right"},
                                            {"launches", "1", "s", "right"},
                                            {"verdict", "1", "s", "left"}};
  std::vector<std::vector<std::string>> cells;
  for (const auto& [title, it] : lines) {
    const bool good = it.verdict == Verdict::faster || it.verdict == Verdict::same;
    // Last, because the escape codes of colours have a width that is not visible.
    cells.push_back({title, value_text(it.quantity, it.seconds_a), value_text(it.quantity, it.seconds_b),
                     it.log_ratio ? words::change_text(it) : "-", it.low ? words::interval_text(it) : "-",
                     it.q_value ? fmt::format("{:.2g}", *it.q_value) : "-", words::launches_text(it),
                     console.styled(words::word_of(it), good ? Style::good : Style::bad)});
  }
  std::string text = report::write_aligned(columns, cells) + "\n";
  if (lines.size() > kSentences) {
    std::vector<stats::TimingWarning> warnings;
    for (const auto& [title, it] : lines) stats::add_warnings(warnings, it.warnings);
    for (const stats::TimingWarning& one : warnings) text += "warning: " + stats::sentence(one) + "\n";
    return text + fmt::format("{} against {}, {}: {}.\n", name_b, name_a,
                              counted(static_cast<std::int64_t>(lines.size()), "case"), counts(lines));
  }
  for (const auto& [title, it] : lines) {
    const std::string why = words::contradiction(it);
    for (const stats::TimingWarning& one : it.warnings) text += "warning: " + stats::sentence(one) + "\n";
    text += (lines.size() == 1 ? "" : title + ": ") + words::sentence(it, name_a, name_b) +
            (why.empty() ? "" : " " + why) + (it.note.empty() ? "" : " " + it.note) + "\n";
  }
  return text;
}

}  // namespace syslab::cli
