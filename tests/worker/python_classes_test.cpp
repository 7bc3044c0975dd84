// Python classes behind the worker that runs them: what they may be, what is said of their mistakes, and one process
// for many cases.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/expect_contains.hpp"
#include "tests/worker/foreign_fixture.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {
namespace {

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
      {"plain.py:Dies", ErrorKind::comm, "ended while running attention_forward (exit code 9); its last lines:\n"},
      {"plain.py:Dies", ErrorKind::comm, "\nabout"},
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

CaseRequest case_of(const std::string& python_class) {
  CaseRequest request;
  request.device = DeviceKind::cpu;
  if (!python_class.empty()) {
    request.mine = submitted_of("me", std::string(std::getenv("SYSLAB_TEST_MINE")) + "/plain.py", python_class);
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

}  // namespace
}  // namespace syslab::worker
