// State divided among owners changes no bit of what is trained, and each rank holds its share of it.
#include "parallel/zero/sharded_optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <future>
#include <numeric>

#include "device/memory_log.hpp"
#include "parallel/grouped_adamw.hpp"
#include "parallel/replicas.hpp"
#include "parallel/state_memory.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/official_models.hpp"
#include "tests/parallel/ranks_fixture.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::certificate_difference;
using test::everything;
using test::with_ranks;

// A framework's AdamW, as the hand-outs' test asks for it.
constexpr adamw::Options kOfficial{.lr = 0.1,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .eps = 1e-8,
                                   .weight_decay = 0.1,
                                   .decay_order = adamw::DecayOrder::before,
                                   .eps_mode = adamw::EpsMode::corrected};

const adamw::Rung& rung() { return adamw::find_rung("naive"); }

// Where a network stands without an optimizer: one step's gradients of rows that all ranks have.
void pass(ToyNetwork& network, const ToyModel& model, int step) {
  const RandomStream random(static_cast<std::uint64_t>(step) + 1000);
  std::uint64_t at = 0;
  ToyBatch batch{.rows = 32};
  for (std::int64_t i = 0; i < 32 * model.layers.front().in; ++i) batch.x.push_back(random.uniform(at++));
  for (std::int64_t i = 0; i < 32 * model.layers.back().out; ++i) batch.y.push_back(random.uniform(at++));
  network.pass(batch, 2, true, true, {.piece_needed = [](int) {}});
}

ShardedOptimizer<GroupedAdamW> sharded(comm::Communicator& ranks, Stream compute, Stream communication) {
  return ShardedOptimizer<GroupedAdamW>(ranks, communication, rung(), compute);
}

// tests/test_sharded_optimizer.py of both years: ten steps, both toy models, the frozen parameters among the others.
// Asked there to a relative 1e-7, here to the bit.
TEST(ShardedOptimizer, TrainsBothToyModelsToTheBitsOfThePlainOptimizer) {
  for (const ToyModel& model : {official_model(), official_tied_model()}) {
    for (const int count : {1, 2, 3}) {
      with_ranks(count, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
        ToyNetwork plain(model, {}), network(model, compute);
        draw_normal(plain, 42);
        draw_normal(network, 42);
        GroupedAdamW alone(rung(), {});
        alone.add_group(plain.parameters(), kOfficial);
        auto optimizer = sharded(ranks, compute, communication);
        optimizer.add_group(network.parameters(), kOfficial);
        const std::vector<float> begun = network.read_weights();
        for (int step = 0; step < 10; ++step) {
          pass(plain, model, step);
          alone.step({});
          pass(network, model, step);
          optimizer.step(compute);
        }
        device::synchronize(communication);
        EXPECT_EQ(network.read_weights(), plain.read_weights()) << count << " ranks";
        const std::vector<float> ended = network.read_weights();
        for (std::size_t i = 0; i < ended.size(); ++i) EXPECT_EQ(is_trained(network, i), ended[i] != begun[i]) << i;
      });
    }
  }
}

TEST(ShardedOptimizer, IsCertifiedOverEveryStrategyOfReducing) {
  for (const StrategyInfo& info : strategies()) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      CertificateCase asked = everything(info.strategy);
      asked.sharding = Sharding::optimizer;
      EXPECT_EQ(certificate_difference(asked, ranks), std::nullopt) << to_string(info.strategy) << " on " << ranks;
    }
  }
}

