#include "certify/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "device/buffer.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/ddp/gradient_sync.hpp"
#include "parallel/moves.hpp"
#include "parallel/replicas.hpp"
#include "parallel/zero/sharded_optimizer.hpp"
#include "parallel/zero/sync.hpp"

namespace syslab::parallel {
namespace {

constexpr double kRate = kCertificateRate;

// The first half of the rows use the rare parameter.
bool use_rare(const CertificateCase& asked, const RowBlock& rows) {
  return rows.first < asked.rows / 2 && rows.count > 0;
}

}  // namespace

ToyBatch certificate_batch(const CertificateCase& asked, int step, const RowBlock& block, const RowBlock& own) {
  const RandomStream x = RandomStream::derive(asked.seed, "certificate", "inputs", std::to_string(step));
  const RandomStream y = RandomStream::derive(asked.seed, "certificate", "targets", std::to_string(step));
  const RandomStream rare = RandomStream::derive(asked.seed, "certificate", "rare", std::to_string(step));
  const std::int64_t in = asked.model.layers.front().in, out = asked.model.layers.back().out;
  ToyBatch batch{.rows = block.count};
  for (std::int64_t i = block.first * in; i < (block.first + block.count) * in; ++i) {
    batch.x.push_back(static_cast<double>(x.bits(static_cast<std::uint64_t>(i)) % 3) - 1);
  }
  for (std::int64_t i = block.first * out; i < (block.first + block.count) * out; ++i) {
    batch.y.push_back(static_cast<double>(y.bits(static_cast<std::uint64_t>(i)) % 5) - 2);
  }
  if (!use_rare(asked, own)) return batch;
  // Not empty for a rank that uses the parameter, even in a part without such rows.
  batch.rare.assign(static_cast<std::size_t>(std::max<std::int64_t>(block.count, 1) * kRareElements), 0);
  for (std::int64_t i = 0; i < block.count * kRareElements; ++i) {
    const std::int64_t at = block.first * kRareElements + i;
    if (at >= asked.rows / 2 * kRareElements) break;
    batch.rare[static_cast<std::size_t>(i)] = static_cast<double>(rare.bits(static_cast<std::uint64_t>(at)) % 3) - 1;
  }
  return batch;
}

RowBlock part_of(const RowBlock& rows, int part, int parts) {
  const RowBlock of = even_blocks(rows.count, parts)[static_cast<std::size_t>(part)];
  return {rows.first + of.first, of.count};
}

namespace {

Trained outcome(ToyNetwork& network) {
  Trained made;
  made.weights = network.read_weights();  // waits for all
  made.gradients = network.history();
  made.inexact = network.inexact();
  return made;
}

// How a step's gradients and weights travel.
class Ways {
 public:
  virtual ~Ways() = default;
  // Whether each part of a step is reduced by itself and added to earlier parts; otherwise all go with the last part.
  virtual bool takes_parts() const { return false; }
  // `last`: of the parts of a step.
  virtual void begin(device::Stream compute, bool add, bool last) = 0;
  virtual void finish_part() {}
  virtual TensorView place(int, device::Stream) { return {}; }
  virtual void unused(int piece, device::Stream compute) = 0;
  virtual void grad_final(int piece, device::Stream compute) = 0;
  // `between`: called before work is queued on a stream after all gradients are final.
  virtual void update(device::Stream compute, const std::function<void(device::Stream)>& between) = 0;
  // Whether other ranks send weights; then needed() is called before a forward pass reads them.
  virtual bool brings_weights() const { return false; }
  virtual void needed(int, device::Stream) {}
  virtual void gather_weights(device::Stream) {}      // after the last step: then this rank has all weights
  virtual std::vector<RowBlock> updated() const = 0;  // elements of the arena that this rank updates
  virtual void check() const = 0;
};

// Every rank updates everything.
class Replicated : public Ways {
 public:
  Replicated(const CertificateCase& asked, comm::Communicator& ranks, ToyNetwork& network, device::Stream stream)
      : sync_(ranks, network.pieces(), network.gradients(), asked.sync, stream), network_(network) {}

  void begin(device::Stream compute, bool, bool) override { sync_.begin(compute); }
  void unused(int piece, device::Stream compute) override { sync_.unused(piece, compute); }
  void grad_final(int piece, device::Stream compute) override { sync_.grad_final(piece, compute); }
  void update(device::Stream compute, const std::function<void(device::Stream)>&) override {
    sync_.finish(compute);
    network_.update(kRate, true);
  }
  std::vector<RowBlock> updated() const override { return {{0, network_.gradients().elements()}}; }
  void check() const override { sync_.check_bytes(); }

