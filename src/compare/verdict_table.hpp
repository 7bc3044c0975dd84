// Comparisons as people read them: a table, then what it says in words.
#pragma once

#include <string>
#include <vector>

#include "compare/judgement.hpp"
#include "session/context.hpp"

namespace syslab::cli {

struct VerdictLine {
  std::string title;
  Judgement judgement;
};

// A time, or the rate whose time of one unit it is; "-" of nothing.
std::string value_text(const Quantity& quantity, const std::optional<double>& seconds);

// `a`, `b`: names of the sides; empty: they are called A and B. Sentences for a few lines, counts for many.
std::string verdict_table(const Console& console, const std::vector<VerdictLine>& lines, const std::string& a,
                          const std::string& b);

// The judgement's part of a line of JSON.
Json to_json(const Judgement& judgement);

}  // namespace syslab::cli