TEST(ShardedOptimizer, HoldsAsManyBytesAsTheFormulaSays) {
  const ToyModel model = official_model();
  for (const int count : {1, 2, 3, 7}) {
    std::vector<std::size_t> bytes(static_cast<std::size_t>(count));
    std::int64_t trained = 0, largest = 0;
    with_ranks(count, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
      ToyNetwork network(model, compute);
      auto optimizer = sharded(ranks, compute, communication);
      optimizer.add_group(network.parameters(), kOfficial);
      device::synchronize(compute);
      const auto rank = static_cast<std::size_t>(ranks.rank());
      bytes[rank] = optimizer.state_bytes();
      EXPECT_EQ(bytes[rank], 8 * static_cast<std::size_t>(optimizer.owners().loads()[rank]));
      if (rank > 0) return;
      for (const ParameterOwners::Owned& one : optimizer.owners().all()) {
        if (one.owner < 0) continue;
        trained += one.parameter.weight.elements();
        largest = std::max(largest, one.parameter.weight.elements());
      }
    });
    const double share = state_bytes(static_cast<double>(trained), count, Sharding::optimizer, kFp32State).moments;
    for (const std::size_t one : bytes) EXPECT_LE(std::abs(static_cast<double>(one) - share), 8.0 * largest);
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}), 8 * static_cast<std::size_t>(trained));
  }
}

TEST(ShardedOptimizer, TakesTheMemoryThatItCounts) {
  std::vector<float> weights(1000), gradients(1000);
  const OptimizedParameter one{
      .name = "w", .weight = {weights.data(), DType::f32, {1000}}, .gradient = {gradients.data(), DType::f32, {1000}}};
  const std::int64_t before = device::MemoryLog::global().live_bytes();
  GroupedAdamW optimizer(rung(), {});
  optimizer.add_group(std::span(&one, 1), kOfficial);
  const std::int64_t taken = device::MemoryLog::global().live_bytes() - before;
  EXPECT_EQ(optimizer.state_bytes(), 8000U);
  EXPECT_GE(taken, 8000);
  EXPECT_LE(taken, 8000 + 1024);  // and a step's numbers
}

TEST(ShardedOptimizer, TakesGroupsWithOptionsOfTheirOwnInTheMiddleOfTraining) {
  const ToyModel model = official_model();
  adamw::Options other = kOfficial;
  other.lr = 0.01;
  other.weight_decay = 0;
  with_ranks(2, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
    const auto train = [&](ToyNetwork& network, auto& optimizer, Stream stream) {
      draw_normal(network, 7);
      const std::vector<OptimizedParameter> all = network.parameters();
      const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
      std::vector<OptimizedParameter> first(all.begin(), all.end() - half), second(all.end() - half, all.end());
      // One that is to be trained later is frozen until then.
      first.push_back({second[0].name, second[0].weight, {}});
      optimizer.add_group(first, kOfficial);
      for (int step = 0; step < 6; ++step) {
        if (step == 2) optimizer.add_group(second, other);
        pass(network, model, step);
        optimizer.step(stream);
      }
    };
    ToyNetwork plain(model, {}), network(model, compute);
    GroupedAdamW alone(rung(), {});
    train(plain, alone, {});
    auto optimizer = sharded(ranks, compute, communication);
    train(network, optimizer, compute);
    device::synchronize(communication);
    EXPECT_EQ(network.read_weights(), plain.read_weights());
    // Nobody owns both groups alone.
    const std::span<const std::int64_t> loads = optimizer.owners().loads();
    EXPECT_GT(std::min(loads[0], loads[1]), 0);
  });
}

TEST(ShardedOptimizer, ZeroesGradientsThatOthersOwnAndCallsTheClosure) {
  with_ranks(3, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    const ToyModel model = official_model();
    ToyNetwork network(model, compute);
    draw_normal(network, 1);
    auto optimizer = sharded(ranks, compute, communication);
    optimizer.add_group(network.parameters(), kOfficial);
    const auto closure = [&] {
      pass(network, model, 0);
      return 3.5;
    };
    EXPECT_EQ(optimizer.step(compute, closure), 3.5);
    const auto sum = [&] {
      device::synchronize(compute);
      const TensorView gradients = network.gradients();
      const auto* begin = gradients.as<float>();
      return std::accumulate(begin, begin + gradients.elements(), 0.0,
                             [](double all, float one) { return all + std::abs(one); });
    };
    EXPECT_GT(sum(), 0);
    optimizer.zero_gradients(compute);
    EXPECT_EQ(sum(), 0);
    device::synchronize(communication);
  });
}

