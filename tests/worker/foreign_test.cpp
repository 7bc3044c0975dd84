#include "worker/foreign.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "device/evict.hpp"
#include "tests/expect_contains.hpp"
#include "worker/case_context.hpp"

namespace syslab::worker {
namespace {

using namespace std::chrono_literals;

ForeignOptions mine(const std::string& file_and_class) {
  const auto colon = file_and_class.rfind(':');
  const std::string folder = std::getenv("SYSLAB_TEST_MINE");
  ForeignOptions options;
  options.command = python_worker_command(
      {"me", folder + "/" + file_and_class.substr(0, colon), file_and_class.substr(colon + 1), ""});
  return options;
}

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

struct Attention {
  static constexpr std::int64_t kBatch = 2, kHeads = 3, kQueries = 5, kDim = 4;
  const Shape shape{kBatch, kHeads, kQueries, kDim}, lse_shape{kBatch, kHeads, kQueries};
  std::vector<float> q = numbers(1), k = numbers(2), v = numbers(3), dout = numbers(4);
  std::vector<float> out = poisoned(shape), lse = poisoned(lse_shape);
  std::vector<float> dq = poisoned(shape), dk = poisoned(shape), dv = poisoned(shape);

  std::vector<float> numbers(unsigned seed) const {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = normal(generator);
    return values;
  }
  static std::vector<float> poisoned(const Shape& of) {
    return std::vector<float>(static_cast<std::size_t>(of.elements()), -777.0F);
  }
  ConstTensorView in(const std::vector<float>& data, const Shape& of) const { return {data.data(), DType::f32, of}; }
  TensorView to(std::vector<float>& data, const Shape& of) const { return {data.data(), DType::f32, of}; }

  Nanoseconds forward(CallChannel& channel, const Params& options) {
    const NamedInput inputs[] = {{"q", in(q, shape)}, {"k", in(k, shape)}, {"v", in(v, shape)}};
    const NamedOutput outputs[] = {{"out", to(out, shape)}, {"lse", to(lse, lse_shape)}};
    return channel.call("attention_forward", inputs, outputs, options);
  }
  Nanoseconds backward(CallChannel& channel, const Params& options) {
    const NamedInput inputs[] = {{"q", in(q, shape)},     {"k", in(k, shape)},         {"v", in(v, shape)},
                                 {"out", in(out, shape)}, {"lse", in(lse, lse_shape)}, {"dout", in(dout, shape)}};
    const NamedOutput outputs[] = {{"dq", to(dq, shape)}, {"dk", to(dk, shape)}, {"dv", to(dv, shape)}};
    return channel.call("attention_backward", inputs, outputs, options);
  }

  // Σ_i dO_i·O_i as a function of one changed element of Q, K or V: what the gradients are checked against.
  double objective(bool causal) const {
    double total = 0;
    for (std::int64_t head = 0; head < kBatch * kHeads; ++head) {
      for (std::int64_t i = 0; i < kQueries; ++i) {
        const std::vector<double> p = row(head, i, causal).first;
        for (std::int64_t j = 0; j < kQueries; ++j) {
          for (std::int64_t d = 0; d < kDim; ++d) total += p[idx(j)] * v[at(head, j, d)] * dout[at(head, i, d)];
        }
      }
    }
    return total;
  }
  // Probabilities of one query, and its log-sum-exp.
  std::pair<std::vector<double>, double> row(std::int64_t head, std::int64_t i, bool causal) const {
    std::vector<double> p(kQueries);
    double sum = 0;
    for (std::int64_t j = 0; j < kQueries; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < kDim; ++d) score += double{q[at(head, i, d)]} * k[at(head, j, d)];
      p[idx(j)] = causal && j > i ? 0.0 : std::exp(score / std::sqrt(double{kDim}));
      sum += p[idx(j)];
    }
    for (double& value : p) value /= sum;
    return {p, std::log(sum)};
  }
  static std::size_t idx(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::size_t at(std::int64_t head, std::int64_t i, std::int64_t d) {
    return idx((head * kQueries + i) * kDim + d);
  }
};

const Params kCausal{{"causal", std::int64_t{1}}, {"scale", 0.5}};
const Params kFull{{"causal", std::int64_t{0}}, {"scale", 0.0}};

std::string failure(const std::function<void()>& body, ErrorKind kind) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    return error.what();
  }
  return "no error";
}

