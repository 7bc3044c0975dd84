#include "parallel/shard_norm.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/memory.hpp"
#include "ops/expect_tensor.hpp"
#include "parallel/in_order.hpp"

namespace syslab::parallel {
namespace {

constexpr std::string_view kNormKind = "norm";

ConstTensorView flat(const ConstTensorView& view) { return {view.data, view.dtype, {view.elements()}}; }

}  // namespace

ShardNorm::ShardNorm(comm::Communicator& ranks, const global_norm::Rung& rung, std::vector<ConstTensorView> own,
                     DType dtype, device::Stream compute, device::Stream communication, StepObserver* observer)
    : ranks_(ranks),
      rung_(&rung),
      own_(std::move(own)),
      statistics_(ops::statistics_dtype(dtype)),
      communication_(communication),
      observer_(observer),
      awaits_(communication, compute),
      known_(device::place_of(communication)),
      arrived_(device::place_of(communication)) {
  std::erase_if(own_, [](const ConstTensorView& one) { return one.elements() == 0; });
  const auto stretches = static_cast<std::int64_t>(own_.size());
  // Equal values at equally aligned addresses give the same bits on all ranks.
  const auto size = static_cast<std::int64_t>(size_of(statistics_)),
             unit = static_cast<std::int64_t>(device::kAlignment) / size;
  std::int64_t elements = 0;
  std::vector<std::pair<TensorView*, std::int64_t>> places;
  const auto place = [&](TensorView& view, std::int64_t count) {
    view = TensorView(nullptr, statistics_, {count});
    places.emplace_back(&view, elements);
    elements += round_up(std::max<std::int64_t>(count, 1), unit);
  };
  place(of_stretches_, stretches);
  place(of_rank_, 1);
  place(of_losses_, 1);
  place(of_ranks_, ranks.size());
  place(of_all_losses_, ranks.size());
  place(unread_, 1);
  numbers_ = device::Buffer(static_cast<std::size_t>(elements * size), "norms of shards", compute,
                            device::MemoryCategory::workspace);
  device::fill_bytes(numbers_.data(), 0, numbers_.bytes(), compute);
  for (const auto& [view, first] : places) view->data = numbers_.as<std::byte>() + first * size;

  constexpr std::int64_t kMostLosses = 1 << 16;  // one per part of a step
  std::size_t bytes = std::max(rung.workspace_bytes({std::max<std::int64_t>(stretches, ranks.size()), statistics_}),
                               rung.workspace_bytes({kMostLosses, statistics_}));
  for (const ConstTensorView& one : own_) bytes = std::max(bytes, rung.workspace_bytes({one.elements(), one.dtype}));
  workspace_ = device::Buffer(bytes, "workspace", compute, device::MemoryCategory::workspace);
}

void ShardNorm::norm_of(const ConstTensorView& values, global_norm::NormArgs args, device::Stream stream) {
  args.g = flat(values);
  const global_norm::Problem problem{values.elements(), values.dtype};
  const ops::Workspace workspace{workspace_.data(), workspace_.bytes()};
  in_order(stream,
           [rung = rung_, problem, args, workspace](device::Stream own) { rung->norm(problem, args, workspace, own); });
}

void ShardNorm::queue(const Places& places, device::Stream compute) {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const TensorView norm(static_cast<std::byte*>(of_stretches_.data) + i * size_of(statistics_), statistics_, {1});
    norm_of(own_[i], {.norm = norm, .factor = unread_}, compute);
  }
  if (!own_.empty()) norm_of(of_stretches_, {.norm = of_rank_, .factor = unread_}, compute);
  const bool counts_losses = places.losses.data != nullptr;
  if (counts_losses) norm_of(places.losses, {.norm = of_losses_, .factor = unread_}, compute);

  known_.record(compute);
  wait_for(observer_, Wait::norm_computed, known_, communication_);
  ranks_.all_gather(of_rank_, of_ranks_, {kNormKind, "gradients"}, communication_);
  if (counts_losses) ranks_.all_gather(of_losses_, of_all_losses_, {kNormKind, "losses"}, communication_);
  arrived_.record(communication_);
  wait_for(observer_, Wait::norms_gathered, arrived_, compute);
  ranks_.throw_if_failed();

  if (counts_losses) {  // first: the gradients' norm and factor overwrite these
    norm_of(of_all_losses_, {.norm = places.norm, .factor = places.factor, .non_finite = places.non_finite}, compute);
  }
  norm_of(of_ranks_,
          {.norm = places.norm,
           .factor = places.factor,
           .non_finite = places.non_finite,
           .grad_scale = places.grad_scale,
           .max_norm = places.max_norm,
           .add_to_count = counts_losses},
          compute);
}

}  // namespace syslab::parallel
