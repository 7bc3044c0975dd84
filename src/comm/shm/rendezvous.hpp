// How ranks of one host find each other's shared memory in a directory.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/shm/segment.hpp"

namespace syslab::comm {

// Rank 0 makes the memory and leaves its address in `directory`, which all ranks see and nobody else writes to; the
// others wait for it. Returns when all have joined; the file is gone by then. A file of a process that is no more is
// not obeyed. Error(comm) at the limit, naming whom it waited for.
std::unique_ptr<ShmSegment> meet_in_directory(const std::filesystem::path& directory, int rank, int size,
                                              const ShmOptions& options);

}  // namespace syslab::comm
