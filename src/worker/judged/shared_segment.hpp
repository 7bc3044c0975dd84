// Memory that a host and a worker both see: an anonymous file; the worker inherits its descriptor.
//
// It begins with a doorbell (worker/judged/doorbell.hpp). Behind it tensors are placed one after another, each between
// two guard zones; what a worker writes outside its outputs is found afterwards. A worker cannot make it shorter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/process/process.hpp"
#include "worker/judged/call.hpp"
#include "worker/judged/doorbell.hpp"

namespace syslab::worker {

// How a tensor has changed: "3 of 256 elements, the first [0, 1, 2] from 0.5 to 1".
struct ChangedTensor {
  std::string words;
  bool from_nan = false;  // the first of them was NaN: whatever should have written it had not done so yet
};

class SharedSegment {
 public:
  SharedSegment();  // empty; Error(internal) if the system has no anonymous files
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  int fd() const { return fd_.get(); }
  std::size_t bytes() const { return bytes_; }

  // Lays out `tensors` (sets their offsets, 256-byte aligned), grows to hold them, fills all of it with NaN and what
  // is around outputs with the guard pattern; resets the doorbell. Error(oom) if it cannot grow, Error(internal) for
  // negative strides. `guarded`: each tensor, its bytes rounded up to 256, ends where a page begins that the worker
  // takes away from itself. What is lent has its place and its zones; between them nothing is touched, here or later.
  void arrange(std::span<SharedTensor> inputs, std::span<SharedTensor> outputs, bool guarded = false);

  std::byte* data() { return data_; }              // after arrange(); another after the next
  Doorbell doorbell() { return Doorbell(data_); }  // after arrange()

  // Elements only; gaps between rows stay as they are on both sides. `host` has the tensor's shape, dtype and strides.
  // `past_caches`: no cache holds anything of it then.
  void copy_in(const SharedTensor& tensor, const void* host, bool past_caches = false);
  void copy_out(const SharedTensor& tensor, void* host) const;

  // After the call and after copy_out: something other than the elements of `outputs` (a guard zone, a gap between
  // rows) was written. Inputs are the worker's to spoil. Erases the outputs' elements.
  std::optional<std::string> violation(std::span<const SharedTensor> outputs);
  // After violation(): an output whose elements somebody has written since.
  std::optional<std::string> written_since(std::span<const SharedTensor> outputs) const;
  // Where an input holds something else than `host`, which copy_in() took.
  std::optional<ChangedTensor> change_of(const SharedTensor& tensor, const void* host) const;
  void evict() const;  // all but the doorbell, from the processor's caches, where that can be done (device/evict.hpp)

 private:
  void grow(std::size_t bytes);
  void fill_elements(const SharedTensor& tensor, std::byte with);

  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A segment's first page once more, at an address that stays what it is when the segment grows and moves. After the
// first arrange(); the segment must outlive it.
class FirstPage {
 public:
  explicit FirstPage(const SharedSegment& of);
  FirstPage(const FirstPage&) = delete;
  FirstPage& operator=(const FirstPage&) = delete;
  ~FirstPage();

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

// Before an output's first element and behind its last so many bytes hold a pattern that no call may change.
constexpr std::size_t kGuardBytes = 256;
// Bytes from a tensor's first to its last element.
std::size_t extent_bytes(const SharedTensor& tensor);
// Calls part(first byte, bytes) for the zones around an output, and with `elements` for what is between them, too.
template <typename Part>
void for_each_part(const SharedTensor& output, bool elements, const Part& part) {
  const std::size_t first = output.offset - kGuardBytes, extent = extent_bytes(output);
  if (elements) return part(first, extent + 2 * kGuardBytes);
  part(first, kGuardBytes);
  part(output.offset + extent, kGuardBytes);
}
// Of a guarded segment, where the page behind a tensor begins, and how long it is.
std::size_t guard_page_of(const SharedTensor& tensor);
std::size_t page_bytes();

}  // namespace syslab::worker
