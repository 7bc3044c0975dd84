// NCCL behind the walls of a class of several ranks, which has the internet's sockets on a loopback of its own, and of
// this machine's those of datagrams alone. Needs two GPUs and a Python with torch; what works on one,
// tools/long/gpu_walls.py asks.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "core/process/process.hpp"
#include "judge/private_folder.hpp"
#include "judge/unnamed_threads.hpp"
#include "judge/walls.hpp"

namespace syslab::judge {
namespace {

using namespace std::chrono_literals;

// NCCL's first sum of two GPUs takes seconds, torch's import up to a minute from a cold disk. Twice that is less than
// what meson gives both tries together.
constexpr auto kLongest = 80s;

std::string sum_by_nccl(const PrivateFolder& folder, const Confinement* confinement) {
  const char* const python = std::getenv("SYSLAB_PYTHON");
  SpawnOptions options;
  options.argv = {python == nullptr ? "python3" : python, SYSLAB_GPU_WALLS, "--try", "nccl"};
  options.capture_stderr = false;
  const std::map<std::string, std::string> environment = folder.environment();
  options.environment = {environment.begin(), environment.end()};
  options.environment.insert_or_assign("LD_PRELOAD", preload_unnamed_threads(folder.path()));
  options.confinement = confinement;
  Process process = Process::spawn(options);
  std::string said;
  char chunk[256];
  for (const auto end = std::chrono::steady_clock::now() + kLongest;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    struct pollfd wait {
      process.from_child(), POLLIN, 0
    };
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) {
      process.kill_group(SIGKILL);
      said += "and was ended after " + std::to_string(kLongest.count()) + " s";
      break;
    }
    const ssize_t got = ::read(process.from_child(), chunk, sizeof chunk);
    if (got <= 0) break;
    said.append(chunk, static_cast<std::size_t>(got));
  }
  process.wait();
  return said;
}

TEST(GpuWalls, NcclSumsBehindTheWallsOfRanksInANetworkOfTheirOwn) {
  if (!missing_walls(true, true).empty()) GTEST_SKIP() << missing_walls(true, true).front();
  const PrivateFolder folder;
  const std::string without = sum_by_nccl(folder, nullptr);
  if (without != "OUTCOMEworks\n") GTEST_SKIP() << "without walls, too: " << without;
  Walls walls({.profile = Profile::python, .network = true, .gpu = true, .writable = folder.path()});
  EXPECT_TRUE(walls.confinement()->own_loopback);
  EXPECT_EQ(sum_by_nccl(folder, walls.confinement()), without);
}

}  // namespace
}  // namespace syslab::judge
