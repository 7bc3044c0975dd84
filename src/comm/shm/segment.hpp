// One rank's hold on the memory that the ranks of a host share: who is there, who has failed, and where things lie.
//
//   auto mine = ShmSegment::create(2, options);          // rank 0
//   publish(mine->address());                            // a line of text, by whatever way there is
//   auto mine = ShmSegment::join(address, 1, 2, options) // rank 1
//   mine->wait_for_all();                                // both
//
// The memory is an anonymous file: no name in any file system, so that nothing is left however the ranks end. Others of
// the same user reach it through /proc/PID/fd of rank 0, which holds it open until all have joined.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/failure.hpp"
#include "comm/shm/layout.hpp"
#include "core/process.hpp"

namespace syslab::comm {

struct ShmOptions {
  std::chrono::milliseconds limit{60'000};  // of any wait for another rank, that for all to join included
  std::size_t slot_bytes = 256U << 10;      // staging of a rank and a chunk, independent of what is communicated
  int depth = 4;                            // chunks under way, at least 3
  std::string name = "ranks";               // tells several groups in one directory apart: letters, digits, '-', '_'
};

class ShmSegment {
 public:
  // Error(config) for sizes that no host should give, Error(oom) where the memory cannot be had.
  static std::unique_ptr<ShmSegment> create(int size, const ShmOptions& options);
  // Error(comm) if the address is of another host or layout, if its process is gone or closed to us, if rank 0 counts
  // other ranks or slots than are asked for here, or if somebody has that rank already.
  static std::unique_ptr<ShmSegment> join(std::string_view address, int rank, int size, const ShmOptions& options);
  // All ranks of a group whose ranks are threads of this process; one for each thread. Nobody need wait for all.
  static std::vector<std::unique_ptr<ShmSegment>> for_threads(int size, const ShmOptions& options);

  // Is the process that an address names there, on this host? An address that lies about from a former run is not.
  static bool is_alive(std::string_view address);
  static bool is_of_this_host(std::string_view address);  // false for what is no address

  // The rank leaves. Whoever waits for it from now on is told so.
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds limit() const { return limit_; }
  const std::string& address() const { return address_; }  // of the rank that created it

  // Returns when all ranks have joined. Error(comm) at the limit, naming those that have not, or if one died.
  void wait_for_all();

  // Ends the communication of all ranks. The first reason stands.
  void fail(std::string_view reason, const Blame& blame) noexcept;
  bool failed() const noexcept { return header().failure.state.load(std::memory_order_acquire) != ShmFailure::none; }
  std::string failure() const;  // the reason, empty before
  Blame blame() const;          // of the reason, once failure() has given it
  void throw_if_failed() const;

  // What the system says of another rank's process. Ranks that are threads of this one are never said to have ended.
  bool has_ended(int rank) const;
  bool is_stopped(int rank) const;
  RankState state(int rank) const;
  pid_t pid(int rank) const { return header().ranks[static_cast<std::size_t>(rank)].pid.load(); }

  // Where things lie.
  std::uint64_t depth() const { return header().sizes.depth; }
  std::size_t slot_bytes(int lane) const { return header().sizes.slot_bytes[static_cast<std::size_t>(lane)]; }
  std::size_t transfer_bytes(int lane) const { return header().sizes.transfer_bytes[static_cast<std::size_t>(lane)]; }
  RankLine& line(int lane, int rank) const;
  ShmTag& tag(int lane, int rank, std::uint64_t chunk) const;  // the slot's bytes follow, kShmLine behind it
  PairLine& pair(int lane, int from, int to) const;
  ShmTag& pair_tag(int lane, int from, int to, std::uint64_t chunk) const;

  // Wakes a rank in a lane, whether it sleeps or not.
  void ring(int lane, int rank) const noexcept;

 private:
  class Mapping;

  ShmSegment(std::shared_ptr<Mapping> mapping, int rank, const ShmOptions& options);
  ShmHeader& header() const;
  void claim_rank();
  void watch(int rank);

  std::shared_ptr<Mapping> mapping_;  // threads of one process share one
  int rank_ = 0, size_ = 0;
  bool claimed_ = false;
  std::chrono::milliseconds limit_;
  std::string address_;
  FileDescriptor file_;                    // of the creator, until all have joined
  std::vector<FileDescriptor> processes_;  // by rank: a descriptor of the process (pidfd_open), where there is one
};

// Sleeps while `word` is `value`, at most `longest`; may return early. Works between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest) noexcept;
void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace syslab::comm
