#include "comm/gloo/gloo.hpp"
#include "core/error.hpp"

namespace syslab::comm {

bool gloo_is_built() { return false; }

std::unique_ptr<Communicator> connect_gloo(const std::filesystem::path&, int, int, CommunicatorOptions, GlooChecks) {
  throw Unsupported("Gloo is not in this build: it needs Gloo's library (libgloo-dev) when it is built");
}

}  // namespace syslab::comm
