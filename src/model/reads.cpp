#include "model/reads.hpp"

namespace syslab::model {
namespace {

void append(std::vector<int>& reads, std::initializer_list<int> more) { reads.insert(reads.end(), more); }

// A half-block forward. `wanted`: with its last product.
void append_forward(std::vector<int>& reads, const ParameterLayout& layout, std::int64_t half, bool wanted) {
  const LayerIndices at = layout.layer(half / 2);
  append(reads, half % 2 == 0 ? std::initializer_list<int>{at.ln1, at.q} : std::initializer_list<int>{at.ln2, at.w1});
  if (wanted) append(reads, {half % 2 == 0 ? at.output : at.w2});
}

void append_backward(std::vector<int>& reads, const ParameterLayout& layout, std::int64_t half, bool keeps_all) {
  const LayerIndices at = layout.layer(half / 2);
  const int norm = half % 2 == 0 ? at.ln1 : at.ln2;
  append(reads, {half % 2 == 0 ? at.output : at.w2});
  if (!keeps_all) append(reads, {norm});
  append(reads, {half % 2 == 0 ? at.q : at.w1, norm});
}

}  // namespace

std::vector<int> forward_reads(const ParameterLayout& layout) {
  std::vector<int> reads{layout.embedding()};
  for (std::int64_t half = 0; half < 2 * layout.config().layers; ++half) append_forward(reads, layout, half, true);
  append(reads, {layout.ln_final(), layout.lm_head()});
  return reads;
}

std::vector<int> training_reads(const ParameterLayout& layout, Recompute recompute, bool keeps_all) {
  const std::int64_t layers = layout.config().layers;
  std::vector<int> reads = forward_reads(layout);
  append(reads, {layout.lm_head(), layout.ln_final()});
  for (std::int64_t half = 2 * layers - 1; half >= 0; --half) {
    const Segment segment = segment_of(recompute, layers, half);
    if (kept_of(recompute, layers, half) != Kept::everything && half + 1 == segment.end) {
      for (std::int64_t again = segment.first; again < segment.end; ++again) {
        append_forward(reads, layout, again, again + 1 < segment.end);
      }
    }
    append_backward(reads, layout, half, keeps_all);
  }
  return reads;
}

}  // namespace syslab::model
