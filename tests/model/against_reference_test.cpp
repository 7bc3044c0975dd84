// The check of the whole model: right ones pass, of one of everything too, where what is expected may be exactly 0; and
// planted faults are found there.
#include "model/against_reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/model/smallest_sizes.hpp"

namespace syslab::model {
namespace {

TEST(AgainstReference, FindsRightModelsRightWhateverIsOne) {
  for (const Sizes& sizes : kSizes) {
    for (const TransformerOptions& options : {TransformerOptions{.precision = Precision::fp64}, TransformerOptions{},
                                              TransformerOptions{.variant = Variant::eager}}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        for (const StepCheck& one : against_reference(sizes.config(), options, {}, seed)) {
          EXPECT_LE(one.error, one.tolerance) << sizes.name << ", " << one.name << ": " << one.message;
        }
      }
    }
  }
}

// Names of what is found wrong.
std::vector<std::string> wrong(const Sizes& sizes, const std::function<void(Kernels&)>& plant) {
  std::vector<std::string> names;
  for (const StepCheck& one : against_reference(sizes.config(), {.plant = plant}, {}, 3)) {
    if (!(one.error <= one.tolerance)) names.push_back(one.name);
  }
  return names;
}

// The cross-entropy with `fault` behind it: told of the arguments when all is computed.
template <typename Fault>
std::function<void(Kernels&)> behind_the_loss(const Fault& fault) {
  return [fault, rung = std::make_shared<cross_entropy::Rung>()](Kernels& kernels) {
    *rung = *kernels.cross_entropy;
    rung->forward_backward = [fault, right = *kernels.cross_entropy](const auto& problem, const auto& args,
                                                                     ops::Workspace workspace, device::Stream stream) {
      right.forward_backward(problem, args, workspace, stream);
      fault(problem, args);
    };
    kernels.cross_entropy = rung.get();
  };
}

using LossArgs = cross_entropy::ForwardBackwardArgs;

TEST(AgainstReference, FindsALossThatIsNotNothingOfOneToken) {
  const auto off_by = [](float error) {
    return behind_the_loss(
        [error](const cross_entropy::Problem&, const LossArgs& args) { args.loss.as<float>()[0] += error; });
  };
  const std::vector<std::string> loss{"loss"};
  for (const Sizes& sizes : {Sizes{.name = "ordinary"}, kOneToken}) {
    EXPECT_EQ(wrong(sizes, off_by(1e-3F)), loss) << sizes.name;
    EXPECT_EQ(wrong(sizes, off_by(-1e-3F)), loss) << sizes.name;
  }
  EXPECT_EQ(wrong(kOneToken, off_by(1e-4F)), loss) << "an absolute bound: some 1e-6 times the largest logit";
  EXPECT_EQ(wrong(kOneToken, off_by(1e-8F)), std::vector<std::string>()) << "less than logits are rounded by";
  EXPECT_EQ(wrong(kOneToken, off_by(NAN)), loss);
  // Without the target's logit: log Σ exp z alone.
  EXPECT_EQ(wrong(kOneToken, behind_the_loss([](const cross_entropy::Problem&, const LossArgs& args) {
                    args.loss.as<float>()[0] = args.lse.as<float>()[0];
                  })),
            loss);
}

// p − 1 of one token is 0; `left` of the 1 is not subtracted.
TEST(AgainstReference, FindsAGradientThatIsNotNothingOfOneToken) {
  const auto leaves = [](float left) {
    return behind_the_loss([left](const cross_entropy::Problem& problem, const LossArgs& args) {
      for (std::int64_t row = 0; row < problem.rows; ++row) {
        args.dlogits.as<float>()[row * problem.classes + args.targets[row]] += left / static_cast<float>(problem.rows);
      }
    });
  };
  for (const Sizes& sizes : {Sizes{.name = "ordinary"}, kOneToken, kSizes[3]}) {
    EXPECT_EQ(wrong(sizes, leaves(1)), std::vector<std::string>{"gradients"}) << sizes.name;
    EXPECT_EQ(wrong(sizes, leaves(1e-3F)), std::vector<std::string>{"gradients"}) << sizes.name;
  }
  EXPECT_EQ(wrong(kOneToken, leaves(1e-4F)), std::vector<std::string>{"gradients"});
  EXPECT_EQ(wrong(kOneToken, leaves(1e-7F)), std::vector<std::string>()) << "a rounding of p";
}

// A softmax over one key: dQ = dS·K with dS = dO·V − dO·O, here with a part of the difference's second term missing.
TEST(AgainstReference, FindsAGradientOfQueriesThatIsNotNothingOfOnePosition) {
  const auto misses = [](float part) {
    return [part](Kernels& kernels) {
      kernels.attention.backward = [part, right = kernels.attention](const auto& problem, const auto& args,
                                                                     const attention::Saved& saved,
                                                                     ops::Workspace workspace, device::Stream stream) {
        right.backward(problem, args, saved, workspace, stream);
        const auto row = [](const auto& view, std::int64_t sequence, std::int64_t head) {
          return view.template as<float>() + sequence * view.stride(0) + head * view.stride(1);
        };
        for (std::int64_t b = 0; b < problem.batch; ++b) {
          for (std::int64_t h = 0; h < problem.heads_q; ++h) {
            const float *given = row(args.dout, b, h), *v = row(args.v, b, h), *k = row(args.k, b, h);
            float *dq = row(args.dq, b, h), dot = 0;
            for (std::int64_t d = 0; d < problem.head_dim; ++d) dot += given[d] * v[d];
            for (std::int64_t d = 0; d < problem.head_dim; ++d) dq[d] += part * dot * k[d] / 4;  // √16
          }
        }
      };
    };
  };
  const std::vector<std::string> gradients{"gradients"};
  EXPECT_EQ(wrong(kOnePosition, misses(1)), gradients);
  EXPECT_EQ(wrong(kOnePosition, misses(1e-2F)), gradients);
  EXPECT_EQ(wrong(kOnePosition, misses(1e-4F)), gradients) << "less than half precision may be off by";
  EXPECT_EQ(wrong(kOnePosition, misses(1e-7F)), std::vector<std::string>()) << "a rounding of the difference";
  // Of one token the gradient that attention is given is a rounding itself, and this is to be one of that.
  const auto both = [&](float part) {
    return [rounds = behind_the_loss([](const cross_entropy::Problem& problem, const LossArgs& args) {
              for (std::int64_t i = 0; i < problem.rows; ++i) args.dlogits.as<float>()[i] += 1e-7F / 24;
            }),
            misses = misses(part)](Kernels& kernels) {
      rounds(kernels);
      misses(kernels);
    };
  };
  EXPECT_EQ(wrong(kOneToken, both(1)), gradients);
  EXPECT_EQ(wrong(kOneToken, both(0)), std::vector<std::string>());
}

TEST(AgainstReference, FindsWrongLogitsOfOneToken) {
  const auto stretched = [rung = std::make_shared<rms_norm::Rung>()](Kernels& kernels) {
    *rung = *kernels.rms_norm;
    rung->forward = [right = *kernels.rms_norm](rms_norm::Problem problem, const auto& args, ops::Workspace workspace,
                                                device::Stream stream) {
      problem.eps = 3e-3;
      right.forward(problem, args, workspace, stream);
    };
    kernels.rms_norm = rung.get();
  };
  const std::vector<std::string> found = wrong(kOneToken, stretched);
  EXPECT_EQ(found.empty() ? "" : found.front(), "logits");
}

TEST(AgainstReference, SizesThatAreSmallerThanTheReducedOnesStay) {
  EXPECT_EQ(reduced(Sizes{.name = "", .d_ff = 1}.config()).d_ff, 1);
  EXPECT_EQ(reduced(find_model("small")).d_ff, 256);
}

TEST(Vanishing, IsEverythingOfOneTokenAndQueriesAndKeysWithoutAChoice) {
  const auto count = [](const std::vector<bool>& vanishes) { return std::ranges::count(vanishes, true); };
  const ParameterLayout token(kOneToken.config()), other(kSizes[0].config());
  std::vector<double> norms(static_cast<std::size_t>(other.size()), 1.0);
  EXPECT_EQ(count(vanishing(token, norms)), other.size());
  EXPECT_EQ(count(vanishing(other, norms)), 0);
  const auto norm = [&](int index) -> double& { return norms[static_cast<std::size_t>(index)]; };
  norm(other.layer(1).q) = 1e-17;
  norm(other.layer(0).k) = 0;
  norm(other.layer(0).w1) = 1e-17;  // no softmax is before it
  const std::vector<bool> found = vanishing(other, norms);
  EXPECT_EQ(count(found), 2);
  EXPECT_TRUE(found[static_cast<std::size_t>(other.layer(1).q)] && found[static_cast<std::size_t>(other.layer(0).k)]);
  norm(other.layer(1).q) = 1e-6;
  EXPECT_EQ(count(vanishing(other, norms)), 1);
}

}  // namespace
}  // namespace syslab::model
