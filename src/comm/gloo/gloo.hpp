// Gloo as a peer: the usual way to connect processes of one host, over TCP. The backend "gloo".
//
// Only for comparisons: if ranks pass buffers of different sizes, Gloo terminates the process from its own thread,
// which cannot be caught. Signatures are therefore exchanged before every operation, unless the caller's ranks cannot
// differ. Errors carry Gloo's message, which names an address rather than a rank. Sums of bf16 and f16 are rounded at
// every hop, and the order of a sum is Gloo's own.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/communicator.hpp"

namespace syslab::comm {

enum class GlooChecks {
  signatures,  // before every collective, by a host exchange
  none,        // for measuring Gloo itself, among ranks that run the same loop
};

bool gloo_is_built();

// Returns when all ranks have come. `directory` is private to this launch and seen by all its ranks; nothing is left in
// it. Unsupported in a build without Gloo; Error(comm) at the limit.
std::unique_ptr<Communicator> connect_gloo(const std::filesystem::path& directory, int rank, int size,
                                           CommunicatorOptions options, GlooChecks checks = GlooChecks::signatures);

}  // namespace syslab::comm
