// Ranks as processes of one host, connected by shared memory. The backend "shm".
//
//   auto ranks = comm::connect_shm(rendezvous, {.limit = 10s});
//
// Sums are taken in rank order, so that a result's bits depend neither on how a buffer is split nor on the run.
// Signatures are always compared. The shared memory has no name: nothing is left however the ranks end.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "comm/shm/segment.hpp"

namespace syslab::comm {

// Returns when all ranks of the rendezvous have joined. Error(comm) at the limit, naming the missing ranks, if the
// ranks disagree, and if the rendezvous reports a failed rank; Error(oom) if the memory cannot be allocated.
// `memory.limit` is taken from `options`.
std::unique_ptr<Communicator> connect_shm(Rendezvous& rendezvous, const CommunicatorOptions& options,
                                          ShmOptions memory = {});

// The same by a file in a directory instead of a rendezvous. `directory` is private to this launch and visible to all
// its ranks; several groups may share it under different names (ShmOptions::name).
std::unique_ptr<Communicator> connect_shm(const std::filesystem::path& directory, int rank, int size,
                                          const CommunicatorOptions& options, ShmOptions memory = {});

// The same over memory of one process, for threads: one communicator per rank.
std::vector<std::unique_ptr<Communicator>> make_shm_for_threads(int size, const CommunicatorOptions& options,
                                                                ShmOptions memory = {});

}  // namespace syslab::comm
