// Whether two memory ranges hold the same bits, decided by a short digest of each, computed where the memory is and at
// its bandwidth: 8 GB in some milliseconds on a GPU.
//
//   device::digest(weights, bytes, stream) == digest_of_another_rank
//
// Two sums mod 2^64 of mixed words, each word mixed with its position under a different seed. Integer sums do not
// depend on order, so GPU threads and a host loop get the same numbers. A change within one word always changes both
// sums, since mixing is one to one; other changes, such as swapped words, escape with a probability of about 2^-128.
// Not cryptographic: collisions can be constructed on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.hpp"

namespace syslab::device {

struct Digest {
  std::uint64_t bytes = 0;  // compared too, since the last word is padded with zeros
  std::uint64_t sums[2] = {};
  bool operator==(const Digest&) const = default;
};
std::string to_string(const Digest& digest);  // the sums in hexadecimal, then the length; equal for equal digests

// Of `bytes` at `data`, in memory of the stream's device and at any address. Waits for the stream.
Digest digest(const void* data, std::size_t bytes, Stream stream);

// The finaliser of MurmurHash3 (Appleby): one to one, and every input bit affects every output bit.
constexpr std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ (word >> 33)) * 0xff51'afd7'ed55'8ccdULL;
  word = (word ^ (word >> 33)) * 0xc4ce'b9fe'1a85'ec53ULL;
  return word ^ (word >> 33);
}

// Adds the eight bytes at 8 · index, little-endian.
constexpr void add_word(std::uint64_t word, std::uint64_t index, std::uint64_t (&sums)[2]) {
  sums[0] += mixed(word + 0x9e37'79b9'7f4a'7c15ULL * (index + 1));
  sums[1] += mixed(word + 0xd1b5'4a32'd192'ed03ULL * (index + 1));
}

}  // namespace syslab::device
