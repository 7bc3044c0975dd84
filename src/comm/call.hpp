// One operation of a communicator, as the base class passes it to a backend after validation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab::comm {

enum class Reduction : std::uint8_t { sum, max, min };
std::string_view to_string(Reduction reduction);  // "sum"

// The last two are host operations: they take no stream and no tensor, and are numbered separately.
enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  send,
  receive,
  barrier,
  exchange
};
std::string_view to_string(Operation operation);  // "all_reduce"

// Between two ranks rather than among all.
constexpr bool is_pairwise(Operation operation) {
  return operation == Operation::send || operation == Operation::receive;
}
constexpr bool is_of_host(Operation operation) {
  return operation == Operation::barrier || operation == Operation::exchange;
}

// What an operation is for: counted separately, and named in messages and in the flight recorder ("bucket 3"). `kind`
// is one of a few: "gradient", "parameter", "control", "benchmark". Both are copied, and cut to 15 and 39 bytes.
struct Purpose {
  std::string_view kind = "gradient";
  std::string_view label = {};
};

// A text of fixed capacity, so that queueing does not allocate and other processes can read the bytes.
template <std::size_t Room>
struct FixedText {
  char text[Room] = {};

  FixedText() = default;
  FixedText(std::string_view from) {  // NOLINT: a text is a text
    std::size_t size = from.size() < Room ? from.size() : Room - 1;
    while (size < from.size() && size > 0 && (from[size] & 0xc0) == 0x80)
      --size;  // do not cut inside a UTF-8
               // character
    from.copy(text, size);
  }
  std::string_view view() const { return {text}; }
  bool operator==(const FixedText&) const = default;
};

// What must be the same on all ranks (for two ranks: correspond). Plain bytes of a fixed size without pointers, which
// backends compare before they move data. Without padding, so that equal signatures are equal bytes.
struct Signature {
  // Counted from 1, equally on every rank: among all collectives, all host operations, or all messages from one rank to
  // another.
  std::uint64_t number = 0;
  std::int64_t count = 0;  // elements of the buffer; or of one rank's part for reduce_scatter and all_gather
  std::int32_t peer = -1;  // root of a broadcast; the other rank of a send or receive; else -1
  Operation operation = Operation::all_reduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  std::uint8_t reserved = 0;
  FixedText<16> kind;
  FixedText<40> label;

  bool operator==(const Signature&) const = default;
  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }  // of `count` elements
};
static_assert(sizeof(Signature) == 80);

std::string name_of(const Signature& signature);    // "all_reduce #17 (gradient, bucket 3)"
std::string to_string(const Signature& signature);  // "all_reduce #17 (gradient, bucket 3) of 1024 fp32 elements, sum"

struct Call {
  Signature signature;
  std::uint64_t work = 0;    // this rank's, over all of its queued operations (Work::sequence); 0 for the host's
  const void* in = nullptr;  // reduce_scatter: size·count elements; otherwise count
  void* out = nullptr;       // all_gather: size·count elements; otherwise count. May be `in`, or its own piece of it
  device::Stream stream;
  std::uint64_t record = 0;  // its index in the flight recorder
};

}  // namespace syslab::comm
