#include <gtest/gtest.h>

#include <cmath>

#include "device/buffer.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/weighted_sum/foreign.hpp"
#include "tests/ops/host_rungs.hpp"
#include "tests/ops/weighted_sum_fixture.hpp"

namespace syslab::weighted_sum {
namespace {

const std::vector<DType> kHostDtypes = {DType::f32, DType::f16, DType::bf16};

TEST(WeightedSum, ReferenceGivesTheFormulasByHand) {
  Instance instance({2, 3, DType::f64});
  const double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, -1, 2}, dy[] = {10, 100};
  for (int i = 0; i < 6; ++i) instance.x.store(i, x[i]);
  for (int i = 0; i < 3; ++i) instance.w.store(i, w[i]);
  for (int i = 0; i < 2; ++i) instance.dy.store(i, dy[i]);
  instance.run(find_rung("reference"));
  EXPECT_EQ(instance.y.values(), (std::vector<double>{5, 11}));
  EXPECT_EQ(instance.dx.values(), (std::vector<double>{10, -10, 20, 100, -100, 200}));
  EXPECT_EQ(instance.dw.values(), (std::vector<double>{410, 520, 630}));
}

TEST(WeightedSum, GradientsAgreeWithFiniteDifferencesInDouble) {
  // y is linear in x and in w, so a central difference of Σ g·y is exact up to rounding for any step.
  for (const Problem problem : {Problem{3, 5, DType::f64}, Problem{17, 19, DType::f64}}) {
    Instance instance(problem);
    const Rung& reference = find_rung("reference");
    instance.run(reference);
    const std::vector<double> g = instance.dy.values(), dx = instance.dx.values(), dw = instance.dw.values();
    const auto loss = [&] {
      reference.forward(problem, instance.forward_args(), {}, {});
      const std::vector<double> y = instance.y.values();
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += g[i] * y[i];
      return sum;
    };
    const auto difference = [&](Tensor& tensor, std::size_t element) {
      const auto offset = static_cast<std::int64_t>(element);
      const double at = tensor.values()[element], step = 0.5;
      tensor.store(offset, at + step);
      const double above = loss();
      tensor.store(offset, at - step);
      const double below = loss();
      tensor.store(offset, at);
      return (above - below) / (2 * step);
    };
    for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(difference(instance.x, i), dx[i], 1e-12) << "dx " << i;
    for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(difference(instance.w, i), dw[i], 1e-12) << "dw " << i;
  }
}

TEST(WeightedSum, EveryRungStaysWithinItsBoundAtEveryTileEdge) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : kHostDtypes) {
      for (const std::int64_t rows : {1, 2, 15, 16, 17, 33, 101}) {
        for (const std::int64_t dim : {1, 3, 7, 8, 9, 16, 17, 127, 128, 129, 257, 5000}) {
          const Problem problem{rows, dim, dtype};
          if (rung.supports(problem, Pass::forward)) continue;
          Instance instance(problem, static_cast<unsigned>(rows * 1000 + dim));
          instance.run(rung);
          ASSERT_LE(worst_ratio(instance), 1.0) << rung.name << " " << to_string(problem);
        }
      }
    }
  }
}

TEST(WeightedSum, TheBoundNoticesOneMissingTerm) {
  for (const DType dtype : kHostDtypes) {
    Instance instance({64, 48, dtype});
    instance.run(find_rung("tiled"));
    Instance forgetful({64, 47, dtype});  // the sum over D without its last term
    forgetful.x = instance.x;
    forgetful.x.shape = Shape{64, 47};
    forgetful.w = instance.w;
    forgetful.w.shape = Shape{47};
    find_rung("tiled").forward(forgetful.problem, forgetful.forward_args(), {}, {});
    instance.y = forgetful.y;
    EXPECT_GT(worst_ratio(instance), 1.0) << to_string(dtype);
  }
}