void expect_right_attention(const std::string& file_and_class) {
  ForeignWorker worker(mine(file_and_class));
  EXPECT_EQ(worker.language(), "Python");
  for (const bool causal : {true, false}) {
    Attention attention;
    EXPECT_GT(attention.forward(worker, causal ? kCausal : kFull).count(), 0);
    for (std::int64_t i = 0; i < Attention::kQueries; ++i) {
      const auto [p, lse] = attention.row(4, i, causal);
      EXPECT_NEAR(attention.lse[Attention::idx(4 * Attention::kQueries + i)], lse, 1e-5);
      double expected = 0;
      for (std::int64_t j = 0; j < Attention::kQueries; ++j) {
        expected += p[Attention::idx(j)] * attention.v[Attention::at(4, j, 2)];
      }
      EXPECT_NEAR(attention.out[Attention::at(4, i, 2)], expected, 1e-5);
    }
    attention.backward(worker, causal ? kCausal : kFull);
    struct Gradient {
      std::vector<float>*input, *gradient;
    };
    for (const Gradient& pair : {Gradient{&attention.q, &attention.dq}, Gradient{&attention.k, &attention.dk},
                                 Gradient{&attention.v, &attention.dv}}) {
      float& element = (*pair.input)[Attention::at(3, 2, 1)];
      const float before = element;
      element = before + 0x1p-7F;
      const double above = attention.objective(causal);
      element = before - 0x1p-7F;
      const double below = attention.objective(causal);
      element = before;
      EXPECT_NEAR((*pair.gradient)[Attention::at(3, 2, 1)], (above - below) * 0x1p6, 1e-3);
    }
  }
}

TEST(PythonWorker, RunsAPlainNumpyClass) { expect_right_attention("plain.py:Naive"); }

TEST(PythonWorker, RunsAnAutogradFunction) { expect_right_attention("function.py:Flash"); }

TEST(PythonWorker, RunsTheWeightedSumInEitherForm) {
  for (const char* name : {"plain.py:WeightedSum", "function.py:WeightedSum"}) {
    ForeignWorker worker(mine(name));
    const std::vector<float> x{1, 2, 3, 4, 5, 6}, w{1, 10, 100}, dy{1, -1};
    std::vector<float> y(2), dx(6), dw(3);
    const NamedInput forward[] = {{"x", {x.data(), DType::f32, {2, 3}}}, {"w", {w.data(), DType::f32, {3}}}};
    const NamedOutput sum[] = {{"y", {y.data(), DType::f32, {2}}}};
    worker.call("weighted_sum_forward", forward, sum, {});
    EXPECT_EQ(y, (std::vector<float>{321, 654}));
    const NamedInput backward[] = {forward[0], forward[1], {"dy", {dy.data(), DType::f32, {2}}}};
    const NamedOutput gradients[] = {{"dx", {dx.data(), DType::f32, {2, 3}}}, {"dw", {dw.data(), DType::f32, {3}}}};
    worker.call("weighted_sum_backward", backward, gradients, {});
    EXPECT_EQ(dx, (std::vector<float>{1, 10, 100, -1, -10, -100}));
    EXPECT_EQ(dw, (std::vector<float>{-3, -3, -3}));
  }
}

TEST(PythonWorker, KeepsStridesOnTheWayInAndOut) {
  ForeignWorker worker(mine("plain.py:WeightedSum"));
  std::vector<float> x{1, 2, 3, -1, 4, 5, 6, -1};  // rows of 3 in steps of 4
  const std::vector<float> w{1, -9, 10, -9, 100};  // every second
  std::vector<float> y{-7, -7, -7};
  const NamedInput inputs[] = {{"x", {x.data(), DType::f32, {2, 3}, {4, 1}}}, {"w", {w.data(), DType::f32, {3}, {2}}}};
  const NamedOutput outputs[] = {{"y", {y.data(), DType::f32, {2}, {2}}}};
  worker.call("weighted_sum_forward", inputs, outputs, {});
  EXPECT_EQ(y, (std::vector<float>{321, -7, 654}));
}

