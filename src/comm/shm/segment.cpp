#include "comm/shm/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <thread>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/text/units.hpp"

namespace syslab::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::string_view kAddressWord = "syslab-shm-1";
// More than any sensible choice of slots takes; a mistyped size must not reserve a machine's memory.
constexpr std::uint64_t kMostBytes = 1ULL << 30;
constexpr std::size_t kControlSlotBytes = 4U << 10;
constexpr std::size_t kMostTransferBytes = 64U << 10, kLeastTransferBytes = 4U << 10;
constexpr std::size_t kPairsBytes = 8U << 20;  // of all pairs together, where there are many ranks

ShmSizes sizes_of(int ranks, const ShmOptions& options) {
  ShmSizes sizes;
  sizes.ranks = static_cast<std::uint64_t>(ranks);
  sizes.depth = static_cast<std::uint64_t>(options.depth);
  sizes.slot_bytes = {round_up(options.slot_bytes, kShmLine), kControlSlotBytes};
  const std::size_t chunks = sizes.ranks * sizes.ranks * sizes.depth;
  sizes.transfer_bytes = {round_up(std::clamp(kPairsBytes / chunks, kLeastTransferBytes, kMostTransferBytes), kShmLine),
                          0};
  return sizes;
}

}  // namespace

// Offsets of a lane's lines and slots in the segment, and the distances between them.
struct ShmPlacement {
  std::size_t lines, slots, slot_stride, pairs, pair_stride, pair_slot_stride;
};

struct ShmPlaces {
  std::array<ShmPlacement, kShmLanes> lanes{};
  std::size_t bytes = 0;

  explicit ShmPlaces(const ShmSizes& sizes) : bytes(round_up(sizeof(ShmHeader), kShmLine)) {
    for (std::size_t index = 0; index < kShmLanes; ++index) {
      ShmPlacement& lane = lanes[index];
      lane.lines = bytes;
      lane.slots = lane.lines + sizes.ranks * sizeof(RankLine);
      lane.slot_stride = kShmLine + sizes.slot_bytes[index];
      lane.pairs = lane.slots + sizes.ranks * sizes.depth * lane.slot_stride;
      lane.pair_slot_stride = kShmLine + sizes.transfer_bytes[index];
      const bool has_pairs = sizes.transfer_bytes[index] > 0;
      lane.pair_stride = has_pairs ? sizeof(PairLine) + sizes.depth * lane.pair_slot_stride : 0;
      bytes = lane.pairs + sizes.ranks * sizes.ranks * lane.pair_stride;
    }
  }
};

