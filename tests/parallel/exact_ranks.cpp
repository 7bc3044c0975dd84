#include "tests/parallel/exact_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/integers.hpp"
#include "device/stream.hpp"
#include "parallel/ddp/gradient_sync.hpp"
#include "parallel/ddp/wire_buffer.hpp"
#include "parallel/fsdp/fsdp.hpp"
#include "parallel/in_order.hpp"
#include "parallel/zero/sharded_optimizer.hpp"
#include "parallel/zero/sync.hpp"

namespace syslab::property {
namespace {

using device::Stream;
using exact::add_gradient;
using exact::at;
using exact::options_of;
using exact::view_of;
using parallel::BucketSchedule;
using parallel::even_blocks;
using parallel::Fsdp;
using parallel::GradientPieces;
using parallel::in_order;
using parallel::OptimizedParameter;
using parallel::ParameterOwners;
using parallel::part_of;
using parallel::Piece;
using parallel::ShardedOptimizer;
using parallel::stretch;
using parallel::ZeroSync;
using test::add_pieces;
using test::Moment;
using test::plane_of;

bool uses(const ExactStep& step, int tensor, const RowBlock& rows) {
  return rows.count > 0 && rows.first < step.users[at(tensor)];
}

// exact::add_gradient() in the dtype of where it is written, which is new where that is not fp32.
void write_gradient(const ExactModel& model, const ExactStep& step, int tensor, const RowBlock& rows,
                    const float* weights, const TensorView& out, bool add) {
  if (out.dtype == DType::f32) return add_gradient(model, step, tensor, rows, weights, out.as<float>(), add);
  std::vector<float> values(at(out.elements()));
  add_gradient(model, step, tensor, rows, weights, values.data(), false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (out.dtype == DType::bf16) out.as<bf16>()[i] = to_bf16(values[i]);
    if (out.dtype == DType::f16) out.as<f16>()[i] = to_f16(values[i]);
  }
}

// Whether the pass itself writes a tensor's gradient as it travels, where it can.
bool is_written_rounded(int tensor) { return tensor % 2 == 0; }

// After which tensors a bucket, or a unit, ends.
std::vector<int> ends_of(const ExactModel& model, int count) {
  std::vector<int> ends;
  for (int i = 0; i + 1 < count; ++i) {
    if ((model.cuts >> i & 1U) != 0) ends.push_back(i + 1);
  }
  ends.push_back(count);
  return ends;
}

// Tensors side by side at multiples of `alignment`, with their gradients.
struct Arena {
  Arena(const ExactModel& model, std::int64_t alignment) {
    std::int64_t first = 0;
    for (const ExactTensor& tensor : model.tensors) {
      pieces.push_back({tensor.name, first, tensor.elements()});
      first = round_up(first + tensor.elements(), alignment);
    }
    weights.assign(at(first), 0);
    gradients.assign(at(first), 7);  // what no step has written
    for (int i = 0; i < model.size(); ++i) {
      for (std::int64_t e = 0; e < model.tensors[at(i)].elements(); ++e) weight(i)[e] = model.initial(i, e);
    }
  }
  float* weight(int tensor) { return weights.data() + pieces[at(tensor)].first; }
  TensorView gradient(int tensor) {
    return stretch(view_of(gradients), pieces[at(tensor)].first, pieces[at(tensor)].elements);
  }
  OptimizedParameter parameter(int tensor) {
    const Piece& piece = pieces[at(tensor)];
    return {piece.name, stretch(view_of(weights), piece.first, piece.elements), gradient(tensor)};
  }

  std::vector<Piece> pieces;
  std::vector<float> weights, gradients;
};

// All weights on all ranks; gradients of the parts of a step are added up where they lie, or travel each by themselves.
class WholeWeights : public ExactRanks {
 public:
  WholeWeights(const ExactModel& model, comm::Communicator& ranks, Stream compute, Stream communication,
               std::int64_t alignment)
      : model_(model), ranks_(ranks), compute_(compute), communication_(communication), arena_(model, alignment) {}

