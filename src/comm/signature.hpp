// Whether ranks call the same operation, checked before any data moves.
#pragma once

#include <span>
#include <string>

#include "comm/call.hpp"

namespace syslab::comm {

// The signatures of all ranks, by rank, for one operation. Empty if they agree; otherwise the text of an Error(comm)
// with the first rank that differs from rank 0 and both sides. All ranks that see the same signatures get the same
// text.
std::string disagreement(std::span<const Signature> of_ranks);

// The same for a message: what `sender` sends and `receiver` expects. Their purposes may differ.
std::string disagreement(int sender, const Signature& sent, int receiver, const Signature& expected);

}  // namespace syslab::comm
