// Ranks that are threads of one process: what every other backend is held against. Slow and simple: one lock, one
// condition, and the memory of the others in plain sight.
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

// One communicator a rank, for threads that the caller starts. Deterministic; signatures are always compared. A rank
// that is destroyed has left: others that come to an operation which it has not done fail at once.
std::vector<std::unique_ptr<Communicator>> make_local(int size, CommunicatorOptions options = {});

// Runs `body` as every rank of `size`, each in a thread of its own. A rank that throws ends the communication of all.
// Throws what the first rank threw that failed by itself; where all only met the communicator's own failure (a limit, a
// mismatch), that.
void run_local(int size, CommunicatorOptions options, const std::function<void(Communicator&)>& body);

// The same, and returns what each rank threw, by rank; null where it ended well.
std::vector<std::exception_ptr> try_local(int size, CommunicatorOptions options,
                                          const std::function<void(Communicator&)>& body);

}  // namespace syslab::comm
