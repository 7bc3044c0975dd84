// The last operations of a communicator and how far each has come: always on, written where something went wrong.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "core/json.hpp"
#include "core/units.hpp"

namespace syslab::comm {

// Any thread may ask and add; nothing allocates after construction but what makes texts.
class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 4096;

  enum class State : std::uint8_t { queued, started, done, failed };

  struct Entry {
    Signature signature;
    std::uint64_t work = 0;
    State state = State::queued;
    // Since the recorder was made; zero where it has not come to that. What a GPU does is known only as far as its
    // backend asks.
    Nanoseconds queued{}, started{}, ended{};
  };

  // How far the rank is, over all operations that were ever recorded. Numbers are those of signatures (comm/call.hpp),
  // which all ranks count alike.
  struct Standing {
    // The last that was queued, begun and done among all collectives; the last begun among all operations of the host.
    std::uint64_t queued = 0, started = 0, done = 0, host_queued = 0;
    std::optional<Signature> under_way;  // the oldest that has begun and is not done
  };

  explicit FlightRecorder(int rank, int size, std::size_t kept = kKept);

  // Returns the operation's place for the calls below, which do nothing once the ring has passed over it.
  std::uint64_t add(const Call& call);
  void start(std::uint64_t place);
  void end(std::uint64_t place, bool well);

  std::uint64_t recorded() const;      // ever
  std::vector<Entry> entries() const;  // those kept, oldest first
  Standing standing() const;
  // A line an operation, the last `most` of them.
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
  std::uint64_t open_ = 0;  // the first place whose operation has not ended
  Standing standing_;       // without what is under way
  std::vector<Entry> ring_;
};

std::string_view to_string(FlightRecorder::State state);  // "queued"

}  // namespace syslab::comm
