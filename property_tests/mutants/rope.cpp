#include "property_tests/mutants/rope.hpp"

#include <algorithm>

#include "property_tests/mutants/planted.hpp"
#include "property_tests/tensors.hpp"

namespace syslab::rope {
namespace {

// Every element of a tensor, made anew from what it was and its row-major index.
template <typename Change>
void change(const TensorView& view, const Change& how) {
  std::vector<double> values = to_doubles(view);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = how(values[i], i);
  property::assign(view, values);
}

// Both tables as they are but for this.
template <typename How>
void with_tables(const Problem& p, Args args, const How& how) {
  std::vector<double> cos = to_doubles(args.cos), sin = to_doubles(args.sin);
  how(cos, sin);
  const std::vector<float> narrow_cos(cos.begin(), cos.end()), narrow_sin(sin.begin(), sin.end());
  args.cos.data = narrow_cos.data();
  args.sin.data = narrow_sin.data();
  find_rung("naive").forward(p, args, {}, {});
}

void forward(Fault fault, const Rung& sound, const Problem& p, const Args& args) {
  const auto pairs = static_cast<std::size_t>(p.head_dim / 2);
  if (fault == Fault::turned_back) {
    return with_tables(p, args, [](auto&, auto& sin) {
      for (double& value : sin) value = -value;
    });
  }
  if (fault == Fault::stuck_at_last) {
    return with_tables(p, args, [&](auto& cos, auto& sin) {
      const auto last = (p.seq - 1) * p.head_dim / 2;
      std::copy_n(cos.begin(), pairs, cos.begin() + last);
      std::copy_n(sin.begin(), pairs, sin.begin() + last);
    });
  }
  if (fault == Fault::last_rows_of_tables) {
    Args behind = args;
    const auto skipped = static_cast<std::size_t>((args.cos.size(0) - p.seq) * p.head_dim / 2) * size_of(p.tables());
    behind.cos.data = static_cast<const std::byte*>(args.cos.data) + skipped;
    behind.sin.data = static_cast<const std::byte*>(args.sin.data) + skipped;
    return sound.forward(p, behind, {}, {});
  }
  sound.forward(p, args, {}, {});
  if (fault == Fault::stretched) change(args.y, [](double y, std::size_t) { return 1.02 * y; });
  if (fault == Fault::swapped_halves && p.layout == Layout::halves) {
    const std::vector<double> y = to_doubles(args.y);
    change(args.y, [&](double, std::size_t i) { return y[i % (2 * pairs) < pairs ? i + pairs : i - pairs]; });
  }
  if (fault != Fault::write_past_end) return;
  auto* end = static_cast<std::byte*>(args.y.data) +
              static_cast<std::size_t>(extent_elements(args.y.shape, args.y.strides)) * size_of(p.y_dtype);
  *end = std::byte{0};
}

void backward(Fault fault, const Rung& sound, const Problem& p, Args args) {
  std::vector<float> sin;
  if (fault == Fault::turned_on) {
    for (const double value : to_doubles(args.sin)) sin.push_back(static_cast<float>(-value));
    args.sin.data = sin.data();
  }
  sound.backward(p, args, {}, {});
  if (fault == Fault::stretched_back) change(args.y, [](double x, std::size_t) { return 1.02 * x; });
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::turned_back, "turned_back", "rope.equals_oracle"},
      {Fault::last_rows_of_tables, "last_rows_of_tables", "rope.equals_oracle"},
      {Fault::turned_on, "turned_on", "rope.gradient_equals_oracle"},
      {Fault::stretched, "stretched", "rope.keeps_norms"},
      {Fault::stretched_back, "stretched_back", "rope.backward_undoes_forward"},
      {Fault::stuck_at_last, "stuck_at_last", "rope.scores_follow_distance"},
      {Fault::swapped_halves, "swapped_halves", "rope.layouts_agree"},
      {Fault::write_past_end, "write_past_end", "rope.writes_nothing_outside"},
  };
}

Rung naive_with(Fault fault) { return property::planted(mutants(), fault, find_rung("naive"), forward, backward); }

}  // namespace syslab::rope
