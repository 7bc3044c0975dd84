#include "parallel/fsdp/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/text/named.hpp"

namespace syslab::parallel {
namespace {

using model::ParameterInfo;
using model::ParameterKind;
using model::ParameterLayout;

DType gathered_dtype(const ParameterInfo& info, const model::DTypes& dtypes) {
  if (info.kind == ParameterKind::linear) return dtypes.weights_copy.value_or(dtypes.weights);
  return size_of(dtypes.residual) < size_of(dtypes.weights) ? dtypes.residual : dtypes.weights;
}

}  // namespace

std::string_view to_string(Granularity granularity) { return granularity == Granularity::layer ? "layer" : "block"; }

Granularity parse_granularity(std::string_view text) {
  return find_named(std::array{Granularity::layer, Granularity::block}, "granularity", text);
}

TransformerParts parts_of(const ParameterLayout& layout, const model::DTypes& dtypes, model::Recompute recompute,
                          Granularity granularity) {
  TransformerParts made;
  FsdpParts& parts = made.parts;
  parts.dtype = dtypes.weights;
  const std::vector<int> none(static_cast<std::size_t>(layout.size()), -1);
  made.matrix_of = made.replicated_of = made.bracket_of = none;
  for (int index = 0; index < layout.size(); ++index) {
    const ParameterInfo& info = layout.info(index);
    if (info.kind == ParameterKind::norm) {
      made.replicated_of[static_cast<std::size_t>(index)] = static_cast<int>(parts.replicated.size());
      parts.replicated.push_back({info.name, info.shape.elements()});
    } else {
      made.matrix_of[static_cast<std::size_t>(index)] = static_cast<int>(parts.matrices.size());
      parts.matrices.push_back({info.name, info.shape[0], info.shape[1]});
    }
  }
  std::int64_t layer_of_unit = -1;
  for (const int index : layout.arena_order()) {
    const ParameterInfo& info = layout.info(index);
    const std::span<const int> together = layout.bracket(index);
    if (info.kind == ParameterKind::norm || together.front() != index) continue;
    FsdpBracket bracket{.matrices = {}, .gathered = gathered_dtype(info, dtypes), .product = {}};
    if (info.kind == ParameterKind::linear) bracket.product = dtypes.product;
    for (const int one : together) bracket.matrices.push_back(made.matrix_of[static_cast<std::size_t>(one)]);
    const int number = static_cast<int>(parts.brackets.size());
    made.bracket_of[static_cast<std::size_t>(index)] = number;
    parts.brackets.push_back(std::move(bracket));
    const bool joins = granularity == Granularity::block && info.layer >= 0 && info.layer == layer_of_unit;
    if (!joins) parts.units.emplace_back();
    parts.units.back().push_back(number);
    layer_of_unit = info.layer;
  }
  const auto brackets = [&made](const std::vector<int>& reads) {
    std::vector<int> found;
    for (const int index : reads) {
      const int bracket = made.bracket_of[static_cast<std::size_t>(index)];
      if (bracket >= 0) found.push_back(bracket);
    }
    return found;
  };
  parts.forward_reads = brackets(model::forward_reads(layout));
  parts.training_reads = brackets(model::training_reads(layout, recompute));
  return made;
}

ShardLayout::ShardLayout(const FsdpParts& parts, int ranks) : ranks_(ranks) {
  const auto place = [this](const std::string& name, std::int64_t elements) {
    if (elements < 1) throw Error(ErrorKind::usage, fmt::format("'{}' has no elements to be sharded", name));
    const std::int64_t offset = elements_;
    elements_ = round_up(elements_ + elements, model::kAlignedElements);
    alignment_ += elements_ - offset - elements;
    return offset;
  };
  for (const ShardedMatrix& matrix : parts.matrices) {
    const std::int64_t rows = ceil_div(matrix.rows, static_cast<std::int64_t>(ranks));
    const std::int64_t chunk = rows * matrix.width;
    shards_.push_back({matrix.rows, rows, chunk, place(matrix.name, chunk)});
  }
  sharded_elements_ = elements_;
  for (const ReplicatedTensor& tensor : parts.replicated) replicated_.push_back(place(tensor.name, tensor.elements));
}

std::int64_t ShardLayout::own_rows(int matrix, int rank) const {
  const Shard& shard = shards_[at(matrix)];
  return std::clamp<std::int64_t>(shard.rows - rank * shard.chunk_rows, 0, shard.chunk_rows);
}

}  // namespace syslab::parallel