namespace {

void expect_sensible(int size, const ShmOptions& options) {
  if (size < 1 || size > kMostShmRanks) {
    throw Error(ErrorKind::config, fmt::format("shared memory was asked to join {} ranks; it joins 1 to {} of one host",
                                               size, kMostShmRanks));
  }
  if (options.depth < 3 || options.depth > 64) {
    throw Error(ErrorKind::config,
                fmt::format("shared memory was asked for {} slots a rank; it takes 3 to 64", options.depth));
  }
  if (options.slot_bytes < 4096 || options.slot_bytes > kMostBytes) {
    throw Error(ErrorKind::config, fmt::format("shared memory was asked for slots of {}; they have 4 KiB to 64 MiB",
                                               format_bytes(options.slot_bytes)));
  }
  const std::size_t bytes = ShmPlaces(sizes_of(size, options)).bytes;
  if (bytes > kMostBytes) {
    throw Error(ErrorKind::config,
                fmt::format("{} slots of {} for each of {} ranks take {} of shared memory, and {} is the most; ask for "
                            "smaller slots",
                            options.depth, format_bytes(options.slot_bytes), size, format_bytes(bytes),
                            format_bytes(kMostBytes)));
  }
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : "unknown";
}

struct ProcessFacts {
  char state = '?';
  std::uint64_t start = 0;
};

// From /proc/PID/stat; nothing if there is no such process.
std::optional<ProcessFacts> process_facts(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The second field is the program's name in parentheses, which may hold spaces and parentheses; the state is field 3
  // and the start time field 22 (proc(5)).
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessFacts facts;
  fields >> facts.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> facts.start;
  return fields ? std::optional(facts) : std::nullopt;
}

struct SegmentAddress {
  std::string boot;
  pid_t pid = 0;
  std::uint64_t start = 0, bytes = 0;
  int fd = -1;
};

std::optional<SegmentAddress> parse_address(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string first;
  SegmentAddress address;
  if (!(words >> first >> address.boot >> address.pid >> address.start >> address.fd >> address.bytes)) return {};
  return first == kAddressWord ? std::optional(address) : std::nullopt;
}

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds longest) noexcept {
  struct timespec time {};
  time.tv_sec = static_cast<std::time_t>(longest.count() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(longest.count() % 1'000'000'000);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

class ShmSegment::Mapping {
 public:
  Mapping(int fd, std::size_t bytes) : bytes_(bytes) {
    const int shared = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared | MAP_POPULATE, fd, 0);
    // Behind the walls of judged processes nothing is filled in advance (SECURITY.md): pages come when they are
    // touched.
    if (at == MAP_FAILED && errno == EPERM) at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared, fd, 0);
    if (at == MAP_FAILED) {
      throw_errno(ErrorKind::oom, fmt::format("map {} of shared memory", format_bytes(bytes)), errno, "mmap");
    }
    data_ = static_cast<std::byte*>(at);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(data_, bytes_); }

  // Called by the creator, before another process knows of the memory.
  void initialise(const ShmSizes& sizes) {
    new (data_) ShmHeader;
    header().sizes = sizes;
    places_ = ShmPlaces(sizes);
    for (int lane = 0; lane < kShmLanes; ++lane) {
      for (int rank = 0; rank < ranks(); ++rank) {
        new (data_ + line_offset(lane, rank)) RankLine;
        for (std::uint64_t chunk = 0; chunk < sizes.depth; ++chunk) {
          new (data_ + slot_offset(lane, rank, chunk)) ShmTag;
        }
        for (int to = 0; places_.lanes[static_cast<std::size_t>(lane)].pair_stride > 0 && to < ranks(); ++to) {
          new (data_ + pair_offset(lane, rank, to)) PairLine;
          for (std::uint64_t chunk = 0; chunk < sizes.depth; ++chunk) {
            new (data_ + pair_slot_offset(lane, rank, to, chunk)) ShmTag;
          }
        }
      }
    }
  }

  // Called by the other ranks, after checking that the sizes are the ones they expect.
  void adopt(const ShmSizes& sizes) { places_ = ShmPlaces(sizes); }

  ShmHeader& header() const { return *reinterpret_cast<ShmHeader*>(data_); }
  int ranks() const { return static_cast<int>(header().sizes.ranks); }

  template <typename T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(data_ + offset);
  }

  std::size_t line_offset(int lane, int rank) const {
    return place(lane).lines + static_cast<std::size_t>(rank) * sizeof(RankLine);
  }
  std::size_t slot_offset(int lane, int rank, std::uint64_t chunk) const {
    const std::uint64_t depth = header().sizes.depth;
    return place(lane).slots + (static_cast<std::size_t>(rank) * depth + chunk % depth) * place(lane).slot_stride;
  }
  std::size_t pair_offset(int lane, int from, int to) const {
    return place(lane).pairs + static_cast<std::size_t>(from * ranks() + to) * place(lane).pair_stride;
  }
  std::size_t pair_slot_offset(int lane, int from, int to, std::uint64_t chunk) const {
    return pair_offset(lane, from, to) + sizeof(PairLine) +
           (chunk % header().sizes.depth) * place(lane).pair_slot_stride;
  }

 private:
  const ShmPlacement& place(int lane) const { return places_.lanes[static_cast<std::size_t>(lane)]; }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  ShmPlaces places_{ShmSizes{}};
};

ShmSegment::ShmSegment(std::shared_ptr<Mapping> mapping, int rank, const ShmOptions& options)
    : mapping_(std::move(mapping)), rank_(rank), size_(mapping_->ranks()), limit_(options.limit) {
  processes_.resize(static_cast<std::size_t>(size_));
}

std::unique_ptr<ShmSegment> ShmSegment::create(int size, const ShmOptions& options) {
  expect_sensible(size, options);
  const ShmSizes sizes = sizes_of(size, options);
  const std::size_t bytes = ShmPlaces(sizes).bytes;
  FileDescriptor file(::memfd_create("syslab-ranks", MFD_CLOEXEC));
  if (!file) throw_errno(ErrorKind::comm, "make memory for ranks to share", errno, "memfd_create");
  // All pages are reserved now: one that could not be had later would kill the process with SIGBUS.
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    throw_errno(ErrorKind::oom,
                fmt::format("reserve {} of shared memory for {} ranks (ask for smaller slots, or free memory)",
                            format_bytes(bytes), size),
                errno, "fallocate");
  }
  auto mapping = std::make_shared<Mapping>(file.get(), bytes);
  mapping->initialise(sizes);
  std::unique_ptr<ShmSegment> made(new ShmSegment(std::move(mapping), 0, options));
  made->claim_rank();
  const auto own = process_facts(::getpid());
  made->address_ =
      fmt::format("{} {} {} {} {} {}", kAddressWord, boot_id(), ::getpid(), own ? own->start : 0, file.get(), bytes);
  made->file_ = std::move(file);
  return made;
}

