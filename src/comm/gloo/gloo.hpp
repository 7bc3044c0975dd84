// Gloo as a peer: what the processes of one host would be joined by otherwise, over TCP. The backend "gloo".
//
// A peer for comparisons, and nothing to build on: where ranks pass buffers of different sizes, Gloo ends the process
// from a thread of its own, which nobody can catch. Signatures are therefore exchanged before every operation, unless
// the caller's ranks cannot differ. Errors carry Gloo's words, which name an address rather than a rank. Sums of bf16
// and f16 are rounded at every hop, and the order of a sum is Gloo's own.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/communicator.hpp"

namespace syslab::comm {

enum class GlooChecks {
  signatures,  // before every collective, by an exchange of the host
  none,        // for measuring Gloo itself, among ranks that run the same loop
};

bool gloo_is_built();

// Returns when all ranks have come. `directory` is private to this launch and seen by all its ranks; nothing is left in
// it. Unsupported in a build without Gloo; Error(comm) at the limit.
std::unique_ptr<Communicator> connect_gloo(const std::filesystem::path& directory, int rank, int size,
                                           CommunicatorOptions options, GlooChecks checks = GlooChecks::signatures);

}  // namespace syslab::comm
