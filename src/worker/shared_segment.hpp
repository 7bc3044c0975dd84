// Memory that a host and a worker both see: an anonymous file whose descriptor the worker inherits.
//
// Tensors are placed one after another, each between two guard zones; what a worker writes outside its outputs is found
// afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/process.hpp"
#include "worker/call.hpp"

namespace syslab::worker {

class SharedSegment {
 public:
  SharedSegment();  // empty; Error(internal) if the system has no anonymous files
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  int fd() const { return fd_.get(); }
  std::size_t bytes() const { return bytes_; }

  // Lays out `tensors` (sets their offsets, 256-byte aligned), grows to hold them and fills all of it with the guard
  // pattern. Error(oom) if it cannot grow, Error(internal) for negative strides.
  void arrange(std::span<SharedTensor> inputs, std::span<SharedTensor> outputs);

  // Elements only; gaps between rows stay as they are on both sides. `host` has the tensor's shape, dtype and strides.
  void copy_in(const SharedTensor& tensor, const void* host);
  void copy_out(const SharedTensor& tensor, void* host) const;

  // After the call and after copy_out: something other than the elements of `outputs` (a guard zone, a gap between
  // rows) was written. Inputs are the worker's to spoil. Erases the outputs' elements.
  std::optional<std::string> violation(std::span<const SharedTensor> outputs);

 private:
  void grow(std::size_t bytes);

  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace syslab::worker
