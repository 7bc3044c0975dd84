// Ranks that are processes of one host, joined by shared memory. The backend "shm".
//
//   auto ranks = comm::connect_shm(store, {.limit = 10s});
//
// Sums are taken in the order of ranks, so that the bits of a result depend neither on how a buffer is cut nor on the
// run. Signatures are always compared. What ranks share is memory without a name: nothing is left, however they end.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/shm/segment.hpp"

namespace syslab::comm {

// Returns when all ranks of the store have come. Error(comm) at the limit, naming whom the rank waited for, where the
// ranks disagree, and when the store hears of one that fails; Error(oom) where the memory cannot be had. `memory.limit`
// is taken from `options`.
std::unique_ptr<Communicator> connect_shm(Store& store, const CommunicatorOptions& options, ShmOptions memory = {});

// The same by a file in a directory instead of a store. `directory` is private to this launch, and seen by all its
// ranks; several groups may meet in one under several names (ShmOptions::name).
std::unique_ptr<Communicator> connect_shm(const std::filesystem::path& directory, int rank, int size,
                                          const CommunicatorOptions& options, ShmOptions memory = {});

// The same over memory of one process, for threads: one communicator a rank.
std::vector<std::unique_ptr<Communicator>> make_shm_for_threads(int size, const CommunicatorOptions& options,
                                                                ShmOptions memory = {});

}  // namespace syslab::comm