  void take(const ExactStep& step) override {
    const RowBlock own = even_blocks(step.rows, ranks_.size())[at(ranks_.rank())];
    for (int part = 0; part < step.parts; ++part) {
      const RowBlock rows = part_of(own, part, step.parts);
      const bool at_end = part + 1 == step.parts, travels = at_end || parts_travel();
      const auto is_used = [&](int tensor) { return uses(step, tensor, parts_travel() ? rows : own); };
      if (travels) begin(part > 0, at_end);
      for (int i = model_.size(); i-- > 0;) needed(i);
      for (int i = 0; travels && i < model_.size(); ++i) {
        if (!is_used(i)) unused(i);
      }
      for (int i = 0; i < model_.size(); ++i) {
        if (!is_used(i)) continue;
        const TensorView to = parts_travel() ? place(i) : arena_.gradient(i);
        in_order(compute_, [this, step, i, rows, to, add = part > 0 && !parts_travel()](Stream) {
          write_gradient(model_, step, i, rows, arena_.weight(i), to, add);
        });
        if (travels) grad_final(i);
      }
      if (travels && !at_end) finish_part();
    }
    update();
  }

 protected:
  virtual bool parts_travel() const { return false; }
  virtual void begin(bool add, bool last) = 0;  // `last`: part of the step
  virtual void needed(int) {}
  virtual void unused(int tensor) = 0;
  virtual TensorView place(int tensor) { return arena_.gradient(tensor); }
  virtual void grad_final(int tensor) = 0;
  virtual void finish_part() {}
  virtual void update() = 0;
  void settle() const {
    device::synchronize(compute_);
    device::synchronize(communication_);
    ranks_.throw_if_failed();
  }

  const ExactModel& model_;
  comm::Communicator& ranks_;
  Stream compute_, communication_;
  Arena arena_;
};

class Reduced : public WholeWeights {
 public:
  Reduced(const ExactModel& model, std::optional<DType> wire, comm::Communicator& ranks, Stream compute,
          Stream communication)
      : WholeWeights(model, ranks, compute, communication, 1),
        sync_(ranks, GradientPieces(arena_.pieces, DType::f32), view_of(arena_.gradients),
              {.strategy = parallel::Strategy::planned,
               .schedule = BucketSchedule(ends_of(model, model.size())),
               .wire = wire},
              communication) {}

 protected:
  void begin(bool, bool) override { sync_.begin(compute_); }
  void unused(int tensor) override { sync_.unused(tensor, compute_); }
  void grad_final(int tensor) override { sync_.grad_final(tensor, compute_); }

  // Groups as they join: all of the first, then one each.
  template <typename Optimizer>
  void join_groups(Optimizer& optimizer, int until) {
    while (joined_ < until) {
      const int end = joined_ == 0 && !model_.grouped ? model_.size() : joined_ + 1;
      std::vector<OptimizedParameter> group;
      for (; joined_ < end; ++joined_) {
        group.push_back(arena_.parameter(joined_));
        places_.emplace_back(groups_, static_cast<int>(group.size()) - 1);
      }
      optimizer.add_group(group, options_of(groups_++));
    }
  }

  parallel::GradientSync sync_;
  std::vector<std::pair<int, int>> places_;  // of tensors that have joined: group, number in it
  int joined_ = 0, groups_ = 0;
};

class Replicas final : public Reduced {
 public:
  Replicas(const ExactModel& model, std::optional<DType> wire, comm::Communicator& ranks, Stream compute,
           Stream communication)
      : Reduced(model, wire, ranks, compute, communication), optimizer_(compute) {}
  void join(int until) override { join_groups(optimizer_, until); }
  std::vector<StatePiece> pieces() override {
    settle();
    std::vector<StatePiece> pieces;
    for (int i = 0; i < joined_; ++i) {
      const OptimizedParameter one = arena_.parameter(i);
      const auto [group, number] = places_[at(i)];
      pieces.push_back({StatePlane::weight, one.name, 0, one.weight});
      for (const Moment moment : {Moment::first, Moment::second}) {
        pieces.push_back({plane_of(moment), one.name, 0, optimizer_.moment(moment, group, number)});
      }
    }
    return pieces;
  }

 protected:
  void update() override {
    sync_.finish(compute_);
    optimizer_.step(compute_);
  }

 private:
  SnappedAdamW optimizer_;
};

class Owners final : public Reduced {
 public:
  Owners(const ExactModel& model, std::optional<DType> wire, comm::Communicator& ranks, Stream compute,
         Stream communication)
      : Reduced(model, wire, ranks, compute, communication), optimizer_(ranks, communication, compute) {}
  void join(int until) override { join_groups(optimizer_, until); }
  std::vector<StatePiece> pieces() override {
    settle();
    std::vector<StatePiece> pieces;
    std::vector<int> next(at(groups_), 0);
    for (const ParameterOwners::Owned& one : optimizer_.owners().all()) {
      pieces.push_back({StatePlane::weight, one.parameter.name, 0, one.parameter.weight});
      if (one.owner != ranks_.rank()) continue;
      const int number = next[at(one.group)]++;
      for (const Moment moment : {Moment::first, Moment::second}) {
        const TensorView values = optimizer_.inner().moment(moment, one.group, number);
        pieces.push_back({plane_of(moment), one.parameter.name, 0, values});
      }
    }
    return pieces;
  }

