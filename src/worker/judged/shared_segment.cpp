#include "worker/judged/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/evict.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kAlignment = 256;  // a cache line and a CUDA allocation's alignment both divide it
constexpr std::byte kUnset{0xff};        // a NaN in every dtype: who reads one and uses it shows
// Around outputs: something else, so that a NaN read behind an input and written behind an output shows, too.
constexpr std::byte kGuard{0xa5};

std::size_t aligned(std::size_t bytes) { return round_up(bytes, kAlignment); }

// Calls run(byte offset, bytes) for each stretch of adjacent elements.
template <typename Run>
void for_each_run(const SharedTensor& tensor, const Run& run) {
  if (tensor.shape.elements() == 0) return;
  const std::size_t element = size_of(tensor.dtype);
  int outer = tensor.shape.rank();  // dimensions from here on are adjacent
  std::int64_t adjacent = 1;
  while (outer > 0) {
    const std::int64_t size = tensor.shape[outer - 1];
    if (size != 1 && tensor.strides[static_cast<std::size_t>(outer - 1)] != adjacent) break;
    adjacent *= size;
    --outer;
  }
  std::array<std::int64_t, kMaxRank> index{};
  while (true) {
    std::int64_t offset = 0;
    for (int dim = 0; dim < outer; ++dim) {
      offset += index[static_cast<std::size_t>(dim)] * tensor.strides[static_cast<std::size_t>(dim)];
    }
    run(static_cast<std::size_t>(offset) * element, static_cast<std::size_t>(adjacent) * element);
    int dim = outer - 1;
    for (; dim >= 0; --dim) {
      if (++index[static_cast<std::size_t>(dim)] < tensor.shape[dim]) break;
      index[static_cast<std::size_t>(dim)] = 0;
    }
    if (dim < 0) return;
  }
}

// Whether bytes between its elements are nobody's: all of the zone is looked at then, and else what lies around them.
bool leaves_gaps(const SharedTensor& tensor) {
  return !tensor.lent && extent_elements(tensor.shape, tensor.strides) != tensor.shape.elements();
}

}  // namespace

std::size_t extent_bytes(const SharedTensor& tensor) {
  return static_cast<std::size_t>(extent_elements(tensor.shape, tensor.strides)) * size_of(tensor.dtype);
}

std::size_t guard_page_of(const SharedTensor& tensor) { return tensor.offset + aligned(extent_bytes(tensor)); }

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Sealed against shrinking: to read what has been cut off would end us with a signal.
SharedSegment::SharedSegment() : fd_(::memfd_create("syslab-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_ || ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw_errno(ErrorKind::internal, "create memory to share with a worker", errno, "memfd_create");
  }
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

FirstPage::FirstPage(const SharedSegment& of) {
  void* const mapped = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, of.fd(), 0);
  if (mapped == MAP_FAILED) throw_errno(ErrorKind::oom, "map a page shared with a worker", errno, "mmap");
  data_ = static_cast<std::byte*>(mapped);
}

FirstPage::~FirstPage() { ::munmap(data_, page_bytes()); }

void SharedSegment::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    throw_errno(ErrorKind::oom, fmt::format("share {} bytes with a worker", bytes), errno, "ftruncate");
  }
  void* mapped = data_ == nullptr ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0)
                                  : ::mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) throw_errno(ErrorKind::oom, fmt::format("map {} shared bytes", bytes), errno, "mmap");
  data_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
}

void SharedSegment::arrange(std::span<SharedTensor> inputs, std::span<SharedTensor> outputs, bool guarded) {
  std::size_t end = Doorbell::kBytes;
  for (const std::span<SharedTensor> group : {inputs, outputs}) {
    for (SharedTensor& tensor : group) {
      if (std::any_of(tensor.strides.begin(), tensor.strides.end(), [](std::int64_t step) { return step < 0; })) {
        throw Error(ErrorKind::internal,
                    fmt::format("tensor '{}' has a negative stride, which a call to another process "
                                "cannot carry",
                                tensor.name));
      }
      tensor.offset = aligned(end + kGuardBytes);
      end = tensor.offset + extent_bytes(tensor) + kGuardBytes;
      if (!guarded) continue;
      const std::size_t page = round_up(guard_page_of(tensor), page_bytes());
      tensor.offset = page - aligned(extent_bytes(tensor));
      end = page + page_bytes();
    }
  }
  grow(aligned(end + kGuardBytes));
  std::size_t filled = 0;
  const auto fill_to = [&](std::size_t to) {
    if (to > filled) std::fill_n(data_ + filled, to - filled, kUnset);
  };
  for (const SharedTensor& tensor : outputs) {
    if (!tensor.lent) continue;
    fill_to(tensor.offset);
    filled = tensor.offset + extent_bytes(tensor);
  }
  fill_to(bytes_);
  for (const SharedTensor& tensor : outputs) {
    for_each_part(tensor, leaves_gaps(tensor),
                  [&](std::size_t first, std::size_t bytes) { std::fill_n(data_ + first, bytes, kGuard); });
    if (leaves_gaps(tensor)) fill_elements(tensor, kUnset);
  }
  doorbell().reset();
}

