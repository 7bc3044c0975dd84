// Ranks that leave a barrier at the same moment, as far as they read one clock. Texts of a rendezvous reach each rank
// at a moment of its own (a folder is looked at again and again), and a rank that begins a collective before the others
// would count their delay as the collective's time.
//
//   const std::vector<std::string> arrivals = …;          // arrival_text() of every rank
//   if (const auto start = common_start(arrivals)) wait_for_start(*start);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/rendezvous/socket.hpp"

namespace syslab::comm {

// When this rank has arrived, and by whose clock.
std::string arrival_text();

// Half a millisecond after the last arrival. None where the ranks are on several systems, whose clocks differ.
std::optional<Clock::time_point> common_start(const std::vector<std::string>& arrivals);

// Without sleeping, which would end late. Returns at once if the start is over, or too far away to be true.
void wait_for_start(Clock::time_point start);

}  // namespace syslab::comm
