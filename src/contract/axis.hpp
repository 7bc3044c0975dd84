// An axis of an experiment. To an operator it is a parameter, read by name from the case's values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/value.hpp"

namespace syslab {

using Values = std::vector<Value>;

// What the values of an axis stand for: `value`, numbers and words of the experiment; `file`, files that a case reads
// or writes.
enum class AxisKind { value, file };

// `impl`, `world_size` and `device` are reserved names and never declared.
struct Axis {
  std::string name;
  Values values;  // the default grid, and the type of every value given on the command line
  std::string help;
  // When closed, only the declared values (and those in `also`) are accepted: dtype=fp8 is an error, seq=1000 is not.
  bool closed = false;
  Values also;
  // Words for another value in each hand-out: {"xl", {{"2025", "xl25"}, {"2026", "xl26"}}}. A case holds the value,
  // never the word.
  std::map<std::string, std::map<std::string, Value>> by_handout = {};
  AxisKind kind = AxisKind::value;

  // Whether the value names a file. On an axis of files all values do but the declared ones ("" for none).
  bool names_file(const Value& value) const;

  bool accepts(const Value& value) const;  // right type; if closed, a declared value; negative only if a declared value
                                           // is
};

}  // namespace syslab
