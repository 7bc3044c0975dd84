// Plans and forecasts against numbers that were worked out apart from this code.
#include "planning/planner.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/parameters.hpp"
#include "planning/uniform_model.hpp"
#include "tests/model/refusal.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::parallel {
namespace {

using test::pieces_of_sizes;
using test::refuses;

Seconds ms(double value) { return Seconds(value * 1e-3); }

// All-reduce between two H200s as it was measured, less the 8 µs that an isolated call costs and a queued one does not.
TransferCurve measured() {
  std::vector<TransferPoint> points;
  for (const auto& [bytes, time] : std::initializer_list<std::pair<double, double>>{{1024, 0.026},
                                                                                    {262144, 0.027},
                                                                                    {1e6, 0.0275},
                                                                                    {4194304, 0.0466},
                                                                                    {1e7, 0.0661},
                                                                                    {16777216, 0.0880},
                                                                                    {67108864, 0.262},
                                                                                    {1e8, 0.370},
                                                                                    {268435456, 0.918},
                                                                                    {1e9, 3.086},
                                                                                    {1073741824, 3.290}}) {
    points.push_back({static_cast<std::int64_t>(bytes), ms(time - 0.008)});
  }
  return TransferCurve(std::move(points));
}

GradientPieces in_ready_order(const char* name) {
  const model::ParameterLayout layout(model::find_model(name));
  std::vector<Piece> pieces;
  for (const int index : layout.arena_order()) {
    pieces.push_back({layout.info(index).name, layout.offset(index), layout.info(index).shape.elements()});
  }
  return {std::move(pieces), DType::f32};
}

// A backward pass that takes as long for every byte.
std::vector<Seconds> uniform_ready(const GradientPieces& pieces, Seconds backward) {
  std::vector<Seconds> ready;
  for (int piece = 0; piece < pieces.size(); ++piece) {
    ready.push_back(backward * (static_cast<double>(pieces.bytes(0, piece + 1)) / static_cast<double>(pieces.bytes())));
  }
  return ready;
}

double exposed_ms(const GradientPieces& pieces, const BucketSchedule& schedule, Seconds backward) {
  return simulate(schedule, pieces, uniform_ready(pieces, backward), measured()).exposed().count() * 1e3;
}

TEST(Planner, ForecastsTheHandoutsModelAsWorkedOutByHand) {
  const GradientPieces xl26 = in_ready_order("xl26");
  EXPECT_NEAR(exposed_ms(xl26, schedule_one_each(xl26), ms(29)), 23.9, 0.5);
  EXPECT_NEAR(exposed_ms(xl26, schedule_by_cap(xl26, 100'000'000), ms(29)), 21.2, 0.5);
  EXPECT_NEAR(exposed_ms(xl26, schedule_by_cap(xl26, 1'000'000'000), ms(29)), 15.0, 0.5);
  EXPECT_NEAR(exposed_ms(xl26, schedule_flat(xl26), ms(29)), 41.8, 0.2);

  const Forecast forecast = schedule_buckets(xl26, uniform_ready(xl26, ms(29)), measured());
  EXPECT_NEAR(forecast.timeline.exposed().count() * 1e3, 13.3, 0.3);
  EXPECT_NEAR((forecast.bound - ms(29)).count() * 1e3, 13.1, 0.3);
  EXPECT_LE(forecast.schedule.size(), 20);
  EXPECT_LE(forecast.timeline.end(), forecast.best_end + ms(0.1));
  EXPECT_GE(forecast.best_end, forecast.bound);
}

TEST(Planner, ExposesTheLastBucketAloneWhereComputingIsTheBottleneck) {
  const GradientPieces xl26 = in_ready_order("xl26");
  const Forecast forecast = schedule_buckets(xl26, uniform_ready(xl26, ms(60)), measured(), ms(0));
  const BucketTimes& last = forecast.timeline.buckets.back();
  EXPECT_EQ(last.start, last.ready);
  EXPECT_EQ(forecast.schedule.end(forecast.schedule.size() - 2), xl26.size() - 1);  // the embedding travels alone
  EXPECT_NEAR(forecast.timeline.exposed().count() * 1e3, 0.37, 0.03);
}

TEST(Planner, TakesFewerBucketsWhereTheyCostNothing) {
  const GradientPieces pieces = pieces_of_sizes({1000, 1000, 1000, 1000});
  const TransferCurve curve({{1, ms(0.001)}, {1'000'000, ms(1.001)}});  // 1 µs, and 4 µs a piece
  const std::vector<Seconds> ready{ms(1), ms(2), ms(3), ms(4)};
  const Forecast sharp = schedule_buckets(pieces, ready, curve, ms(0));
  EXPECT_EQ(sharp.schedule, BucketSchedule({3, 4}));  // of those that end first, the one with the fewest buckets
  EXPECT_NEAR(sharp.timeline.exposed().count(), 5e-6, 1e-9);
  EXPECT_EQ(schedule_buckets(pieces, ready, curve).schedule, schedule_flat(pieces));  // 17 µs, within the usual 100
}

TEST(Planner, CountsAPieceAsFinalWithThoseAheadOfIt) {
  const GradientPieces pieces = pieces_of_sizes({1, 1});
  const TransferCurve curve({{1, ms(1)}});
  const std::vector<Seconds> ready{ms(5), ms(2)};
  EXPECT_EQ(simulate(schedule_one_each(pieces), pieces, ready, curve).backward_end(), ms(5));
  EXPECT_TRUE(
      refuses([&] { simulate(schedule_flat(pieces), pieces, std::vector{ms(1)}, curve); }, "1 times", "2 grad"));
  EXPECT_TRUE(refuses([&] { simulate(BucketSchedule({3}), pieces, ready, curve); }, "a schedule of 3", "with 2"));
}

TEST(Planner, PlansForTheStepThatIsLaterThanMost) {
  const std::vector<std::vector<Seconds>> steps{{ms(1), ms(9)}, {ms(3), ms(7)}, {ms(2), ms(8)}, {ms(4), ms(6)}};
  EXPECT_EQ(ready_quantile(steps, 0.5), (std::vector{ms(2), ms(7)}));
  EXPECT_EQ(ready_quantile(steps), (std::vector{ms(4), ms(9)}));
  EXPECT_EQ(ready_quantile(steps, 0), (std::vector{ms(1), ms(6)}));
  EXPECT_TRUE(refuses([] { ready_quantile({}); }, "one step at least"));
}

TEST(TransferCurve, GoesStraightBetweenPointsAndInProportionBeyond) {
  const TransferCurve curve({{100, Seconds(2)}, {300, Seconds(6)}, {50, Seconds(1.5)}});
  EXPECT_EQ(curve.time(1), Seconds(1.5));
  EXPECT_EQ(curve.time(100), Seconds(2));
  EXPECT_DOUBLE_EQ(curve.time(200).count(), 4);
  EXPECT_DOUBLE_EQ(curve.time(400).count(), 8);
  EXPECT_DOUBLE_EQ(curve.best_bytes_per_second(), 50);
  EXPECT_DOUBLE_EQ(TransferCurve({{100, Seconds(2)}}).time(200).count(), 4);
  EXPECT_TRUE(refuses([] { TransferCurve({}); }, "no measured"));
  EXPECT_TRUE(refuses([] { TransferCurve({{1, Seconds(0)}}); }, "1 bytes in 0 s"));
  EXPECT_TRUE(refuses([] { TransferCurve({{8, Seconds(1)}, {8, Seconds(2)}}); }, "8 bytes are given twice"));
}

TEST(AffineTransfer, IsFoundAgainInItsOwnPointsAndMeansRelativeErrors) {
  const AffineTransfer law{Seconds(20e-6), 325e9};
  std::vector<TransferPoint> points;
  for (double bytes = 1024; bytes <= 0x1p32; bytes *= 2) {
    points.push_back({static_cast<std::int64_t>(bytes), law.time(bytes)});
  }
  const AffineTransfer found = fit_affine(points);
  EXPECT_NEAR(found.overhead.count(), 20e-6, 1e-12);
  EXPECT_NEAR(found.bytes_per_second, 325e9, 1e3);
  // By relative error the small size holds the overhead where it was: by absolute error the large one would move it.
  points.back().time *= 1.1;
  EXPECT_NEAR(fit_affine(points).overhead.count(), 20e-6, 0.2e-6);
  // The line through both would begin below zero; without an overhead the best slope is Σy/Σy² for y = bytes/time.
  const AffineTransfer cut = fit_affine(std::vector<TransferPoint>{{1000, Seconds(1)}, {2000, Seconds(3)}});
  EXPECT_EQ(cut.overhead, Seconds(0));
  EXPECT_NEAR(cut.bytes_per_second, 866.667, 1e-3);
  EXPECT_TRUE(refuses([] { fit_affine(std::vector<TransferPoint>{{5, Seconds(1)}}); }, "two different sizes"));
  EXPECT_TRUE(refuses([] { fit_affine(std::vector<TransferPoint>{{5, Seconds(2)}, {9, Seconds(1)}}); }, "grow"));
}

TEST(AffineTransfer, OfTheMeasuredCurveIsThePublishedFit) {
  std::vector<TransferPoint> points;
  const TransferCurve curve = measured();
  for (const TransferPoint& point : curve.points()) {
    if (point.bytes >= 4'000'000) points.push_back({point.bytes, point.time + ms(0.008)});
  }
  const AffineTransfer found = fit_affine(points);
  EXPECT_NEAR(found.overhead.count() * 1e6, 34, 1);
  EXPECT_NEAR(found.bytes_per_second / 1e9, 313, 2);
}

// ddp_bucketed_benchmarking (b): overhead = s/(n_b·w) + n_b·o where computing a bucket takes what sending it takes.
TEST(UniformModel, GivesTheHandoutsBestBucketSizes) {
  const auto handout = [](double bytes, double o, double w) { return UniformStep{bytes, {Seconds(o), w}, 1 / w}; };
  const UniformStep nvlink = handout(7'992'940'800, 35e-6, 318e9), pcie = handout(13'627'238'400, 30e-6, 36e9);
  EXPECT_NEAR(best_bucket_bytes(nvlink) / 1e6, 298, 1);
  EXPECT_NEAR(nvlink.bytes / best_bucket_bytes(nvlink), 27, 0.5);
  EXPECT_NEAR(exposed(nvlink, best_bucket_bytes(nvlink)).count() * 1e3, 1.9, 0.05);
  EXPECT_NEAR(best_bucket_bytes(pcie) / 1e6, 121, 1);
  EXPECT_NEAR(pcie.bytes / best_bucket_bytes(pcie), 112, 1);
  EXPECT_NEAR(exposed(pcie, best_bucket_bytes(pcie)).count() * 1e3, 6.7, 0.05);
  const double buckets = 64, bytes = nvlink.bytes / buckets;
  EXPECT_NEAR(exposed(nvlink, bytes).count(), bytes / 318e9 + buckets * 35e-6, 1e-9);
}

TEST(UniformModel, GivesTheTableOfTheAccountingPage) {
  const double w = 325e9;
  const auto xl25 = [w](double ratio) { return UniformStep{7'992'940'800, {Seconds(20e-6), w}, ratio / w}; };
  const auto best_ms = [](const UniformStep& step) { return exposed(step, best_bucket_bytes(step)).count() * 1e3; };
  EXPECT_NEAR(best_bucket_bytes(xl25(0.7)) / 1e6, 272, 1);
  EXPECT_NEAR(best_ms(xl25(0.7)), 8.6, 0.05);
  EXPECT_NEAR(best_bucket_bytes(xl25(1)) / 1e6, 228, 1);
  EXPECT_NEAR(best_ms(xl25(1)), 1.40, 0.01);
  EXPECT_NEAR(best_bucket_bytes(xl25(1.2)) / 1e6, 32, 1);
  EXPECT_NEAR(best_ms(xl25(1.2)), 0.12, 0.01);
  EXPECT_NEAR(best_bucket_bytes(xl25(1.5)) / 1e6, 13, 1);
  EXPECT_NEAR(best_ms(xl25(1.5)), 0.06, 0.005);
  EXPECT_NEAR(exposed(xl25(0.7), 25 * 0x1p20).count() * 1e3, 13.5, 0.1);
  EXPECT_NEAR(exposed(xl25(1), 1e9).count() * 1e3, 3.2, 0.1);
  EXPECT_NEAR(exposed(xl25(1.5), xl25(1).bytes).count() * 1e3, 24.6, 0.1);
  EXPECT_TRUE(refuses([&] { exposed(xl25(1), 1e10); }, "10000000000 bytes"));
}

TEST(BucketTimeline, IsBusyWhileABucketIsOnItsWay) {
  BucketTimeline timeline;
  timeline.buckets = {{.ready = ms(1), .start = ms(1), .end = ms(3)}, {.ready = ms(4), .start = ms(5), .end = ms(8)}};
  EXPECT_DOUBLE_EQ(timeline.busy().count(), ms(5).count());
  EXPECT_DOUBLE_EQ(timeline.exposed().count(), ms(4).count());
}

}  // namespace
}  // namespace syslab::parallel
