// Every rule that a call must keep, checked before any work: what was asked, what was found, what to do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::usage, "attention: " + message); }

void require_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) refuse(fmt::format("{} is {}; it may be {} to {}", field, value, low, high));
}

// A tensor with its name and its role, in the form that all checks below use.
struct Named {
  std::string_view name;
  ConstTensorView view;
  bool output = false;
};

std::string strides_text(const ConstTensorView& view) {
  std::string text = "(";
  for (int dim = 0; dim < view.shape.rank(); ++dim) text += fmt::format("{}{}", dim ? ", " : "", view.stride(dim));
  return text + ")";
}

void require_layout(const Named& tensor, const Shape& shape, DType dtype, bool unit_last) {
  const ConstTensorView& view = tensor.view;
  if (view.shape != shape) {
    refuse(fmt::format("{} has shape {}; the problem wants {}", tensor.name, to_string(view.shape), to_string(shape)));
  }
  if (view.dtype != dtype) {
    refuse(fmt::format("{} is {}; the problem wants {}", tensor.name, to_string(view.dtype), to_string(dtype)));
  }
  if (view.data == nullptr) refuse(fmt::format("{} has no memory (a null pointer)", tensor.name));
  const int last = shape.rank() - 1;
  if (unit_last && shape[last] > 1 && view.stride(last) != 1) {
    refuse(fmt::format("{} has strides {}; the last one must be 1: make a contiguous copy first", tensor.name,
                       strides_text(view)));
  }
}

// --- overlap --------------------------------------------------------------------------------------------------------

struct Interval {
  std::uintptr_t begin = 0, end = 0;  // bytes
  bool operator<(const Interval& other) const { return begin < other.begin; }
};

Interval whole_range(const ConstTensorView& view) {
  std::int64_t low = 0, high = 0;
  for (int dim = 0; dim < view.shape.rank(); ++dim) {
    const std::int64_t reach = (view.size(dim) - 1) * view.stride(dim);
    (reach < 0 ? low : high) += reach;
  }
  const auto base = reinterpret_cast<std::intptr_t>(view.data);
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  return {static_cast<std::uintptr_t>(base + low * size), static_cast<std::uintptr_t>(base + (high + 1) * size)};
}

bool intersects(const Interval& a, const Interval& b) { return a.begin < b.end && b.begin < a.end; }

// The bytes a view touches as sorted intervals, one for each run of its last dimension.
std::vector<Interval> runs(const ConstTensorView& view) {
  const int rank = view.shape.rank(), last = rank - 1;
  const bool unit = view.stride(last) == 1 || view.size(last) == 1;
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  const std::int64_t length = unit ? view.size(last) : 1;
  const std::int64_t count = view.elements() / length;
  std::vector<Interval> result;
  result.reserve(static_cast<std::size_t>(count));
  for (std::int64_t run = 0; run < count; ++run) {
    std::int64_t rest = run, offset = 0;
    for (int dim = unit ? last - 1 : last; dim >= 0; --dim) {
      offset += rest % view.size(dim) * view.stride(dim);
      rest /= view.size(dim);
    }
    const auto begin = reinterpret_cast<std::intptr_t>(view.data) + offset * size;
    result.push_back({static_cast<std::uintptr_t>(begin), static_cast<std::uintptr_t>(begin + length * size)});
  }
  std::sort(result.begin(), result.end());
  return result;
}

// Cheap if the ranges are disjoint; exact if they interleave, as the parts of one packed QKV tensor do.
bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (!intersects(whole_range(a), whole_range(b))) return false;
  const std::vector<Interval> left = runs(a), right = runs(b);
  for (auto l = left.begin(), r = right.begin(); l != left.end() && r != right.end();) {
    if (intersects(*l, *r)) return true;
    l->end <= r->begin ? ++l : ++r;
  }
  return false;
}

// True if two indices of the view are the same memory (an expanded dimension, say).
bool overlaps_itself(const ConstTensorView& view) {
  struct Dim {
    std::int64_t size, stride;
  };
  std::vector<Dim> dims;
  for (int dim = 0; dim < view.shape.rank(); ++dim) {
    if (view.size(dim) > 1) dims.push_back({view.size(dim), std::abs(view.stride(dim))});
  }
  std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  std::int64_t reach = 0;
  const bool nested = std::all_of(dims.begin(), dims.end(), [&](const Dim& dim) {
    const bool clear = dim.stride > reach;
    reach += (dim.size - 1) * dim.stride;
    return clear;
  });
  if (nested) return false;
  const std::vector<Interval> all = runs(view);
  return std::adjacent_find(all.begin(), all.end(),
                            [](const Interval& a, const Interval& b) { return b.begin < a.end; }) != all.end();
}

