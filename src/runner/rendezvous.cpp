#include "runner/rendezvous.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "core/error.hpp"

namespace syslab::runner {

Rendezvous::Rendezvous() {
  const char* base = ::getenv("TMPDIR");
  folder_ = fmt::format("{}/syslab-ranks-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
  if (::mkdtemp(folder_.data()) == nullptr) {
    throw_errno(ErrorKind::internal, fmt::format("make the folder '{}' for ranks to meet in", folder_), errno,
                "mkdtemp");
  }
}

Rendezvous::~Rendezvous() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace syslab::runner
