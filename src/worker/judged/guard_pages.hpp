// After every tensor of a guarded call a page that this process may not touch. A read or write there ends the process
// with one of these codes (docs/worker-wire.md, `guarded`), after a line on standard error that names the tensor. By a
// signal, where the processor does not tell which it was.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syslab::worker {

inline constexpr int kReadPastTheEnd = 91, kWrotePastTheEnd = 92;

class GuardPages {
 public:
  struct Page {
    std::byte* begin = nullptr;
    std::size_t behind = 0;  // bytes from the tensor's last to here: the gap that is rounded up
    std::string tensor;
    bool operator==(const Page&) const = default;
  };

  GuardPages() = default;
  GuardPages(const GuardPages&) = delete;
  GuardPages& operator=(const GuardPages&) = delete;

  // These and no others. Error(internal) if the system refuses.
  void put(std::vector<Page> pages);
  // The memory that they were in is gone.
  void forget();

 private:
  std::vector<Page> pages_;
};

}  // namespace syslab::worker
