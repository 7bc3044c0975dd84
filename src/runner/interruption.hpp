// SIGINT, SIGTERM and SIGHUP (the terminal was closed) as something to poll for, while an object of this class lives.
#pragma once

#include <signal.h>

#include <array>

#include "core/process.hpp"

namespace syslab::runner {

// Installs its handlers and puts the old ones back. A signal that was ignored (nohup) stays ignored. At most one object
// at a time.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  int fd() const { return read_.get(); }  // readable once a signal came
  int signal() const;                     // its number; 0: none came
  // The same for who has no such object: of the one that lives, or lived last.
  static int latest();

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  FileDescriptor read_, write_;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace syslab::runner
