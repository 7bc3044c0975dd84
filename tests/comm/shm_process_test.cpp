// The shared-memory backend with processes as ranks: this program started again, once a rank. What they compute, and
// how they end when one of them is killed, stopped, missing, or means something else.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "comm/shm/segment.hpp"
#include "comm/shm/shm.hpp"
#include "core/process/process.hpp"
#include "core/random.hpp"
#include "tests/comm/expect_error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// --- a rank ---------------------------------------------------------------------------------------------------------

void say(const std::string& line) {
  std::cout << line << std::endl;  // NOLINT: whoever reads waits for it
}

// Sums of several sizes and dtypes, as a hash of their bits.
std::uint64_t digest_of_sums(Communicator& ranks) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const std::int64_t count : {1, 255, 70'000, 300'001}) {
      std::vector<std::byte> memory(static_cast<std::size_t>(count) * size_of(dtype));
      const TensorView mine(memory.data(), dtype, {count});
      fill(mine, RandomStream(static_cast<std::uint64_t>(ranks.rank() + 1)), Distribution::normal);
      ranks.all_reduce(mine, Reduction::sum, {}, {});
      for (const std::byte byte : memory) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
    }
  }
  return hash;
}

int be_rank(const std::vector<std::string>& words) {
  const fs::path directory = words.at(0);
  const int rank = std::stoi(words.at(1)), size = std::stoi(words.at(2));
  const CommunicatorOptions options{.limit = std::chrono::milliseconds(std::stoi(words.at(3)))};
  const std::string& part = words.at(4);
  try {
    const auto ranks = connect_shm(directory, rank, size, options);
    if (part == "sums") {
      say(std::to_string(digest_of_sums(*ranks)));
      return 0;
    }
    float mine = 1;
    const auto all_reduce = [&](std::int64_t count = 1) {
      std::vector<float> many(static_cast<std::size_t>(count), mine);
      ranks->all_reduce({many.data(), DType::f32, {count}}, Reduction::sum, {"gradient", "bucket 3"}, {});
    };
    for (int i = 0; i < 3; ++i) all_reduce();
    say("ready");
    if (part == "wait") {
      // Rank 1 does not come to the fourth; the others wait for it there.
      if (rank == 1) std::this_thread::sleep_for(60s);
      all_reduce();
    } else if (part == "work") {
      for (;;) all_reduce(100'000);
    } else if (part == "count") {
      all_reduce(rank == 1 ? 5 : 4);
    }
    say("done");
    return 0;
  } catch (const Error& error) {
    say(error.what());
    return 1;
  }
}

// --- those who watch ------------------------------------------------------------------------------------------------

class Directory {
 public:
  Directory() {
    path_ = (fs::temp_directory_path() / "shm_process_test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) throw Error(ErrorKind::internal, "no temporary directory");
  }
  ~Directory() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }
  bool is_empty() const { return fs::is_empty(path_); }

 private:
  std::string path_;
};

class Rank {
 public:
  Rank(const std::string& directory, int rank, int size, std::chrono::milliseconds limit, const std::string& part)
      : process_(Process::spawn(options(directory, rank, size, limit, part))) {}

  std::string line() {
    std::string text;
    for (char next = 0; ::read(process_.from_child(), &next, 1) == 1 && next != '\n';) text += next;
    return text;
  }
  Process& process() { return process_; }

 private:
  static SpawnOptions options(const std::string& directory, int rank, int size, std::chrono::milliseconds limit,
                              const std::string& part) {
    SpawnOptions made;
    made.argv = {"/proc/self/exe",
                 "--rank",
                 directory,
                 std::to_string(rank),
                 std::to_string(size),
                 std::to_string(limit.count()),
                 part};
    made.argv[0] = fs::read_symlink("/proc/self/exe").string();
    made.capture_stderr = false;
    return made;
  }

  Process process_;
};

std::vector<Rank> start(const Directory& directory, int size, std::chrono::milliseconds limit,
                        const std::string& part) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(directory.path(), rank, size, limit, part);
  return ranks;
}

