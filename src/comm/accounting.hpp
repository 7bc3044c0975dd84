// Compares every byte counted with the formula; called at the end of a run.
#pragma once

#include "comm/communicator.hpp"

namespace syslab::comm {

// Of the host, on all ranks, when all work is done. Error(check) on every rank that names operation and purpose and
// both numbers, where
// * a rank counts other calls or payload bytes for a collective than rank 0, or
// * what all ranks together took from one another (Counters::Row::moved_bytes) is not the formula's to the byte; not
//   asked of operations of which no rank counts what it moves.
void check_accounting(Communicator& ranks);

}  // namespace syslab::comm
