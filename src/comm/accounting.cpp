#include "comm/accounting.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/error.hpp"

namespace syslab::comm {

namespace {

struct CallSum {
  std::uint64_t calls = 0, payload = 0, moved = 0;
};
using CountedCall = std::pair<Operation, std::string>;  // operation, kind of purpose
using CallSums = std::map<CountedCall, CallSum>;

std::string written(const std::vector<Counters::Row>& rows) {
  std::string text;
  for (const Counters::Row& row : rows) {
    if (is_of_host(row.operation)) continue;
    text += fmt::format("{} {} {} {} {}\n", static_cast<int>(row.operation), row.calls, row.payload_bytes,
                        row.moved_bytes, row.kind);  // the kind is last because it may be empty or contain blanks
  }
  return text;
}

CallSums read(const std::string& text) {
  CallSums sums;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    int operation = 0;
    CallSum sum;
    std::string kind;
    fields >> operation >> sum.calls >> sum.payload >> sum.moved;
    fields.ignore();
    std::getline(fields, kind);
    sums[{static_cast<Operation>(operation), kind}] = sum;
  }
  return sums;
}

[[noreturn]] void refuse(const CountedCall& key, const std::string& why) {
  throw Error(ErrorKind::check, fmt::format("accounting of {} ({}): {}", to_string(key.first), key.second, why));
}

}  // namespace

void check_accounting(Communicator& ranks) {
  std::vector<CallSums> of_ranks;
  for (const std::string& text : ranks.exchange(written(ranks.counters().rows()))) of_ranks.push_back(read(text));
  CallSums all;
  for (const CallSums& sums : of_ranks) {
    for (const auto& [key, sum] : sums) {
      all[key].calls += sum.calls;
      all[key].payload += sum.payload;
      all[key].moved += sum.moved;
    }
  }
  for (const auto& [key, total] : all) {
    for (std::size_t rank = 1; rank < of_ranks.size() && !is_pairwise(key.first); ++rank) {
      const CallSum &first = of_ranks[0][key], &other = of_ranks[rank][key];
      if (first.calls == other.calls && first.payload == other.payload) continue;
      refuse(key, fmt::format("rank 0 counts {} calls of {} bytes, rank {} {} calls of {} bytes", first.calls,
                              first.payload, rank, other.calls, other.payload));
    }
  }
  // Bytes of a message are counted as moved at its receiver; the formula has them at its sender. Over all ranks the
  // sums are equal.
  for (auto& [key, total] : all) {
    if (key.first == Operation::receive || total.moved == 0) continue;
    const auto wire = static_cast<std::uint64_t>(std::llround(wire_bytes(key.first, ranks.size(), total.payload)));
    if (wire != total.moved) {
      refuse(key, fmt::format("all ranks together moved {} bytes, the formula says {}", total.moved, wire));
    }
  }
  std::uint64_t sent = 0, received = 0;
  for (const auto& [key, total] : all) {
    if (key.first == Operation::send) sent += total.payload;
    if (key.first == Operation::receive) received += total.moved;
  }
  if (received > 0 && sent != received) {
    refuse({Operation::receive, "all kinds"}, fmt::format("{} bytes were sent and {} received", sent, received));
  }
}

}  // namespace syslab::comm
