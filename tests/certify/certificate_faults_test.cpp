// The power of the certificate: every wait that is left out and every fault that is planted shows. These races are
// meant: a program of its own, which ThreadSanitizer does not run.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "parallel/ddp/gradient_sync.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/parallel/shard_norm_fixture.hpp"

namespace syslab::parallel {
namespace {

using comm::Call;
using comm::Communicator;
using comm::Operation;
using device::Stream;
using test::certificate_difference;
using test::everything;
using test::Interference;
using test::WaitOf;

constexpr auto kEqual = std::nullopt;

// Of all steps.
std::set<WaitOf> waits_of(const CertificateCase& asked) {
  std::set<WaitOf> made;
  const auto note = [&made](const WaitOf& wait) {
    made.insert(wait);
    return true;
  };
  const auto of_rank_0 = [&](int rank) { return rank == 0 ? Interference{.waits = note} : Interference{}; };
  EXPECT_EQ(certificate_difference(asked, 2, of_rank_0), kEqual);
  return made;
}

// Tries with ever longer delays on the stream that is not waited for until the fault shows. The delay makes the wait
// matter: without it the other stream may be late by itself.
bool shows(const CertificateCase& asked, const WaitOf& left_out) {
  const bool late_computing = left_out.wait == Wait::gradients_written || left_out.wait == Wait::weights_updated;
  for (auto delay = std::chrono::microseconds(500); delay < std::chrono::seconds(2); delay *= 2) {
    const auto late = [&](int) {
      auto compute = std::make_shared<std::optional<Stream>>();
      return Interference{.waits = test::all_but(left_out), .before_work = [=](Stream stream) {
                            if (!*compute) *compute = stream;  // the first work that is queued computes
                            if ((stream.handle == (*compute)->handle) == late_computing) test::sleep_in(stream, delay);
                          }};
    };
    if (certificate_difference(asked, 2, late)) return true;
  }
  return false;
}

TEST(CertificateFaults, NoWaitOfAStepCanBeLeftOut) {
  for (const StrategyInfo& info : strategies()) {
    CertificateCase asked = everything(info.strategy);
    asked.steps = 2;
    const GradientPieces pieces = ToyNetwork(asked.model, {}).pieces();
    const int ready = info.overlaps ? schedule_of(asked.sync, pieces).size() : 1;
    std::set<WaitOf> expected{{Wait::gradients_reduced}};
    for (int bucket = 0; bucket < ready; ++bucket) expected.insert({Wait::gradients_written, bucket});
    EXPECT_EQ(waits_of(asked), expected) << to_string(info.strategy);
    for (const WaitOf& wait : expected) {
      EXPECT_TRUE(shows(asked, wait)) << to_string(info.strategy) << " without " << wait;
    }
  }
}

TEST(CertificateFaults, NoWaitOfWeightsFromTheirOwnersCanBeLeftOut) {
  CertificateCase asked = everything(Strategy::bucketed);
  asked.sharding = Sharding::optimizer;
  asked.steps = 2;
  std::set<WaitOf> waits = waits_of(asked);
  for (const WaitOf wait : {WaitOf{Wait::weights_updated}, WaitOf{Wait::weights_gathered}}) {
    EXPECT_EQ(waits.erase(wait), 1U) << wait;
    EXPECT_TRUE(shows(asked, wait)) << "without " << wait;
  }
  asked.sharding = Sharding::none;  // there are no more than the gradients'
  EXPECT_EQ(waits, waits_of(asked));
}

TEST(CertificateFaults, NoWaitOfScatteredGradientsAndGatheredWeightsCanBeLeftOut) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    CertificateCase asked = everything(Strategy::planned);
    asked.sharding = sharding;
    asked.model.alignment = 2;
    asked.steps = 2;
    asked.parts = sharding == Sharding::zero2 ? 2 : 1;
    constexpr int kBuckets = 3;
    std::set<WaitOf> expected{{Wait::gradients_reduced}};
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      for (const Wait wait : {Wait::gradients_written, Wait::weights_updated, Wait::weights_gathered}) {
        expected.insert({wait, bucket});
      }
      // The first stage has no slots. Of the second, bucket 0 of a later part waits for bucket 2, and with it for
      // bucket 1.
      if (sharding == Sharding::zero2 && bucket != 1) expected.insert({Wait::gradient_slot_sent, bucket});
    }
    EXPECT_EQ(waits_of(asked), expected) << to_string(sharding);
    for (const WaitOf& wait : expected) EXPECT_TRUE(shows(asked, wait)) << to_string(sharding) << " without " << wait;
  }
}