void require_apart(const std::vector<Named>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].output) continue;
    if (overlaps_itself(tensors[i].view)) {
      refuse(fmt::format("{} has strides {}, which put two of its elements into the same memory; outputs must not",
                         tensors[i].name, strides_text(tensors[i].view)));
    }
    for (std::size_t j = 0; j < tensors.size(); ++j) {
      if (i == j || (tensors[j].output && j < i)) continue;
      if (overlap(tensors[i].view, tensors[j].view)) {
        refuse(fmt::format("{} shares memory with {}; outputs must not overlap any other tensor", tensors[i].name,
                           tensors[j].name));
      }
    }
  }
}

struct Shapes {
  Shape query, key, lse;
  DType dtype, lse_dtype;
};

Shapes shapes_of(const Problem& p) {
  return {{p.batch, p.heads_q, p.seq_q, p.head_dim},
          {p.batch, p.heads_kv, p.seq_k, p.head_dim},
          {p.batch, p.heads_q, p.seq_q},
          p.dtype,
          p.dtype == DType::f64 ? DType::f64 : DType::f32};
}

}  // namespace

void validate(const Problem& problem) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;
  require_range("batch", problem.batch, 1, kLargest);
  require_range("heads_q", problem.heads_q, 1, kLargest);
  require_range("heads_kv", problem.heads_kv, 1, kLargest);
  require_range("seq_q", problem.seq_q, 1, kLargest);
  require_range("seq_k", problem.seq_k, 1, kLargest);
  require_range("head_dim", problem.head_dim, 1, 256);
  if (problem.heads_q % problem.heads_kv != 0) {
    refuse(
        fmt::format("heads_q is {} and heads_kv {}; heads_kv must divide heads_q", problem.heads_q, problem.heads_kv));
  }
  if (!std::isfinite(problem.scale)) {
    refuse(fmt::format("scale is {}; it must be finite (0 means 1/√head_dim)", problem.scale));
  }
  const double elements = static_cast<double>(problem.batch) * static_cast<double>(problem.heads_q) *
                          static_cast<double>(std::max(problem.seq_q, problem.seq_k)) *
                          static_cast<double>(problem.head_dim);
  if (elements > 0x1p60) refuse(fmt::format("{:.3g} elements in a tensor are beyond 64-bit offsets", elements));
}

void validate(const Problem& problem, const ForwardArgs& args) {
  validate(problem);
  const Shapes want = shapes_of(problem);
  const std::vector<Named> tensors{
      {"q", args.q}, {"k", args.k}, {"v", args.v}, {"out", args.out, true}, {"lse", args.lse, true}};
  for (const Named& tensor : tensors) {
    const bool is_lse = tensor.name == "lse", is_key = tensor.name == "k" || tensor.name == "v";
    require_layout(tensor,
                   is_lse   ? want.lse
                   : is_key ? want.key
                            : want.query,
                   is_lse ? want.lse_dtype : want.dtype, !is_lse);
  }
  require_apart(tensors);
}

void validate(const Problem& problem, const BackwardArgs& args) {
  validate(problem);
  const Shapes want = shapes_of(problem);
  const std::vector<Named> tensors{{"q", args.q},         {"k", args.k},         {"v", args.v},
                                   {"out", args.out},     {"lse", args.lse},     {"dout", args.dout},
                                   {"dq", args.dq, true}, {"dk", args.dk, true}, {"dv", args.dv, true}};
  for (const Named& tensor : tensors) {
    const bool is_lse = tensor.name == "lse";
    const bool is_key = tensor.name == "k" || tensor.name == "v" || tensor.name == "dk" || tensor.name == "dv";
    require_layout(tensor,
                   is_lse   ? want.lse
                   : is_key ? want.key
                            : want.query,
                   is_lse ? want.lse_dtype : want.dtype, !is_lse);
  }
  require_apart(tensors);
}

}  // namespace syslab::attention
