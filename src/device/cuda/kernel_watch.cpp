#include "device/cuda/kernel_watch.hpp"

#include <algorithm>
#include <utility>

namespace syslab::device {
namespace {

thread_local KernelWatch* watch_of_thread = nullptr;

}  // namespace

KernelWatch::KernelWatch() : before_(std::exchange(watch_of_thread, this)) {}

KernelWatch::~KernelWatch() { watch_of_thread = before_; }

KernelWatch* KernelWatch::of_thread() noexcept { return watch_of_thread; }

void KernelWatch::note(KernelResources kernel) {
  if (std::find(seen_.begin(), seen_.end(), kernel) == seen_.end()) seen_.push_back(std::move(kernel));
}

}  // namespace syslab::device
