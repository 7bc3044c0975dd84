// What a Store holds; shared by the files of this room that implement its parts.
#pragma once

#include <filesystem>

#include "store/open.hpp"

namespace syslab::store {

struct Store::Impl {
  std::filesystem::path path;
  Mode mode = Mode::read_only;
  OpenOptions options;
  OpenedFile file;

  Connection& db() const { return *file.connection; }
  // For every writing call. Error(store) on a store opened read-only.
  Connection& writable() const;
};

}  // namespace syslab::store
