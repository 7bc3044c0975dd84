#include "property_tests/attention/sample.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "property_tests/attention/call.hpp"
#include "property_tests/attention/contract_menu.hpp"
#include "property_tests/attention/gains.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/on_device.hpp"

namespace syslab::attention {
namespace {

using check::Contract;
using property::Layout;

// Of so many samples one has more keys than kMostOfBoth and few queries: by size alone one in a thousand would.
constexpr int kOfFarKeys = 12;
// Of so many one has many queries with many keys, each at most kLongOften, where a law wants that.
constexpr int kOfLongOften = 16;
constexpr std::int64_t kLongOften = 1024;
// Of so many one has the shape that the hand-out's tests draw.
constexpr std::size_t kOfTestsShape = 8;

std::int64_t preferred(const std::vector<std::int64_t>& values, std::int64_t wish) {
  return std::find(values.begin(), values.end(), wish) != values.end() ? wish : values.front();
}

// `backward`: there may be a backward pass, which alone reads dO; drawing it is a quarter of all that is drawn.
void fill_values(Sample& sample, float gain, bool backward) {
  sample.q = query_values(sample, "q", gain);
  sample.k = key_values(sample, "k");
  sample.v = key_values(sample, "v", sample.value_gain);
  if (backward) sample.dout = query_values(sample, "dout", sample.gradient_gain);
}

// Why the rung cannot take the problem, or nothing; that nobody answers any more is the laws' business.
std::optional<std::string> refusal(const Rung& rung, const Problem& problem, Pass pass) {
  if (pass == Pass::backward && !rung.backward) return rung.name + " has no backward pass";
  try {
    return rung.supports(problem, pass);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::comm) throw;
    return std::nullopt;
  }
}

// The same, and by trying it: an implementation in another process knows only in the call what it cannot do. How else
// it may fail is the laws' business.
std::optional<std::string> tried_refusal(const Rung& rung, const Problem& problem, Pass pass) {
  if (const auto reason = refusal(rung, problem, pass)) return reason;
  if (!rung.last_call_time) return std::nullopt;
  Sample sample;
  sample.problem = problem;
  fill_values(sample, 1.0F, pass == Pass::backward);
  try {
    pass == Pass::forward ? static_cast<void>(call_forward(rung, sample))
                          : static_cast<void>(call_backward(rung, sample));
  } catch (const Unsupported& reason) {
    return reason.what();
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Whether the rung refuses tensors that lie so, which only the call shows: kernels may want rows that begin at
// multiples of 16 bytes, and say so. Contiguous tensors none may refuse.
bool refuses(const Rung& rung, Layout layout, const Problem& problem, Pass pass) {
  if (layout == Layout::contiguous || rung.last_call_time) return false;
  Sample sample;
  sample.problem = problem;
  sample.layout_in = sample.layout_out = layout;
  fill_values(sample, 1.0F, pass == Pass::backward);
  try {
    pass == Pass::forward ? static_cast<void>(call_forward(rung, sample))
                          : static_cast<void>(call_backward(rung, sample));
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage;
  }
  return false;
}

// Problems of usual sizes, simplest dtype and mask first.
std::vector<Problem> usual_problems(const Menu& menu, DType dtype, Mask mask) {
  std::vector<Problem> problems;
  for (const std::int64_t wish_dim : {64, 32, 128, 16, 8, 4, 1}) {
    for (const std::int64_t wish_seq : {64, 128, 32, 16, 1}) {
      Problem problem;
      problem.dtype = dtype;
      problem.mask = mask;
      problem.head_dim = preferred(menu.head_dim, wish_dim);
      problem.seq_k = preferred(menu.seq_k, wish_seq);
      problem.seq_q = preferred(menu.seq_q, problem.seq_k);
      problem.batch = menu.batch.front();
      problem.heads_q = problem.heads_kv = menu.heads_kv.front();
      problem.repeatable = menu.repeatable.front() != 0;
      problems.push_back(problem);
    }
  }
  return problems;
}

// A problem of the menu that the rung supports, from which each axis is then explored alone; or the first reason why
// not.
std::optional<Problem> find_base(const Rung& rung, const Menu& menu, Pass pass, std::string& reason) {
  std::optional<std::string> first;
  for (const DType dtype : menu.dtypes) {
    for (const Mask mask : menu.masks) {
      for (const Problem& problem : usual_problems(menu, dtype, mask)) {
        auto refused = refusal(rung, problem, pass);
        const bool told = refused.has_value();
        if (!told) refused = tried_refusal(rung, problem, pass);
        if (!refused) return problem;
        if (!first) first = refused;
        if (!told) break;  // refused in the call: not for its size, and calls are dear
      }
    }
  }
  reason = first.value_or(reason);
  return std::nullopt;
}

// Keeps the values that `refuse` says nothing against when they are set in `base`.
template <typename T, typename Refuse, typename Set>
void keep_supported(std::vector<T>& values, const Problem& base, Refuse refuse, Set set) {
  std::erase_if(values, [&](const T& value) {
    Problem problem = base;
    set(problem, value);
    return refuse(problem).has_value();
  });
}

// "16, 32, 64, 128"
std::string listed(const std::vector<std::int64_t>& sizes) { return fmt::format("{}", fmt::join(sizes, ", ")); }

}  // namespace

std::string left_out(const Menu& menu, std::string_view language) {
  std::vector<std::string> parts;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    if (std::find(menu.dtypes.begin(), menu.dtypes.end(), dtype) == menu.dtypes.end()) {
      parts.emplace_back(to_string(dtype));
    }
  }
  const auto has = [&](Mask mask) { return std::find(menu.masks.begin(), menu.masks.end(), mask) != menu.masks.end(); };
  if (!has(Mask::none)) parts.emplace_back("the full mask");
  if (!has(Mask::top_left)) parts.emplace_back("a causal mask");
  const std::vector<std::int64_t>& lengths = menu.seq_k;
  if (lengths.back() - lengths.front() + 1 == static_cast<std::int64_t>(lengths.size())) {
    parts.push_back(lengths.front() > 1 ? fmt::format("S < {} and S > {}", lengths.front(), lengths.back())
                                        : fmt::format("S > {}", lengths.back()));
  } else if (lengths.size() > 16) {
    parts.push_back(fmt::format("S < {}, S > {} and some between", lengths.front(), lengths.back()));
    if (lengths.back() > kMostOfBoth) {
      parts.push_back(fmt::format("both lengths above {}{}", kMostOfBoth,
                                  menu.long_q.empty() ? ""
                                                      : fmt::format(", but for some rows where there are {} queries",
                                                                    fmt::join(menu.long_q, ", "))));
    }
  } else {
    parts.push_back(fmt::format("S other than {}", listed(lengths)));
  }
  if (menu.square) parts.emplace_back("more keys than queries, or fewer");
  if (menu.head_dim.size() > 16) {
    parts.push_back(fmt::format("D > {}", menu.head_dim.back()));
  } else {
    parts.push_back(fmt::format("D other than {}", listed(menu.head_dim)));
  }
  parts.push_back(menu.batch.back() == menu.heads_kv.back()
                      ? fmt::format("batches and heads above {}", menu.batch.back())
                      : fmt::format("batches above {}, heads above {}", menu.batch.back(), menu.heads_kv.back()));
  parts.push_back(
      fmt::format("more than {} multiply-adds (B·H·S·S·D), but for the shape of the hand-out's tests", kMostVolume));
  if (menu.heads_per_kv.size() == 1) parts.emplace_back("grouped heads");
  if (has(Mask::top_left) && !has(Mask::bottom_right)) {
    parts.emplace_back("a causal mask that ends with the last key (bottom-right)");
  }
  if (menu.scale.size() == 1) parts.emplace_back("a scale other than 1/sqrt(D)");
  if (menu.scale.size() > 1) {
    std::vector<std::string> scales;
    for (const float scale : menu.scale) scales.push_back(scale == 0 ? "1/sqrt(D)" : fmt::format("{}", scale));
    parts.push_back(fmt::format("scales other than {}", fmt::join(scales, ", ")));
  }
  parts.push_back(fmt::format("outputs above {}", menu.long_values ? 2000 : 100));  // V is normal
  if (!menu.small_values) parts.emplace_back("V or dO far below 1");
  if (menu.layouts.size() == 1) parts.emplace_back("strided tensors");
  if (menu.layouts.size() > 1) parts.emplace_back("strides of zero or below");
  // A library may hand its tensors to torch, whose from_dlpack() ignores byte offsets: its author cannot mend that.
  if (language == "C") {
    parts.emplace_back("a byte_offset of a DLPack tensor other than 0");
    if (menu.repeatable.size() == 1) parts.push_back(fmt::format("deterministic = {}", 1 - menu.repeatable[0]));
  }
  parts.emplace_back("inputs with inf or NaN, but for one query or value");
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string added_by_full(const Candidate& rung, const Wants& wants) {
  const auto menu_of = [&](bool bounded) {
    Candidate asked = rung;
    if (!bounded) asked.domain->usual = asked.domain->declared = false;
    return contract_menu(asked, Contract::full, wants);
  };
  const Menu usual = menu_of(true), full = menu_of(false);
  const auto adds = [](const auto& more, const auto& fewer) { return more.size() > 1 && fewer.size() == 1; };
  const auto bottom_right = [](const Menu& menu) { return std::ranges::count(menu.masks, Mask::bottom_right) > 0; };
  std::vector<std::string> parts;
  if (adds(full.heads_per_kv, usual.heads_per_kv)) parts.emplace_back("grouped heads");
  if (bottom_right(full) && !bottom_right(usual)) parts.emplace_back("the bottom-right mask");
  if (adds(full.scale, usual.scale)) parts.emplace_back("other scales");
  if (adds(full.layouts, usual.layouts)) parts.emplace_back("strided tensors");
  parts.emplace_back("any D and S");
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool Sample::long_both() const {
  return problem.seq_q * problem.seq_k * problem.head_dim > 4 * kMostVolume && problem.seq_q > kMostOfBoth &&
         problem.seq_k > kMostOfBoth;
}

void showValue(Mask mask, std::ostream& stream) { stream << to_string(mask); }

MenuOrReason menu_for(const Candidate& rung, Contract contract, const Wants& wants) {
  Menu menu = contract_menu(rung, contract, wants);
  const bool promised = is_promised(rung, contract);
  std::vector<DType> dtypes = rung.dtypes;
  if (promised) dtypes = {DType::f32};  // of the hand-out's tests, and where nothing else is declared
  if (promised && contract == Contract::full && !rung.domain->dtypes.empty()) dtypes = rung.domain->dtypes;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const auto has = [dtype](const std::vector<DType>& list) {
      return std::find(list.begin(), list.end(), dtype) != list.end();
    };
    if (has(dtypes) && (wants.dtypes.empty() || has(wants.dtypes))) menu.dtypes.push_back(dtype);
  }
  if (const auto reason = property::OnDevice::refusal(rung.device)) return {{}, rung.name + " " + *reason};
  if (menu.dtypes.empty()) return {{}, fmt::format("{} has none of the dtypes that this law is about", rung.name)};
  std::string reason = "the contract leaves no such problem";
  if (menu.masks.empty() || menu.batch.empty() || menu.heads_kv.empty() || menu.seq_k.empty()) return {{}, reason};
  if (promised) {  // all of it is asked, and what is refused of it is a finding
    if (wants.pass == Pass::backward && !rung.backward) return {{}, rung.name + " has no backward pass"};
    menu.backward = wants.pass == Pass::backward;
    return {menu, {}};
  }
  const auto base = find_base(rung, menu, wants.pass, reason);
  if (!base) return {{}, reason};

  // Trying costs a call: done for the few values that change what a call means, not for every size.
  const auto tried = [&](const Problem& problem) { return tried_refusal(rung, problem, wants.pass); };
  const auto told = [&](const Problem& problem) { return refusal(rung, problem, wants.pass); };
  keep_supported(menu.dtypes, *base, tried, [](Problem& problem, DType dtype) { problem.dtype = dtype; });
  keep_supported(menu.masks, *base, tried, [](Problem& problem, Mask mask) { problem.mask = mask; });
  keep_supported(menu.scale, *base, tried, [](Problem& problem, float scale) { problem.scale = scale; });
  keep_supported(menu.repeatable, *base, tried,
                 [](Problem& problem, std::int64_t wanted) { problem.repeatable = wanted != 0; });
  keep_supported(menu.heads_per_kv, *base, tried,
                 [](Problem& problem, std::int64_t heads) { problem.heads_q = problem.heads_kv * heads; });
  keep_supported(menu.heads_kv, *base, told,
                 [](Problem& problem, std::int64_t heads) { problem.heads_q = problem.heads_kv = heads; });
  keep_supported(menu.head_dim, *base, told, [](Problem& problem, std::int64_t size) { problem.head_dim = size; });
  keep_supported(menu.batch, *base, told, [](Problem& problem, std::int64_t size) { problem.batch = size; });
  Problem oblong = *base;
  oblong.seq_q = base->seq_k == menu.seq_q.back() ? menu.seq_q.front() : menu.seq_q.back();
  menu.square = tried(oblong).has_value();
  if (menu.square) {
    keep_supported(menu.seq_k, *base, told,
                   [](Problem& problem, std::int64_t size) { problem.seq_q = problem.seq_k = size; });
    menu.seq_q = menu.seq_k;
  } else {
    keep_supported(menu.seq_q, *base, told, [](Problem& problem, std::int64_t size) { problem.seq_q = size; });
    keep_supported(menu.seq_k, *base, told, [](Problem& problem, std::int64_t size) { problem.seq_k = size; });
  }
  std::erase_if(menu.layouts, [&](Layout layout) { return refuses(rung, layout, *base, wants.pass); });
  menu.backward = !tried_refusal(rung, *base, Pass::backward);
  return {menu, {}};
}

Sample draw_sample(const Rung& rung, const Menu& menu, Pass pass, bool supported_only) {
  using property::draw;
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  Sample sample;
  Problem& problem = sample.problem;
  problem.dtype = draw("dtype", menu.dtypes);
  problem.tf32 = rung.tf32;
  problem.mask = draw("mask", menu.masks);
  const bool far = !menu.far_k.empty() && property::draw_below("far_keys", kOfFarKeys) == kOfFarKeys - 1;
  const std::int64_t few = far ? kMostVolume / menu.far_k.back() / menu.head_dim.front() : kAny;
  std::vector<bool> tests_shape(kOfTestsShape);
  tests_shape.back() = true;
  const bool as_tested = menu.tests_shape && draw("tests_shape", tests_shape);
  const auto sizes = [as_tested](const std::vector<std::int64_t>& of_menu, std::int64_t tested) {
    return as_tested ? std::vector{tested} : of_menu;
  };
  const bool is_long = menu.long_often && property::draw_below("long_both", kOfLongOften) == kOfLongOften - 1 && !far;
  problem.seq_q = is_long ? property::draw_size("seq_q", menu.long_q, kLongOften)
                          : property::draw_size("seq_q", sizes(menu.seq_q, kTestsLength), few);
  // A long one leaves room for a short one.
  const std::int64_t left = kMostVolume / problem.seq_q / menu.head_dim.front();
  const std::int64_t most = std::max<std::int64_t>(left, problem.seq_q < 1024 ? 1023 : 0);
  const bool long_both = std::ranges::count(menu.long_q, problem.seq_q) > 0;
  problem.seq_k = menu.square ? problem.seq_q
                  : far       ? property::draw_size("seq_k", menu.far_k, kAny)
                  : long_both ? property::draw_size("seq_k", menu.long_k, is_long ? kLongOften : kAny)
                              : property::draw_size("seq_k", menu.seq_k, most);
  // Later sizes take what the earlier ones leave of the volume.
  std::int64_t volume = problem.seq_q * problem.seq_k;
  const auto draw_rest = [&](const char* name, const std::vector<std::int64_t>& values) {
    const std::int64_t size = property::draw_size(name, values, kMostVolume / volume);
    volume *= size;
    return size;
  };
  problem.head_dim = draw_rest("head_dim", sizes(menu.head_dim, kTestsWidth));
  problem.batch = draw_rest("batch", sizes(menu.batch, kTestsBatch));
  problem.heads_kv = draw_rest("heads_kv", menu.heads_kv);
  problem.heads_q = problem.heads_kv * draw_rest("heads_per_kv", menu.heads_per_kv);
  problem.scale = draw("scale", menu.scale);
  problem.repeatable = (menu.repeatable.size() > 1 ? draw("deterministic", menu.repeatable) : menu.repeatable[0]) != 0;
  const float gain = draw("gain", menu.gain);
  std::vector<float> value_gains{1.0F};
  if (menu.long_values) value_gains.push_back(kLongValues);
  if (menu.small_values && pass == Pass::forward) value_gains.push_back(small_gain(problem.dtype));
  if (value_gains.size() > 1) sample.value_gain = draw("value_gain", value_gains);
  sample.layout_in = draw("layout_in", menu.layouts);
  sample.layout_out = draw("layout_out", menu.layouts);
  if (menu.layouts.size() > 1 && draw("mixed_layouts", std::vector<std::int64_t>{0, 1}) == 1)
    sample.mixed = menu.layouts;
  sample.seed = property::draw_seed();
  if (menu.small_values && pass == Pass::backward) {  // one of them: of both, fp16 would have neither dQ nor dK
    const std::string small = draw<std::string>("small", {"none", "V", "dO"});
    if (small == "V") sample.value_gain = small_gain(problem.dtype);
    if (small == "dO") sample.gradient_gain = small_gain(problem.dtype);
  }
  if (supported_only) {
    if (const auto reason = refusal(rung, problem, pass)) throw Unsupported(*reason);
  }
  fill_values(sample, gain, pass == Pass::backward || menu.backward);
  return sample;
}

property::Layout Sample::apart(property::Layout base, std::size_t steps) const {
  const auto found = std::ranges::find(mixed, base);
  if (found == mixed.end()) return base;
  return mixed[(static_cast<std::size_t>(found - mixed.begin()) + steps) % mixed.size()];
}

std::vector<double> query_values(const Sample& sample, std::string_view salt, float gain) {
  return property::random_values(sample.seed, salt, sample.query_shape().elements(), sample.problem.dtype, gain);
}

std::vector<double> key_values(const Sample& sample, std::string_view salt, float gain) {
  return property::random_values(sample.seed, salt, sample.key_shape().elements(), sample.problem.dtype, gain);
}

}  // namespace syslab::attention
