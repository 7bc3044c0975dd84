#include "store/damaged.hpp"

#include <fmt/format.h>

#include <utility>

namespace syslab::store {

DamagedDatabase::DamagedDatabase(std::filesystem::path file, std::string found, const std::string& advice,
                                 std::string call)
    : Error(ErrorKind::store,
            fmt::format("database '{}': {}; expected a whole database of syslab; it was left as it is\ntry: {}",
                        file.string(), found, advice),
            std::move(call)),
      file_(std::move(file)),
      found_(std::move(found)),
      advice_(advice) {}

DamagedDatabase::DamagedDatabase(std::filesystem::path file, std::string found)
    : DamagedDatabase(
          file, std::move(found),
          fmt::format("`sqlite3 '{}' .recover`, which prints what can still be read, or another copy", file.string())) {
}

}  // namespace syslab::store