TEST(WeightedSum, RowsMayLieApartAndGapsStayUntouched) {
  for (const char* name : {"naive", "tiled"}) {
    for (const DType dtype : kHostDtypes) {
      Instance instance({19, 21, dtype}, 7, 5);
      instance.run(find_rung(name));
      EXPECT_LE(worst_ratio(instance), 1.0) << name;
      const std::size_t element = size_of(dtype);
      for (std::size_t row = 0; row + 1 < 19; ++row) {
        for (std::size_t byte = (row * 26 + 21) * element; byte < (row + 1) * 26 * element; ++byte) {
          ASSERT_EQ(instance.dx.bytes[byte], std::byte{0xff}) << name << ": gap after row " << row;
        }
      }
    }
  }
}

TEST(WeightedSum, TiledSumsInTheOrderItPromises) {
  // dw: 16 rows in order, then tiles in order. The same bits whatever the number of threads.
  const Problem problem{3000, 1100, DType::f32};  // large enough for threads
  Instance instance(problem, 3);
  instance.run(find_rung("tiled"));
  const float* x = instance.x.view().as<float>();
  const float* g = instance.dy.view().as<float>();
  const float* dw = instance.dw.view().as<float>();
  for (std::int64_t d = 0; d < problem.dim; ++d) {
    float sum = 0;
    for (std::int64_t tile = 0; tile < problem.rows; tile += 16) {
      float part = 0;
      for (std::int64_t i = tile; i < std::min<std::int64_t>(tile + 16, problem.rows); ++i) {
        part += x[i * problem.dim + d] * g[i];
      }
      sum += part;
    }
    ASSERT_EQ(dw[d], sum) << "column " << d;
  }
}

TEST(WeightedSum, AWorkspaceThatIsTooSmallIsNotUsed) {
  const Problem problem{.rows = 100, .dim = 33};
  for (const Rung& rung : ops::host_rungs(ladder())) {
    if (rung.name == "reference") continue;
    const std::size_t bytes = rung.workspace_bytes(problem, Pass::backward);
    if (bytes == 0) continue;
    std::vector<float> memory(bytes / sizeof(float), 77.0F);
    Instance instance(problem), plain(problem);
    instance.run(rung, {memory.data(), bytes - sizeof(float)});
    plain.run(rung);
    EXPECT_EQ(instance.dw.bytes, plain.dw.bytes) << rung.name;
    EXPECT_EQ(memory, std::vector<float>(memory.size(), 77.0F)) << rung.name;
  }
}

TEST(KeptWorkspace, TakesItsMemoryAtTheFirstCallAndNoneLater) {
  const device::MemoryLog& log = device::MemoryLog::global();
  const std::size_t before = log.events().size();
  const ops::KeptWorkspace workspace(1000);
  EXPECT_EQ(log.events().size(), before);
  const ops::Workspace lent = workspace.lend();
  EXPECT_EQ(lent.bytes, 1000U);
  EXPECT_EQ(log.events().size(), before + 1);
  const ops::KeptWorkspace copy = workspace;
  EXPECT_EQ(copy.lend().data, lent.data);
  EXPECT_EQ(log.events().size(), before + 1);
}

TEST(KeptWorkspace, OfNothingLendsNothing) {
  const ops::Workspace lent = ops::KeptWorkspace(0).lend();
  EXPECT_EQ(lent.data, nullptr);
  EXPECT_EQ(lent.bytes, 0U);
}

TEST(WeightedSum, AGivenWorkspaceChangesNoBitAndIsEnough) {
  const Problem problem{50, 300, DType::bf16};
  const Rung& rung = find_rung("tiled");
  Instance own(problem), given(problem);
  own.run(rung);
  const std::size_t bytes = rung.workspace_bytes(problem, Pass::backward);
  ASSERT_EQ(bytes, 4U * 300U * sizeof(float));
  std::vector<float> memory(bytes / sizeof(float) + 1, 77.0F);
  given.run(rung, {memory.data(), bytes});
  EXPECT_EQ(own.dw.bytes, given.dw.bytes);
  EXPECT_EQ(own.y.bytes, given.y.bytes);
  EXPECT_EQ(memory.back(), 77.0F) << "written beyond the workspace it asked for";
}