void expect_said(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(ShmProcesses, SumTheSameBitsAsThreadsAndAsEachOther) {
  for (const int size : {2, 4}) {
    const Directory directory;
    auto ranks = start(directory, size, 60s, "sums");
    std::vector<std::string> digests;
    for (Rank& rank : ranks) digests.push_back(rank.line());
    auto threads = make_shm_for_threads(size, {});
    std::vector<std::string> expected(threads.size());
    std::vector<std::thread> running;
    for (std::size_t rank = 0; rank < threads.size(); ++rank) {
      running.emplace_back([&, rank] { expected[rank] = std::to_string(digest_of_sums(*threads[rank])); });
    }
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(digests, expected);
    EXPECT_EQ(digests, std::vector<std::string>(digests.size(), digests[0]));
    for (Rank& rank : ranks) EXPECT_EQ(rank.process().wait().code, 0);
    EXPECT_TRUE(directory.is_empty());
  }
}

// Fault F1: whoever dies is named long before the limit, and its number of the operation stands.
void expect_death_is_told(int victim, const std::string& part, const char* operation) {
  const Directory directory;
  auto ranks = start(directory, 3, 60s, part);
  for (Rank& rank : ranks) ASSERT_EQ(rank.line(), "ready");
  const auto begin = Clock::now();
  const std::string name = "rank " + std::to_string(victim) + "'s process";
  ::kill(ranks[static_cast<std::size_t>(victim)].process().pid(), SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    Rank& one = ranks[static_cast<std::size_t>(rank)];
    if (rank == victim || (part == "wait" && rank == 1)) continue;
    expect_said(one.line(), {name.c_str(), "has ended", operation});
    EXPECT_EQ(one.process().wait().code, 1);
  }
  EXPECT_LT(Clock::now() - begin, 20s);
  EXPECT_TRUE(directory.is_empty());
}

TEST(ShmProcesses, ADeathBeforeACollectiveIsTold) {
  expect_death_is_told(1, "wait", "all_reduce #4 (gradient, bucket 3)");
}
TEST(ShmProcesses, ADeathInACollectiveIsTold) { expect_death_is_told(2, "work", "all_reduce #"); }
TEST(ShmProcesses, TheDeathOfWhoMadeTheMemoryIsTold) { expect_death_is_told(0, "work", "all_reduce #"); }

// Fault F2.
TEST(ShmProcesses, AStoppedRankIsNamedAtTheLimit) {
  const Directory directory;
  auto ranks = start(directory, 3, 2s, "work");
  for (Rank& rank : ranks) ASSERT_EQ(rank.line(), "ready");
  const auto begin = Clock::now();
  ::kill(ranks[1].process().pid(), SIGSTOP);
  for (const std::size_t rank : {0, 2}) {
    expect_said(ranks[rank].line(), {"rank 1 (its process is stopped) did not come", "all_reduce #", "2.00 s"});
  }
  EXPECT_LT(Clock::now() - begin, 15s);
  // Woken, it learns what became of the others.
  ::kill(ranks[1].process().pid(), SIGCONT);
  expect_said(ranks[1].line(), {"rank 1 (its process is stopped)"});
  EXPECT_EQ(ranks[1].process().wait().code, 1);
  EXPECT_TRUE(directory.is_empty());
}

// Fault F5.
TEST(ShmProcesses, ADifferentCountIsNamedOnEveryRank) {
  const Directory directory;
  auto ranks = start(directory, 2, 60s, "count");
  for (Rank& rank : ranks) ASSERT_EQ(rank.line(), "ready");
  for (Rank& rank : ranks) {
    expect_said(rank.line(),
                {"rank 0 calls all_reduce #4 (gradient, bucket 3) of 4 fp32", "rank 1 calls", "of 5 fp32"});
    EXPECT_EQ(rank.process().wait().code, 1);
  }
}

// Fault F7.
TEST(ShmProcesses, AMissingRankIsNamed) {
  const Directory directory;
  std::vector<Rank> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.emplace_back(directory.path(), rank, 3, 2s, "sums");
  for (Rank& rank : ranks) expect_said(rank.line(), {"rank 2 of 3 did not join within 2.00 s"});
  EXPECT_EQ(ranks[0].process().wait().code, 1);
  EXPECT_TRUE(directory.is_empty());
}

TEST(ShmProcesses, AnotherWorldSizeIsNamedOnBothSides) {
  const Directory directory;
  Rank first(directory.path(), 0, 2, 3s, "sums"), second(directory.path(), 1, 3, 3s, "sums");
  expect_said(second.line(), {"world size 2 at rank 0, 3 at rank 1"});
  expect_said(first.line(), {"rank 0 of 2 cannot join", "rank 1"});
  EXPECT_EQ(first.process().wait().code, 1);
  EXPECT_TRUE(directory.is_empty());
}

TEST(ShmProcesses, ARankThatJoinsTwiceIsRefused) {
  const auto mine = ShmSegment::create(2, {});
  const auto other = ShmSegment::join(mine->address(), 1, 2, {});
  expect_error(ErrorKind::comm, {"rank 1 joined twice", std::to_string(::getpid()).c_str()},
               [&] { ShmSegment::join(mine->address(), 1, 2, {}); });
  EXPECT_EQ(mine->state(1), RankState::joined);
}

TEST(ShmProcesses, ADeathWhileJoiningIsTold) {
  const Directory directory;
  ShmOptions options;
  options.limit = 60s;
  const auto mine = ShmSegment::create(3, options);
  std::ofstream(directory.path() + "/shm-ranks") << mine->address() << '\n';
  Rank first(directory.path(), 1, 3, 60s, "sums");
  while (mine->state(1) != RankState::joined) std::this_thread::sleep_for(1ms);
  ::kill(first.process().pid(), SIGKILL);
  const auto begin = Clock::now();
  expect_error(ErrorKind::comm, {"rank 1's process", "ended while the ranks were joining"},
               [&] { mine->wait_for_all(); });
  EXPECT_LT(Clock::now() - begin, 20s);
}

TEST(ShmProcesses, AFileOfAnEarlierLaunchIsNotObeyed) {
  const Directory directory;
  std::string stale;
  {
    Process gone = Process::spawn({.argv = {"true"}});
    std::array<char, 256> boot{};
    std::ifstream("/proc/sys/kernel/random/boot_id").getline(boot.data(), boot.size());
    stale = std::string("syslab-shm-1 ") + boot.data() + " " + std::to_string(gone.pid()) + " 17 3 4096";
    gone.wait();
  }
  std::ofstream(directory.path() + "/shm-ranks") << stale << '\n';
  Rank second(directory.path(), 1, 2, 30s, "sums");
  std::this_thread::sleep_for(50ms);  // it has met the stale file, most times
  Rank first(directory.path(), 0, 2, 30s, "sums");
  const std::string digest = first.line();
  EXPECT_EQ(second.line(), digest);
  EXPECT_EQ(first.process().wait().code, 0);
  EXPECT_TRUE(directory.is_empty());
}

TEST(ShmProcesses, AnAddressOfAnotherHostIsRefusedWithTheReason) {
  expect_error(ErrorKind::comm, {"rank 1 is not on the host of rank 0"},
               [] { ShmSegment::join("syslab-shm-1 another-boot 1 1 1 4096", 1, 2, {}); });
  expect_error(ErrorKind::comm, {"'garbage'"}, [] { ShmSegment::join("garbage", 1, 2, {}); });
}

}  // namespace
}  // namespace syslab::comm

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--rank") return syslab::comm::be_rank({argv + 2, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
