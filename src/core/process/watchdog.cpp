#include "core/process/watchdog.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace syslab {

Watchdog::Watchdog(std::chrono::milliseconds after, std::function<void()> then)
    : thread_([after, then = std::move(then)](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any().wait_for(lock, stop, after, [] { return false; });
        if (!stop.stop_requested()) then();
      }) {}

}  // namespace syslab
