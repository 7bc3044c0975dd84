// One rank of a job that goes well until it is told otherwise: what the tests of faults start several of.
//
//   rank_program LIMIT_MS STEPS [STEP ACTION]
//
// joins the others as its environment says (comm/connect.hpp), sums a number over all ranks in each step, and in step
// STEP does ACTION first. Its standard output ends with a line "done" and code 0, or "error: …" and the code of a
// worker. TEST_CONFIG is compared among the ranks.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "comm/connect.hpp"
#include "comm/rendezvous/ending.hpp"
#include "core/error.hpp"

namespace {

using namespace syslab;  // NOLINT: a program of its own
using namespace std::chrono_literals;

constexpr comm::Purpose kPurpose{"gradient", "bucket 0"};

struct Job {
  comm::Communicator* ranks = nullptr;
  bool skip = false, leave = false;
  std::int64_t count = 4;
  DType dtype = DType::f32;
};

const std::map<std::string, std::function<void(Job&)>> kActions{
    {"kill", [](Job&) { ::raise(SIGKILL); }},
    {"stop", [](Job&) { ::raise(SIGSTOP); }},
    {"terminate", [](Job&) { ::raise(SIGTERM); }},
    {"interrupt",
     [](Job&) {
       ::signal(SIGINT, SIG_DFL);  // which a shell ignores for what it starts in the background
       ::raise(SIGINT);
     }},
    {"loop",
     [](Job&) {
       while (true) std::this_thread::sleep_for(1s);
     }},
    {"throw", [](Job&) { throw std::runtime_error("out of memory allocating 3.2 GB (fc1 activations)"); }},
    {"leave", [](Job& job) { job.leave = true; }},
    {"skip", [](Job& job) { job.skip = true; }},
    {"count", [](Job& job) { job.count = 3; }},
    {"dtype", [](Job& job) { job.dtype = DType::bf16; }},
};

void work(comm::Communicator& ranks, int steps, int at, const std::string& action) {
  alignas(16) float values[4] = {};
  Job job{&ranks};
  for (int step = 0; step < steps; ++step) {
    ranks.set_phase("forward", static_cast<std::uint64_t>(step));
    if (step == at) kActions.at(action)(job);
    if (job.leave) return;
    std::fill(std::begin(values), std::end(values), 1.0F);
    const TensorView view(values, job.dtype, {job.count});
    if (step == at && job.skip) {
      ranks.broadcast(view, 0, kPurpose, {});
      continue;
    }
    ranks.wait(ranks.all_reduce(view, comm::Reduction::sum, kPurpose, {}));
    if (values[0] != static_cast<float>(ranks.size())) throw std::runtime_error("a wrong sum");
    std::this_thread::sleep_for(5ms);
  }
}

int run(int argc, char** argv) {
  const auto limit = std::chrono::milliseconds(std::stoi(argv[1]));
  const char* config = std::getenv("TEST_CONFIG");
  const auto ranks = comm::connect({.limit = limit, .agree = {{"configuration", config == nullptr ? "" : config}}});
  fmt::print("connected\n");
  std::fflush(stdout);
  try {
    work(*ranks, std::stoi(argv[2]), argc > 4 ? std::stoi(argv[3]) : -1, argc > 4 ? argv[4] : "");
  } catch (const std::exception& error) {
    ranks->abort(error.what());
    throw;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    fmt::print("done\n");
    return 0;
  } catch (const std::exception& error) {
    fmt::print("error: {}\n", error.what());
    return static_cast<int>(Fault::peer);
  }
}
