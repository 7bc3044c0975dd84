// What is said of a counterexample where the likely word would be wrong: then nothing is said, or what comes first.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "property_tests/attention/contrasts.hpp"
#include "tests/laws/attention_said.hpp"

namespace syslab::attention {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string said_of_large_scores(const Softmax& softmax, Mask mask = Mask::none) {
  const Candidate rung = with_softmax(softmax);
  const MenuOrReason choice = menu_for(rung, check::Contract::full, Wants{});
  const Likeness said =
      of_large_scores({rung, check::Contract::full, choice.menu.value(), Pass::forward}, sample_of(16, 16, mask));
  return said.cause.empty() ? said.shown : said.words();
}

TEST(LargeScores, NameTheMaximumThatIsMissingOrBeginsTooHigh) {
  EXPECT_THAT(
      said_of_large_scores([](const auto& scores, const auto& visible) { return subtracting(scores, visible, 0); }),
      HasSubstr("without the row's maximum subtracted"));
  EXPECT_THAT(said_of_large_scores([](const auto& scores, const auto& visible) {
                return subtracting(scores, visible, largest_of(scores, visible, 0));
              }),
              HasSubstr("a maximum that does not begin at −∞"));
}

TEST(LargeScores, NameExpFarBelowZeroWhereSomeOutputIsNoMean) {
  const auto far_below = [](const auto& scores, const auto& visible) {
    Row row = right(scores, visible);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (visible[j] && scores[j] < row.lse - 2200) row.weights[j] = kInfinite;
    }
    return row;
  };
  EXPECT_THAT(said_of_large_scores(far_below), HasSubstr("wrong where they lie far apart"));
}

TEST(LargeScores, AreNotExplainedByExpWhereTheyAreClampedOrRounded) {
  EXPECT_EQ(said_of_large_scores([](auto scores, const auto& visible) {
              for (double& score : scores) score = std::clamp(score, -50.0, 50.0);
              return right(scores, visible);
            }),
            "");
  EXPECT_EQ(said_of_large_scores([](auto scores, const auto& visible) {  // as in half precision, though coarser
              for (double& score : scores) {
                const double size = std::abs(score);
                if (size > 800) score = std::copysign(size > 8000 ? kInfinite : std::ceil(size / 512) * 512, score);
              }
              return right(scores, visible);
            }),
            "");
}

TEST(LargeScores, AreNotExplainedByExpWhereAMaskOrTheLseIsWrong) {
  EXPECT_EQ(said_of_large_scores(
                [](auto scores, auto visible) {
                  for (std::size_t j = 0; j < scores.size(); ++j) {
                    if (!visible[j]) scores[j] -= 50;
                    visible[j] = true;
                  }
                  return right(scores, visible);
                },
                Mask::top_left),
            "");
  EXPECT_EQ(said_of_large_scores([](const auto& scores, const auto& visible) {
              Row row = right(scores, visible);
              const double top = largest_of(scores, visible);
              if (row.lse < top + std::log(1.5)) row.lse = 0;
              return row;
            }),
            "");
}

TEST(BackwardPass, IsNotLookedAtWhereTheForwardPassIsWrongAlready) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.forward = [inner = rung.forward](const Problem& problem, const ForwardArgs& args, ops::Workspace workspace,
                                        device::Stream stream) {
    inner(problem, args, workspace, stream);
    auto* out = args.out.as<float>();
    for (std::int64_t d = 0; d < problem.head_dim; ++d) out[d] += static_cast<float>(d % 3);
  };
  const std::string said = explained(rung, Pass::backward, sample_of(16, 24));
  EXPECT_THAT(said, HasSubstr("\nO of the forward pass is wrong already on this input: look there first"));
  EXPECT_THAT(said, Not(HasSubstr("dV is right")));
}

TEST(BackwardPass, IsLookedAtWhereTheForwardPassIsRight) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.backward = [inner = rung.backward](const Problem& problem, const BackwardArgs& args, ops::Workspace workspace,
                                          device::Stream stream) {
    inner(problem, args, workspace, stream);
    auto* dq = args.dq.as<float>();
    for (std::int64_t d = 0; d < problem.head_dim; ++d) dq[d] += static_cast<float>(d % 3);
  };
  EXPECT_THAT(explained(rung, Pass::backward, sample_of(16, 24)), HasSubstr("\ndK and dV are right: look at dQ"));
}

