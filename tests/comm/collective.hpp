// One collective as laws try it: every rank's input from a seed, guards around its memory, and what must come out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace syslab::comm {

// What the elements are. whole: small whole numbers, whose sums every dtype holds: exact in any order. coarse:
// multiples of 2^-8 below 8, whose sums are never subnormal. any: of many magnitudes, so that every other order of
// summing shows.
enum class Values { whole, coarse, any };

struct Collective {
  int ranks = 1;
  Operation operation = Operation::all_reduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  std::int64_t count = 0;  // of one rank's part for reduce_scatter and all_gather
  int root = 0;
  bool in_place = false;  // where the operation has a choice
  int offset = 0;         // elements from an aligned address
  Values values = Values::whole;
  std::uint64_t seed = 1;
  float scale = 1;  // of every element, a power of two
};

// Element `index` of what `rank` brings, rounded to the dtype; as bytes of it.
double element(const Collective& of, int rank, std::int64_t index);
void store(DType dtype, double value, void* at);
double load(DType dtype, const void* at);

// What `rank` must have in the end, summed over ranks in their order in the precision that the header promises.
std::string expected(const Collective& of, int rank);

// A rank's memory for one collective, with guards on both sides.
class CollectiveBuffers {
 public:
  CollectiveBuffers(const Collective& of, int rank);
  // Queues it. The buffers must stay until the work is done.
  Work call(Communicator& ranks, device::Stream stream, const Purpose& purpose = {"gradient", "law"});
  // Once it is done: the result's bytes, or what else was written to.
  std::string result() const;

 private:
  struct Guarded {
    std::vector<std::byte> memory;
    std::size_t begin = 0, bytes = 0;
    Guarded() = default;
    Guarded(std::size_t offset, std::size_t bytes);
    std::byte* data() { return memory.data() + begin; }
    const std::byte* data() const { return memory.data() + begin; }
    bool intact() const;
    std::string text() const { return {reinterpret_cast<const char*>(data()), bytes}; }
  };

  Collective of_;
  int rank_;
  Guarded in_, out_;     // in_ alone where the operation is in place
  std::string brought_;  // what in_ held at first, where it must not change
};

// The whole of it on one rank: memory, call, wait, result.
std::string run_collective(const Collective& of, Communicator& ranks, device::Stream stream);

}  // namespace syslab::comm
