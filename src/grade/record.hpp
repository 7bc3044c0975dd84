// Small readers of a submission's record.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/text/json.hpp"
#include "submission/survey.hpp"
#include "verdict/law_row.hpp"

namespace syslab::grade {

// The text of that name; empty where there is none.
inline std::string text_field(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline bool is_set(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Of the objects in a list of that name.
template <typename Holds>
bool any_in(const Json& object, const char* list, const Holds& holds) {
  const auto found = object.find(list);
  if (found == object.end() || !found->is_array()) return false;
  return std::any_of(found->begin(), found->end(), [&](const Json& one) { return one.is_object() && holds(one); });
}

template <typename Holds>
bool any_law(const Json& record, const Holds& holds) {
  return any_in(record, "adapters",
                [&](const Json& row) { return std::ranges::any_of(verdict::law_rows_of(row), holds); });
}

// The submission as a whole, the import of its file or one of its laws: with more time it might come to something else.
inline bool ran_out_of_time(const Json& record) {
  if (!record.is_object()) return false;
  return is_set(record, "out_of_time") ||
         any_in(record, "adapters", [](const Json& row) { return is_set(row, "out_of_time"); }) ||
         any_law(record, [](const verdict::LawRow& law) { return law.out_of_time; });
}

// Its process was ended in a law by what others send: the kernel without memory, whoever stops the machine.
inline bool was_killed(const Json& record) {
  return record.is_object() &&
         any_law(record, [](const verdict::LawRow& law) { return law.finding.kind == FindingKind::killed; });
}

// What of a handed-in folder was left out, in words: "2 links to nothing: data, weights".
inline constexpr const char* kLeftOut = "left_out";

// The row of a function that an adapters.py answers; null where there is none.
inline const Json* row_of(const Json& record, const std::string& function) {
  const auto rows = record.find("adapters");
  if (rows == record.end() || !rows->is_array()) return nullptr;
  for (const Json& row : *rows) {
    if (row.is_object() && text_field(row, "function") == function) return &row;
  }
  return nullptr;
}

// Of a function by its row; absent without one.
inline submission::State state_of(const Json* row) {
  const auto told = row == nullptr ? std::nullopt : submission::state_of(text_field(*row, "state"));
  return told.value_or(submission::State::absent);
}

// It can be called, and nothing keeps its laws from being searched.
inline bool is_checkable(const Json* row) {
  return state_of(row) == submission::State::implemented && text_field(*row, "not_checked").empty();
}

// Set where that has come to pass twice: then it does so by itself.
inline constexpr const char* kKilledAgain = "killed_again";
inline bool may_be_killed_again(const Json& record) { return was_killed(record) && !is_set(record, kKilledAgain); }

// Or it came to no end at all, as when the machine had no memory left: that need not be so the next time.
inline bool is_provisional(const Json& record) {
  return ran_out_of_time(record) || may_be_killed_again(record) || !text_field(record, "error").empty();
}

inline double hundredths(double points) { return std::round(points * 100) / 100; }

}  // namespace syslab::grade
