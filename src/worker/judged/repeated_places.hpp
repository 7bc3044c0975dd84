// How much of an argument's content is what one of the last calls had at the same place, such as the columns of a
// matrix that stay while the others are drawn anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syslab::worker {

class RepeatedPlaces {
 public:
  // Of content of that many bytes. It looks at up to 16,384 places, each of one item or, of small items, of 8 bytes.
  RepeatedPlaces(std::size_t bytes, std::size_t item_bytes);

  // The part of the places, of 1, that hold what one of the last 16 calls had there; keeps the content for later calls.
  // A value that a call has at several places, as masks and labels do, does not count.
  double take(std::span<const std::byte> content);

 private:
  std::size_t width_;
  std::vector<std::size_t> places_;               // first bytes
  std::vector<std::vector<std::uint64_t>> kept_;  // a call's values, by place
  std::size_t next_ = 0;                          // of kept_, which the next call replaces
};

}  // namespace syslab::worker