 protected:
  GradientSync sync_;
  ToyNetwork& network_;
};

// The network's gradient descent, as an optimizer that ShardedOptimizer can wrap.
class ToyDescent {
 public:
  using Options = double;  // the rate
  static std::string text_of(double rate) { return fmt::format("descent at {:a}", rate); }

  explicit ToyDescent(ToyNetwork& network) : network_(network) {}
  void add_group(std::span<const OptimizedParameter> parameters, double rate) {
    Group& group = groups_.emplace_back(Group{.rate = rate});
    const auto* begin = network_.weights().as<float>();
    for (const OptimizedParameter& one : parameters) {
      if (!one.frozen()) group.slices.push_back({one.weight.as<float>() - begin, one.gradient});
    }
  }
  void step(device::Stream) {
    for (const Group& group : groups_) network_.update(group.slices, group.rate, true, &group == &groups_.back());
  }
  std::vector<RowBlock> updated() const {
    std::vector<RowBlock> made;
    for (const Group& group : groups_) {
      for (const ToyNetwork::Slice& slice : group.slices) made.push_back({slice.first, slice.gradient.elements()});
    }
    return made;
  }
  std::size_t state_bytes() const { return 0; }

 private:
  struct Group {
    double rate = 0;
    std::vector<ToyNetwork::Slice> slices;
  };
  ToyNetwork& network_;
  std::vector<Group> groups_;
};

// Gives an optimizer the parameters that it is to have from this step on.
template <typename Optimizer>
void add_groups(Optimizer& optimizer, const CertificateCase& asked, const ToyNetwork& network, int step) {
  const std::vector<OptimizedParameter> all = network.parameters();
  const std::span<const OptimizedParameter> span(all);
  const std::size_t half = asked.groups ? (all.size() + 1) / 2 : all.size();
  if (step == 0) optimizer.add_group(span.first(half), kRate);
  if (step == 1 && half < all.size()) optimizer.add_group(span.subspan(half), kRate / 2);
}

// Every rank updates the parameters that it owns.
class Owned final : public Replicated {
 public:
  Owned(const CertificateCase& asked, comm::Communicator& ranks, ToyNetwork& network, device::Stream stream)
      : Replicated(asked, ranks, network, stream),
        asked_(asked),
        optimizer_(ParameterOwners(ranks, stream, asked.sync.observer), network) {
    add_groups(optimizer_, asked_, network_, 0);
  }

  void update(device::Stream compute, const std::function<void(device::Stream)>& between) override {
    sync_.finish(compute);
    between(sync_.stream());
    optimizer_.step(compute);
    add_groups(optimizer_, asked_, network_, ++step_);
  }
  bool brings_weights() const override { return true; }
  std::vector<RowBlock> updated() const override { return optimizer_.inner().updated(); }

 private:
  const CertificateCase& asked_;
  ShardedOptimizer<ToyDescent> optimizer_;
  int step_ = 0;
};

// Every rank updates its slice of each bucket.
class Flat final : public Ways {
 public:
  Flat(const CertificateCase& asked, comm::Communicator& ranks, ToyNetwork& network, device::Stream compute,
       device::Stream stream)
      : network_(network),
        copy_dtype_(asked.copy),
        copy_(copy_bytes(network), "rounded weights", compute),
        moves_(compute),
        sync_(ranks, network.pieces(), stretch(network.weights(), 0, network.gradients().elements()),
              asked.sharding == Sharding::zero1 ? network.gradients() : TensorView{},
              {.sharding = asked.sharding,
               .schedule = schedule_of(asked.sync, network.pieces()),
               .slots = asked.slots,
               .poison = true,
               .observer = asked.sync.observer},
              stream, weights_copy(network)),
        rank_(ranks.rank()),
        in_turn_(asked.in_turn),
        stepped_(static_cast<std::size_t>(sync_.buckets()), 0) {
    if (copy_dtype_) device::fill_bytes(copy_.data(), 0xff, copy_.bytes(), compute);
  }

