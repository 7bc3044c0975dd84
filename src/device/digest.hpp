// Whether two stretches of memory hold the same bits, told by a few numbers of each, taken where the memory is and at
// its speed: 8 GB in some milliseconds on a GPU.
//
//   device::digest(weights, bytes, stream) == digest_of_another_rank
//
// Two sums mod 2^64 of mixed words, each word mixed with its place under another seed. Sums of integers are the same in
// any order, so a GPU's threads and a plain loop of the host find the same numbers. A change within one word always
// changes both sums, since mixing is one to one; others, words that change places among them, escape with a chance of
// about 2^-128. Not cryptographic: who means to can make two stretches alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.hpp"

namespace syslab::device {

struct Digest {
  std::uint64_t bytes = 0;  // the last word is filled with zeros, so the length belongs to what is compared
  std::uint64_t sums[2] = {};
  bool operator==(const Digest&) const = default;
};
std::string to_string(const Digest& digest);  // the sums in hexadecimal, then the length; equal where digests are

// Of `bytes` at `data`, in memory of the stream's device and at any address. Waits for the stream.
Digest digest(const void* data, std::size_t bytes, Stream stream);

// The finaliser of MurmurHash3 (Appleby): one to one, and every bit of the word reaches every bit of what comes out.
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
