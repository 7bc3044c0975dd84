// All-reduce of fp32 among processes of this host, by size: the time of a call and the bus bandwidth, 2(n−1)/n · bytes
// over time, as nccl-tests counts it.
//
//   comm_bench [BACKEND [RANKS [LARGEST-BYTES]]]      shm or gloo, without signature checks
//
// Ranks are forked before anything else is. Each size is called in rounds, a barrier before each; a round's time is its
// slowest rank's. Best and median round are told: on a machine that others use, too, the best is nearer to what the
// code does.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/gloo/gloo.hpp"
#include "comm/shm/shm.hpp"
#include "core/error.hpp"

namespace {

using namespace syslab;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 15;
constexpr double kRoundSeconds = 0.02;
constexpr comm::Purpose kPurpose{"benchmark"};

void measure(comm::Communicator& ranks, std::int64_t largest) {
  for (std::int64_t bytes = 4; bytes <= largest; bytes *= 4) {
    std::vector<float> buffer(static_cast<std::size_t>(bytes / 4), 0.0F);
    const TensorView view(buffer.data(), DType::f32, {bytes / 4});
    std::vector<double> rounds;
    int calls = 1;
    for (int round = -2; round < kRounds; ++round) {  // the first warms up, the second says how many calls make a round
      ranks.barrier();
      const auto begin = Clock::now();
      for (int i = 0; i < calls; ++i) ranks.all_reduce(view, comm::Reduction::sum, kPurpose, {});
      double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      ranks.all_reduce({&seconds, DType::f64, {1}}, comm::Reduction::max, kPurpose, {});
      if (round >= 0) rounds.push_back(seconds / calls);
      if (round == -1) calls = std::clamp(static_cast<int>(kRoundSeconds / seconds), 1, 20'000);
    }
    if (ranks.rank() != 0) continue;
    std::sort(rounds.begin(), rounds.end());
    const double best = rounds.front(), median = rounds[rounds.size() / 2];
    const double wire = 2.0 * (ranks.size() - 1) / ranks.size() * static_cast<double>(bytes);
    fmt::print("{:>10} bytes {:>12.2f} us {:>12.2f} us {:>8.2f} GB/s {:>8.2f} GB/s\n", bytes, best * 1e6, median * 1e6,
               wire / best * 1e-9, wire / median * 1e-9);
    std::fflush(stdout);
  }
}

// For trials of other slots: SLOT_BYTES and SLOT_DEPTH, on every rank alike.
comm::ShmOptions slots() {
  comm::ShmOptions memory;
  if (const char* bytes = std::getenv("SLOT_BYTES")) memory.slot_bytes = static_cast<std::size_t>(std::atoll(bytes));
  if (const char* depth = std::getenv("SLOT_DEPTH")) memory.depth = std::atoi(depth);
  return memory;
}

int run_rank(const std::filesystem::path& directory, const std::string& backend, int rank, int size,
             std::int64_t largest) {
  try {
    const auto ranks = backend == "gloo" ? comm::connect_gloo(directory, rank, size, {}, comm::GlooChecks::none)
                                         : comm::connect_shm(directory, rank, size, {}, slots());
    measure(*ranks, largest);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "shm";
  const int size = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::int64_t largest = argc > 3 ? std::atoll(argv[3]) : 64 << 20;
  std::string directory = (std::filesystem::temp_directory_path() / "comm_bench-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  fmt::print("all_reduce fp32, {}, {} processes: bytes, best and median time, best and median bus bandwidth\n", backend,
             size);
  std::fflush(stdout);
  std::vector<pid_t> others;
  for (int rank = 1; rank < size; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run_rank(directory, backend, rank, size, largest));
    others.push_back(pid);
  }
  int result = run_rank(directory, backend, 0, size, largest);
  for (const pid_t pid : others) {
    int status = 0;
    if (::waitpid(pid, &status, 0) < 0 || status != 0) result = 1;
  }
  std::filesystem::remove_all(directory);
  return result;
}
