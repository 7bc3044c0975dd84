// Comparisons as people read them: a table, then what it says in words.
#pragma once

#include <string>
#include <vector>

#include "session/context.hpp"
#include "verdict/judgement.hpp"

namespace syslab::cli {

struct VerdictLine {
  std::string title;
  verdict::Judgement judgement;
};

// A time, or the rate whose time of one unit it is; "-" of nothing.
std::string value_text(const Quantity& quantity, const std::optional<double>& seconds);

// `a`, `b`: names of the sides; empty: they are called A and B. Sentences for a few lines, counts for many.
std::string verdict_table(const Console& console, const std::vector<VerdictLine>& lines, const std::string& a,
                          const std::string& b);

}  // namespace syslab::cli