// Whatever is compared with what: the words of a law are of what was seen.
TEST(NothingButNaN, IsSaidUnderEveryLawThatItBreaks) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    Candidate rung{find_rung("naive"), Domain{.usual = true}};
    rung.forward = [inner = rung.forward, pass](const Problem& p, const ForwardArgs& args, ops::Workspace space,
                                                device::Stream stream) {
      inner(p, args, space, stream);
      if (pass == Pass::forward) std::fill_n(args.out.as<float>(), args.out.elements(), std::nanf(""));
    };
    rung.backward = [inner = rung.backward](const Problem& p, const BackwardArgs& args, ops::Workspace space,
                                            device::Stream stream) {
      inner(p, args, space, stream);
      std::fill_n(args.dk.as<float>(), args.dk.elements(), std::nanf(""));
    };
    int broken = 0;
    for (const check::Law& law : laws_of(rung, pass, rung.domain)) {
      const check::LawResult result = law.search({.contract = check::Contract::full, .seed = 1, .max_success = 5});
      if (result.outcome != check::Outcome::falsified) continue;
      ++broken;
      EXPECT_THAT(result.message, AnyOf(HasSubstr("found nan"), HasSubstr("compared with is NaN"))) << law.id;
      EXPECT_THAT(result.message, HasSubstr(pass == Pass::forward ? "\nlooks like NaN in every element of out: all "
                                                                  : "\nlooks like NaN in every element of dk: all "))
          << law.id;
    }
    EXPECT_GT(broken, pass == Pass::forward ? 7 : 2);
  }
}

TEST(NothingButNaN, IsToldFromWhatWasNeverWritten) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.forward = [inner = rung.forward](const Problem& p, const ForwardArgs& args, ops::Workspace space,
                                        device::Stream stream) {
    std::vector<float> lse(static_cast<std::size_t>(args.lse.elements()));
    ForwardArgs others = args;
    others.lse = TensorView(lse.data(), DType::f32, args.lse.shape);
    inner(p, others, space, stream);
  };
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(16, 24)),
              HasSubstr("\nlooks like nothing written to lse: all 16 "));
}

TEST(HiddenKeys, AreNamedWhereTheyTakePartWithAScoreOfZeroOrInTheSumAlone) {
  const Sample causal = sample_of(32, 32, Mask::top_left);
  const Candidate zeros = with_softmax([](auto scores, auto visible) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (!visible[j]) scores[j] = 0;
      visible[j] = true;
    }
    return right(scores, visible);
  });
  EXPECT_THAT(explained(zeros, Pass::forward, causal),
              HasSubstr("\nlooks like masked scores that are 0 in place of −∞: "));
  const Candidate late = with_softmax([](const auto& scores, const auto& visible) {
    Row row = right(scores, std::vector<bool>(scores.size(), true));
    for (std::size_t j = 0; j < scores.size(); ++j) row.weights[j] = visible[j] ? row.weights[j] : 0;
    return row;
  });
  EXPECT_THAT(explained(late, Pass::forward, causal),
              HasSubstr("\nlooks like a mask behind the softmax, not before: "));
}

TEST(HiddenKeys, AreOneTooManyWhereARowThatSeesNoneIsNaN) {
  for (const bool nan_lse : {false, true}) {
    const Candidate few = with_softmax([nan_lse](const auto& scores, auto visible) {
      const auto seen = std::count(visible.begin(), visible.end(), true);
      visible[static_cast<std::size_t>(seen) - 1] = false;
      Row row = right(scores, visible);
      if (nan_lse && seen == 1) row.lse = std::nan("");
      return row;
    });
    EXPECT_THAT(explained(few, Pass::forward, sample_of(32, 32, Mask::top_left)),
                HasSubstr("\nlooks like a mask that shows one key too few: "))
        << nan_lse;
  }
}

