#include "comm/signature.hpp"

#include <fmt/format.h>

namespace syslab::comm {

namespace {
constexpr const char* kRemedy = "every rank must call the same operations in the same order";
}

std::string disagreement(std::span<const Signature> of_ranks) {
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank] == of_ranks[0]) continue;
    return fmt::format("the ranks disagree: rank 0 calls {}; rank {} calls {}: {}", to_string(of_ranks[0]), rank,
                       to_string(of_ranks[rank]), kRemedy);
  }
  return {};
}

std::string disagreement(int sender, const Signature& sent, int receiver, const Signature& expected) {
  if (sent.count == expected.count && sent.dtype == expected.dtype && sent.number == expected.number) return {};
  return fmt::format("the ranks disagree: rank {} calls {}; rank {} calls {}: count and dtype must be the same", sender,
                     to_string(sent), receiver, to_string(expected));
}

}  // namespace syslab::comm
