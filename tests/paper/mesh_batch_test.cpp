// communication_accounting (c) and (d): from which batch on a mesh of 16 × 4 devices is bound by compute.
#include "paper/mesh_batch.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/paper/machine.hpp"

namespace syslab::parallel {
namespace {

constexpr Mesh kMesh{.x = 16, .y = 4, .x_links = 2, .y_links = 1};
constexpr std::int64_t kDModel = 16384, kDFf = 53248;

TEST(MeshBatch, BothReadingsOfTheHandOut) {
  EXPECT_NEAR(kMachine.flops_per_second / kMachine.link_bytes_per_second, 2555.6, 0.05);  // α
  const double overlapped = least_tokens(kMesh, kDFf, kMachine, Axes::overlapped).value();
  EXPECT_NEAR(overlapped, 20444.4, 0.05);
  EXPECT_NEAR(overlapped / 64, 319.4, 0.05);
  EXPECT_EQ(least_whole_tokens(kMesh, kDFf, kMachine, Axes::overlapped), 20445);
  const double serial = least_tokens(kMesh, kDFf, kMachine, Axes::serial).value();
  EXPECT_NEAR(serial / 64, 395.3, 0.05);
  EXPECT_NEAR(serial / 16, 1581, 0.5);
  EXPECT_EQ(least_whole_tokens(kMesh, kDFf, kMachine, Axes::serial), 25302);
}

TEST(MeshBatch, FreeChoiceOfBothAxes) {
  const FreeSplit overlapped = best_free_split(kMesh, kDFf, kMachine, Axes::overlapped);
  EXPECT_NEAR(overlapped.tokens / 64, 61.3, 0.05);
  const FreeSplit serial = best_free_split(kMesh, kDFf, kMachine, Axes::serial);
  EXPECT_NEAR(serial.tokens / 64, 245.3, 0.05);
  EXPECT_NEAR(serial.tokens, 15699, 1);
  EXPECT_DOUBLE_EQ(serial.x, std::sqrt(serial.tokens / kDFf * 2 / 1 * 64));
  EXPECT_DOUBLE_EQ(serial.x * serial.y, 64);
}

TEST(MeshBatch, NoNeighbourBeatsTheFreeChoiceAndAnyOtherIsBeaten) {
  for (const Axes axes : {Axes::overlapped, Axes::serial}) {
    const double best = best_free_split(kMesh, kDFf, kMachine, axes).tokens;
    EXPECT_NEAR(free_tokens_by_search(kMesh, kDFf, kMachine, axes), best, 1e-6 * best);
    Mesh more_links = kMesh;
    more_links.y_links = 2;
    EXPECT_LT(free_tokens_by_search(more_links, kDFf, kMachine, axes), 0.51 * best);
  }
}

TEST(MeshBatch, WholeSplitsOfSixtyFourDevices) {
  const std::vector<WholeSplit> splits = whole_splits(kMesh, kDFf, kMachine);
  ASSERT_EQ(splits.size(), 7U);  // 1, 2, 4, …, 64
  EXPECT_EQ(splits[3].x, 8);
  EXPECT_EQ(splits[3].serial, 16594);
  EXPECT_EQ(splits[2].overlapped, 5112);
  // 32 devices on the tensor axis would want F ≥ 81,778.
  EXPECT_EQ(splits[1].overlapped, std::nullopt);
  EXPECT_EQ(splits[1].serial, std::nullopt);
  for (const WholeSplit& one : splits) {
    EXPECT_EQ(one.x * one.y, 64);
    EXPECT_GE(one.serial.value_or(1 << 30), 16594);
    EXPECT_GE(one.overlapped.value_or(1 << 30), 5112);
  }
}

TEST(MeshBatch, TheLeastBatchMakesTimesEqual) {
  const double serial = least_tokens(kMesh, kDFf, kMachine, Axes::serial).value();
  const MeshTimes times = mesh_times(kMesh, serial, kDModel, kDFf, kMachine);
  EXPECT_NEAR(times.compute / (times.fsdp + times.tensor), 1, 1e-12);
  const double overlapped = least_tokens(kMesh, kDFf, kMachine, Axes::overlapped).value();
  const MeshTimes alike = mesh_times(kMesh, overlapped, kDModel, kDFf, kMachine);
  EXPECT_NEAR(alike.compute / alike.fsdp, 1, 1e-12);
  EXPECT_LT(alike.tensor, alike.fsdp);
}

TEST(MeshBatch, TimesAreThoseOfTheHeader) {
  const MeshTimes times = mesh_times(kMesh, 20480, kDModel, kDFf, kMachine);
  EXPECT_DOUBLE_EQ(times.compute.count(), 4.0 * 20480 * kDModel * kDFf / (64 * 4.6e14));
  EXPECT_DOUBLE_EQ(times.fsdp.count(), 4.0 * kDModel * kDFf / (4 * 1.8e11 * 2));
  EXPECT_DOUBLE_EQ(times.tensor.count(), 4.0 * 20480 * kDModel / (16 * 1.8e11));
}

TEST(MeshBatch, TheSearchFindsWhatTheFormulaSays) {
  for (const Axes axes : {Axes::overlapped, Axes::serial}) {
    for (const std::int64_t y : {1, 2, 4, 16, 20, 21, 32}) {
      Mesh mesh = kMesh;
      mesh.y = y;
      EXPECT_EQ(least_tokens_by_search(mesh, kDFf, kMachine, axes), least_whole_tokens(mesh, kDFf, kMachine, axes))
          << y;
      EXPECT_EQ(tokens_of_rounding(mesh, kDFf, kMachine, axes), 0) << y;
    }
  }
}

// Where the bound is a whole number, that number is the answer, and not the next.
TEST(MeshBatch, ABoundThatIsWholeCounts) {
  const Machine machine{.flops_per_second = 3e14, .link_bytes_per_second = 3e11};  // α = 1000
  const Mesh mesh{.x = 7, .y = 1};
  EXPECT_EQ(least_whole_tokens(mesh, 4000, machine, Axes::overlapped), 7000);
  EXPECT_EQ(least_tokens_by_search(mesh, 4000, machine, Axes::overlapped), 7000);
  EXPECT_EQ(least_whole_tokens({.x = 7, .y = 4}, 4000, machine, Axes::overlapped), 7000);  // F = Y·α
  EXPECT_EQ(least_tokens_by_search({.x = 7, .y = 4}, 4000, machine, Axes::overlapped), 7000);
  EXPECT_EQ(least_whole_tokens({.x = 7, .y = 4}, 4000, machine, Axes::serial), std::nullopt);
}

// What part (d) proposes: halves of bytes, more links, a gather that serves more tokens.
TEST(MeshBatch, LeversLowerTheBatchAsTheyShould) {
  const double before = least_tokens(kMesh, kDFf, kMachine, Axes::overlapped).value();
  Mesh fp8 = kMesh, links = kMesh, reused = kMesh;
  fp8.weight_bytes = 1;
  links.x_links = 4;
  reused.micro_batches_per_gather = 8;
  EXPECT_DOUBLE_EQ(least_tokens(fp8, kDFf, kMachine, Axes::overlapped).value(), before / 2);
  EXPECT_DOUBLE_EQ(least_tokens(links, kDFf, kMachine, Axes::overlapped).value(), before / 2);
  EXPECT_DOUBLE_EQ(least_tokens(reused, kDFf, kMachine, Axes::overlapped).value(), before / 8);
  EXPECT_EQ(least_tokens_by_search(fp8, kDFf, kMachine, Axes::serial),
            least_whole_tokens(fp8, kDFf, kMachine, Axes::serial));
}

TEST(MeshBatch, RefusesAMeshOfNothing) {
  EXPECT_THROW(validate(Mesh{.x = 0}), Error);
  EXPECT_THROW(validate(Mesh{.weight_bytes = 0}), Error);
  EXPECT_NO_THROW(validate(kMesh));
}

}  // namespace
}  // namespace syslab::parallel
