#include "tests/comm/collective.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace syslab::comm {

namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xa5}, kStaleByte{0x5a};

// splitmix64's finalizer: numbers of laws need no better source.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool has_parts(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather;
}

std::int64_t whole_count(const Collective& of) { return has_parts(of.operation) ? of.count * of.ranks : of.count; }

double combine(Reduction reduction, DType dtype, double a, double b) {
  if (reduction == Reduction::max) return std::max(a, b);
  if (reduction == Reduction::min) return std::min(a, b);
  // Two floats' sum in double, rounded to float, is their sum in float (53 bits are more than 2·24 + 2).
  return dtype == DType::f64 ? a + b : static_cast<double>(static_cast<float>(a + b));
}

}  // namespace

void store(DType dtype, double value, void* at) {
  const auto put = [at](auto element) { std::memcpy(at, &element, sizeof element); };
  switch (dtype) {
    case DType::f64:
      return put(value);
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f16:
      return put(to_f16(static_cast<float>(value)));
    case DType::bf16:
      return put(to_bf16(static_cast<float>(value)));
  }
}

double load(DType dtype, const void* at) {
  const auto get = [at](auto element) {
    std::memcpy(&element, at, sizeof element);
    return to_double(element);
  };
  switch (dtype) {
    case DType::f64:
      return get(double{});
    case DType::f32:
      return get(float{});
    case DType::f16:
      return get(f16{});
    case DType::bf16:
      return get(bf16{});
  }
  return 0;
}

double element(const Collective& of, int rank, std::int64_t index) {
  const std::uint64_t bits =
      mixed(of.seed ^ mixed(static_cast<std::uint64_t>(rank) << 48 ^ static_cast<std::uint64_t>(index)));
  double value = 0;
  switch (of.values) {
    case Values::whole:
      value = static_cast<double>(bits % 17) - 8;
      break;
    case Values::coarse:
      value = (static_cast<double>(bits % 4095) - 2047) * 0x1p-8;
      break;
    case Values::any:
      value = std::ldexp(static_cast<double>(bits >> 40) * 0x1p-23 - 1, static_cast<int>(bits % 13) - 6);
      break;
  }
  std::byte rounded[8];
  store(of.dtype, value * static_cast<double>(of.scale), rounded);
  return load(of.dtype, rounded);
}

std::string expected(const Collective& of, int rank) {
  const auto count = of.operation == Operation::all_gather ? whole_count(of) : of.count;
  const std::size_t width = size_of(of.dtype);
  std::string bytes(static_cast<std::size_t>(count) * width, '\0');
  for (std::int64_t i = 0; i < count; ++i) {
    double value = 0;
    if (of.operation == Operation::all_gather) {
      value = element(of, static_cast<int>(i / of.count), i % of.count);
    } else if (of.operation == Operation::broadcast) {
      value = element(of, of.root, i);
    } else {
      const std::int64_t index = of.operation == Operation::reduce_scatter ? of.count * rank + i : i;
      value = element(of, 0, index);
      for (int other = 1; other < of.ranks; ++other) {
        value = combine(of.reduction, of.dtype, value, element(of, other, index));
      }
    }
    store(of.dtype, value, bytes.data() + static_cast<std::size_t>(i) * width);
  }
  return bytes;
}

CollectiveBuffers::Guarded::Guarded(std::size_t offset, std::size_t bytes_)
    : memory(2 * kGuard + offset + bytes_, kGuardByte), begin(kGuard + offset), bytes(bytes_) {
  std::fill_n(data(), bytes, kStaleByte);
}

bool CollectiveBuffers::Guarded::intact() const {
  const auto is_guard = [](std::byte byte) { return byte == kGuardByte; };
  const auto first = memory.begin(), inner = first + static_cast<std::ptrdiff_t>(begin);
  return std::all_of(first, inner, is_guard) &&
         std::all_of(inner + static_cast<std::ptrdiff_t>(bytes), memory.end(), is_guard);
}

CollectiveBuffers::CollectiveBuffers(const Collective& of, int rank) : of_(of), rank_(rank) {
  const std::size_t width = size_of(of.dtype), offset = static_cast<std::size_t>(of.offset) * width;
  const std::size_t part = static_cast<std::size_t>(of.count) * width;
  const std::size_t whole = static_cast<std::size_t>(whole_count(of)) * width;
  const bool scatters = of.operation == Operation::reduce_scatter, gathers = of.operation == Operation::all_gather;
  of_.in_place = of.in_place || !has_parts(of.operation);
  in_ = Guarded(offset, gathers && !of_.in_place ? part : whole);
  if (!of_.in_place) out_ = Guarded(offset, scatters ? part : whole);
  // What it brings: all of it, or, of a gathering in place, its own piece.
  const std::size_t at = gathers && of_.in_place ? part * static_cast<std::size_t>(rank) : 0;
  const std::int64_t count = gathers ? of.count : whole_count(of);
  for (std::int64_t i = 0; i < count; ++i) {
    store(of.dtype, element(of, rank, i), in_.data() + at + static_cast<std::size_t>(i) * width);
  }
  if (!of_.in_place) brought_ = in_.text();
}

Work CollectiveBuffers::call(Communicator& ranks, device::Stream stream, const Purpose& purpose) {
  const std::int64_t count = of_.count, whole = whole_count(of_);
  const std::size_t piece = static_cast<std::size_t>(count) * size_of(of_.dtype) * static_cast<std::size_t>(rank_);
  const auto view = [this](std::byte* data, std::int64_t elements) {
    return TensorView{data, of_.dtype, Shape{elements}};
  };
  switch (of_.operation) {
    case Operation::all_reduce:
      return ranks.all_reduce(view(in_.data(), count), of_.reduction, purpose, stream);
    case Operation::reduce_scatter:
      return ranks.reduce_scatter(view(in_.data(), whole), view(of_.in_place ? in_.data() + piece : out_.data(), count),
                                  of_.reduction, purpose, stream);
    case Operation::all_gather:
      return ranks.all_gather(view(of_.in_place ? in_.data() + piece : in_.data(), count),
                              view(of_.in_place ? in_.data() : out_.data(), whole), purpose, stream);
    default:
      return ranks.broadcast(view(in_.data(), count), of_.root, purpose, stream);
  }
}

std::string CollectiveBuffers::result() const {
  if (!in_.intact() || (!of_.in_place && !out_.intact())) return "memory beside a buffer was written to";
  if (!of_.in_place) return in_.text() == brought_ ? out_.text() : "the input was written to";
  if (of_.operation != Operation::reduce_scatter) return in_.text();
  const std::size_t bytes = static_cast<std::size_t>(of_.count) * size_of(of_.dtype);
  return in_.text().substr(bytes * static_cast<std::size_t>(rank_), bytes);
}

std::string run_collective(const Collective& of, Communicator& ranks, device::Stream stream) {
  CollectiveBuffers buffers(of, ranks.rank());
  ranks.wait(buffers.call(ranks, stream));
  return buffers.result();
}

}  // namespace syslab::comm
