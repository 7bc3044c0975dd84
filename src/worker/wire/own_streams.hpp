// A worker's ends of its host's pipe, moved away from the standard streams: what is printed goes to standard error, and
// nothing can be read.
#pragma once

#include "core/process/process.hpp"

namespace syslab::worker {

class OwnStreams {
 public:
  // Error(internal) if a stream cannot be moved. Ends that are no standard streams stay where they are.
  OwnStreams(int in, int out);

  int in() const { return in_; }
  int out() const { return out_; }

 private:
  FileDescriptor moved_in_, moved_out_;
  int in_, out_;
};

}  // namespace syslab::worker