 protected:
  void update() override {
    sync_.finish(compute_);
    optimizer_.step(compute_);
  }

 private:
  ShardedOptimizer<SnappedAdamW> optimizer_;
};

class Flat final : public WholeWeights {
 public:
  Flat(const ExactModel& model, const ExactWay& way, comm::Communicator& ranks, Stream compute, Stream communication)
      : WholeWeights(model, ranks, compute, communication, 2 * ranks.size()),
        in_turn_(way.in_turn),
        optimizer_(compute),
        sync_(ranks, GradientPieces(arena_.pieces, DType::f32), view_of(arena_.weights),
              way.sharding == Sharding::zero1 ? view_of(arena_.gradients) : TensorView{},
              {.sharding = way.sharding,
               .schedule = BucketSchedule(ends_of(model, model.size())),
               .rounded = rounded(model, way),
               .slots = 1 + model.size() % 3,
               .poison = true},
              communication) {}
  void join(int) override {
    if (joined_) return;
    joined_ = true;
    std::vector<OptimizedParameter> slices;
    for (int bucket = 0; bucket < sync_.buckets(); ++bucket) {
      slices.push_back({fmt::format("bucket {}", bucket), sync_.weight_slice(bucket), sync_.gradient_slice(bucket)});
    }
    optimizer_.add_group(slices, options_of(0));
  }
  std::vector<StatePiece> pieces() override {
    sync_.all_needed(compute_);
    settle();
    std::vector<StatePiece> pieces;
    const TensorView weights = view_of(arena_.weights);
    add_pieces(pieces, arena_.pieces, StatePlane::weight, {0, weights.elements()}, weights);
    for (int bucket = 0; bucket < sync_.buckets(); ++bucket) {
      const parallel::Stretch own = sync_.shards().slice(bucket, ranks_.rank());
      for (const Moment moment : {Moment::first, Moment::second}) {
        add_pieces(pieces, arena_.pieces, plane_of(moment), own, optimizer_.moment(moment, 0, bucket));
      }
    }
    return pieces;
  }

 protected:
  bool parts_travel() const override { return sync_.options().sharding == Sharding::zero2; }
  void begin(bool add, bool last) override {
    ZeroSync::SliceUpdate update;
    if (in_turn_ && last) {
      update = [this](int bucket, Stream stream) { optimizer_.step_one(bucket, stream); };
    }
    sync_.begin(compute_, add, std::move(update));
  }
  void needed(int tensor) override { sync_.needed(tensor, compute_); }
  void unused(int tensor) override { sync_.unused(tensor, compute_); }
  TensorView place(int tensor) override { return sync_.gradient(tensor, compute_); }
  void grad_final(int tensor) override { sync_.grad_final(tensor, compute_); }
  void finish_part() override { sync_.finish_part(); }
  void update() override {
    sync_.finish(compute_);
    if (in_turn_) return optimizer_.count_step();
    optimizer_.step(compute_);
    for (int bucket = sync_.buckets(); bucket-- > 0;) sync_.updated(bucket, compute_);
  }

 private:
  // The first stage adds parts up in its arena: the pass itself writes none of them rounded.
  static std::optional<parallel::RoundedGradients> rounded(const ExactModel& model, const ExactWay& way) {
    if (!way.wire) return std::nullopt;
    parallel::RoundedGradients made{.dtype = *way.wire, .written = {}};
    for (int i = 0; way.sharding == Sharding::zero2 && i < model.size(); ++i) {
      if (is_written_rounded(i)) made.written.push_back(i);
    }
    return made;
  }

