// What is said of an online softmax that rescales wrongly where its running maximum grows.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "property_tests/attention/explain.hpp"

namespace syslab::attention {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// From the tile of keys before to this one.
struct Step {
  std::int64_t index;
  bool last;
  float before, own_before, own, grown;
};
using Factor = std::function<float(const Step&)>;

float rightly(const Step& step) { return std::exp(step.before - step.grown); }

// A forward pass in fp32 over tiles of keys, in contiguous memory: with what each of its sums is multiplied.
struct Softmax {
  std::int64_t tile = 32;
  Factor accumulator = rightly, sum_of_out = rightly, sum_of_lse = rightly;
  bool after = false;  // the accumulator with what the tile adds
};

Candidate with(const Softmax& softmax) {
  Candidate rung{find_rung("naive"), Domain{}};
  rung.name = "hers";
  rung.forward = [softmax](const Problem& p, const ForwardArgs& args, ops::Workspace, device::Stream) {
    const auto *q = args.q.as<float>(), *k = args.k.as<float>(), *v = args.v.as<float>();
    auto *out = args.out.as<float>(), *lse = args.lse.as<float>();
    const auto dim = static_cast<std::size_t>(p.head_dim);
    for (std::int64_t i = 0; i < p.batch * p.heads_q * p.seq_q; ++i) {
      const std::int64_t head =
          i / p.seq_q / p.heads_q * p.heads_kv + i / p.seq_q % p.heads_q / (p.heads_q / p.heads_kv);
      const std::int64_t keys = p.visible_keys(i % p.seq_q);
      std::vector<float> sums(dim, 0.0F);
      Step step{0, false, -kInfinite, -kInfinite, -kInfinite, -kInfinite};
      float sum = 0, of_lse = 0;
      for (std::int64_t first = 0; first < keys; first += softmax.tile, ++step.index) {
        const std::int64_t end = std::min(first + softmax.tile, keys);
        const auto score = [&](std::int64_t j) {
          float dot = 0;
          for (std::int64_t d = 0; d < p.head_dim; ++d) {
            dot += q[i * p.head_dim + d] * k[(head * p.seq_k + j) * p.head_dim + d];
          }
          return dot * static_cast<float>(p.effective_scale());
        };
        step.last = end == keys;
        step.own_before = step.own;
        step.own = -kInfinite;
        for (std::int64_t j = first; j < end; ++j) step.own = std::max(step.own, score(j));
        step.before = step.grown;
        step.grown = std::max(step.before, step.own);
        const float factor = step.index == 0 ? 0.0F : softmax.accumulator(step);
        if (!softmax.after) {
          for (float& x : sums) x *= factor;
        }
        sum *= step.index == 0 ? 0.0F : softmax.sum_of_out(step);
        of_lse *= step.index == 0 ? 0.0F : softmax.sum_of_lse(step);
        for (std::int64_t j = first; j < end; ++j) {
          const float weight = std::exp(score(j) - step.grown);
          sum += weight;
          of_lse += weight;
          for (std::size_t d = 0; d < dim; ++d) {
            sums[d] += weight * v[(head * p.seq_k + j) * p.head_dim + static_cast<std::int64_t>(d)];
          }
        }
        if (softmax.after && step.index > 0) {
          for (float& x : sums) x *= factor;
        }
      }
      for (std::size_t d = 0; d < dim; ++d) {
        out[i * p.head_dim + static_cast<std::int64_t>(d)] = keys == 0 ? 0.0F : sums[d] / sum;
      }
      lse[i] = keys == 0 ? -kInfinite : step.grown + std::log(of_lse);
    }
  };
  return rung;
}

std::string said_of(const Softmax& softmax, Mask mask = Mask::none) {
  const Candidate rung = with(softmax);
  Wants wants;
  wants.pass = Pass::forward;
  const MenuOrReason choice = menu_for(rung, check::Contract::full, wants);
  Sample sample;
  sample.problem = {.seq_q = 64, .seq_k = 3 * softmax.tile, .head_dim = 16, .mask = mask};
  sample.q = query_values(sample, "q");
  sample.k = key_values(sample, "k");
  sample.v = key_values(sample, "v");
  return explain({rung, check::Contract::full, choice.menu.value(), Pass::forward}, "attention.any", sample,
                 Pass::forward, false)
      .lines;
}

struct Planted {
  const char* words;
  Factor factor;
};

std::vector<Planted> planted() {
  const auto kept_in = [](auto where) -> Factor {
    return [where](const Step& step) { return where(step) ? 1.0F : rightly(step); };
  };
  return {{"not rescaled", [](const Step&) { return 1.0F; }},
          {"rescaled twice", [](const Step& step) { return rightly(step) * rightly(step); }},
          {"rescaled by e^(m′ − m), the wrong way round", [](const Step& step) { return 1 / rightly(step); }},
          {"rescaled in another base", [](const Step& step) { return std::exp2(step.before - step.grown); }},
          {"rescaled by a tile's own maximum", [](const Step& step) { return std::exp(step.own_before - step.grown); }},
          {"not rescaled in every second tile", kept_in([](const Step& step) { return step.index % 2 != 0; })},
          {"not rescaled in one of the tiles", kept_in([](const Step& step) { return step.last; })}};
}

TEST(WrongRescale, OfTheAccumulatorIsNamedWithItsTiles) {
  for (const std::int64_t tile : {16, 32, 64}) {
    for (const Planted& fault : planted()) {
      const std::string said = said_of({.tile = tile, .accumulator = fault.factor});
      EXPECT_THAT(said, HasSubstr(std::string("looks like an accumulator that is ") + fault.words)) << tile;
      // The last of 199 keys are the same in tiles of 8 to 64.
      if (std::string(fault.words).find("one of the tiles") == std::string::npos) {
        EXPECT_THAT(said, HasSubstr("(tiles of " + std::to_string(tile) + " keys, "));
      }
    }
  }
}

TEST(WrongRescale, OfARowSumIsNamedByWhatItGoesInto) {
  for (const Planted& fault : planted()) {
    EXPECT_THAT(said_of({.sum_of_out = fault.factor, .sum_of_lse = fault.factor}),
                HasSubstr(std::string("looks like a row sum that is ") + fault.words));
    EXPECT_THAT(said_of({.sum_of_lse = fault.factor}),
                HasSubstr(std::string("looks like the row sum of L, which is ") + fault.words));
    EXPECT_THAT(said_of({.sum_of_out = fault.factor}),
                HasSubstr(std::string("looks like the row sum that O is divided by, which is ") + fault.words));
  }
}

TEST(WrongRescale, UnderAMaskIsNamedToo) {
  for (const Planted& fault : planted()) {
    EXPECT_THAT(said_of({.tile = 32, .accumulator = fault.factor}, Mask::top_left),
                HasSubstr(std::string("looks like an accumulator that is ") + fault.words));
  }
}

TEST(WrongRescale, BehindWhatATileAddsIsNamed) {
  EXPECT_THAT(said_of({.tile = 32, .after = true}),
              HasSubstr("looks like an accumulator that is rescaled behind what a tile adds"));
}

// No formula of the usual ones: told by which rows are right.
TEST(WrongRescale, OfAnotherKindIsToldByTheRowsWhoseMaximumRises) {
  for (const std::int64_t tile : {16, 32, 64}) {
    const std::string rows =
        "rows are right whose largest score stands among the first " + std::to_string(tile) + " keys";
    const Factor clamped = [](const Step& step) { return std::max(rightly(step), 0.5F); };
    const Factor lazy = [](const Step& step) { return step.grown > step.before + 0.2F ? rightly(step) * 0.7F : 1.0F; };
    for (const Factor& factor : {clamped, lazy}) {
      const std::string said = said_of({.tile = tile, .accumulator = factor});
      EXPECT_THAT(said, HasSubstr("looks like a wrong rescale where the running maximum grows: all ")) << tile;
      EXPECT_THAT(said, HasSubstr(rows));
      EXPECT_THAT(said_of({.tile = tile, .sum_of_lse = factor}), HasSubstr(rows));
    }
  }
}

// Wrong in rows of both kinds.
TEST(WrongRescale, IsNotSaidOfOtherFaults) {
  Candidate rung = with({});
  rung.forward = [inner = rung.forward](const Problem& p, const ForwardArgs& args, ops::Workspace space,
                                        device::Stream stream) {
    inner(p, args, space, stream);
    auto* out = args.out.as<float>();
    for (std::int64_t i = 0; i < args.out.elements(); ++i) out[i] += (i / p.head_dim + i) % 3 == 0 ? 0.5F : 0.0F;
  };
  Wants wants;
  wants.pass = Pass::forward;
  const MenuOrReason choice = menu_for(rung, check::Contract::full, wants);
  Sample sample;
  sample.problem = {.seq_q = 64, .seq_k = 96, .head_dim = 16};
  sample.q = query_values(sample, "q");
  sample.k = key_values(sample, "k");
  sample.v = key_values(sample, "v");
  EXPECT_THAT(explain({rung, check::Contract::full, choice.menu.value(), Pass::forward}, "attention.any", sample,
                      Pass::forward, false)
                  .lines,
              Not(HasSubstr("looks like")));
}

}  // namespace
}  // namespace syslab::attention