// Of copies: what is gathered too early is the copy of the step before, and who reads too early reads that or NaNs.
TEST(CertificateFaults, NoWaitOfGatheredCopiesCanBeLeftOut) {
  CertificateCase asked = everything(Strategy::planned);
  asked.sharding = Sharding::zero1;
  asked.copy = DType::bf16;
  asked.model.alignment = 2;
  asked.steps = 2;
  constexpr int kBuckets = 3;
  for (const Wait kind : {Wait::weights_updated, Wait::weights_gathered}) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      const WaitOf wait{kind, bucket};
      EXPECT_TRUE(shows(asked, wait)) << "without " << wait;
    }
  }
}

enum class Fault {
  none,
  skips_last_bucket,
  averages_again,
  forgets_the_mean,
  sums_twice,
  takes_the_largest,
  leaves_out_first_element,
  leaves_out_last_element,
  gives_last_steps_sum,
  broadcasts_rank_1
};

// A communicator that does one thing wrong and counts as if it did not.
class Faulty final : public Communicator {
 public:
  Faulty(Communicator& inner, Fault fault, int buckets)
      : Communicator(inner.rank(), inner.size(), inner.options()),
        inner_(inner),
        fault_(fault),
        last_("bucket " + std::to_string(buckets - 1)) {}
  std::string_view backend() const override { return "faulty"; }

 protected:
  void queue(std::span<const Call> calls) override {
    for (const Call& call : calls) {
      const comm::Signature& asked = call.signature;
      const TensorView all(call.out, asked.dtype, {asked.count});
      const comm::Purpose purpose{asked.kind.view(), asked.label.view()};
      if (asked.operation == Operation::broadcast) {
        inner_.broadcast(all, fault_ == Fault::broadcasts_rank_1 ? 1 : asked.peer, purpose, call.stream);
      } else {
        all_reduce_wrongly(all, purpose, call.stream);
      }
    }
  }
  void queue_alone(const Call& call) override { comm::copy_alone(call); }
  void wait_until_done(std::uint64_t) override {}
  std::vector<std::string> exchange_now(const Call&, std::string_view text) override { return inner_.exchange(text); }
  void spread(std::string_view failure) noexcept override { inner_.abort(failure); }

 private:
  void all_reduce_wrongly(const TensorView& all, const comm::Purpose& purpose, Stream stream) {
    auto* values = all.as<float>();
    const std::int64_t count = all.elements();
    TensorView sent = all;
    if (fault_ == Fault::leaves_out_first_element) sent = {values + 1, DType::f32, {count - 1}};
    if (fault_ == Fault::leaves_out_last_element) sent = {values, DType::f32, {count - 1}};
    if (fault_ == Fault::skips_last_bucket && purpose.label == last_) return;
    inner_.all_reduce(sent, fault_ == Fault::takes_the_largest ? comm::Reduction::max : comm::Reduction::sum, purpose,
                      stream);
    if (fault_ == Fault::sums_twice) inner_.all_reduce(sent, comm::Reduction::sum, purpose, stream);
    if (fault_ == Fault::averages_again || fault_ == Fault::forgets_the_mean) {
      const auto ranks = static_cast<float>(size());
      device::enqueue(stream, [=, factor = fault_ == Fault::averages_again ? 1 / ranks : ranks] {
        for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
      });
    }
    if (fault_ == Fault::gives_last_steps_sum) {
      std::vector<float>& kept = kept_[std::string(purpose.label)];
      device::enqueue(stream, [&kept, values, count] {
        const std::vector<float> now(values, values + count);
        if (!kept.empty()) std::ranges::copy(kept, values);
        kept = now;
      });
    }
  }

