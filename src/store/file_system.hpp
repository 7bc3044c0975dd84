// The file system of a database. WAL needs memory shared between all processes that use the file, which network file
// systems do not provide (sqlite.org/wal.html): there the rollback journal is used.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace syslab::store {

// "NFS", "Lustre", …: the network file system that holds `path`, or its folder when the file is not there yet; nothing
// for a local one, and where it cannot be told.
std::optional<std::string> network_file_system(const std::filesystem::path& path);

// The same for the type that statfs(2) reports.
std::optional<std::string> network_file_system_name(long statfs_type);

}  // namespace syslab::store
