// Calls of a worker in memory that both share on a GPU, with a queue of the CPU in the GPU's place: who waits for whom,
// and for how long.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "tests/expect_contains.hpp"
#include "worker/judged/comes_within.hpp"
#include "worker/judged/foreign.hpp"

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
reply({'type': 'hello', 'protocol': 1, 'name': 'scripted', 'language': 'Python', 'serves': ['call', 'gpu_release', 'kernels']})
while True:
    call = read()
    step, outputs = call.get('step', 0), [None] * len(call['outputs'])
)";
  for (const char c : "    " + on_call) {
    script += c;
    if (c == '\n') script += "    ";
  }
  ForeignOptions options;
  options.command = {std::getenv("SYSLAB_PYTHON"), "-c", script};
  options.device = DeviceKind::cuda;
  options.shares = device::Place{};
  return options;
}

class OnAGpu : public testing::Test {
 protected:
  explicit OnAGpu(const char* memory = nullptr) {
    if (memory != nullptr) ::setenv("SYSLAB_GPU_MEMORY", memory, 1);
  }
  ~OnAGpu() override { ::unsetenv("SYSLAB_GPU_MEMORY"); }

  Nanoseconds call(ForeignWorker& worker, const Params& options = {}) {
    const auto count = static_cast<std::int64_t>(x.size());
    const NamedInput inputs[] = {{"x", {x.data(), DType::f32, Shape{count}}}};
    const NamedOutput outputs[] = {{"y", {y.data(), DType::f32, Shape{count}}}};
    return worker.call("toy_forward", inputs, outputs, options);
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

class SharedOnAGpu : public OnAGpu {
 protected:
  SharedOnAGpu() : OnAGpu("shared") {}
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

TEST_F(SharedOnAGpu, TwoAnswersInOnePieceAreBothHeard) {
  ForeignWorker worker(scripted(R"(
parts = [json.dumps(m).encode() for m in ({'type': 'ready'}, {'type': 'queued', 'outputs': outputs})]
sys.stdout.buffer.write(b''.join(struct.pack('<I', len(b)) + b for b in parts)); sys.stdout.buffer.flush()
wait(step + 1)
words[16] = step + 1
wait(step + 2)
reply({'type': 'returned', 'elapsed_ns': 1})
)"));
  const auto begin = Clock::now();
  for (int i = 0; i < 3; ++i) call(worker);
  EXPECT_LT(Clock::now() - begin, 20s);  // of a call's ten minutes
}

// Of a function that is looked at, of calls beside others, of one whose kernels are told; their memory grows, and
// moves, under the words of the next.
TEST_F(SharedOnAGpu, CallsThatNobodyTimesTravelThroughHostMemoryAndTheNextIsAsEver) {
  ForeignWorker worker(scripted(R"(
if 'gpu_memory' not in call:
    told = {'kernels': [{'name': 'k', 'launches': 2}]} if call.get('kernels') else {}
    reply({'type': 'returned', 'elapsed_ns': 0, **told})
    continue
reply({'type': 'ready'})
reply({'type': 'queued', 'outputs': outputs})
wait(step + 1)
words[16] = step + 1
wait(step + 2)
reply({'type': 'returned', 'elapsed_ns': 1})
)"));
  EXPECT_GT(call(worker).count(), 0);
  const std::vector<float> small = x;
  for (const std::size_t count : {std::size_t{1} << 16, std::size_t{1} << 22}) {
    x.assign(count, 1), y.assign(count, 0);
    for (const char* why : {"streams", "examine"}) {
      Params options;
      options.set(why, true);
      EXPECT_EQ(call(worker, options).count(), 0) << why;
    }
    EXPECT_TRUE(worker.serve_kernels(true));
    EXPECT_EQ(call(worker).count(), 0);
    EXPECT_EQ(worker.kernels().kernels, (std::vector<KernelsOfCall::Kernel>{{"k", 2}}));
    worker.serve_kernels(false);
    x = small, y.assign(4, 0);
    EXPECT_GT(call(worker).count(), 0);
  }
  EXPECT_EQ(worker.clock().facts().at("calls_timed"), 3);
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

// A worker that cannot share memory: it needs 10 ms, and says 1 µs.
const char* const kForges = R"(
time.sleep(0.01)
reply({'type': 'returned', 'elapsed_ns': 1000})
)";

ForeignOptions copying() {
  ForeignOptions options = scripted(kForges);
  const std::string serves = ", 'gpu_release'";
  options.command.back().erase(options.command.back().find(serves), serves.size());
  const std::string bytes = "hello['gpu_memory_bytes']";
  options.command.back().replace(options.command.back().find(bytes), bytes.size(), "hello.get('gpu_memory_bytes', 1)");
  const std::string words = "words = ";
  options.command.back().insert(options.command.back().find(words), "if 'gpu_memory_bytes' in hello: ");
  return options;
}

class CopiedOnAGpu : public OnAGpu, public testing::WithParamInterface<const char*> {
 protected:
  CopiedOnAGpu() : OnAGpu(GetParam()) {}
};

TEST_P(CopiedOnAGpu, ATimeThatTheLabsClockDoesNotConfirmIsTheLabsAndSuspect) {
  ForeignWorker worker(copying());
  EXPECT_EQ(worker.walls_facts().at("gpu_memory"), "copied");
  EXPECT_EQ(worker.walls_facts().at("gpu_clock"), "the lab's");
  EXPECT_GE(call(worker), 10ms);
  expect_contains(worker.clock().facts().at("suspect").get<std::string>(), "its own clock tells of 1.00 us a call");
}

INSTANTIATE_TEST_SUITE_P(AlsoWhereMemoryCannotBeShared, CopiedOnAGpu, testing::Values("copied", "shared"));

class TrustedOnAGpu : public OnAGpu {
 protected:
  TrustedOnAGpu() : OnAGpu("trusted") {}
};

TEST_F(TrustedOnAGpu, ItsOwnClockCountsAndTheRowSaysSo) {
  ForeignWorker worker(copying());
  EXPECT_EQ(worker.walls_facts().at("gpu_clock"), "its own");
  EXPECT_EQ(call(worker), 1us);
  EXPECT_FALSE(worker.clock().facts().contains("suspect"));
}

class AnotherWordOnAGpu : public OnAGpu {
 protected:
  AnotherWordOnAGpu() : OnAGpu("share") {}
};

TEST_F(AnotherWordOnAGpu, IsRefusedWithThoseThatThereAre) {
  try {
    ForeignWorker worker(copying());
    FAIL() << "it was taken";
  } catch (const Error& error) {
    expect_contains(error.what(), "SYSLAB_GPU_MEMORY is 'share'; it may be shared, copied or trusted");
  }
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