TEST(ShardedOptimizer, SendsEveryTrainedWeightOnceAndNeighboursOfOneOwnerTogether) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    const ToyModel model = official_tied_model();
    ToyNetwork network(model, compute);
    draw_normal(network, 1);
    auto optimizer = sharded(ranks, compute, communication);
    optimizer.add_group(network.parameters(), kOfficial);
    pass(network, model, 0);
    optimizer.step(compute);
    device::synchronize(communication);
    device::synchronize(compute);
    const auto sent = ranks.counters().total(comm::Operation::broadcast, "parameter");
    EXPECT_EQ(sent.payload_bytes, 4U * (100 + 500 + 500 + 250));
  });
  with_ranks(2, [](comm::Communicator& ranks, Stream, Stream) {
    std::vector<float> weights(8), gradients(8);
    std::vector<OptimizedParameter> parameters;
    for (const auto& [first, count] : {std::pair(0, 4), std::pair(4, 1), std::pair(5, 1), std::pair(6, 2)}) {
      parameters.push_back({.name = std::to_string(first),
                            .weight = {weights.data() + first, DType::f32, {count}},
                            .gradient = {gradients.data() + first, DType::f32, {count}}});
    }
    ParameterOwners owners(ranks, {});
    owners.add(parameters, "");
    owners.broadcast({});
    const auto sent = ranks.counters().total(comm::Operation::broadcast, "parameter");
    EXPECT_EQ(sent.calls, 2U);  // the large one, and the three small ones behind it
    EXPECT_EQ(sent.payload_bytes, 32U);
  });
}

TEST(ShardedOptimizer, LeavesRanksWithoutAnythingWhereThereAreFewParameters) {
  with_ranks(4, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    const ToyModel model{.layers = {{3, 2}, {2, 1}}};
    ToyNetwork plain(model, {}), network(model, compute);
    draw_normal(plain, 5);
    draw_normal(network, 5);
    GroupedAdamW alone(rung(), {});
    alone.add_group(plain.parameters(), kOfficial);
    auto optimizer = sharded(ranks, compute, communication);
    optimizer.add_group(network.parameters(), kOfficial);
    EXPECT_EQ(optimizer.state_bytes() == 0, ranks.rank() >= 2);
    for (int step = 0; step < 3; ++step) {
      pass(plain, model, step);
      alone.step({});
      pass(network, model, step);
      optimizer.step(compute);
    }
    device::synchronize(communication);
    EXPECT_EQ(network.read_weights(), plain.read_weights());
  });
}

TEST(ShardedOptimizer, RefusesAGroupThatRanksDoNotShare) {
  const auto with_group = [](const std::function<void(ParameterOwners&, int rank, OptimizedParameter)>& body) {
    return comm::try_local(2, {.limit = std::chrono::seconds(20)}, [&](comm::Communicator& ranks) {
      std::vector<float> weights(4), gradients(4);
      ParameterOwners owners(ranks, {});
      body(owners, ranks.rank(),
           {.name = "w", .weight = {weights.data(), DType::f32, {4}}, .gradient = {gradients.data(), DType::f32, {4}}});
    });
  };
  const auto other_names = with_group([](ParameterOwners& owners, int rank, OptimizedParameter one) {
    one.name += std::to_string(rank);
    owners.add(std::span(&one, 1), "");
  });
  for (const auto& error : other_names) EXPECT_TRUE(test::threw(error, "'w0'", "'w1'", "rank 1"));
  const auto other_options = with_group([](ParameterOwners& owners, int rank, const OptimizedParameter& one) {
    owners.add(std::span(&one, 1), rank == 0 ? "lr 1" : "lr 2");
  });
  for (const auto& error : other_options) EXPECT_TRUE(test::threw(error, "lr 1", "lr 2"));
  const auto twice = with_group([](ParameterOwners& owners, int, const OptimizedParameter& one) {
    owners.add(std::span(&one, 1), "");
    owners.add(std::span(&one, 1), "");
  });
  for (const auto& error : twice) EXPECT_TRUE(test::threw(error, "'w' is in group 0 already"));
  // A fault of one rank's own ends the others' waiting.
  const auto one_misfit = with_group([](ParameterOwners& owners, int rank, OptimizedParameter one) {
    if (rank == 1) one.gradient.shape = {3};
    owners.add(std::span(&one, 1), "");
  });
  for (const auto& error : one_misfit) EXPECT_TRUE(test::threw(error, "4 weights", "3 gradients"));
}

