// The passes of attention as operations: what goes in and out, and that a call gives what its oracle expects.
#include "ops/attention/operation.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "attention_fixture.hpp"
#include "ops/attention/dispatch.hpp"
#include "ops/attention/params.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::attention {
namespace {

const Problem kDescribed{.heads_q = 4, .heads_kv = 2, .seq_q = 40, .seq_k = 56, .head_dim = 8, .mask = Mask::top_left};

// The tensors of one operation, filled and prepared as a worker would.
struct Buffers {
  std::vector<device::Buffer> memory;
  std::vector<TensorView> writable;
  Inputs inputs;
  Outputs outputs;

  explicit Buffers(const Operation& operation, std::uint64_t stream = 11) {
    for (const TensorSpec& spec : operation.inputs) {
      writable.push_back(view(spec));
      fill(writable.back(), RandomStream(stream++), Distribution::normal);
    }
    if (operation.prepare) operation.prepare(writable, {});
    inputs.assign(writable.begin(), writable.end());
    for (const TensorSpec& spec : operation.outputs) outputs.push_back(view(spec));
  }
  TensorView view(const TensorSpec& spec) {
    memory.emplace_back(spec.bytes(), spec.name);
    return TensorView(memory.back().data(), spec.dtype, spec.shape);
  }
};

std::vector<std::string> names(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

TEST(AttentionOperation, OfEveryPhaseGivesWhatItsOracleExpects) {
  for (const AutogradRung& rung : ops::host_rungs(autograd_ladder())) {
    const std::string& name = rung.name;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Pass phase : {Pass::forward, Pass::backward, Pass::both}) {
        Problem problem = kDescribed;
        problem.dtype = dtype;
        const Operation operation = attention::operation(problem, phase, rung, 5);
        Buffers run(operation);
        operation.call(run.inputs, run.outputs, {});
        const std::vector<Expected> expected = operation.expect(run.inputs);
        ASSERT_EQ(expected.size(), run.outputs.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const check::Comparison found = check::compare(run.outputs[i], expected[i].value, expected[i].tolerance);
          EXPECT_TRUE(found.passed) << name << " " << to_string(phase) << " "
                                    << found.describe(operation.outputs[i].name);
          EXPECT_EQ(expected[i].fraction, 1.0);
        }
        EXPECT_EQ(static_cast<bool>(operation.naive), dtype == DType::bf16 && name != "naive");
      }
    }
  }
}

// A glimpse is of this call's inputs: near this call's outputs by the oracle's own bound, and far from another's.
TEST(AttentionOperation, AGlimpseIsWhatTheOracleFinds) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      Problem problem = kDescribed;
      problem.mask = mask;
      problem.batch = 2;
      const Operation operation = attention::operation(problem, pass, find_rung("flash_tiled"), 5);
      Buffers run(operation);
      operation.call(run.inputs, run.outputs, {});
      const std::vector<Expected> expected = operation.expect(run.inputs);
      std::set<std::pair<std::size_t, std::int64_t>> seen;
      for (std::uint64_t random = 0; random < 20; ++random) {
        for (const Glimpse& glimpse : operation.glimpse(run.inputs, run.outputs, random)) {
          seen.insert({glimpse.output, glimpse.first});
          const Expected& of = expected[glimpse.output];
          for (std::size_t i = 0; i < glimpse.values.size(); ++i) {
            const auto element = static_cast<std::size_t>(glimpse.first) + i;
            if (glimpse.values[i] == of.value[element]) continue;  // −∞, too
            ASSERT_NEAR(glimpse.values[i], of.value[element], of.tolerance[element])
                << to_string(pass) << " " << to_string(mask) << " output " << glimpse.output << " element " << element;
          }
        }
      }
      for (std::size_t output = 0; output < run.outputs.size(); ++output) {
        EXPECT_GE(std::ranges::count(seen, output, [](const auto& place) { return place.first; }), 5) << output;
      }
    }
  }
}