  Communicator& inner_;
  Fault fault_;
  std::string last_;
  std::map<std::string, std::vector<float>> kept_;
};

bool shows(Fault fault, const CertificateCase& asked) {
  const GradientPieces pieces = ToyNetwork(asked.model, {}).pieces();
  const int buckets = schedule_of(asked.sync, pieces).size();
  const auto around = [&](Communicator& ranks) { return std::make_unique<Faulty>(ranks, fault, buckets); };
  return certificate_difference(asked, 2, {}, around).has_value();
}

TEST(CertificateFaults, EveryFaultOfACommunicatorShows) {
  for (const Strategy strategy : {Strategy::naive, Strategy::flat_copy, Strategy::flat_view, Strategy::bucketed}) {
    const CertificateCase asked = everything(strategy);
    EXPECT_FALSE(shows(Fault::none, asked));
    for (const Fault fault : {Fault::skips_last_bucket, Fault::averages_again, Fault::sums_twice,
                              Fault::takes_the_largest, Fault::leaves_out_first_element, Fault::leaves_out_last_element,
                              Fault::gives_last_steps_sum, Fault::broadcasts_rank_1}) {
      EXPECT_TRUE(shows(fault, asked)) << to_string(strategy) << ", fault " << static_cast<int>(fault);
    }
  }
}

TEST(CertificateFaults, AForgottenMeanShows) {
  const CertificateCase asked = everything(Strategy::bucketed);
  EXPECT_TRUE(shows(Fault::forgets_the_mean, asked));
}

TEST(CertificateFaults, PartsThatAreCountedTwiceShow) {
  CertificateCase asked = everything(Strategy::bucketed);
  asked.parts = 2;
  EXPECT_EQ(certificate_difference(asked, 2), kEqual);
  EXPECT_TRUE(shows(Fault::averages_again, asked));
}

TEST(CertificateFaults, ALostContributionOfATiedWeightShows) {
  const CertificateCase asked = everything(Strategy::bucketed);
  const auto lose = [](int rank) {
    return Interference{.contribution = [rank](int layer, int piece, std::span<double> gradient) {
      // The upper of the two layers comes first, and fc1.weight is the last piece.
      if (rank == 1 && layer == 1 && piece == 4) std::ranges::fill(gradient, 0.0);
    }};
  };
  EXPECT_NE(certificate_difference(asked, 2, lose), kEqual);
}

TEST(ShardNorm, NeedsBothOfItsWaits) {
  test::with_ranks(3, [&](Communicator& ranks, Stream compute, Stream communication) {
    const std::vector<float> all = test::drawn_gradients(40);
    const float right = test::shard_norm(ranks, all, {}, compute, communication).norm;
    for (const WaitOf wait : {WaitOf{Wait::norm_computed}, WaitOf{Wait::norms_gathered}}) {
      // Each rank by itself need not show it; all of them must not miss it.
      bool shown = false;
      for (auto late = std::chrono::microseconds(500); !shown && late < std::chrono::seconds(2); late *= 2) {
        const test::NormFound made =
            test::shard_norm(ranks, all, {.left_out = wait, .late = late}, compute, communication);
        for (const std::string& text : ranks.exchange(made.norm == right ? "" : "other")) shown |= !text.empty();
      }
      EXPECT_TRUE(shown) << "without " << wait;
    }
  });
}

}  // namespace
}  // namespace syslab::parallel