TEST(ShardedOptimizer, RefusesMemoryThatIsThereAlready) {
  std::vector<float> weights(8), gradients(8);
  const auto at = [&](std::string name, int first, bool frozen) {
    OptimizedParameter one{.name = std::move(name), .weight = {weights.data() + first, DType::f32, {2}}};
    if (!frozen) one.gradient = {gradients.data() + first, DType::f32, {2}};
    return one;
  };
  const auto added = [](std::vector<std::vector<OptimizedParameter>> groups) {
    return comm::try_local(1, {}, [&](comm::Communicator& ranks) {
      ParameterOwners owners(ranks, {});
      for (const auto& group : groups) owners.add(group, "");
    });
  };
  EXPECT_TRUE(test::threw(added({{at("w", 0, false), at("v", 1, false)}})[0], "'v' is in group 0 already, as 'w'"));
  // Of the same memory it is the same parameter: tied, or frozen until now.
  EXPECT_EQ(added({{at("w", 0, false), at("w", 0, false), at("v", 2, false)}})[0], nullptr);
  EXPECT_EQ(added({{at("w", 0, true), at("v", 2, false)}, {at("w", 0, false)}})[0], nullptr);
}

// Broadcasts, of which the second cannot be queued; the first ends when it may.
class BreaksAtTheSecond final : public comm::Communicator {
 public:
  explicit BreaksAtTheSecond(comm::Communicator& inner)
      : Communicator(inner.rank(), inner.size(), inner.options()), inner_(inner) {}
  void let_end() { may_end_.set_value(); }
  bool first_ended() const { return first_ended_; }
  std::string_view backend() const override { return "breaks"; }

 protected:
  void queue(std::span<const comm::Call> calls) override {
    if (++calls_ == 2) throw Error(ErrorKind::comm, "no second broadcast");
    device::enqueue(calls[0].stream, [this] {
      may_end_.get_future().wait_for(std::chrono::seconds(10));
      first_ended_ = true;
    });
  }
  void queue_alone(const comm::Call& call) override { comm::copy_alone(call); }
  void wait_until_done(std::uint64_t) override {}
  std::vector<std::string> exchange_now(const comm::Call&, std::string_view text) override {
    return inner_.exchange(text);
  }
  void spread(std::string_view failure) noexcept override { inner_.abort(failure); }

 private:
  comm::Communicator& inner_;
  std::promise<void> may_end_;
  std::atomic<bool> first_ended_ = false;
  int calls_ = 0;
};

// Not only for the host: memory of a GPU goes to work that is queued later.
TEST(ShardedOptimizer, LeavesWhatWasSentBeforeWhatIsComputedLaterWhereABroadcastFails) {
  std::barrier<> both_are_here(2);  // not the ranks' own, out of which the first one's failure would throw the other
  with_ranks(2, [&](comm::Communicator& ranks, Stream compute, Stream communication) {
    std::vector<float> weights(4), gradients(4);
    std::vector<OptimizedParameter> parameters;
    for (const int first : {0, 2}) {
      parameters.push_back({.name = std::to_string(first),
                            .weight = {weights.data() + first, DType::f32, {2}},
                            .gradient = {gradients.data() + first, DType::f32, {2}}});
    }
    std::atomic<bool> seen = false;
    BreaksAtTheSecond breaking(ranks);
    ParameterOwners owners(breaking, communication);
    owners.add(parameters, "");
    both_are_here.arrive_and_wait();
    EXPECT_THROW(owners.broadcast(compute), Error);
    EXPECT_FALSE(breaking.first_ended()) << "the host waited for what others may never send";
    device::enqueue(compute, [&] { seen = breaking.first_ended(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to be wrong in
    breaking.let_end();
    device::synchronize(compute);
    EXPECT_TRUE(seen);
    EXPECT_TRUE(ranks.failed()) << "the others would wait";
  });
}

}  // namespace
}  // namespace syslab::parallel