  bool takes_parts() const override { return sync_.options().sharding == Sharding::zero2; }
  void begin(device::Stream compute, bool add, bool last) override {
    ZeroSync::SliceUpdate update;
    if (in_turn_ && last) {
      update = [this](int bucket, device::Stream stream) {
        update_slice(bucket, bucket + 1 == sync_.buckets(), stream);
      };
    }
    sync_.begin(compute, add, std::move(update));
  }
  void finish_part() override { sync_.finish_part(); }
  TensorView place(int piece, device::Stream compute) override { return sync_.gradient(piece, compute); }
  void unused(int piece, device::Stream compute) override { sync_.unused(piece, compute); }
  void grad_final(int piece, device::Stream compute) override { sync_.grad_final(piece, compute); }
  void update(device::Stream compute, const std::function<void(device::Stream)>& between) override {
    sync_.finish(compute);
    if (in_turn_) return;
    for (int bucket = sync_.buckets(); bucket-- > 0;) {
      between(compute);
      update_slice(bucket, bucket == 0, compute);
      between(sync_.stream());
      sync_.updated(bucket, compute);
    }
  }
  bool brings_weights() const override { return true; }
  void needed(int piece, device::Stream compute) override {
    sync_.needed(piece, compute);
    if (!copy_dtype_ || is_read_in_full(piece) || stepped_[index_of(piece)] == 0) return;
    // The network reads weights: this piece's are restored from their copy.
    const Piece& one = sync_.pieces()[piece];
    moves_.move(stretch(copy_view(network_), one.first, one.elements),
                stretch(network_.weights(), one.first, one.elements));
  }
  void gather_weights(device::Stream compute) override { sync_.gather_weights(compute); }
  std::vector<RowBlock> updated() const override {
    std::vector<RowBlock> made;
    for (int bucket = 0; bucket < sync_.buckets(); ++bucket) {
      const Stretch own = sync_.shards().slice(bucket, rank_);
      made.push_back({own.first, own.count});
    }
    return made;
  }
  void check() const override { sync_.check_bytes(); }

 private:
  // `last`: of a step's slices.
  void update_slice(int bucket, bool last, device::Stream stream) {
    network_.update({{sync_.shards().slice(bucket, rank_).first, sync_.gradient_slice(bucket)}}, kRate, true, last,
                    stream);
    if (const TensorView copy = sync_.copy_slice(bucket); copy.data != nullptr) {
      Moves(stream).move(sync_.weight_slice(bucket), copy);
    }
    stepped_[static_cast<std::size_t>(bucket)] = 1;
  }
  std::size_t index_of(int piece) const { return static_cast<std::size_t>(sync_.shards().schedule().bucket_of(piece)); }
  static bool is_read_in_full(int piece) { return piece % 2 == 1; }
  std::size_t copy_bytes(const ToyNetwork& network) const {
    return copy_dtype_ ? static_cast<std::size_t>(network.gradients().elements()) * size_of(*copy_dtype_) : 0;
  }
  TensorView copy_view(const ToyNetwork& network) const {
    return {copy_.data(), *copy_dtype_, {1, network.gradients().elements()}};
  }
  WeightsCopy weights_copy(const ToyNetwork& network) const {
    if (!copy_dtype_) return {};
    WeightsCopy made{.values = copy_view(network), .read_in_full = {}};
    for (int piece = 0; piece < network.pieces().size(); ++piece) {
      if (is_read_in_full(piece)) made.read_in_full.push_back(piece);
    }
    return made;
  }

  ToyNetwork& network_;
  std::optional<DType> copy_dtype_;
  device::Buffer copy_;
  Moves moves_;
  ZeroSync sync_;
  int rank_;
  bool in_turn_;
  std::vector<char> stepped_;  // by bucket: its copies have been sent
};

std::unique_ptr<Ways> ways_of(const CertificateCase& asked, comm::Communicator& ranks, ToyNetwork& network,
                              device::Stream compute, device::Stream communication) {
  switch (asked.sharding) {
    case Sharding::none:
      return std::make_unique<Replicated>(asked, ranks, network, communication);
    case Sharding::optimizer:
      return std::make_unique<Owned>(asked, ranks, network, communication);
    case Sharding::zero1:
    case Sharding::zero2:
      return std::make_unique<Flat>(asked, ranks, network, compute, communication);
    default:
      throw Error(ErrorKind::usage, fmt::format("there is no certificate of {}", to_string(asked.sharding)));
  }
}

bool has(const std::vector<RowBlock>& blocks, std::int64_t at) {
  return std::ranges::any_of(blocks,
                             [at](const RowBlock& one) { return at >= one.first && at < one.first + one.count; });
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (a == 0 && b == 0); }

}  // namespace

std::vector<RowBlock> even_blocks(std::int64_t rows, int ranks) {
  std::vector<RowBlock> blocks;
  std::int64_t first = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t count = rows / ranks + (rank < rows % ranks ? 1 : 0);
    blocks.push_back({first, count});
    first += count;
  }
  return blocks;
}

