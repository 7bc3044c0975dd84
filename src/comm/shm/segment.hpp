// One rank's handle of the memory shared by the ranks of a host: who has joined, who has failed, and where the data is.
//
//   auto mine = ShmSegment::create(2, options);          // rank 0
//   publish(mine->address());                            // a line of text, by any channel
//   auto mine = ShmSegment::join(address, 1, 2, options) // rank 1
//   mine->wait_for_all();                                // both
//
// The memory is an anonymous file without a name in any file system, so that nothing is left however the ranks end.
// Other processes of the same user reach it through /proc/PID/fd of rank 0, which holds it open until all have joined.
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
#include "core/process/process.hpp"

namespace syslab::comm {

struct ShmOptions {
  std::chrono::milliseconds limit = kLimitOfWaits;  // for any wait for another rank, including joining
  std::size_t slot_bytes = 256U << 10;              // staging per rank and chunk, independent of buffer sizes
  int depth = 4;                                    // chunks under way, at least 3
  std::string name = "ranks";  // distinguishes several groups in one directory: letters, digits, '-', '_'
};

class ShmSegment {
 public:
  // Error(config) for excessive sizes, Error(oom) if the memory cannot be allocated.
  static std::unique_ptr<ShmSegment> create(int size, const ShmOptions& options);
  // Error(comm) if the address belongs to another host or layout, if its process is gone or inaccessible, if rank 0 has
  // other numbers of ranks or slots than requested here, or if the rank is already taken.
  static std::unique_ptr<ShmSegment> join(std::string_view address, int rank, int size, const ShmOptions& options);
  // One segment per rank for a group of threads of this process. No need to wait for all.
  static std::vector<std::unique_ptr<ShmSegment>> for_threads(int size, const ShmOptions& options);

  // Whether the process named by an address is alive on this host; false for an address left from an earlier run.
  static bool is_alive(std::string_view address);
  static bool is_of_this_host(std::string_view address);  // false if it is not an address

  // The rank leaves. Waits for it fail from now on.
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
  Blame blame() const;          // of the reason, once failure() has returned it
  void throw_if_failed() const;

  // Whether the system reports another rank's process as ended. Never true for threads of this process.
  bool has_ended(int rank) const;
  bool is_stopped(int rank) const;
  RankState state(int rank) const;
  pid_t pid(int rank) const { return header().ranks[static_cast<std::size_t>(rank)].pid.load(); }

  // Where the data is.
  std::uint64_t depth() const { return header().sizes.depth; }
  std::size_t slot_bytes(int lane) const { return header().sizes.slot_bytes[static_cast<std::size_t>(lane)]; }
  std::size_t transfer_bytes(int lane) const { return header().sizes.transfer_bytes[static_cast<std::size_t>(lane)]; }
  RankLine& line(int lane, int rank) const;
  ShmTag& tag(int lane, int rank, std::uint64_t chunk) const;  // the slot's bytes follow at kShmLine
  PairLine& pair(int lane, int from, int to) const;
  ShmTag& pair_tag(int lane, int from, int to, std::uint64_t chunk) const;

  // Wakes a rank in a lane; harmless if it is awake.
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
  std::vector<FileDescriptor> processes_;  // by rank: a descriptor of the process (pidfd_open), if available
};

// Sleeps while `word` is `value`, at most `longest`; may return early. Works between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest) noexcept;
void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace syslab::comm