TEST(AttentionOperation, ThePartOfTheOracleIsAnotherEachTimeAndHoldsWhatItIsAskedFor) {
  const Problem large{.heads_q = 2, .heads_kv = 2, .seq_q = 2048, .seq_k = 2048, .head_dim = 64};
  const Operation operation = attention::operation(large, Pass::forward, find_rung("flash_tiled"), 5);
  const Buffers run(operation);
  const auto computed = [](const std::vector<Expected>& expected) {
    std::vector<bool> is_computed;
    for (const double value : expected[1].value) is_computed.push_back(!std::isnan(value));
    return is_computed;
  };
  const std::vector<bool> first = computed(operation.expect(run.inputs)),
                          second = computed(operation.expect(run.inputs));
  EXPECT_NE(first, second);
  const auto left_out = std::ranges::find(first, false) - first.begin();
  EXPECT_TRUE(computed(operation.expect_around(run.inputs, 1, left_out))[static_cast<std::size_t>(left_out)]);
  EXPECT_TRUE(computed(operation.expect_around(run.inputs, 0, left_out * 64 + 5))[static_cast<std::size_t>(left_out)]);
}

TEST(AttentionOperation, OfBothPassesHasNoInputThatTheForwardPassMakes) {
  const Rung& rung = find_rung("flash_tiled");
  EXPECT_EQ(names(operation(kDescribed, Pass::forward, rung, 1).outputs), (std::vector<std::string>{"out", "lse"}));
  EXPECT_EQ(names(operation(kDescribed, Pass::backward, rung, 1).inputs),
            (std::vector<std::string>{"q", "k", "v", "out", "lse", "dout"}));
  const Operation both = operation(kDescribed, Pass::both, rung, 1);
  EXPECT_EQ(names(both.inputs), (std::vector<std::string>{"q", "k", "v", "dout"}));
  EXPECT_EQ(names(both.outputs), (std::vector<std::string>{"out", "lse", "dq", "dk", "dv"}));
  EXPECT_DOUBLE_EQ(both.flops, 3.5 * forward_flops(kDescribed));
}

// A backward pass that is timed must not find what another set's forward pass left.
TEST(AttentionOperation, BackwardReadsWhatItsOwnForwardPassKeptOfTheSameInputs) {
  for (const char* name : {"literal", "fused_softmax"}) {
    const AutogradRung& rung = find_autograd_rung(name);
    const Operation backward = operation(kDescribed, Pass::backward, rung, 1);
    EXPECT_EQ(backward.prepared, (std::vector<std::string>{"out", "lse", "saved"}));
    EXPECT_EQ(backward.inputs.back().name, "saved");
    EXPECT_EQ(backward.inputs.back().bytes(), rung.saved_bytes(kDescribed));
    Buffers one(backward, 11), other(backward, 12);
    for (Buffers* run : {&one, &other, &one}) {
      backward.call(run->inputs, run->outputs, {});
      const std::vector<Expected> expected = backward.expect(run->inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(check::compare(run->outputs[i], expected[i].value, expected[i].tolerance).passed) << name;
      }
    }
  }
}

// What is taken while a pass is prepared and run, as an account of buffers sees it, beyond its inputs and outputs.
TEST(AttentionOperation, TakesNoMoreMemoryThanIsPredicted) {
  const Problem problem{.batch = 2, .seq_q = 128, .seq_k = 128, .head_dim = 4};
  for (const AutogradRung& rung : ops::host_rungs(autograd_ladder())) {
    for (const Pass phase : {Pass::forward, Pass::backward, Pass::both}) {
      const Operation operation = attention::operation(problem, phase, rung, 5);
      device::MemoryLog& log = device::MemoryLog::global();
      const std::int64_t before = log.live_bytes();
      log.reset_peak();
      Buffers run(operation);
      operation.call(run.inputs, run.outputs, {});
      operation.prepare ? operation.prepare(run.writable, {}) : void();
      operation.call(run.inputs, run.outputs, {});
      const double taken = static_cast<double>(log.peak_bytes() - before);
      double predicted = predicted_bytes(problem, phase, rung.name);
      // What a rung that keeps nothing reads was made by another, which is gone when the pass runs.
      const Rung& other = *dispatch(problem, Pass::forward, {}).rung;
      if (operation.prepare) predicted += static_cast<double>(other.workspace_bytes(problem, Pass::forward));
      EXPECT_LE(taken, predicted) << rung.name << " " << to_string(phase);
      EXPECT_GE(taken, 0.75 * predicted) << rung.name << " " << to_string(phase);
    }
  }
}

