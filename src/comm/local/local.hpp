// Ranks as threads of one process: the reference for every other backend. Slow and simple: one lock, one condition
// variable, and direct access to the other ranks' memory.
//
//   comm::run_local(3, {}, [](comm::Communicator& ranks) {
//     std::vector<float> mine(8, static_cast<float>(ranks.rank()));
//     ranks.all_reduce({mine.data(), DType::f32, {8}}, comm::Reduction::sum, {"control"}, {});
//   });
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"

namespace syslab::comm {

// One communicator per rank, for threads that the caller starts. Deterministic; signatures are always compared. A
// destroyed rank has left: others that reach an operation which it has not done fail at once.
std::vector<std::unique_ptr<Communicator>> make_local(int size, CommunicatorOptions options = {});

// Runs `body` as every rank of `size`, each in a thread of its own. A rank that throws ends the communication of all.
// Rethrows the exception of the first rank that failed by itself; if there is none (a limit, a mismatch), the
// communicator's failure.
void run_local(int size, CommunicatorOptions options, const std::function<void(Communicator&)>& body);

// The same, and returns what each rank threw, by rank; null if it succeeded.
std::vector<std::exception_ptr> try_local(int size, CommunicatorOptions options,
                                          const std::function<void(Communicator&)>& body);

}  // namespace syslab::comm
