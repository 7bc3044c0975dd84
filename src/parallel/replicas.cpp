#include "parallel/replicas.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/text.hpp"
#include "device/digest.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {
namespace {

// "line 3 is 'a' on rank 0 and 'b' on rank 2"
std::string first_difference(const std::vector<std::string>& texts) {
  const std::vector<std::string> first = split(texts.front(), '\n');
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const std::vector<std::string> other = split(texts[rank], '\n');
    const auto line_of = [](const std::vector<std::string>& lines, std::size_t at) {
      return at < lines.size() && !lines[at].empty() ? "\"" + lines[at] + "\"" : std::string("nothing");
    };
    for (std::size_t at = 0; at < std::max(first.size(), other.size()); ++at) {
      if (line_of(first, at) == line_of(other, at)) continue;
      return fmt::format("rank 0 has {} where rank {} has {}", line_of(first, at), rank, line_of(other, at));
    }
  }
  return "they differ";
}

bool all_equal(const std::vector<std::string>& texts) {
  return std::ranges::adjacent_find(texts, std::ranges::not_equal_to()) == texts.end();
}

}  // namespace

void require_agreement(comm::Communicator& ranks, std::string_view what, const std::string& text) {
  // Digests first: long texts that are equal need not be sent.
  if (all_equal(ranks.exchange(sha256_hex(text)))) return;
  throw Error(ErrorKind::usage, fmt::format("the ranks do not agree on {}: {}; start all of them alike", what,
                                            first_difference(ranks.exchange(text))));
}

void require_replicas(comm::Communicator& ranks, const ConstTensorView& weights, device::Stream stream) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> digests = ranks.exchange(to_string(
      device::digest(weights.data, static_cast<std::size_t>(weights.elements()) * size_of(weights.dtype), stream)));
  if (all_equal(digests)) return;
  std::vector<std::size_t> others;
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] != digests[0]) others.push_back(rank);
  }
  throw Error(ErrorKind::check, fmt::format("the ranks hold different weights: rank 0 {}…, unlike rank {}; a gradient "
                                            "was not reduced everywhere alike, or a rank began with its own weights",
                                            digests[0].substr(0, 12), fmt::join(others, ", ")));
}

void make_replicas(comm::Communicator& ranks, const TensorView& weights, device::Stream stream) {
  if (ranks.size() == 1) return;
  static_cast<void>(ranks.broadcast(weights, 0, {"replica", "weights of rank 0"}, stream));
  device::synchronize(stream);
  require_replicas(ranks, weights, stream);
}

}  // namespace syslab::parallel