Trained train_alone(const CertificateCase& asked) {
  ToyNetwork network(asked.model, {});
  network.draw_dyadic(asked.seed);
  ToyDescent descent(network);
  for (int step = 0; step < asked.steps; ++step) {
    const RowBlock all{0, asked.rows};
    add_groups(descent, asked, network, step);
    network.pass(certificate_batch(asked, step, all, all), 1 / static_cast<double>(asked.rows), true, true, {});
    descent.step({});
  }
  return outcome(network);
}

Trained train_together(const CertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                       device::Stream communication) {
  ToyNetwork network(asked.model, compute);
  network.draw_dyadic(asked.seed + static_cast<std::uint64_t>(ranks.rank()));
  make_replicas(ranks, network.weights(), communication);
  network.set_weights(network.read_weights());

  const std::unique_ptr<Ways> ways = ways_of(asked, ranks, network, compute, communication);
  StepObserver* const observer = asked.sync.observer;
  const auto before = [&](device::Stream stream) {
    if (observer != nullptr) observer->before_work(stream);
  };
  ToyNetwork::Watching watching{.observer = observer, .piece_final = [&](int piece) {
                                  before(communication);
                                  ways->grad_final(piece, compute);
                                }};
  if (ways->brings_weights()) watching.piece_needed = [&](int piece) { ways->needed(piece, compute); };
  const bool takes_parts = ways->takes_parts();
  if (takes_parts) watching.piece_place = [&](int piece) { return ways->place(piece, compute); };
  const std::vector<RowBlock> blocks = asked.rows_of.empty() ? even_blocks(asked.rows, ranks.size()) : asked.rows_of;
  const RowBlock own = blocks[static_cast<std::size_t>(ranks.rank())];
  const double scale = 1 / static_cast<double>(asked.rows);
  for (int step = 0; step < asked.steps; ++step) {
    for (int part = 0; part < asked.parts; ++part) {
      const bool at_end = part == asked.parts - 1, last = at_end || takes_parts;
      if (last) {
        ways->begin(compute, part > 0, at_end);
        if (network.rare_piece() && !use_rare(asked, own)) {
          network.spoil(*network.rare_piece());
          before(compute);
          ways->unused(*network.rare_piece(), compute);
        }
      }
      network.pass(certificate_batch(asked, step, part_of(own, part, asked.parts), own), scale,
                   part == 0 || takes_parts, last, watching);
      if (last && !at_end) ways->finish_part();
    }
    before(communication);
    before(compute);
    ways->update(compute, before);
  }
  ways->gather_weights(compute);
  device::synchronize(communication);
  Trained made = outcome(network);
  made.updated = ways->updated();
  ranks.throw_if_failed();
  ways->check();
  return made;
}

std::optional<std::string> difference(const CertificateCase& asked, const Trained& together, const Trained& alone) {
  if (together.inexact || alone.inexact) return "a number was rounded: the certificate's bounds do not hold";
  const ToyNetwork network(asked.model, {});
  const GradientPieces& pieces = network.pieces();
  // Before the first step nobody reads the gradients of a group that is added after it.
  for (std::size_t step = asked.groups ? 1 : 0; step < alone.gradients.size(); ++step) {
    for (int piece = 0; piece < pieces.size(); ++piece) {
      for (std::int64_t i = 0; i < pieces[piece].elements; ++i) {
        const auto at = static_cast<std::size_t>(pieces[piece].first + i);
        const float found = together.gradients.at(step)[at], expected = alone.gradients[step][at];
        if (same_bits(found, expected) || !has(together.updated, pieces[piece].first + i)) continue;
        return fmt::format("gradient of '{}'[{}] in step {} is {}, alone {}", pieces[piece].name, i, step, found,
                           expected);
      }
    }
  }
  for (std::size_t i = 0; i < alone.weights.size(); ++i) {
    if (same_bits(together.weights[i], alone.weights[i])) continue;
    return fmt::format("weight {} is {} after {} steps, alone {}", i, together.weights[i], asked.steps,
                       alone.weights[i]);
  }
  return std::nullopt;
}

}  // namespace syslab::parallel