// `before`: the clamp of visible scores comes first, and hidden ones are −∞; else hidden scores are clamped, too.
Candidate clamped_at(double lowest, bool before) {
  return with_softmax([=](auto scores, auto visible) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      scores[j] = visible[j] || before ? std::max(scores[j], lowest) : lowest;
      if (!before) visible[j] = true;
    }
    return right(scores, visible);
  });
}

TEST(HiddenScores, AreNoNumberWhereAllScoresAreClamped) {
  for (const bool before : {true, false}) {
    EXPECT_THAT(explained(clamped_at(-55, before), Pass::forward, sample_of(16, 24, Mask::top_left)),
                Not(HasSubstr("looks like")))
        << before;
  }
}

TEST(HiddenScores, AreNamedOnlyOfAnInputThatHasAny) {
  const Candidate rung = with_softmax([](auto scores, auto visible) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (!visible[j]) scores[j] = -30;
      visible[j] = true;
    }
    return right(scores, visible);
  });
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(16, 24, Mask::top_left)),
              HasSubstr("\nlooks like masked scores of -30 in place of −∞: "));
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(1, 1, Mask::top_left)), Not(HasSubstr("looks like")));
}

TEST(RightTensors, SayNothingOfTheScoresOfOneKey) {
  Candidate rung = with_softmax([](auto scores, const auto& visible) {
    for (double& score : scores) score = 2 * score + 1;
    return right(scores, visible);
  });
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(16, 24)), HasSubstr("\nout and lse are both wrong: "));
  rung.supports = [](const Problem& p, Pass) {
    return p.seq_k > 1 ? std::optional<std::string>("keys") : std::nullopt;
  };
  const std::string said = explained(rung, Pass::forward, sample_of(16, 1));
  EXPECT_THAT(said, HasSubstr("\nfirst wrong: lse"));
  EXPECT_THAT(said, Not(HasSubstr("out is right")));
}

TEST(NeverTried, AreByteOffsetsOfWhatIsHandedDLPackTensors) {
  for (const bool library : {true, false}) {
    Candidate rung{find_rung("naive"), Domain{.usual = true}};
    rung.language = library ? "C" : "Python";
    for (const check::Law& law : laws_of(rung, Pass::forward, rung.domain)) {
      if (law.id != "attention.rows_sum_to_one") continue;
      const Finding held = law.search({.contract = check::Contract::full, .seed = 1, .max_success = 5}).finding;
      const std::string& said = held.never_drawn;
      EXPECT_FALSE(held.small);
      EXPECT_THAT(said, HasSubstr("D other than "));
      EXPECT_EQ(said.find("; a byte_offset of a DLPack tensor other than 0; ") != std::string::npos, library) << said;
    }
  }
}

// Keys from 32 on have no part in out; of the log-sum-exp they do.
TEST(KeysLeftOut, AreNotSoughtInTheDivision) {
  const Candidate rung = with_softmax([](const auto& scores, const auto& visible) {
    Row row = right(scores, visible);
    for (std::size_t j = 32; j < scores.size(); ++j) row.weights[j] = 0;
    return row;
  });
  const std::string said = explained(rung, Pass::forward, sample_of(16, 80));
  EXPECT_THAT(said, HasSubstr("right at 32 keys, wrong at 33"));
  EXPECT_THAT(said, Not(HasSubstr("look at P V")));
}

TEST(KeysOfTheFirstTile, AreToldByTheLengthWhereTheyAreNotRescaled) {
  const Candidate rung = with_softmax([](const auto& scores, const auto& visible) {
    Row row = right(scores, visible);
    const double largest = largest_of(scores, visible);
    const std::size_t first = std::min<std::size_t>(32, scores.size());
    if (std::find(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(first), largest) ==
        scores.begin() + static_cast<std::ptrdiff_t>(first)) {
      for (std::size_t j = 0; j < first; ++j) row.weights[j] *= 1.7;
    }
    return row;
  });
  EXPECT_THAT(explained(rung, Pass::forward, sample_of(16, 64)), HasSubstr("right at 32 keys, wrong at 33"));
}

}  // namespace
}  // namespace syslab::attention
