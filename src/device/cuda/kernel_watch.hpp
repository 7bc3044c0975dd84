// What kernels take of a multiprocessor: registers, shared memory, and how many of their blocks fit.
//
//   KernelWatch watch;
//   rung.forward(…);                                   // launches, on this thread
//   for (const KernelResources& kernel : watch.seen()) …
//
// PreparedKernel and OverlappedKernel tell the watch of their thread. A launch without a watch pays the reading of one
// variable.
#pragma once

#include <string>
#include <vector>

namespace syslab::device {

struct KernelResources {
  std::string name;
  int threads = 0;       // of a block
  int registers = 0;     // of a thread, when it starts
  int shared_bytes = 0;  // of a block
  int local_bytes = 0;   // of a thread: what has no register
  int blocks = 0;        // that a multiprocessor holds at a time
  int most_threads = 0;  // that a multiprocessor holds at a time, of any kernel

  double occupancy() const { return most_threads == 0 ? 0 : static_cast<double>(blocks) * threads / most_threads; }
  bool operator==(const KernelResources&) const = default;
};

// During its lifetime, over launches of its thread. Watches nest: the innermost sees.
class KernelWatch {
 public:
  KernelWatch();
  KernelWatch(const KernelWatch&) = delete;
  KernelWatch& operator=(const KernelWatch&) = delete;
  ~KernelWatch();

  static KernelWatch* of_thread() noexcept;  // null: nobody watches
  void note(KernelResources kernel);
  // Each once, in the order of first launches.
  const std::vector<KernelResources>& seen() const { return seen_; }

 private:
  KernelWatch* before_;
  std::vector<KernelResources> seen_;
};

}  // namespace syslab::device
