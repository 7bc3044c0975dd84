// Something that happens unless this ends before.
//
//   const Watchdog watchdog(std::chrono::seconds(22), [] { _exit(2); });
//   … what may take longer …
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace syslab {

class Watchdog {
 public:
  // `then` runs on a thread of its own, once, after that time; not at all if this object ends before.
  Watchdog(std::chrono::milliseconds after, std::function<void()> then);

 private:
  std::jthread thread_;
};

}  // namespace syslab
