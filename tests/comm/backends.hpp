// The backends that tests and laws run over. A new one is a line in backends.cpp.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace syslab::comm {

// How one rank ended: what its body returned, or what it threw. Bytes and texts alone, so that ranks may be processes.
struct RankEnd {
  std::string result;
  std::optional<ErrorKind> kind;  // of an Error
  std::string error;              // empty: it ended well

  bool well() const { return error.empty(); }
};

using RankBody = std::function<std::string(Communicator&)>;

struct Backend {
  std::string name;
  // Runs `body` as every rank of `size` and returns how each ended, by rank. A body that throws leaves the communicator
  // as an exception would: aborted with its text.
  std::function<std::vector<RankEnd>(int size, CommunicatorOptions options, const RankBody& body)> run;
  bool in_rank_order = true;        // sums in the order of ranks: the same bits however a buffer is cut
  bool compares_signatures = true;  // without being asked to
  bool counts_moved = true;         // Counters::Row::moved_bytes
  bool forks = false;               // a process a rank and a run: too slow for laws, which run hundreds of times
  bool hears = true;                // of other ranks' failures, without a control plane
  int most_ranks = 6;
};

// copy_engines is among them where the environment names the fake library (SYSLAB_TEST_FAKE_NCCL, in meson.build).
std::span<const Backend> backends();

// How tests print and name one.
inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }  // NOLINT: GoogleTest's name

}  // namespace syslab::comm
