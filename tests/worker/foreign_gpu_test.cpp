// Calls of a worker in memory that both share on a GPU, with a queue of the CPU in the GPU's place: who waits for whom,
// and for how long.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "tests/expect_contains.hpp"
#include "worker/comes_within.hpp"
#include "worker/foreign.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A worker that serves such calls: `m` is the page with the words, `step` that of the call. It answers every call by
// `on_call`.
ForeignOptions scripted(const std::string& on_call) {
  std::string script = R"(
import json, mmap, struct, sys, time
def read():
    n, = struct.unpack('<I', sys.stdin.buffer.read(4)); return json.loads(sys.stdin.buffer.read(n))
def reply(m):
    b = json.dumps(m).encode(); sys.stdout.buffer.write(struct.pack('<I', len(b)) + b); sys.stdout.buffer.flush()
def wait(for_step):
    while words[0] < for_step: time.sleep(1e-4)
hello = read()
words = memoryview(mmap.mmap(hello['memory_fd'], hello['gpu_memory_bytes'])).cast('I')
reply({'type': 'hello', 'protocol': 1, 'name': 'scripted', 'language': 'Python', 'serves': ['call', 'gpu_release']})
while True:
    call = read()
    step, outputs = call['step'], [None] * len(call['outputs'])
)";
  for (const char c : "    " + on_call) {
    script += c;
    if (c == '\n') script += "    ";
  }
  ForeignOptions options;
  options.command = {std::getenv("SYSLAB_PYTHON"), "-c", script};
  options.device = "cuda";
  options.shares = device::Place{};
  return options;
}

class SharedOnAGpu : public testing::Test {
 protected:
  SharedOnAGpu() { ::setenv("SYSLAB_GPU_MEMORY", "shared", 1); }
  ~SharedOnAGpu() override { ::unsetenv("SYSLAB_GPU_MEMORY"); }

  Nanoseconds call(ForeignWorker& worker) {
    const NamedInput inputs[] = {{"x", {x.data(), DType::f32, Shape{4}}}};
    const NamedOutput outputs[] = {{"y", {y.data(), DType::f32, Shape{4}}}};
    return worker.call("toy_forward", inputs, outputs, {});
  }
  std::string failure(ForeignWorker& worker) {
    try {
      call(worker);
    } catch (const Error& error) {
      return std::string(to_string(error.kind())) + ": " + error.what();
    }
    return "no error";
  }

  std::vector<float> x = {1, 2, 3, 4}, y = {0, 0, 0, 0};
};

TEST_F(SharedOnAGpu, ACallIsTimedFromItsInputsToItsOutputs) {
  ForeignWorker worker(scripted(R"(
reply({'type': 'ready'})
reply({'type': 'queued', 'outputs': outputs})
wait(step + 1)
time.sleep(0.01)
words[16] = step + 1
wait(step + 2)
reply({'type': 'returned', 'elapsed_ns': 1000})
)"));
  EXPECT_EQ(worker.walls_facts().at("gpu_memory"), "shared");
  for (int i = 0; i < 2; ++i) {
    const Nanoseconds took = call(worker);
    EXPECT_GE(took, 10ms);  // and not what it says
    EXPECT_LT(took, 5s);
  }
  EXPECT_TRUE(worker.usable());
}

TEST_F(SharedOnAGpu, WhoSaysReturnedWhileItsStreamWaitsIsStoppedAndNamed) {
  ForeignOptions options = scripted(R"(
reply({'type': 'ready'})
reply({'type': 'queued', 'outputs': outputs})
reply({'type': 'returned', 'elapsed_ns': 1000})
)");
  options.behind_the_last_word = 200ms;
  ForeignWorker worker(options);
  const auto begin = Clock::now();
  const std::string told = failure(worker);
  const auto took = Clock::now() - begin;
  expect_contains(told, "check: the worker 'scripted' said that it had returned from toy_forward, and 0.2 s later");
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 10s);  // of a call's ten minutes
  EXPECT_FALSE(worker.usable());
}

TEST_F(SharedOnAGpu, AfterACallThatFailedTheNextIsAsEver) {
  ForeignWorker worker(scripted(R"(
reply({'type': 'ready'})
reply({'type': 'queued', 'outputs': outputs})
wait(step + 1)
if step > 3:
    words[16] = step + 1
    wait(step + 2)
    reply({'type': 'returned', 'elapsed_ns': 1000})
else:
    reply({'type': 'failed', 'kind': 'exception', 'message': 'not today'})
)"));
  expect_contains(failure(worker), "not today");
  EXPECT_TRUE(worker.usable());
  EXPECT_GT(call(worker).count(), 0);
}

TEST(ComesWithin, EndsAtItsLimitAndAsksALastTime) {
  int asked = 0;
  const auto begin = Clock::now();
  EXPECT_FALSE(comes_within(20ms, [&] { return ++asked < 0; }));
  EXPECT_GE(Clock::now() - begin, 20ms);
  EXPECT_GT(asked, 2);
  EXPECT_TRUE(comes_within(10s, [&] { return --asked == 0; }));
  EXPECT_LT(Clock::now() - begin, 10s);
  EXPECT_TRUE(comes_within(0ms, [] { return true; }));
  EXPECT_FALSE(comes_within(0ms, [] { return false; }));
}

}  // namespace
}  // namespace syslab::worker
