// The ranking of implementations, case by case: what was measured here apart from what was only reported.
#pragma once

#include <string>
#include <vector>

#include "report/table.hpp"

namespace syslab::report {

// reports/tables/leaderboard.sql for each of `experiments`; for all at once where there is none.
std::string render_leaderboard(const store::Store& store, const std::vector<std::string>& experiments, Format format);

}  // namespace syslab::report
