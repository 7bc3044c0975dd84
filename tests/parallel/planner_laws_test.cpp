// Laws of schedules: the planner's is the best there is, no schedule beats the bound, the simulator agrees with the
// formulas.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "planning/planner.hpp"
#include "planning/uniform_model.hpp"
#include "tests/laws/expect_law.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

using property::drawn_size;
using property::expect_law;

struct Drawn {
  GradientPieces pieces;
  std::vector<Seconds> ready;
  TransferCurve curve;
};

// Tensors of very different sizes with padding between some, ready at any times, over a link of any curve, also one
// that falls.
Drawn drawn_pieces(int most) {
  const int count = drawn_size("tensors", 1, most + 1);
  std::vector<Piece> pieces;
  std::vector<Seconds> ready;
  std::int64_t first = 0;
  double time = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t elements = drawn_size("elements", 1, *rc::gen::element(20, 5000));
    pieces.push_back({"p" + std::to_string(i), first, elements});
    first += elements + *rc::gen::element(0, 0, 3, 60).as("padding");
    time += drawn_size("µs of computing", 0, 400);
    ready.emplace_back(time * 1e-6);
  }
  std::vector<TransferPoint> points;
  std::int64_t bytes = 1;
  for (int i = drawn_size("points of the curve", 1, 6); i > 0; --i) {
    points.push_back({bytes, Seconds(1e-6 * drawn_size("µs of sending", 1, 500))});
    bytes += drawn_size("bytes to the next point", 1, 20000);
  }
  return {GradientPieces(std::move(pieces), DType::f32), std::move(ready), TransferCurve(std::move(points))};
}

// Bit i of `cuts`: a bucket ends behind piece i.
BucketSchedule plan_of_cuts(unsigned cuts, int pieces) {
  std::vector<int> ends;
  for (int i = 0; i + 1 < pieces; ++i) {
    if ((cuts >> i & 1U) != 0) ends.push_back(i + 1);
  }
  ends.push_back(pieces);
  return BucketSchedule(std::move(ends));
}

TEST(PlannerLaws, ThePlanIsTheBestOfAllPlans) {
  expect_law("parallel.plan_is_best", 200, [](check::Observation&) {
    const Drawn in = drawn_pieces(12);
    const Seconds slack(1e-6 * drawn_size("µs of slack", 0, 200));
    const Forecast found = schedule_buckets(in.pieces, in.ready, in.curve, slack);
    Seconds best{1e9};
    std::vector<std::pair<BucketSchedule, Seconds>> all;
    for (unsigned cuts = 0; cuts < 1U << (in.pieces.size() - 1); ++cuts) {
      BucketSchedule schedule = plan_of_cuts(cuts, in.pieces.size());
      const Seconds end = simulate(schedule, in.pieces, in.ready, in.curve).end();
      best = std::min(best, end);
      all.emplace_back(std::move(schedule), end);
    }
    RC_ASSERT(found.best_end == best);
    RC_ASSERT(found.timeline.end() <= best + slack);
    for (const auto& [schedule, end] : all) {
      if (schedule.size() < found.schedule.size()) RC_ASSERT(end > best + slack);
      if (schedule.size() == found.schedule.size()) RC_ASSERT(end >= found.timeline.end());
    }
  });
}

TEST(PlannerLaws, NoPlanBeatsTheBoundNorThePlannersOwn) {
  expect_law("parallel.plan_bounds", 100, [](check::Observation&) {
    const Drawn in = drawn_pieces(40);
    const Forecast best = schedule_buckets(in.pieces, in.ready, in.curve, Seconds(0));
    RC_ASSERT(best.timeline.end() == best.best_end);
    const double rounding = 1 + 1e-12;
    RC_ASSERT(best.bound <= best.best_end * rounding);
    const std::int64_t cap = drawn_size("cap", 1, 100000);
    const int count = drawn_size("buckets", 1, 50);
    for (const BucketSchedule& schedule : {schedule_by_cap(in.pieces, cap), schedule_by_count(in.pieces, count),
                                           schedule_one_each(in.pieces), schedule_flat(in.pieces)}) {
      RC_ASSERT(simulate(schedule, in.pieces, in.ready, in.curve).end() >= best.best_end);
    }
  });
}

TEST(PlannerLaws, NoBucketPassesItsLimitUnlessOnePieceAloneDoes) {
  expect_law("parallel.plan_caps", 200, [](check::Observation&) {
    const Drawn in = drawn_pieces(40);
    const std::int64_t cap = drawn_size("cap", 1, 40000);
    const BucketSchedule schedule = schedule_by_cap(in.pieces, cap);
    RC_ASSERT(schedule.pieces() == in.pieces.size());
    for (int bucket = 0; bucket < schedule.size(); ++bucket) {
      RC_ASSERT(in.pieces.bytes(schedule.begin(bucket), schedule.end(bucket)) <= cap ||
                schedule.end(bucket) - schedule.begin(bucket) == 1);
      // As full as can be: the next piece would not have fitted.
      if (bucket + 1 < schedule.size())
        RC_ASSERT(in.pieces.bytes(schedule.begin(bucket), schedule.end(bucket) + 1) > cap);
    }
    const int count = drawn_size("buckets", 1, 50);
    RC_ASSERT(schedule_by_count(in.pieces, count).size() == std::min(count, in.pieces.size()));
    RC_ASSERT(BucketSchedule::parse(schedule.text()) == schedule);
  });
}

TEST(PlannerLaws, TheFormulasAreTheSimulationOfEqualTensors) {
  expect_law("parallel.uniform_formulas", 200, [](check::Observation&) {
    const int buckets = drawn_size("buckets", 1, 60);
    const std::int64_t elements = drawn_size("elements of a bucket", 1, 100000);
    const AffineTransfer law{Seconds(1e-6 * drawn_size("overhead in µs", 1, 100)),
                             1e6 * drawn_size("MB/s", 10, 100000)};
    const double ratio = 0.05 * drawn_size("computing to sending, in twentieths", 1, 60);
    const GradientPieces pieces =
        test::pieces_of_sizes(std::vector<std::int64_t>(static_cast<std::size_t>(buckets), elements));
    const double bytes = static_cast<double>(pieces.bytes(0, 1));
    const UniformStep step{bytes * buckets, law, ratio / law.bytes_per_second};
    std::vector<Seconds> ready;
    for (int i = 1; i <= buckets; ++i) ready.emplace_back(i * bytes * step.seconds_per_byte);
    const TransferCurve curve({{1, law.time(1)}, {std::int64_t{1} << 40, law.time(0x1p40)}});
    const BucketTimeline simulated = simulate(schedule_one_each(pieces), pieces, ready, curve);
    const double expected = exposed(step, bytes).count();
    RC_ASSERT(std::abs(simulated.exposed().count() - expected) <= 1e-9 * simulated.end().count());
    // The best size is no worse than any.
    RC_ASSERT(exposed(step, best_bucket_bytes(step)).count() <= expected * (1 + 1e-12));
  });
}

}  // namespace
}  // namespace syslab::parallel
