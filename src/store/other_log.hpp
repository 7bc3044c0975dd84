// A write-ahead log that lies beside a database and belongs to another one: SQLite would replay it all the same, and
// its pages would take the place of what is stored. A backup that was copied over the database of a killed process has
// one.
#pragma once

#include <filesystem>

namespace syslab::store {

// DamagedDatabase if `path` has a log with which runs of the database would be gone, or which makes no database with
// it. Where a process has the database open, the log is that process's own. Writes nothing. A log of its own, which a
// killed process left, only adds: syslab deletes no run.
void refuse_other_log(const std::filesystem::path& path);

}  // namespace syslab::store
