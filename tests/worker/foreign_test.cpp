// What a worker in another process may do or leave, by workers of a few lines.
#include "worker/judged/foreign.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "device/evict.hpp"
#include "tests/expect_contains.hpp"
#include "tests/worker/foreign_fixture.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;

// A worker of eight lines: answers hello, then runs `on_call` with `reply(message)` and the mapped segment `m` at hand.
ForeignOptions scripted(const std::string& on_call, const std::string& serves = "'call'") {
  const std::string script = R"(
import json, mmap, os, struct, sys, time
def read():
    n, = struct.unpack('<I', sys.stdin.buffer.read(4)); return json.loads(sys.stdin.buffer.read(n))
def reply(m):
    b = json.dumps(m).encode(); sys.stdout.buffer.write(struct.pack('<I', len(b)) + b); sys.stdout.buffer.flush()
hello = read()
reply({'type': 'hello', 'protocol': 1, 'name': 'scripted', 'language': 'Python', 'serves': [)" +
                             serves + R"(]})
call = read()
m = mmap.mmap(hello['memory_fd'], call['memory_bytes'])
)" + on_call;
  ForeignOptions options;
  options.command = {std::getenv("SYSLAB_PYTHON"), "-c", script};
  return options;
}

TEST(ForeignWorker, ACallThatHangsIsStopped) {
  ForeignOptions options = mine("plain.py:Sleeps");
  options.call_timeout = 200ms;
  ForeignWorker worker(options);
  Attention attention;
  expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::comm), "after 0.2 s and was stopped");
  expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::comm), "was stopped");
}

TEST(ForeignWorker, ADeathIsNoticedThoughAChildHoldsThePipesAndTalks) {
  ForeignOptions options = scripted(R"(
import subprocess
subprocess.Popen(['sh', '-c', 'while :; do echo here >&2; sleep 0.02; done'])
os._exit(3)
)");
  options.call_timeout = 30s;
  ForeignWorker worker(options);
  Attention attention;
  expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::comm), "exit code 3");
}

TEST(ForeignWorker, AnAnswerFromAWorkerThatEndsAtOnceIsTaken) {
  ForeignWorker worker(scripted("reply({'type': 'returned', 'elapsed_ns': 1}); os._exit(0)"));
  Attention attention;
  EXPECT_GT(attention.forward(worker, kFull), Nanoseconds(1)) << "the time is ours";
}

// Both lie in the pipe when the first is read, and nothing comes behind them that would wake us up.
TEST(ForeignWorker, AnswersThatComeTogetherAreBothHeard) {
  ForeignOptions options = scripted(R"(
both = [json.dumps(m).encode() for m in ({'type': 'ready'}, {'type': 'returned', 'elapsed_ns': 1})]
sys.stdout.buffer.write(b''.join(struct.pack('<I', len(b)) + b for b in both)); sys.stdout.buffer.flush()
time.sleep(60)
)",
                                    "'call', 'release'");
  options.call_timeout = 10s;
  ForeignWorker worker(options);
  Attention attention;
  EXPECT_LT(attention.forward(worker, kFull), 10s);
}

// Emptying caches takes many times as long as a copy: whoever waits for its inputs to appear would have that time to
// compute in, before its clock runs. The least of a few, on both sides, depends little on what else runs here.
TEST(ForeignWorker, InputsThatAreToBeColdAppearWhenTheClockBegins) {
  if (!device::can_evict()) GTEST_SKIP() << "no program may empty the caches of this processor";
  using Clock = std::chrono::steady_clock;
  std::vector<float> x(std::size_t{16} << 20);
  double emptying = 1e9;
  for (int i = 0; i < 3; ++i) {
    std::ranges::fill(x, 1.0F);  // what no cache holds is emptied sooner
    const auto begin = Clock::now();
    device::evict(x.data(), x.size() * sizeof(float));
    emptying = std::min(emptying, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    ForeignWorker worker(scripted(R"(
at = call['inputs'][0]['offset'] + (64 << 20) - 4
before = m[at:at + 4]
reply({'type': 'ready'})
while m[at:at + 4] == before: pass
seen = time.perf_counter()
while m[0:4] == bytes(4): pass
struct.pack_into('<d', m, call['outputs'][0]['offset'], time.perf_counter() - seen)
reply({'type': 'returned', 'elapsed_ns': 1})
)",
                                  "'call', 'release'"));
    ASSERT_TRUE(worker.serve_cold(true));
    double waited = 0;
    const NamedInput inputs[] = {{"x", {x.data(), DType::f32, {static_cast<std::int64_t>(x.size())}}}};
    const NamedOutput outputs[] = {{"waited", {&waited, DType::f64, {1}}}};
    worker.call("f", inputs, outputs, {});
    least = std::min(least, waited);
  }
  EXPECT_LT(least, emptying / 4);
}

// A worker that answers at once: nearly all of a call's time is the handing over.
constexpr const char* kAnswersAtOnce = R"(
while True:
    seen = call.get('empty', 'none')
    reply({'type': 'ready'})
    while m[0:4] == bytes(4): pass
    if seen == 'none': m[call['outputs'][0]['offset']] = 7
    m[64] = 1
    reply({'type': 'returned', 'elapsed_ns': 1})
    call = read()
)";

