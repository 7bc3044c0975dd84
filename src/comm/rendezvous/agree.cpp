#include "comm/rendezvous/agree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/rendezvous/messages.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

std::string to_text(const Fields& fields) {
  Packet packet;
  for (const auto& [name, value] : fields) packet << name << value;
  return packet.bytes();
}

Fields read_fields(const std::string& text) {
  PacketReader packet(text);
  Fields fields;
  while (!packet.at_end()) {
    std::string name = packet.text();
    fields.emplace_back(std::move(name), packet.text());
  }
  return fields;
}

std::string difference_of(const std::vector<std::string>& texts) {
  std::vector<Fields> by_rank;
  for (const std::string& text : texts) by_rank.push_back(read_fields(text));
  return first_difference(by_rank);
}

}  // namespace

std::string first_difference(const std::vector<Fields>& by_rank) {
  const Fields& first = by_rank.front();
  for (std::size_t i = 0;; ++i) {
    bool more = false;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const Fields& fields = by_rank[rank];
      more = more || i < fields.size();
      if ((i < fields.size()) != (i < first.size())) {
        const std::string& name = i < first.size() ? first[i].first : fields[i].first;
        return fmt::format("rank {} does not compare what rank 0 compares: '{}' is named by one of them alone", rank,
                           name);
      }
      if (i >= first.size()) continue;
      if (fields[i].first != first[i].first) {
        return fmt::format("rank {} does not compare what rank 0 compares: '{}' there, '{}' on rank 0", rank,
                           fields[i].first, first[i].first);
      }
      if (fields[i].second != first[i].second) {
        return fmt::format("rank {} differs in '{}': '{}' there, '{}' on rank 0", rank, first[i].first,
                           fields[i].second, first[i].second);
      }
    }
    if (!more) return {};
  }
}

// No rank leaves before all have read the texts: otherwise the others would report that it left.
void agree(Communicator& ranks, const Fields& fields) {
  const std::string difference = difference_of(ranks.exchange(to_text(fields)));
  if (difference.empty()) return;
  try {
    ranks.barrier();
  } catch (const Error&) {  // another rank has read and left; this one has read too, and nothing else is to be done
  }
  throw RankError(Fault::mismatch, difference);
}

void agree(Rendezvous& rendezvous, std::string_view name, const Fields& fields, std::chrono::milliseconds limit) {
  const std::string difference = difference_of(rendezvous.gather(name, to_text(fields), limit));
  if (difference.empty()) return;
  try {
    rendezvous.wait_all(std::string(name) + "/read", limit);
  } catch (const Error&) {
  }
  throw RankError(Fault::mismatch, difference);
}

}  // namespace syslab::comm
