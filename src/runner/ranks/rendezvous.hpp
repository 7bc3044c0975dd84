// Where the ranks of one launch find each other: a private folder, removed when the launch is over.
#pragma once

#include <string>

#include "core/files/temporary_folder.hpp"

namespace syslab::runner {

class Rendezvous {
 public:
  // The address passed to ranks; opaque to the lab: "file:/tmp/syslab-held-x7Ck2Q".
  std::string text() const { return "file:" + folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace syslab::runner