TEST(ForeignWorker, CallsThatComputeNothingTellWhatHandingOneOverTakes) {
  ForeignWorker worker(scripted(kAnswersAtOnce, "'call', 'release', 'empty'"));
  Attention attention;
  constexpr int kCalls = 6;
  for (int i = 0; i < kCalls; ++i) attention.forward(worker, kFull);
  const measure::Handover told = worker.clock().handover();
  EXPECT_EQ(told.plain.size(), 3U);
  EXPECT_EQ(told.with_results.size(), 3U);
  EXPECT_DOUBLE_EQ(told.share_of_calls, 1);
  EXPECT_EQ(worker.clock().facts().at("calls_timed"), kCalls) << "the empty ones are no calls";
}

TEST(ForeignWorker, AWorkerThatKnowsNoSuchCallsIsAskedForNone) {
  ForeignWorker worker(scripted(kAnswersAtOnce, "'call', 'release'"));
  Attention attention;
  for (int i = 0; i < 3; ++i) attention.forward(worker, kFull);
  EXPECT_TRUE(worker.clock().handover().plain.empty());
}

TEST(ForeignWorker, AnUnwrittenOutputKeepsTheCallersPoison) {
  ForeignWorker worker(scripted("reply({'type': 'returned', 'elapsed_ns': 1})"));
  Attention attention;
  attention.forward(worker, kFull);
  EXPECT_EQ(attention.out, Attention::poisoned(attention.shape));
}

TEST(ForeignWorker, TellsWhichKernelsItsCallsRanOnceItIsAsked) {
  ForeignOptions options = scripted(R"(
for calls in range(3):
    if calls: call = read()
    reply({'type': 'returned', 'elapsed_ns': 1, **({'kernels': [{'name': 'k', 'launches': 2}]} if call.get('kernels') else {})})
)",
                                    "'call', 'kernels'");
  options.device = DeviceKind::cuda;
  options.shares.reset();
  ForeignWorker worker(options);
  Attention attention;
  attention.forward(worker, kFull);
  EXPECT_TRUE(worker.kernels().kernels.empty());
  EXPECT_TRUE(worker.serve_kernels(true));
  attention.forward(worker, kFull);
  attention.forward(worker, kFull);
  EXPECT_EQ(worker.kernels().kernels, (std::vector<KernelsOfCall::Kernel>{{"k", 4}}));
  ForeignWorker other(scripted("", "'call', 'kernels'"));
  EXPECT_FALSE(other.serve_kernels(true)) << "on the CPU there are none";
}

TEST(ForeignWorker, MoreTimeThanTheCallTookIsALie) {
  ForeignWorker worker(scripted("reply({'type': 'returned', 'elapsed_ns': 10**12})"));
  Attention attention;
  expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::check), "its clock is not");
}

TEST(ForeignWorker, AWriteBesideAnOutputIsFound) {
  for (const char* offset : {"-1", "480", "700"}) {  // `out` holds 120 floats
    ForeignWorker worker(scripted(std::string("m[call['outputs'][0]['offset'] + ") + offset +
                                  "] = 1; reply({'type': 'returned', 'elapsed_ns': 1})"));
    Attention attention;
    expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::check),
                    std::string("output 'out': a byte outside its elements was written, at byte ") + offset);
  }
}

TEST(ForeignWorker, AWriteBetweenTheRowsOfAnOutputIsFound) {
  ForeignWorker worker(
      scripted("m[call['outputs'][0]['offset'] + 5] = 1; reply({'type': 'returned', 'elapsed_ns': 1})"));
  std::vector<float> y{-7, -7, -7};
  const NamedOutput outputs[] = {{"y", {y.data(), DType::f32, {2}, {2}}}};
  expect_contains(failure([&] { worker.call("f", {}, outputs, {}); }, ErrorKind::check), "at byte 5 from");
}

TEST(ForeignWorker, AnOutputOfTheForwardPassThatIsWrittenLateIsNoInputThatWasChanged) {
  const auto said_of = [](float before) {
    ForeignWorker worker(scripted(R"(
at = [one for one in call['inputs'] if one['name'] == 'lse'][0]['offset']
m[at:at + 4] = struct.pack('f', 3); reply({'type': 'returned', 'elapsed_ns': 1})
)"));
    Attention attention;
    std::fill(attention.lse.begin(), attention.lse.end(), before);
    return failure([&] { attention.backward(worker, kFull); }, ErrorKind::check);
  };
  expect_contains(said_of(std::numeric_limits<float>::quiet_NaN()),
                  "attention_forward's output 'lse' was written after it had returned, 1 of 30 elements");
  expect_contains(said_of(1), "the call changed its input 'lse', 1 of 30 elements");
}

TEST(ForeignWorker, APrintOnItsStandardOutputIsQuoted) {
  ForeignWorker worker(scripted("print('Loss: 3.5'); sys.stdout.flush(); time.sleep(60)"));
  Attention attention;
  expect_contains(failure([&] { attention.forward(worker, kFull); }, ErrorKind::comm), "\"Loss: 3.5");
}

FindingKind finding_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const FoundFault& fault) {
    return fault.finding();
  } catch (const Error&) {
    return FindingKind::none;
  }
  return FindingKind::none;
}

