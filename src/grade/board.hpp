// The leaderboard of a batch: one board for each timed item, with aliases for names unless names are asked for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grade/leaderboard.hpp"
#include "grade/pages.hpp"

namespace syslab::grade {

struct Board {
  std::string name;       // "flash_forward (speed): flash_forward of … beside naive at seq=512"
  std::string reference;  // the rung
  const Item* item = nullptr;
  std::vector<Ranked> ranked;
};

// Whether it is on a board: it was timed, and no law of the hand-out about the function was found not to hold.
bool is_ranked(const Item& item, const Json& record);

// `names`: what stands in place of each id.
std::vector<Board> boards_of(const Rubric& rubric, const std::vector<Graded>& all,
                             const std::map<std::string, std::string>& names);

// board, place, who, ratio, low, high, time_ms, reference_ms.
store::ResultSet table_of(const std::vector<Board>& boards);

// A section of a student's page: the own line and the three above; nothing for whoever is not ranked.
std::string standing(const Board& board, const std::string& id);

}  // namespace syslab::grade
