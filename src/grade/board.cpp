#include "grade/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "grade/record.hpp"
#include "store/cells.hpp"

namespace syslab::grade {
namespace {

using store::real_cell;
using store::text_cell;

std::string place_of(const Ranked& one) { return fmt::format("{}{}", one.place, one.shared ? " (shared)" : ""); }

}  // namespace

bool is_ranked(const Item& item, const Json& record) {
  if (!item.is_timed() || !timing_of(item, record)) return false;
  const Json* const row = row_of(record, item.function);
  if (row == nullptr) return false;
  return std::ranges::none_of(verdict::law_rows_of(*row), [](const verdict::LawRow& law) {
    return law.contract == Contract::handout && verdict::is_wrong(law.outcome);
  });
}

std::vector<Board> boards_of(const Rubric& rubric, const std::vector<Graded>& all,
                             const std::map<std::string, std::string>& names) {
  std::vector<Board> boards;
  for (const Problem& problem : rubric.problems) {
    for (const Item& item : problem.items) {
      if (!item.is_timed()) continue;
      Board board{fmt::format("{}: {}", item_name(problem, item), timing_name(item)), item.reference, &item, {}};
      for (const Graded& one : all) {
        if (!is_ranked(item, one.record)) continue;
        const auto name = names.find(one.id);
        board.ranked.push_back({one.id, name == names.end() ? one.id : name->second, *timing_of(item, one.record)});
      }
      rank(board.ranked);
      boards.push_back(std::move(board));
    }
  }
  return boards;
}

store::ResultSet table_of(const std::vector<Board>& boards) {
  store::ResultSet table;
  table.columns = {"board", "place", "who", "ratio", "low", "high", "time_ms", "reference_ms"};
  for (const Board& board : boards) {
    for (const Ranked& one : board.ranked) {
      table.rows.push_back({text_cell(board.name), text_cell(place_of(one)), text_cell(one.alias),
                            real_cell(hundredths(one.timing.ratio)), real_cell(hundredths(one.timing.low)),
                            real_cell(hundredths(one.timing.high)), real_cell(hundredths(one.timing.seconds * 1e3)),
                            real_cell(hundredths(one.timing.reference_seconds * 1e3))});
    }
  }
  return table;
}

std::string standing(const Board& board, const std::string& id) {
  const std::vector<Ranked> lines = around(board.ranked, id);
  if (lines.empty()) return {};
  std::string text = fmt::format(
      "\n## Leaderboard\n\n{}. Times of {}'s time, with 95 % intervals; who is not surely faster takes no place from "
      "another."
      " {} ranked.\n\n| place | who | time | interval |\n|---|---|---|---|\n",
      board.name, board.reference, board.ranked.size());
  for (const Ranked& one : lines) {
    text += fmt::format("| {} | {}{} | {:.3g} | {:.3g} … {:.3g} |\n", place_of(one), one.alias,
                        one.id == id ? " (you)" : "", one.timing.ratio, one.timing.low, one.timing.high);
  }
  return text;
}

}  // namespace syslab::grade