// A class could end its law without a verdict by that.
TEST(ForeignWorker, AnAnswerThatMakesNoSenseIsACrash) {
  for (const char* said :
       {"print('Loss: 3.5'); sys.stdout.flush(); time.sleep(60)",
        "sys.stdout.buffer.write(struct.pack('<I', 3) + b'{x}'); sys.stdout.flush(); time.sleep(60)",
        "reply({'type': 'surprise'})", "reply({'type': 'failed', 'kind': 'protocol', 'message': ''})"}) {
    ForeignWorker worker(scripted(said));
    Attention attention;
    EXPECT_EQ(finding_of([&] { attention.forward(worker, kFull); }), FindingKind::crash) << said;
  }
}

TEST(ForeignWorker, WhatASignalEndsWhileItIsLoadedHasCrashed) {
  struct Start {
    const char* script;
    bool judged;
    FindingKind finding;
  };
  for (const auto& [script, judged, finding] :
       {Start{"kill -ABRT $$", true, FindingKind::crash}, Start{"kill -ABRT $$", false, FindingKind::unanswered},
        Start{"kill -KILL $$", true, FindingKind::unanswered}, Start{"exit 1", true, FindingKind::unanswered}}) {
    ForeignOptions options;
    options.command = {"sh", "-c", script};
    options.judged = judged;
    EXPECT_EQ(finding_of([&] { ForeignWorker worker(options); }), finding) << script;
  }
}

// A worker that says "loading" has started well: only what it loads runs between that and its greeting.
TEST(ForeignWorker, WhatExitsWhileItIsLoadedHasCrashed) {
  struct Start {
    const char* ends;
    bool judged, says_so;
    FindingKind finding;
  };
  for (const auto& [ends, judged, says_so, finding] :
       {Start{"os._exit(0)", true, true, FindingKind::crash}, Start{"os._exit(3)", true, true, FindingKind::crash},
        Start{"os._exit(3)", true, false, FindingKind::unanswered},
        Start{"os._exit(3)", false, true, FindingKind::unanswered},
        Start{"os.kill(os.getpid(), 9)", true, true, FindingKind::unanswered}}) {
    ForeignOptions options = scripted("");
    std::string& script = options.command.back();
    script.replace(script.find("reply({'type': 'hello'"), 0,
                   std::string(says_so ? "reply({'type': 'loading'})\n" : "") + ends + "\n");
    options.judged = judged;
    options.implementation = "mine.py:Mine";
    EXPECT_EQ(finding_of([&] { ForeignWorker worker(options); }), finding) << ends << judged << says_so;
    if (finding != FindingKind::crash) continue;
    expect_contains(failure([&] { ForeignWorker worker(options); }, ErrorKind::comm),
                    "loading 'mine.py:Mine' ended its process (exit code ");
  }
}

TEST(ForeignWorker, AWorkerThatSaysThatItLoadsIsGreetedAfterIt) {
  ForeignOptions options = scripted("reply({'type': 'returned', 'elapsed_ns': 1})");
  std::string& script = options.command.back();
  script.replace(script.find("reply({'type': 'hello'"), 0, "reply({'type': 'loading'})\n");
  ForeignWorker worker(options);
  EXPECT_EQ(worker.name(), "scripted");
}

TEST(ForeignWorker, AnotherVersionOfTheProtocolIsRefused) {
  ForeignOptions options = scripted("");
  std::string& script = options.command.back();
  script.replace(script.find("'protocol': 1"), 13, "'protocol': 2");
  expect_contains(failure([&] { ForeignWorker worker(options); }, ErrorKind::comm), "speaks version 2");
}

TEST(ForeignWorker, AProgramThatIsNoWorkerIsSaidSo) {
  ForeignOptions options;
  options.command = {"sh", "-c", "echo no such module >&2; exit 1"};
  const std::string text = failure([&] { ForeignWorker worker(options); }, ErrorKind::comm);
  expect_contains(text, "ended while starting (exit code 1)");
  expect_contains(text, "no such module");
}

// They have a loopback of their own, if the kernel lets them, and the facts say what is missing.
TEST(ForeignWorkerWalls, RanksOnAGpuLackWhatThoseOnTheCpuLack) {
  const auto missing = [](DeviceKind device, bool ranks) {
    ForeignOptions options = scripted("read()");
    options.walls = judge::Profile::python;
    options.device = device;
    options.starts_ranks = ranks;
    return ForeignWorker(options).walls_facts().value("walls_missing", Json::array()).dump();
  };
  EXPECT_EQ(missing(DeviceKind::cuda, true), missing(DeviceKind::cpu, true));
  EXPECT_EQ(missing(DeviceKind::cuda, false), missing(DeviceKind::cpu, false));
}

}  // namespace
}  // namespace syslab::worker
