// How ranks of one host find each other's shared memory in a directory.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/shm/segment.hpp"

namespace syslab::comm {

// Rank 0 creates the memory and writes its address to `directory`, which all ranks see and nobody else writes to; the
// others wait for it. Returns when all have joined; the file is then gone. A file left by a dead process is ignored.
// Error(comm) at the limit, naming the missing ranks.
std::unique_ptr<ShmSegment> meet_in_directory(const std::filesystem::path& directory, int rank, int size,
                                              const ShmOptions& options);

}  // namespace syslab::comm