TEST(WeightedSum, ImpossibleArgumentsAreNamed) {
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message([] { validate(Problem{0, 4}); }).find("rows=0"), std::string::npos);
  Instance instance({4, 6, DType::f32});
  ForwardArgs args = instance.forward_args();
  args.w.shape = Shape{5};
  EXPECT_EQ(message([&] { validate(instance.problem, args); }), "w has shape (5), must have (6)");
  args = instance.forward_args();
  args.x.strides = {1, 4};
  EXPECT_NE(message([&] { validate(instance.problem, args); }).find("x has last stride 4"), std::string::npos);
  BackwardArgs gradients = instance.backward_args();
  gradients.dy.dtype = DType::bf16;
  EXPECT_EQ(message([&] { validate(instance.problem, gradients); }), "dy is bf16, must be fp32");
  EXPECT_NE(message([] { find_rung("tild"); }).find("tiled"), std::string::npos);
}

// Another process, played by the tiled rung: reads and writes tensors by the names it is given.
class Echo : public CallChannel {
 public:
  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params&) override {
    const auto in = [&](std::string_view name) {
      for (const NamedInput& input : inputs) {
        if (input.name == name) return input.view;
      }
      throw Error(ErrorKind::comm, "no input " + std::string(name));
    };
    const auto out = [&](std::string_view name) {
      for (const NamedOutput& output : outputs) {
        if (output.name == name) return output.view;
      }
      throw Error(ErrorKind::comm, "no output " + std::string(name));
    };
    const Problem problem{in("x").size(0), in("x").size(1), in("x").dtype};
    const Rung& rung = find_rung("tiled");
    if (function == "weighted_sum_forward") {
      rung.forward(problem, {in("x"), in("w"), out("y")}, {}, {});
    } else if (function == "weighted_sum_backward") {
      rung.backward(problem, {in("x"), in("w"), in("dy"), out("dx"), out("dw")}, {}, {});
    }
    return Nanoseconds(42);
  }
};

TEST(WeightedSum, AnImplementationInAnotherProcessIsARung) {
  const auto channel = std::make_shared<ops::TimedChannel>(std::make_shared<Echo>());
  const Rung rung = foreign_rung(
      {.name = "me", .language = "Python", .digest = "abc", .dtypes = {DType::f32, DType::bf16}, .channel = channel});
  Instance ours({33, 65, DType::bf16}), theirs({33, 65, DType::bf16});
  ours.run(find_rung("tiled"));
  theirs.run(rung);
  EXPECT_EQ(theirs.y.bytes, ours.y.bytes);
  EXPECT_EQ(theirs.dx.bytes, ours.dx.bytes);
  EXPECT_EQ(theirs.dw.bytes, ours.dw.bytes);
  EXPECT_EQ(channel->taken(), Nanoseconds(2 * 42));  // of both passes
  EXPECT_EQ(rung.digest, "abc");
  EXPECT_TRUE(rung.supports({1, 1, DType::f64}, Pass::forward));
  EXPECT_TRUE(rung.supports({1, 1, DType::f16}, Pass::forward));  // not promised
}

TEST(WeightedSum, TheDispatcherTakesTheFastestThatCan) {
  EXPECT_EQ(dispatch({4, 4, DType::f32}, Pass::forward, device::Kind::cpu).name, "tiled");
  EXPECT_EQ(dispatch({4, 4, DType::f64}, Pass::backward, device::Kind::cpu).name, "reference");
  EXPECT_THROW(dispatch({4, 4, DType::f64}, Pass::forward, device::Kind::cuda), Error);  // with CUDA or without
}

}  // namespace
}  // namespace syslab::weighted_sum
