// Whether ranks mean the same operation, asked before anything moves.
#pragma once

#include <span>
#include <string>

#include "comm/call.hpp"

namespace syslab::comm {

// The signatures of all ranks, by rank, for one operation. Empty where they agree; otherwise the text of an Error(comm)
// that names the first rank that differs from rank 0 and both sides. All ranks that see the same signatures get the
// same text.
std::string disagreement(std::span<const Signature> of_ranks);

// The same for a message: what `sender` sends and `receiver` expects. Their purposes may differ.
std::string disagreement(int sender, const Signature& sent, int receiver, const Signature& expected);

}  // namespace syslab::comm
