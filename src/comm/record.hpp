// A communicator without peers: it writes down what it is asked for, as one rank of a world of any size. For the order
// of operations and the bytes of a strategy before, or without, its ranks.
//
//   comm::RecordCommunicator ranks(0, 1024);
//   strategy.step(ranks, …);
//   ranks.counters().total("gradient").wire_bytes;
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "comm/host_communicator.hpp"
#include "core/units.hpp"

namespace syslab::comm {

// Buffers stay as they are, and an exchange returns `size` times this rank's text: as if all ranks said the same.
class RecordCommunicator final : public HostCommunicator {
 public:
  struct Entry {
    Signature signature;
    device::Stream stream;
    int group = 0;  // counted from 1; 0: in none
  };

  // An operation takes as long in its stream as `takes` says: the schedule of a network that is not there. Without it,
  // no time.
  explicit RecordCommunicator(int rank, int size, CommunicatorOptions options = {},
                              std::function<Nanoseconds(const Signature&)> takes = {});
  ~RecordCommunicator() override;

  std::string_view backend() const override { return "record"; }

  // Those that a backend would have been asked for (one rank alone or no elements: none), in the order in which they
  // ran, which is the order of the calls. Complete once their streams are done.
  std::vector<Entry> log() const;
  // The same as a line an operation. Collectives read the same on every rank of a right program.
  std::vector<std::string> lines() const;

 protected:
  void perform(std::span<const Call> calls) override;
  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override;
  void spread(std::string_view failure) noexcept override;
  bool compares_signatures() const override { return true; }  // there is nobody to differ from

 private:
  std::function<Nanoseconds(const Signature&)> takes_;
  mutable std::mutex mutex_;
  std::vector<Entry> log_;
  int groups_ = 0;
};

}  // namespace syslab::comm
