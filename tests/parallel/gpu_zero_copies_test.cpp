// ZeRO's first stages on a GPU, where products read weights in half precision: passes read the copies that ranks give
// one another, and in full what is read so. Weights that came as copies alone are NaNs meanwhile.
#include <cmath>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/local/local.hpp"
#include "core/error.hpp"
#include "parallel/ddp/data_parallel_step.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "tests/model/model_fixture.hpp"
#include "train/workload.hpp"

namespace syslab::parallel {
namespace {

using comm::Call;
using comm::Communicator;
using comm::Operation;
using device::Stream;
using model::Plane;
using model::Precision;
using model::Transformer;
using model::Variant;

constexpr std::int64_t kRows = 2, kSeq = 32;

// Ranks that are threads of one process on one GPU: what they give one another goes by the host, and while one computes
// the others wait, as each of them is made to have its process alone.
class OnOneGpu final : public Communicator {
 public:
  OnOneGpu(Communicator& host, std::mutex& turn)
      : Communicator(host.rank(), host.size(), host.options()), host_(host), turn_(turn) {}
  std::string_view backend() const override { return "one_gpu"; }
  device::Kind kind() const override { return device::Kind::cuda; }

 protected:
  void queue(std::span<const Call> calls) override {
    for (const Call& call : calls) {
      const comm::Signature& asked = call.signature;
      const auto whole = [&](bool of_all) { return asked.count * (of_all ? size() : 1); };
      const std::int64_t in = whole(asked.operation == Operation::reduce_scatter);
      const std::int64_t out = whole(asked.operation == Operation::all_gather);
      std::vector<std::byte> from(bytes(in, asked.dtype)), to(bytes(out, asked.dtype));
      device::copy_now(from.data(), call.in, from.size(), call.stream);
      const TensorView given(from.data(), asked.dtype, {in}), found(to.data(), asked.dtype, {out});
      elsewhere([&] { exchange(asked, given, found); });
      const bool in_place = asked.operation == Operation::all_reduce || asked.operation == Operation::broadcast;
      device::copy_now(call.out, (in_place ? from : to).data(), to.size(), call.stream);
    }
  }
  void queue_alone(const Call& call) override { comm::copy_alone(call); }
  void wait_until_done(std::uint64_t) override {}
  std::vector<std::string> exchange_now(const Call&, std::string_view text) override {
    std::vector<std::string> texts;
    elsewhere([&] { texts = host_.exchange(text); });
    return texts;
  }
  void spread(std::string_view failure) noexcept override { host_.abort(failure); }

 private:
  static std::size_t bytes(std::int64_t elements, DType dtype) {
    return static_cast<std::size_t>(elements) * size_of(dtype);
  }

  void exchange(const comm::Signature& asked, const TensorView& given, const TensorView& found) {
    const comm::Purpose purpose{asked.kind.view(), asked.label.view()};
    switch (asked.operation) {
      case Operation::all_reduce:
        host_.all_reduce(given, asked.reduction, purpose, {});
        return;
      case Operation::reduce_scatter:
        host_.reduce_scatter(given, found, asked.reduction, purpose, {});
        return;
      case Operation::all_gather:
        host_.all_gather(given, found, purpose, {});
        return;
      case Operation::broadcast:
        host_.broadcast(given, asked.peer, purpose, {});
        return;
      default:
        throw Error(ErrorKind::internal, "no step asks for that");
    }
  }

  // The turn is another's meanwhile.
  template <typename Body>
  void elsewhere(const Body& body) {
    turn_.unlock();
    try {
      body();
    } catch (...) {
      turn_.lock();
      throw;
    }
    turn_.lock();
  }

  Communicator& host_;
  std::mutex& turn_;
};

class GpuZero : public device::GpuTest {
 protected:
  static DataParallelResult run(DataParallelStep& step, const Communicator& ranks, int number, double rate) {
    const auto seed = static_cast<std::uint64_t>(10 * number + ranks.rank());
    const model::Sequences batch = model::random_sequences(model::tiny_config(), kRows, kSeq, seed);
    step.load(0, batch.ids, batch.targets);
    step.run(rate);
    return step.result();
  }

  // `wire`: gradients travel in it, written so by the products that make them, and slices are updated in turn.
  static void expect_copies_are_read(Communicator& ranks, Sharding sharding, Precision precision, Variant variant,
                                     std::optional<DType> wire) {
    SCOPED_TRACE(testing::Message() << to_string(precision) << " " << to_string(variant) << " " << to_string(sharding)
                                    << (wire ? " rounded" : ""));
    const device::OwnedStream compute(kGpu), communication(kGpu);
    const SyncOptions sync{.strategy = Strategy::bucketed, .bucket_mb = {0.05}, .schedule = {}, .wire = wire};
    model::TransformerOptions options{.precision = precision, .variant = variant, .with_moments = false};
    ZeroParameters zero(ranks, model::tiny_config(), options,
                        {.sharding = sharding, .sync = sync, .poison = true, .in_turn = wire.has_value()}, compute,
                        communication);
    options.source = &zero;
    Transformer model(model::tiny_config(), options, compute);
    train::draw_weights(zero.arena(), model.kernels(), 7);
    DataParallelStep step(model, ranks, {.sync = sync, .zero = &zero}, kRows, kSeq, communication);
    for (int number = 0; number < 3; ++number) {
      EXPECT_TRUE(std::isfinite(run(step, ranks, number, 1e-2).loss));
    }
    const DataParallelResult found = run(step, ranks, 9, 0);  // weights stay as they are
    EXPECT_TRUE(std::isfinite(found.loss));
    EXPECT_FALSE(zero.sync().whole());
    step.check();
    EXPECT_TRUE(zero.sync().whole());

    // A rank that has all of these weights computes the same bits of them.
    Transformer whole(model::tiny_config(), {.precision = precision, .variant = variant, .whole_weights = true},
                      compute);
    const model::ParameterLayout& layout = whole.parameters().layout();
    for (int i = 0; i < layout.size(); ++i) {
      const std::vector<double> values = zero.arena().read(Plane::weight, i);
      whole.parameters().write(Plane::weight, i, 0, {values.data(), DType::f64, layout.info(i).shape});
    }
    DataParallelStep plain(whole, ranks, {.sync = sync}, kRows, kSeq, communication);
    EXPECT_EQ(run(plain, ranks, 9, 0).losses, found.losses);
    device::synchronize(communication);
    device::synchronize(compute);
  }
};

TEST_F(GpuZero, ReadsCopiesOfAllRanksAndInFullWhatIsReadSo) {
  for (const Precision precision : {Precision::bf16_amp, Precision::bf16_fused}) {
    for (const Variant variant : {Variant::fused, Variant::eager}) {
      for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
        std::mutex turn;
        comm::run_local(2, {}, [&](Communicator& host) {
          const std::lock_guard mine(turn);
          OnOneGpu ranks(host, turn);
          for (const std::optional<DType> wire : {std::optional<DType>(), std::optional(DType::bf16)}) {
            expect_copies_are_read(ranks, sharding, precision, variant, wire);
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace syslab::parallel
