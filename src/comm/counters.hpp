// What a communicator moved: calls and bytes by operation and purpose, compared with the formula.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "comm/call.hpp"

namespace syslab::comm {

// Bytes that one rank sends for an operation on `payload` bytes (the whole buffer: size times a part for reduce_scatter
// and all_gather), on average over the ranks; what it receives is as much.
//   all_reduce                   2 (n - 1) / n · payload
//   reduce_scatter, all_gather     (n - 1) / n · payload
//   broadcast                      (n - 1) / n · payload   every rank but the root receives it once
//   send                                         payload
//   receive                                      0         counted where it is sent
// The first three are what any algorithm must send at least (Patarasuk and Yuan 2009); rings and the owner's sum of
// `local` and `shm` reach them.
constexpr double wire_bytes(Operation operation, int size, std::uint64_t payload) {
  const double share = static_cast<double>(size - 1) / size * static_cast<double>(payload);
  switch (operation) {
    case Operation::all_reduce:
      return 2 * share;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::broadcast:
      return share;
    case Operation::send:
      return static_cast<double>(payload);
    case Operation::receive:
    case Operation::barrier:
    case Operation::exchange:
      break;
  }
  return 0;
}

// Any thread may ask and add.
class Counters {
 public:
  struct Row {
    Operation operation = Operation::all_reduce;
    std::string kind;  // of its purpose
    std::uint64_t calls = 0;
    std::uint64_t payload_bytes = 0;  // as wire_bytes() counts them
    // Bytes actually taken from other ranks, if the backend knows (local, shm): the sum over ranks is exactly n times
    // the formula.
    std::uint64_t moved_bytes = 0;
    double wire_bytes = 0;  // by the formula
  };

  explicit Counters(int size) : size_(size) {}

  void add(const Signature& signature);
  void add_moved(const Signature& signature, std::uint64_t bytes);

  std::vector<Row> rows() const;                // in the order of first use
  Row total(std::string_view kind = {}) const;  // over operations; of all kinds if empty
  Row total(Operation operation, std::string_view kind = {}) const;
  std::string text() const;  // one line per row, for people

 private:
  Row& row(const Signature& signature);

  int size_;
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
};

}  // namespace syslab::comm
