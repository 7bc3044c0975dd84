#include "device/mapped_page.hpp"

#include <unistd.h>

#include "device/cuda/runtime.hpp"

namespace syslab::device {

MappedPage::MappedPage(std::byte* page) : page_(page) {
  runtime::map_host(page, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
}

MappedPage::~MappedPage() { runtime::unmap_host(page_); }

}  // namespace syslab::device
