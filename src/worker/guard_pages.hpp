// Behind every tensor of a guarded call a page that this process may not touch. A read or write there ends the process
// by a signal, and before that standard error gets a line that names the tensor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syslab::worker {

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