std::unique_ptr<ShmSegment> ShmSegment::join(std::string_view text, int rank, int size, const ShmOptions& options) {
  expect_sensible(size, options);
  if (rank < 0 || rank >= size) {
    throw Error(ErrorKind::config, fmt::format("rank {} was asked for among {} ranks: 0 to {}", rank, size, size - 1));
  }
  const std::optional<SegmentAddress> address = parse_address(text);
  if (!address) {
    throw Error(ErrorKind::comm, fmt::format("rank 0 has left '{}' where the address of its shared memory should be: "
                                             "another version of this program, or another's file",
                                             text));
  }
  if (address->boot != boot_id()) {
    throw Error(ErrorKind::comm, fmt::format("rank {} is not on the host of rank 0: shared memory joins ranks of one "
                                             "host; across hosts use another backend",
                                             rank));
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", address->pid, address->fd);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    throw_errno(ErrorKind::comm,
                fmt::format("open the shared memory of rank 0, {} (it must still run, as the same user and in the same "
                            "container)",
                            path),
                errno, "open");
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) != address->bytes ||
      address->bytes < sizeof(ShmHeader)) {
    throw Error(ErrorKind::comm, fmt::format("{} is not the shared memory that rank 0 told of", path), "fstat");
  }
  auto mapping = std::make_shared<Mapping>(file.get(), address->bytes);
  const ShmHeader& header = mapping->header();
  const ShmSizes sizes = sizes_of(size, options);
  if (header.magic != kShmMagic) {
    throw Error(ErrorKind::comm, "rank 0 is another version of this program: its shared memory is laid out otherwise");
  }
  if (header.sizes.ranks != sizes.ranks) {
    throw Error(ErrorKind::comm, fmt::format("world size {} at rank 0, {} at rank {}: start all ranks with the same",
                                             header.sizes.ranks, size, rank));
  }
  if (header.sizes != sizes) {
    throw Error(ErrorKind::comm, fmt::format("{} slots of {} at rank 0, {} of {} at rank {}: start all ranks with the "
                                             "same",
                                             header.sizes.depth, format_bytes(header.sizes.slot_bytes[0]), sizes.depth,
                                             format_bytes(sizes.slot_bytes[0]), rank));
  }
  mapping->adopt(sizes);
  std::unique_ptr<ShmSegment> joined(new ShmSegment(std::move(mapping), rank, options));
  joined->claim_rank();
  joined->address_ = text;
  return joined;
}

std::vector<std::unique_ptr<ShmSegment>> ShmSegment::for_threads(int size, const ShmOptions& options) {
  expect_sensible(size, options);
  const ShmSizes sizes = sizes_of(size, options);
  auto mapping = std::make_shared<Mapping>(-1, ShmPlaces(sizes).bytes);
  mapping->initialise(sizes);
  std::vector<std::unique_ptr<ShmSegment>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back(new ShmSegment(mapping, rank, options));
    ranks.back()->claim_rank();
  }
  return ranks;
}

bool ShmSegment::is_alive(std::string_view text) {
  const std::optional<SegmentAddress> address = parse_address(text);
  if (!address || address->boot != boot_id()) return false;
  const auto facts = process_facts(address->pid);
  return facts && facts->start == address->start && facts->state != 'Z' && facts->state != 'X';
}

bool ShmSegment::is_of_this_host(std::string_view text) {
  const std::optional<SegmentAddress> address = parse_address(text);
  return address && address->boot == boot_id();
}

void ShmSegment::claim_rank() {
  RankEntry& entry = header().ranks[static_cast<std::size_t>(rank_)];
  std::int32_t nobody = 0;
  if (!entry.pid.compare_exchange_strong(nobody, ::getpid())) {
    throw Error(ErrorKind::comm, fmt::format("rank {} joined twice: process {} is it already, and process {} asked",
                                             rank_, nobody, ::getpid()));
  }
  const auto own = process_facts(::getpid());
  entry.start.store(own ? own->start : 0);
  entry.state.store(static_cast<std::uint32_t>(RankState::joined));
  claimed_ = true;
}

ShmSegment::~ShmSegment() {
  RankEntry& entry = header().ranks[static_cast<std::size_t>(rank_)];
  if (!claimed_) return;
  entry.state.store(static_cast<std::uint32_t>(RankState::left));
  for (int lane = 0; lane < kShmLanes; ++lane) {
    for (int other = 0; other < size_; ++other) ring(lane, other);
  }
}

void ShmSegment::watch(int rank) {
  FileDescriptor& process = processes_[static_cast<std::size_t>(rank)];
  if (process || pid(rank) == ::getpid()) return;
  // Kernels before 5.3 lack this call, and some containers forbid it. Then /proc tells whether the process has ended,
  // or the time limit does.
  process.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid(rank), 0)));
  const auto facts = process_facts(pid(rank));
  if (!facts || facts->start != header().ranks[static_cast<std::size_t>(rank)].start.load()) {
    process.reset();  // it has ended, and another may have its number
  }
}

