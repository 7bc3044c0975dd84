#include "grade/outlook.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "grade/record.hpp"
#include "submission/locked.hpp"

namespace syslab::grade {
namespace {

constexpr const char* kInHalf = "fsdp.fp16";  // the law that asks for products in fp16

void add_once(std::vector<std::string>& all, const std::string& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

// It can be called, and its laws have not been searched yet.
bool is_to_be_checked(const Json& row) { return is_checkable(&row) && verdict::law_rows_of(row).empty(); }

bool asks_in_half(const Item& item) {
  return item.experiment == "fsdp" &&
         std::ranges::any_of(item.laws, [](const std::string& glob) { return glob_match(glob, kInHalf); });
}

// Why the item would stay open; empty: it would not.
std::string why_open(const ItemScore& score, const Rubric& rubric, const Json* row, const std::optional<Lack>& half) {
  if (row != nullptr && is_to_be_checked(*row)) {
    const bool lacks = half && asks_in_half(*score.item) && submission::is_of_surroundings(*half, rubric.handout);
    return lacks ? fmt::format("{} needs what this Python lacks: {}", score.item->function, half->text()) : "";
  }
  return score.open ? score.text() : "";
}

void count_functions(const Rubric& rubric, const Json& record, Outlook& outlook) {
  std::vector<std::string> functions;
  for (const Problem& problem : rubric.problems) {
    for (const Item& item : problem.items) {
      if (!item.written) add_once(functions, item.function);
    }
  }
  for (const std::string& function : functions) {
    const Json* const row = row_of(record, function);
    const submission::State state = state_of(row);
    outlook.functions += state == submission::State::implemented || state == submission::State::fails ? 1 : 0;
    outlook.importable += state == submission::State::implemented ? 1 : 0;
    if (state == submission::State::fails && !is_set(*row, "open")) add_once(outlook.why, text_field(*row, "why"));
  }
}

}  // namespace

Outlook outlook_of(const Rubric& rubric, const std::string& student, const Json& record,
                   const std::optional<Lack>& half) {
  Outlook outlook{.student = student, .torch = text_field(record, "torch"), .asks = text_field(record, "asks")};
  if (const std::string error = text_field(record, "error"); !error.empty()) outlook.why.push_back(error);
  count_functions(rubric, record, outlook);
  for (const ProblemScore& problem : score(rubric, record)) {
    for (const ItemScore& one : problem.items) {
      if (one.item->written) continue;
      outlook.points += one.item->points;
      const std::string why = why_open(one, rubric, row_of(record, one.item->function), half);
      if (why.empty()) continue;
      outlook.open += one.item->points;
      add_once(outlook.why, why);
    }
  }
  return outlook;
}

store::ResultSet table_of(std::span<const Outlook> all) {
  store::ResultSet table;
  table.columns = {"student", "imports", "requires", "open", "why"};
  for (const Outlook& one : all) {
    table.rows.push_back({store::text_cell(one.student),
                          store::text_cell(fmt::format("{} of {} functions", one.importable, one.functions)),
                          store::text_cell(one.asks),
                          store::text_cell(fmt::format("{:g} of {:g} points", one.open, one.points)),
                          store::text_cell(fmt::format("{}", fmt::join(one.why, "; ")))});
  }
  return table;
}

std::string BatchOutlook::text() const {
  return fmt::format("at least {} of {} would be mostly open", mostly_open, counted(submissions, "submission"));
}

BatchOutlook outlook_of(std::span<const Outlook> all) {
  BatchOutlook batch{.submissions = static_cast<std::int64_t>(all.size()),
                     .mostly_open = std::ranges::count_if(all, &Outlook::is_mostly_open)};
  const auto looked_at = std::ranges::find_if(all, [](const Outlook& one) { return !one.torch.empty(); });
  if (looked_at != all.end()) batch.torch = looked_at->torch;
  return batch;
}

}  // namespace syslab::grade
