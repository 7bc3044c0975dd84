// The refusal of a database file that is not what syslab wrote: cut short, overwritten, no database, or without its
// log.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.hpp"

namespace syslab::store {

class DamagedDatabase : public Error {
 public:
  // `found` reads "it is damaged: page 7 is malformed"; `advice`, what to try, is a line of its own in what().
  DamagedDatabase(std::filesystem::path file, std::string found, const std::string& advice, std::string call = {});
  // With the usual advice: a copy, or what sqlite3 can recover.
  DamagedDatabase(std::filesystem::path file, std::string found);

  const std::filesystem::path& file() const noexcept { return file_; }
  const std::string& found() const noexcept { return found_; }
  const std::string& advice() const noexcept { return advice_; }

 private:
  std::filesystem::path file_;
  std::string found_, advice_;
};

}  // namespace syslab::store
