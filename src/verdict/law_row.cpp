#include "verdict/law_row.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/printable.hpp"

namespace syslab::verdict {
namespace {

template <typename Value>
Value known(std::optional<Value> value, const char* field, const std::string& word) {
  if (value) return *value;
  throw Error(ErrorKind::store,
              fmt::format("a record of laws has the {} '{}', which this version does not know; it was "
                          "written by another: check or grade again",
                          field, one_line(word)));
}

template <typename Value, typename Parse>
void read_word(const Json& object, const char* field, Value& into, const Parse& parse) {
  const auto found = object.find(field);
  if (found == object.end()) return;
  const std::string word = found->get<std::string>();
  into = known<Value>(parse(word), field, word);
}

}  // namespace

bool is_wrong(Outcome outcome) { return outcome == Outcome::falsified || outcome == Outcome::error; }

Json to_json(const LawRow& row) {
  return {{"law", row.law},
          {"experiment", row.experiment},
          {"contract", to_string(row.contract)},
          {"outcome", to_string(row.outcome)},
          {"message", row.message},
          {"input", row.input},
          {"check", row.check},
          {"finding", to_string(row.finding.kind)},
          {"promised", row.finding.promised},
          {"seldom", row.finding.seldom},
          {"about", row.finding.about},
          {"cause", row.finding.cause},
          {"first_wrong", row.finding.first_wrong},
          {"applies", row.applies},
          {"open", row.open},
          {"lacks", row.lacks ? syslab::to_json(*row.lacks) : Json()},
          {"out_of_time", row.out_of_time},
          {"tries", row.tries}};
}

namespace {

LawRow read_fields(const Json& object) {
  LawRow row;
  row.law = object.value("law", "");
  row.experiment = object.value("experiment", "");
  read_word(object, "contract", row.contract, contract_of);
  read_word(object, "outcome", row.outcome, outcome_of);
  read_word(object, "finding", row.finding.kind, finding_kind_of);
  row.finding.promised = object.value("promised", false);
  row.finding.seldom = object.value("seldom", false);
  row.finding.about = object.value("about", "");
  row.finding.cause = object.value("cause", "");
  row.finding.first_wrong = object.value("first_wrong", "");
  row.applies = object.value("applies", true);
  row.open = object.value("open", false);
  row.out_of_time = object.value("out_of_time", false);
  if (const auto lacks = object.find("lacks"); lacks != object.end()) row.lacks = lack_of(*lacks);
  row.message = object.value("message", "");
  row.input = object.value("input", "");
  row.check = object.value("check", "");
  row.tries = object.value("tries", std::int64_t{0});
  return row;
}

}  // namespace

LawRow law_row_of(const Json& object) {
  try {
    return read_fields(object);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::store, fmt::format("a record of a law has a field of another type than expected ({}); it is "
                                              "damaged, or of another version: check or grade again",
                                              error.what()));
  }
}

std::vector<LawRow> law_rows_of(const Json& object) {
  std::vector<LawRow> rows;
  const auto laws = object.find("laws");
  if (laws == object.end() || !laws->is_array()) return rows;
  for (const Json& law : *laws) rows.push_back(law_row_of(law));
  return rows;
}

}  // namespace syslab::verdict