bool ShmSegment::has_ended(int rank) const {
  if (rank == rank_ || pid(rank) == ::getpid()) return false;
  const FileDescriptor& process = processes_[static_cast<std::size_t>(rank)];
  if (process) {
    struct pollfd ended {};
    ended.fd = process.get();
    ended.events = POLLIN;
    return ::poll(&ended, 1, 0) > 0;
  }
  const auto facts = process_facts(pid(rank));
  return !facts || facts->start != header().ranks[static_cast<std::size_t>(rank)].start.load() || facts->state == 'Z';
}

bool ShmSegment::is_stopped(int rank) const {
  const auto facts = process_facts(pid(rank));
  return facts && (facts->state == 'T' || facts->state == 't');
}

RankState ShmSegment::state(int rank) const {
  return static_cast<RankState>(header().ranks[static_cast<std::size_t>(rank)].state.load());
}

void ShmSegment::wait_for_all() {
  const auto deadline = Clock::now() + limit_;
  for (auto pause = 100us;; pause = std::min(2 * pause, std::chrono::microseconds(5000))) {
    std::vector<int> missing;
    for (int other = 0; other < size_; ++other) {
      if (state(other) == RankState::absent) {
        missing.push_back(other);
        continue;
      }
      watch(other);
      if (state(other) == RankState::joined && has_ended(other)) {
        fail(fmt::format("rank {}'s process ({}) ended while the ranks were joining", other, pid(other)),
             {EndingKind::death, other});
      }
    }
    if (failed()) {
      const std::string reason = failure();
      throw RankError(fault_of(blame(), rank_), fmt::format("rank {} of {} cannot join: {}", rank_, size_, reason));
    }
    if (missing.empty()) break;
    if (Clock::now() >= deadline) {
      const std::string names = fmt::format("{} {}", missing.size() == 1 ? "rank" : "ranks", fmt::join(missing, ", "));
      fail(fmt::format("{} of {} did not join within {}", names, size_, format_duration(limit_)),
           {EndingKind::time_out, missing[0]});
      continue;
    }
    std::this_thread::sleep_for(pause);
  }
  file_.reset();
}

void ShmSegment::fail(std::string_view reason, const Blame& blame) noexcept {
  ShmFailure& failure = header().failure;
  std::uint32_t none = ShmFailure::none;
  if (failure.state.compare_exchange_strong(none, ShmFailure::being_written)) {
    const std::size_t length = std::min(reason.size(), failure.reason.size() - 1);
    std::memcpy(failure.reason.data(), reason.data(), length);
    failure.reason[length] = '\0';
    failure.kind = static_cast<std::uint32_t>(blame.kind);
    failure.culprit = blame.culprit;
    failure.state.store(ShmFailure::told, std::memory_order_release);
  }
  for (int lane = 0; lane < kShmLanes; ++lane) {
    for (int other = 0; other < size_; ++other) ring(lane, other);
  }
}

std::string ShmSegment::failure() const {
  const ShmFailure& failure = header().failure;
  for (int tries = 0; failure.state.load(std::memory_order_acquire) != ShmFailure::told; ++tries) {
    if (!failed()) return {};
    // The writing process may have been killed before it was done.
    if (tries == 100) return "another rank ended the communication and did not come to say why";
    std::this_thread::sleep_for(1ms);
  }
  return failure.reason.data();
}

Blame ShmSegment::blame() const {
  const ShmFailure& failure = header().failure;
  if (failure.state.load(std::memory_order_acquire) != ShmFailure::told) return {};
  return {static_cast<EndingKind>(failure.kind), failure.culprit};
}

void ShmSegment::throw_if_failed() const {
  if (!failed()) return;
  const std::string reason = failure();
  throw RankError(fault_of(blame(), rank_), reason);
}

ShmHeader& ShmSegment::header() const { return mapping_->header(); }

RankLine& ShmSegment::line(int lane, int rank) const {
  return mapping_->at<RankLine>(mapping_->line_offset(lane, rank));
}

ShmTag& ShmSegment::tag(int lane, int rank, std::uint64_t chunk) const {
  return mapping_->at<ShmTag>(mapping_->slot_offset(lane, rank, chunk));
}

PairLine& ShmSegment::pair(int lane, int from, int to) const {
  return mapping_->at<PairLine>(mapping_->pair_offset(lane, from, to));
}

ShmTag& ShmSegment::pair_tag(int lane, int from, int to, std::uint64_t chunk) const {
  return mapping_->at<ShmTag>(mapping_->pair_slot_offset(lane, from, to, chunk));
}

void ShmSegment::ring(int lane, int rank) const noexcept {
  std::atomic<std::uint32_t>& bell = line(lane, rank).wake.bell;
  bell.fetch_add(1);
  futex_wake_all(bell);
}

}  // namespace syslab::comm
