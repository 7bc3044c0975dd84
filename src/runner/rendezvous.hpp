// Where the ranks of one launch find each other: a folder of their own, gone when the launch is over.
#pragma once

#include <string>

namespace syslab::runner {

class Rendezvous {
 public:
  // Makes a folder that nobody else can enter, below TMPDIR or /tmp. Error(internal) where that cannot be.
  Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous();  // with all that is in it

  // What ranks are told; opaque to the lab: "file:/tmp/syslab-ranks-x7Ck2Q".
  std::string text() const { return "file:" + folder_; }

 private:
  std::string folder_;
};

}  // namespace syslab::runner
