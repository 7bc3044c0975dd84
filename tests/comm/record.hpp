// A communicator without peers: it records its calls, as one rank of a world of any size. For a strategy's order of
// operations and bytes without running its ranks.
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
#include "core/text/units.hpp"

namespace syslab::comm {

// Buffers stay unchanged, and an exchange returns this rank's text `size` times.
class RecordCommunicator final : public HostCommunicator {
 public:
  struct Entry {
    Signature signature;
    device::Stream stream;
    int group = 0;  // counted from 1; 0: in none
  };

  // `takes` gives an operation's duration in its stream, to simulate a network; without it, operations take no time.
  explicit RecordCommunicator(int rank, int size, CommunicatorOptions options = {},
                              std::function<Nanoseconds(const Signature&)> takes = {});
  ~RecordCommunicator() override;

  std::string_view backend() const override { return "record"; }

  // The calls that a backend would have received (none for a single rank or zero elements), in execution order, which
  // is call order. Complete once their streams are done.
  std::vector<Entry> log() const;
  // The same with one line per operation. In a correct program collectives read the same on every rank.
  std::vector<std::string> lines() const;

 protected:
  void perform(std::span<const Call> calls) override;
  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override;
  void spread(std::string_view failure) noexcept override;
  bool compares_signatures() const override { return true; }  // there are no other ranks

 private:
  std::function<Nanoseconds(const Signature&)> takes_;
  mutable std::mutex mutex_;
  std::vector<Entry> log_;
  int groups_ = 0;
};

}  // namespace syslab::comm
