// How a database file is opened: what is refused, in which journal mode, and from where it is read when it cannot be
// read in place.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/files/temporary_folder.hpp"
#include "store/connection.hpp"
#include "store/file_system.hpp"
#include "store/options.hpp"
#include "store/store.hpp"

namespace syslab::store {

struct OpenedFile {
  std::unique_ptr<TemporaryFolder> folder;  // of a copy; outlives the connection
  std::unique_ptr<Connection> connection;
  std::string uri;                   // for ATTACH: what the connection has open
  std::vector<std::string> notices;  // what a user should hear once
};

// Read-write, made if absent and `create`. Migrated.
OpenedFile open_for_writing(const std::filesystem::path& path, bool create, const OpenOptions& options);

// DamagedDatabase unless all pages of the file can be read and fit together. Reads all of it.
void require_whole(Connection& connection);

// Read-only. In place where possible; as an immutable file in a folder that cannot be written; from a temporary copy
// when its schema is older (migrated there) or a write-ahead log must be replayed and cannot be in place.
OpenedFile open_for_reading(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace syslab::store