void SharedSegment::evict() const { device::evict(data_ + Doorbell::kBytes, bytes_ - Doorbell::kBytes); }

std::optional<ChangedTensor> SharedSegment::change_of(const SharedTensor& tensor, const void* host) const {
  bool differs = false;
  for_each_run(tensor, [&](std::size_t offset, std::size_t bytes) {
    differs = differs ||
              std::memcmp(static_cast<const std::byte*>(host) + offset, data_ + tensor.offset + offset, bytes) != 0;
  });
  if (!differs) return std::nullopt;
  const std::vector<double> before = to_doubles(ConstTensorView(host, tensor.dtype, tensor.shape, tensor.strides));
  const std::vector<double> now =
      to_doubles(ConstTensorView(data_ + tensor.offset, tensor.dtype, tensor.shape, tensor.strides));
  std::size_t count = 0, first = 0;
  for (std::size_t i = before.size(); i-- > 0;) {
    const bool same = before[i] == now[i] && std::signbit(before[i]) == std::signbit(now[i]);  // 0 is not −0
    if (same || (std::isnan(before[i]) && std::isnan(now[i]))) continue;
    ++count;
    first = i;
  }
  if (count == 0) return ChangedTensor{"in bits alone, as those of 0 and −0"};
  std::string place;
  auto rest = static_cast<std::int64_t>(first);
  for (int dim = tensor.shape.rank() - 1; dim >= 0; --dim) {
    place = fmt::format("{}{}{}", rest % tensor.shape[dim], place.empty() ? "" : ", ", place);
    rest /= tensor.shape[dim];
  }
  const int digits = tensor.dtype == DType::f64 ? 17 : 9;  // so many that they differ
  return ChangedTensor{fmt::format("{} of {} elements, the first [{}] from {:.{}g} to {:.{}g}", count, before.size(),
                                   place, before[first], digits, now[first], digits),
                       std::isnan(before[first])};
}

void SharedSegment::copy_in(const SharedTensor& tensor, const void* host, bool past_caches) {
  for_each_run(tensor, [&](std::size_t offset, std::size_t bytes) {
    std::byte* const to = data_ + tensor.offset + offset;
    const std::byte* const from = static_cast<const std::byte*>(host) + offset;
    past_caches ? device::copy_past_caches(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
  });
}

void SharedSegment::copy_out(const SharedTensor& tensor, void* host) const {
  for_each_run(tensor, [&](std::size_t offset, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(host) + offset, data_ + tensor.offset + offset, bytes);
  });
}

void SharedSegment::fill_elements(const SharedTensor& tensor, std::byte with) {
  for_each_run(
      tensor, [&](std::size_t offset, std::size_t bytes) { std::fill_n(data_ + tensor.offset + offset, bytes, with); });
}

std::optional<std::string> SharedSegment::written_since(std::span<const SharedTensor> outputs) const {
  for (const SharedTensor& tensor : outputs) {
    bool written = false;
    for_each_run(tensor, [&](std::size_t offset, std::size_t bytes) {
      const std::byte* first = data_ + tensor.offset + offset;
      written = written || std::any_of(first, first + bytes, [](std::byte byte) { return byte != kGuard; });
    });
    if (written) return tensor.name;
  }
  return std::nullopt;
}

std::optional<std::string> SharedSegment::violation(std::span<const SharedTensor> outputs) {
  for (const SharedTensor& tensor : outputs) {
    // With the elements erased, a whole zone must hold nothing but the pattern, whatever the strides are.
    if (!tensor.lent) fill_elements(tensor, kGuard);
    std::optional<std::string> violation;
    for_each_part(tensor, leaves_gaps(tensor), [&](std::size_t first, std::size_t bytes) {
      const std::byte* const begin = data_ + first;
      const std::byte* const found = std::find_if(begin, begin + bytes, [](std::byte byte) { return byte != kGuard; });
      if (found == begin + bytes || violation) return;
      violation = fmt::format("output '{}': a byte outside its elements was written, at byte {} from its first element",
                              tensor.name, found - (data_ + tensor.offset));
    });
    if (violation) return violation;
  }
  return std::nullopt;
}

}  // namespace syslab::worker
