// What the arguments of timed calls give away: content that comes again, and rows that are equal. Whoever remembers
// results by content, or computes one row for all, looks faster by it; the verdict then says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "stats/timing_warning.hpp"
#include "worker/judged/repeated_places.hpp"

namespace syslab::worker {

class ArgumentWatch {
 public:
  struct Argument {
    std::string name;
    std::size_t item_bytes = 1;
    std::vector<std::int64_t> shape;
  };

  explicit ArgumentWatch(std::vector<Argument> arguments);

  // The content of one argument in the next call, contiguous; what lies behind its last element is not looked at.
  void take(std::size_t argument, std::span<const std::byte> content);

  // Arguments of which a tenth or more came again on average, as units anywhere or at their places, and those of which
  // half of the rows or more are copies of others, or hold one value. An argument that is the same in every call, such
  // as a mask, is told as that where others vary: whole results cannot be kept by it. Arguments of less than 32 bytes,
  // which repeat by chance, are left out.
  std::vector<stats::TimingWarning> warnings() const;

 private:
  struct Watched {
    Argument argument;
    std::size_t bytes = 0, row_bytes = 0, unit_bytes = 0;
    std::uint64_t one_in = 1;         // units of which one is looked for in earlier calls
    std::vector<std::uint64_t> seen;  // hashes of units by their lowest bits; a later one takes the place of another
    std::unordered_set<std::uint64_t> contents;  // a hash of each whole content
    RepeatedPlaces places{0, 1};
    std::int64_t calls = 0;
    double repeated = 0, equal = 0;  // sums of parts over the calls
  };
  static double repeated(Watched& one, std::span<const std::byte> content);
  static double equal_rows(const Watched& one, std::span<const std::byte> content);

  std::vector<Watched> watched_;
};

}  // namespace syslab::worker