  bool in_turn_, joined_ = false;
  SnappedAdamW optimizer_;
  ZeroSync sync_;
};

// Tensors of one row are replicated, others brackets by themselves; a unit ends where a bucket would.
parallel::FsdpParts parts_of(const ExactModel& model, std::optional<DType> wire) {
  parallel::FsdpParts parts;
  for (const ExactTensor& tensor : model.tensors) {
    if (tensor.rows == 1) {
      parts.replicated.push_back({tensor.name, tensor.width});
    } else {
      const auto matrix = static_cast<int>(parts.matrices.size());
      parts.brackets.push_back({.matrices = {matrix}, .gathered = DType::f32, .product = {}});
      if (is_written_rounded(matrix)) parts.brackets.back().product = wire;
      parts.matrices.push_back({tensor.name, tensor.rows, tensor.width});
    }
  }
  const int brackets = static_cast<int>(parts.brackets.size());
  int begin = 0;
  for (const int end : ends_of(model, brackets)) {
    std::vector<int>& unit = parts.units.emplace_back();
    for (; begin < end; ++begin) unit.push_back(begin);
  }
  for (int bracket = brackets; bracket-- > 0;) parts.forward_reads.push_back(bracket);
  parts.training_reads = parts.forward_reads;
  for (int bracket = 0; bracket < brackets; ++bracket) parts.training_reads.push_back(bracket);
  return parts;
}

class Sharded final : public ExactRanks {
 public:
  Sharded(const ExactModel& model, std::optional<DType> wire, comm::Communicator& ranks, Stream compute,
          Stream communication)
      : model_(model),
        ranks_(ranks),
        compute_(compute),
        communication_(communication),
        fsdp_(ranks, parts_of(model, wire), {.gather = {.poison = true}, .scatter = {.wire = wire}}, compute,
              communication),
        optimizer_(compute) {
    int matrix = 0, tensor = 0;
    for (int i = 0; i < model.size(); ++i) {
      const ExactTensor& of = model.tensors[at(i)];
      std::vector<float> values(at(of.elements()));
      for (std::size_t e = 0; e < values.size(); ++e) values[e] = model.initial(i, static_cast<std::int64_t>(e));
      numbers_.push_back(of.rows == 1 ? tensor++ : matrix++);
      of.rows == 1 ? fsdp_.write_replicated(numbers_.back(), 0, view_of(values))
                   : fsdp_.write(numbers_.back(), 0, view_of(values));
    }
  }
  void join(int) override {
    if (joined_) return;
    joined_ = true;
    const OptimizedParameter all{"shards", fsdp_.weights(), fsdp_.gradients()};
    optimizer_.add_group(std::span(&all, 1), options_of(0));
  }
  std::vector<StatePiece> pieces() override {
    device::synchronize(compute_);
    device::synchronize(communication_);
    ranks_.throw_if_failed();
    return test::pieces_of(fsdp_, ranks_.rank(), [this](Moment moment) { return optimizer_.moment(moment, 0, 0); });
  }

  void take(const ExactStep& step) override {
    const RowBlock own = even_blocks(step.rows, ranks_.size())[at(ranks_.rank())];
    for (int part = 0; part < step.parts; ++part) {
      const RowBlock rows = part_of(own, part, step.parts);
      fsdp_.begin(parallel::PassKind::training, part > 0);
      for (const int bracket : fsdp_.parts().forward_reads) {
        static_cast<void>(fsdp_.gathered().read(bracket));
        fsdp_.gathered().done(bracket);
      }
      for (int i = 0; i < model_.size(); ++i) {
        const int number = numbers_[at(i)];
        const bool whole = model_.tensors[at(i)].rows == 1;
        const ConstTensorView weights = whole ? fsdp_.replicated(number) : fsdp_.gathered().read(number);
        const TensorView to = whole ? fsdp_.scattered().replicated(number) : fsdp_.scattered().place(number);
        in_order(compute_, [this, step, i, rows, weights, to, add = whole && part > 0](Stream) {
          write_gradient(model_, step, i, rows, static_cast<const float*>(weights.data), to, add);
        });
        if (whole) {
          fsdp_.scattered().replicated_final();
        } else {
          fsdp_.gathered().done(number);
          fsdp_.scattered().final(number);
        }
      }
      fsdp_.end();
    }
    fsdp_.finish();
    optimizer_.step(compute_);
  }

 private:
  const ExactModel& model_;
  comm::Communicator& ranks_;
  Stream compute_, communication_;
  Fsdp fsdp_;
  SnappedAdamW optimizer_;
  bool joined_ = false;
  std::vector<int> numbers_;  // by tensor: of the matrix, which is its bracket's, or of what is replicated
};

}  // namespace

std::unique_ptr<ExactRanks> exact_ranks(const ExactModel& model, const ExactWay& way, comm::Communicator& ranks,
                                        Stream compute, Stream communication) {
  switch (way.sharding) {
    case Sharding::none:
      return std::make_unique<Replicas>(model, way.wire, ranks, compute, communication);
    case Sharding::optimizer:
      return std::make_unique<Owners>(model, way.wire, ranks, compute, communication);
    case Sharding::zero1:
    case Sharding::zero2:
      return std::make_unique<Flat>(model, way, ranks, compute, communication);
    case Sharding::zero3:
      break;
  }
  return std::make_unique<Sharded>(model, way.wire, ranks, compute, communication);
}

}  // namespace syslab::property