TEST(AttentionOperation, CountsWhatLivesBetweenThePasses) {
  const Problem problem{.batch = 8, .seq_q = 1024, .seq_k = 1024, .head_dim = 16};
  const double tensor = 8 * 1024 * 16 * 4, matrix = 8.0 * 1024 * 1024 * 4, row = 8 * 1024 * 4;
  const LiveBytes literal = bytes_before_backward(problem, find_autograd_rung("literal"));
  EXPECT_DOUBLE_EQ(literal.tensors, 4 * tensor);
  EXPECT_DOUBLE_EQ(literal.kept, 2 * matrix + 2 * row);  // exp, weights; their sums, L
  EXPECT_DOUBLE_EQ(bytes_before_backward(problem, find_autograd_rung("fused_softmax")).kept, matrix + row);
  EXPECT_DOUBLE_EQ(bytes_before_backward(problem, find_autograd_rung("flash_tiled")).kept, row);
}

TEST(AttentionOperation, OfBothPassesTakesTheTimeOfBothByTheImplementationsOwnClock) {
  Rung rung = find_rung("naive");
  const auto last = std::make_shared<Nanoseconds>();
  rung.forward = [last, run = rung.forward](const Problem& p, const ForwardArgs& args, ops::Workspace w,
                                            device::Stream s) { run(p, args, w, s), *last = Nanoseconds(3); };
  rung.backward = [last, run = rung.backward](const Problem& p, const BackwardArgs& args, ops::Workspace w,
                                              device::Stream s) { run(p, args, w, s), *last = Nanoseconds(40); };
  rung.last_call_time = [last] { return *last; };
  const Operation both = operation(kDescribed, Pass::both, rung, 1);
  Buffers run(both);
  both.call(run.inputs, run.outputs, {});
  EXPECT_EQ(both.self_time(), Nanoseconds(43));
}

TEST(AttentionOperation, OfSomebodysOwnHasTheBoundsOfItsLaws) {
  Rung mine = find_rung("naive");
  const Problem oblong{.seq_q = 226, .seq_k = 17, .head_dim = 16};
  const auto expected = [&] {
    const Operation backward = operation(oblong, Pass::backward, mine, 1);
    return backward.expect(Buffers(backward).inputs);
  };
  const std::vector<Expected> ours = expected();
  mine.last_call_time = [] { return Nanoseconds(1); };  // which only another process' has
  const std::vector<Expected> theirs = expected();
  EXPECT_EQ(theirs[0].tolerance, ours[0].tolerance) << "dQ is a sum over keys";
  for (const std::size_t gradient : {std::size_t{1}, std::size_t{2}}) {
    EXPECT_GT(std::ranges::max(theirs[gradient].tolerance), 4 * std::ranges::max(ours[gradient].tolerance));
  }
}

TEST(AttentionOperation, PredictsTheScoresOfTheNaiveRungAndNoneOfAnother) {
  const Problem problem{.seq_q = 4096, .seq_k = 4096, .head_dim = 16};
  const double scores = 4.0 * 4096 * 4096;
  const double naive = predicted_bytes(problem, Pass::backward, "naive"),
               flash = predicted_bytes(problem, Pass::backward, "flash_tiled"),
               mine = predicted_bytes(problem, Pass::backward, "mine");
  EXPECT_NEAR(naive - mine, 2 * scores, 0.1 * scores);
  EXPECT_LT(flash, 0.2 * scores);
  EXPECT_EQ(mine, backward_bytes(problem));
}

TEST(AttentionOperation, PhasesAreKnownByTheirNames) {
  for (const Pass phase : {Pass::forward, Pass::backward, Pass::both}) {
    EXPECT_EQ(parse_pass(to_string(phase)), phase);
  }
  EXPECT_THROW(parse_pass("forwards"), Error);
}

TEST(AttentionParams, AreAllThatAProblemIsMadeOf) {
  Params params;
  for (const Axis& one : param_list()) params.set(one.name, one.values.front());
  const Problem problem = problem_from(params);
  EXPECT_EQ(problem.heads_q, 8);
  EXPECT_EQ(problem.heads_kv, 8);
  EXPECT_EQ(problem.seq_k, 256);
}

}  // namespace
}  // namespace syslab::attention
