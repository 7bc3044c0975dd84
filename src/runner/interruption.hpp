// Makes SIGINT, SIGTERM, SIGHUP (terminal closed) and SIGUSR1 (a scheduler's warning) pollable during the object's
// lifetime.
#pragma once

#include <signal.h>

#include <array>

#include "core/process/process.hpp"

namespace syslab::runner {

// Installs its handlers and restores the old ones. A signal that was ignored (nohup) stays ignored. At most one object
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
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  FileDescriptor read_, write_;
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace syslab::runner
