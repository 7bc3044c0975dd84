#include "runner/interruption.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "core/error.hpp"

namespace syslab::runner {
namespace {

std::atomic<int> g_signal{0};
std::atomic<int> g_wake{-1};
static_assert(std::atomic<int>::is_always_lock_free);  // else not for handlers

// The byte wakes a poll that began just before the signal; a flag alone would be seen only at the next timeout.
void on_signal(int number) {
  const int saved = errno;
  g_signal.store(number);
  const char byte = 0;
  if (const int fd = g_wake.load(); fd >= 0 && ::write(fd, &byte, 1) < 0) {
    // The pipe is full, so the reader has been woken already.
  }
  errno = saved;
}

}  // namespace

Interruption::Interruption() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw_errno(ErrorKind::internal, "create a pipe", errno, "pipe2");
  read_.reset(ends[0]);
  write_.reset(ends[1]);
  int nobody = -1;
  if (!g_wake.compare_exchange_strong(nobody, write_.get())) {
    throw Error(ErrorKind::internal, "two plans cannot run in one process at the same time");
  }
  g_signal.store(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  g_wake.store(-1);
}

int Interruption::signal() const { return latest(); }

int Interruption::latest() { return g_signal.load(); }

}  // namespace syslab::runner
