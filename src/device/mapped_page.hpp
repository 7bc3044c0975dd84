// A page of host memory that a GPU's streams read and write by its own address: words by which two processes that share
// the page order each other's streams (device/peer_memory.hpp, raise_mark and await_mark).
#pragma once

#include <cstddef>

namespace syslab::device {

// For all contexts of this process. The page is borrowed and begins where a page begins. Error(device) if the driver
// refuses it.
class MappedPage {
 public:
  explicit MappedPage(std::byte* page);
  MappedPage(const MappedPage&) = delete;
  MappedPage& operator=(const MappedPage&) = delete;
  ~MappedPage();

 private:
  std::byte* page_;
};

}  // namespace syslab::device
