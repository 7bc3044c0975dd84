#include "property_tests/copy/laws.hpp"

#include "check/search.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/tensors.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::copy {
namespace {

using check::GuardedTensor;
using check::Observation;

constexpr int kElements = 0;        // the one dimension
constexpr std::int64_t kSides = 9;  // elements around the range on either side
constexpr double kUntouched = -7;   // what they hold; exact in every dtype

// A range somewhere in a tensor: kernels must take any alignment that the dtype allows.
struct Sample {
  Problem problem;
  std::int64_t from_offset = 0, to_offset = 0;
  std::vector<double> values;
};

// Small sizes, and a few around the 1 MiB pieces that threads are given.
std::vector<std::int64_t> sizes_of(DType dtype, check::Contract contract) {
  if (contract == check::Contract::handout) return {16, 64, 256, 1024, 4096};
  std::vector<std::int64_t> sizes = property::sizes_up_to(300);
  const auto piece = (std::int64_t{1} << 20) / static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t size : {piece - 1, piece, piece + 1, 2 * piece + 5}) sizes.push_back(size);
  return sizes;
}

Sample draw_sample(const Rung& rung, check::Contract contract) {
  Sample sample;
  std::vector<DType> dtypes;
  for (const DType dtype : rung.dtypes) {
    if (!rung.supports(Problem{64, dtype})) dtypes.push_back(dtype);
  }
  sample.problem.dtype = property::draw("dtype", dtypes);
  const std::vector<std::int64_t> sizes = sizes_of(sample.problem.dtype, contract);
  sample.problem.elements = property::draw_size("elements", sizes, sizes.back());
  sample.from_offset = property::draw_below("from_offset", kSides);
  sample.to_offset = property::draw_below("to_offset", kSides);
  const std::uint64_t seed = property::draw_seed();
  RC_PRE(!rung.supports(sample.problem).has_value());
  sample.values = property::random_values(seed, "from", sample.problem.elements + kSides, sample.problem.dtype);
  return sample;
}

struct Call {
  GuardedTensor from, to;  // with kSides elements more than the problem has
  TensorView copied;       // the range in `to`
};

template <typename View>
View part(const View& view, std::int64_t offset, std::int64_t elements) {
  auto* bytes =
      static_cast<std::conditional_t<std::is_same_v<View, TensorView>, std::byte*, const std::byte*>>(view.data);
  return View(bytes + offset * static_cast<std::int64_t>(size_of(view.dtype)), view.dtype, Shape{elements});
}

Call call(const Rung& rung, const Sample& sample) {
  const Problem& p = sample.problem;
  const Shape shape{p.elements + kSides};
  const std::vector<double> untouched(static_cast<std::size_t>(shape[0]), kUntouched);
  Call made{property::input("from", p.dtype, shape, {1}, sample.values),
            property::input("to", p.dtype, shape, {1}, untouched),
            {}};
  made.copied = part(made.to.view(), sample.to_offset, p.elements);
  property::OnDevice there(rung.device);
  rung.run(p,
           {part(ConstTensorView(there.view(made.from)), sample.from_offset, p.elements),
            part(there.view(made.to), sample.to_offset, p.elements)},
           there.stream());
  there.finish();
  return made;
}

void equals_source(const Rung& rung, check::Contract contract, Observation& observation) {
  const Sample sample = draw_sample(rung, contract);
  const Call made = call(rung, sample);
  const std::span<const double> expected =
      std::span(sample.values)
          .subspan(static_cast<std::size_t>(sample.from_offset), static_cast<std::size_t>(sample.problem.elements));
  property::demand_equal("to", to_doubles(made.copied), made.copied.shape, expected, observation, kElements);
}

void writes_nothing_outside(const Rung& rung, check::Contract contract, Observation& observation) {
  const Sample sample = draw_sample(rung, contract);
  const Call made = call(rung, sample);
  property::demand_unharmed(made.from);
  property::demand_unharmed(made.to);
  property::demand_equal("after the call: from", to_doubles(made.from.view()), made.from.spec().shape, sample.values,
                         observation, kElements);
  const std::vector<double> all = to_doubles(made.to.view());
  std::vector<double> expected(all.size(), kUntouched);
  for (std::int64_t i = 0; i < sample.problem.elements; ++i) {  // what lies inside is the other law's
    const auto at = static_cast<std::size_t>(sample.to_offset + i);
    expected[at] = all[at];
  }
  property::demand_equal("around the range: to", all, made.to.spec().shape, expected, observation, kElements);
}

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Rung&, check::Contract, Observation&);
};

constexpr Entry kEntries[] = {
    {"copy.equals_source", "every element arrives as it was, from and to any alignment", equals_source},
    {"copy.writes_nothing_outside", "only the range is written, and the source stays", writes_nothing_outside},
};

// Why the rung cannot be asked at all, or nothing.
std::optional<std::string> excuse(const Rung& rung) {
  if (const auto reason = property::OnDevice::refusal(rung.device)) return rung.name + " " + *reason;
  return rung.supports(Problem{64, rung.dtypes.front()});
}

check::LawResult search(const Entry& entry, const Rung& rung, const check::LawRequest& request) {
  if (const auto reason = excuse(rung)) return property::does_not_apply(*reason);
  return check::search(entry.id, request,
                       [&](Observation& observation) { entry.body(rung, request.contract, observation); });
}

}  // namespace

std::vector<check::Law> laws(const Rung& rung) { return property::bound(kEntries, rung, search); }

std::vector<LawInfo> law_list() { return property::statements(kEntries); }

}  // namespace syslab::copy
