// A few gradients that no half precision holds, through ZeroSync rounded, and what must come of them: exact, since a
// sum of a few numbers of 8 or 11 bits is.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "parallel/zero/sync.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/planning/pieces_fixture.hpp"

namespace syslab::test {

struct RoundedCase {
  parallel::Sharding sharding = parallel::Sharding::zero1;
  DType wire = DType::bf16;
  std::vector<int> written;  // of the pieces 0 to 3
  int slots = 2, parts = 1;
  std::optional<WaitOf> left_out = {};
  std::vector<int> unused = {};
  std::chrono::milliseconds late_computing{0}, late_communication{0};
};

// Of four pieces in two buckets and one of its own, with padding between them, over two steps.
class RoundedRun {
 public:
  static constexpr std::int64_t kElements = 1032;

  RoundedRun(const RoundedCase& asked, comm::Communicator& ranks, device::Stream compute, device::Stream communication)
      : asked_(asked),
        ranks_(ranks),
        compute_(compute),
        communication_(communication),
        weights_(kElements),
        gradients_(kElements),
        observer_({.waits = all_but(asked.left_out)}),
        sync_(ranks, pieces(), {weights_.data(), DType::f32, {kElements}}, arena(),
              {.sharding = asked.sharding,
               .schedule = parallel::BucketSchedule({2, 3, 4}),
               .rounded = parallel::RoundedGradients{asked.wire, asked.written},
               .slots = asked.slots,
               .poison = true,
               .observer = &observer_},
              communication) {}

  // Elements that are not what they must be, of this rank's slices and both steps.
  int wrong() {
    int found = 0;
    for (int step = 0; step < 2; ++step) {
      for (int part = 0; part < asked_.parts; ++part) pass(step, part);
      for (int bucket = 0; bucket < sync_.buckets(); ++bucket) {
        const TensorView slice = sync_.gradient_slice(bucket);
        const parallel::Stretch own = sync_.shards().slice(bucket, ranks_.rank());
        device::enqueue(compute_, [this, step, slice, own, &found] {
          for (std::int64_t i = 0; i < own.count; ++i) {
            if (!(slice.as<float>()[i] == expected(step, own.first + i))) ++found;
          }
        });
      }
      device::synchronize(compute_);
    }
    sync_.check_bytes();
    return found;
  }

  const parallel::ZeroSync& sync() const { return sync_; }

 private:
  static parallel::GradientPieces pieces() {
    return {{{"p0", 0, 95}, {"p1", 96, 288}, {"p2", 384, 380}, {"p3", 768, 264}}, DType::f32};
  }
  TensorView arena() {
    if (asked_.sharding == parallel::Sharding::zero2) return {};
    return {gradients_.data(), DType::f32, {kElements}};
  }
  bool is_unused(int piece) const { return std::ranges::count(asked_.unused, piece) > 0; }

  static float made(int rank, int step, int part, std::int64_t i) {
    return static_cast<float>(1 + rank) + static_cast<float>((7 * i + 3 * part + 5 * step) % 1021) * 0x1p-13F;
  }
  float rounded(float value) const {
    return asked_.wire == DType::bf16 ? to_float(to_bf16(value)) : to_float(to_f16(value));
  }
  float expected(int step, std::int64_t i) const {
    for (int piece = 0; piece < 4; ++piece) {
      const parallel::Piece& one = sync_.pieces()[piece];
      if (i < one.first || i >= one.end() || is_unused(piece)) continue;
      float sum = 0;
      for (int part = 0; part < asked_.parts; ++part) {
        float of_ranks = 0;
        for (int rank = 0; rank < ranks_.size(); ++rank) of_ranks += rounded(made(rank, step, part, i));
        sum += rounded(of_ranks);
      }
      return sum;
    }
    return 0;
  }

  void pass(int step, int part) {
    device::enqueue(communication_, [late = asked_.late_communication] { std::this_thread::sleep_for(late); });
    sync_.begin(compute_, part > 0);
    for (int piece = 0; piece < 4; ++piece) {
      if (is_unused(piece)) {
        sync_.unused(piece, compute_);
        continue;
      }
      const TensorView place = sync_.gradient(piece, compute_);
      device::enqueue(compute_, [this, step, part, place, first = sync_.pieces()[piece].first] {
        std::this_thread::sleep_for(asked_.late_computing);
        for (std::int64_t i = 0; i < place.elements(); ++i) {
          const float value = made(ranks_.rank(), step, part, first + i);
          if (place.dtype == DType::f32) place.as<float>()[i] = value;
          if (place.dtype == DType::bf16) place.as<bf16>()[i] = to_bf16(value);
          if (place.dtype == DType::f16) place.as<f16>()[i] = to_f16(value);
        }
      });
      sync_.grad_final(piece, compute_);
    }
    part + 1 < asked_.parts ? sync_.finish_part() : sync_.finish(compute_);
  }

  RoundedCase asked_;
  comm::Communicator& ranks_;
  device::Stream compute_, communication_;
  std::vector<float> weights_, gradients_;
  InterferingObserver observer_;
  parallel::ZeroSync sync_;
};

// Elements that came wrong on any rank.
inline int wrong_elements(const RoundedCase& asked, int count) {
  std::atomic<int> wrong = 0;
  with_ranks(count, [&](comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
    wrong += RoundedRun(asked, ranks, compute, communication).wrong();
  });
  return wrong;
}

}  // namespace syslab::test
