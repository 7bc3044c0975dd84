// A judged process's own folder for temporary files and caches: the only place that it may write to.
#pragma once

#include <map>
#include <string>

#include "core/files/temporary_folder.hpp"

namespace syslab::judge {

class PrivateFolder {
 public:
  const std::string& path() const { return folder_.path(); }
  // What tells programs to write there: temporary files, and caches of what is compiled.
  std::map<std::string, std::string> environment() const;

 private:
  TemporaryFolder folder_;
};

}  // namespace syslab::judge
