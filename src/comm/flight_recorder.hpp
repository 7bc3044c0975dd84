// The last operations of a communicator and the progress of each: always on, written out after a failure.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "core/text/json.hpp"
#include "core/text/units.hpp"

namespace syslab::comm {

// Any thread may read and add; only the text functions allocate after construction.
class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 4096;

  enum class State : std::uint8_t { queued, started, done, failed };

  struct Entry {
    Signature signature;
    std::uint64_t work = 0;
    State state = State::queued;
    // Since the recorder's construction; zero if not yet reached. GPU progress is known only as of the backend's last
    // poll.
    Nanoseconds queued{}, started{}, ended{};
  };

  // The rank's progress over all operations ever recorded. Numbers are those of signatures (comm/call.hpp), equal on
  // all ranks.
  struct Standing {
    // The last queued, begun and completed collective; the last begun host operation.
    std::uint64_t queued = 0, started = 0, done = 0, host_queued = 0;
    std::optional<Signature> under_way;  // the oldest that has begun and is not done
  };

  explicit FlightRecorder(int rank, int size, std::size_t kept = kKept);

  // Returns the operation's index for the calls below, which do nothing once the ring has overwritten it.
  std::uint64_t add(const Call& call);
  void start(std::uint64_t place);
  void end(std::uint64_t place, bool well);

  std::uint64_t recorded() const;      // ever
  std::vector<Entry> entries() const;  // those kept, oldest first
  Standing standing() const;
  // One line per operation, for the last `most`.
  std::string text(std::size_t most = 32) const;
  // {"rank", "size", "recorded", "operations": [{"operation", "number", …, "state", "queued_ns", …}]}
  Json json() const;

 private:
  Nanoseconds now() const;
  Entry* at(std::uint64_t place);

  int rank_, size_;
  Nanoseconds begin_;
  mutable std::mutex mutex_;
  std::uint64_t recorded_ = 0;
  std::uint64_t open_ = 0;  // the first index with an operation that has not ended
  Standing standing_;       // without what is under way
  std::vector<Entry> ring_;
};

std::string_view to_string(FlightRecorder::State state);  // "queued"

}  // namespace syslab::comm
