// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/embedding/embedding.hpp"
#include "ops/foreign.hpp"

namespace syslab::embedding {

// "embedding_forward": ids, table; x. "embedding_backward": ids, dx; dtable; number: vocab. Ids are whole numbers.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::embedding