TEST(PythonWorker, TheSegmentGrowsWithTheTensors) {
  ForeignWorker worker(mine("function.py:Plain"));
  for (const std::int64_t rows : {2, 100'000, 3}) {
    const std::vector<float> x(static_cast<std::size_t>(rows * 3), 2.0F), w{1, 10, 100};
    std::vector<float> y(static_cast<std::size_t>(rows));
    const NamedInput inputs[] = {{"x", {x.data(), DType::f32, {rows, 3}}}, {"w", {w.data(), DType::f32, {3}}}};
    const NamedOutput outputs[] = {{"y", {y.data(), DType::f32, {rows}}}};
    worker.call("weighted_sum_forward", inputs, outputs, {});
    EXPECT_EQ(y, std::vector<float>(static_cast<std::size_t>(rows), 222.0F));
  }
}

TEST(PythonWorker, HalfPrecisionWantsTorch) {
  const std::vector<bf16> x(6, to_bf16(2.0F)), w(3, to_bf16(0.5F));
  std::vector<bf16> y(2);
  const NamedInput inputs[] = {{"x", {x.data(), DType::bf16, {2, 3}}}, {"w", {w.data(), DType::bf16, {3}}}};
  const NamedOutput outputs[] = {{"y", {y.data(), DType::bf16, {2}}}};
  ForeignWorker torch(mine("function.py:WeightedSum"));
  torch.call("weighted_sum_forward", inputs, outputs, {});
  EXPECT_EQ(to_float(y[1]), 3.0F);
  ForeignWorker numpy(mine("plain.py:WeightedSum"));
  try {
    numpy.call("weighted_sum_forward", inputs, outputs, {});
    FAIL() << "NumPy has no bf16";
  } catch (const Unsupported& reason) {
    expect_contains(reason.what(), "bf16");
  }
}

TEST(PythonWorker, WhatTheCallFormCannotSayIsUnsupported) {
  ForeignWorker worker(mine("plain.py:Naive"));
  Attention attention;
  EXPECT_THROW(attention.forward(worker, {{"causal", std::int64_t{0}}, {"scale", 0.25}}), Unsupported);
  EXPECT_NO_THROW(attention.forward(worker, {{"causal", std::int64_t{2}}, {"scale", 0.5}}));  // square: the same mask
  const NamedInput inputs[] = {{"q", attention.in(attention.q, attention.shape)},
                               {"k", {attention.k.data(), DType::f32, {2, 1, 5, 4}}},
                               {"v", {attention.v.data(), DType::f32, {2, 1, 5, 4}}}};
  EXPECT_THROW(worker.call("attention_forward", inputs, {}, kFull), Unsupported);
}

TEST(PythonWorker, AnExceptionNamesItsFileAndLine) {
  ForeignWorker worker(mine("plain.py:Raises"));
  Attention attention;
  const std::string text = failure([&] { attention.forward(worker, kFull); }, ErrorKind::check);
  expect_contains(text, "ValueError: tile 7 does not divide 12 (plain.py:");
  expect_contains(text, "in helper)");
  expect_contains(text, "return self.helper(q)");
  EXPECT_EQ(attention.out, Attention::poisoned(attention.shape));
  failure([&] { attention.forward(worker, kFull); }, ErrorKind::check);  // it still serves
}

TEST(PythonWorker, StudentsMistakesGetASentence) {
  const struct {
    const char* name;
    ErrorKind kind;
    const char* part;
  } mistakes[] = {
      {"plain.py:WrongShape", ErrorKind::check, "o has shape (6, 4, 4), expected (6, 5, 4)"},
      {"plain.py:OneResult", ErrorKind::check, "expected a tuple of 2 values (out, lse), got ndarray"},
      {"plain.py:Exits", ErrorKind::check, "SystemExit: 3"},
      {"plain.py:Greedy", ErrorKind::oom, "Unable to allocate"},
      {"plain.py:Dies", ErrorKind::comm, "ended while running attention_forward (exit code 9); its last lines:\nabout"},
      {"function.py:SavesNothing", ErrorKind::check, "expected exactly one saved tensor of shape (batch, n_queries)"},
      {"plain.py:Missing", ErrorKind::check, "plain.py has no class 'Missing' (it has: Naive, "},
      {"plain.py:NeedsArguments", ErrorKind::check, "missing 1 required positional argument: 'tile'"},
      {"broken.py:X", ErrorKind::check, "SyntaxError"},
      {"nowhere.py:X", ErrorKind::check, "there is no Python file"},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    Attention attention;
    expect_contains(failure(
                        [&] {
                          ForeignWorker worker(mine(mistake.name));
                          attention.forward(worker, kFull);
                        },
                        mistake.kind),
                    mistake.part);
  }
}

TEST(PythonWorker, AMemoryLimitEndsInOutOfMemory) {
  ForeignOptions options = mine("plain.py:Naive");
  options.memory_limit_bytes = 32U << 20;
  ForeignWorker worker(options);
  const std::int64_t seq = 4096;  // S×S in fp32: 64 MiB
  const std::vector<float> q(static_cast<std::size_t>(seq));
  std::vector<float> out(q.size()), lse(q.size());
  const ConstTensorView view{q.data(), DType::f32, {1, 1, seq, 1}};
  const NamedInput inputs[] = {{"q", view}, {"k", view}, {"v", view}};
  const NamedOutput outputs[] = {{"out", {out.data(), DType::f32, {1, 1, seq, 1}}},
                                 {"lse", {lse.data(), DType::f32, {1, 1, seq}}}};
  failure([&] { worker.call("attention_forward", inputs, outputs, kFull); }, ErrorKind::oom);
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
// compute in, before its clock runs. The least of a few is not the machine's business.
TEST(ForeignWorker, InputsThatAreToBeColdAppearWhenTheClockBegins) {
  if (!device::can_evict()) GTEST_SKIP() << "no program may empty the caches of this processor";
  using Clock = std::chrono::steady_clock;
  std::vector<float> x(std::size_t{16} << 20, 1);
  const auto begin = Clock::now();
  device::evict(x.data(), x.size() * sizeof(float));
  const std::chrono::duration<double> emptying = Clock::now() - begin;
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
  EXPECT_LT(least, emptying.count() / 4);
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
  options.device = "cuda";
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

// --- one process for many cases
// ---------------------------------------------------------------------------------------

CaseRequest case_of(const std::string& python_class) {
  CaseRequest request;
  request.device = "cpu";
  if (!python_class.empty()) {
    request.mine =
        MineRequest{"me", std::string(std::getenv("SYSLAB_TEST_MINE")) + "/plain.py", python_class, "", {}, {}};
  }
  return request;
}

// The process of a case, and that it lived when the case ended.
std::weak_ptr<CallChannel> process_of(const std::string& python_class) {
  CaseContext context(case_of(python_class), [](const Record&) {});
  return context.channel();
}

TEST(CaseContext, CasesOfOneClassShareAPythonProcess) {
  const auto first = process_of("Naive").lock();
  ASSERT_TRUE(first) << "it outlives its case";
  EXPECT_EQ(process_of("Naive").lock(), first);
}

TEST(CaseContext, ACaseOfAnotherImplementationEndsIt) {
  const std::weak_ptr<CallChannel> first = process_of("Naive");
  EXPECT_FALSE(first.expired());
  const std::weak_ptr<CallChannel> other = process_of("ForwardOnly");
  EXPECT_TRUE(first.expired());
  {
    const CaseContext ours(case_of(""), [](const Record&) {});
  }
  EXPECT_TRUE(other.expired());
}

// They have a loopback of their own, if the kernel lets them, and the facts say what is missing.
TEST(ForeignWorkerWalls, RanksOnAGpuLackWhatThoseOnTheCpuLack) {
  const auto missing = [](const std::string& device, bool ranks) {
    ForeignOptions options = scripted("read()");
    options.walls = judge::Profile::python;
    options.device = device;
    options.starts_ranks = ranks;
    return ForeignWorker(options).walls_facts().value("walls_missing", Json::array()).dump();
  };
  EXPECT_EQ(missing("cuda", true), missing("cpu", true));
  EXPECT_EQ(missing("cuda", false), missing("cpu", false));
}

}  // namespace
}  // namespace syslab::worker
