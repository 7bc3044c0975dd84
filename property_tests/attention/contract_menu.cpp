#include "property_tests/attention/contract_menu.hpp"

#include <algorithm>
#include <iterator>

#include "property_tests/draw.hpp"

namespace syslab::attention {
namespace {

using check::Contract;
using property::Layout;

// Lengths that a domain promises: the usual edges, and of a wide step its first multiples.
std::vector<std::int64_t> lengths_of(const Domain& domain, std::int64_t most) {
  const std::int64_t least = domain.shortest(), of_both = most == kLongestSequence ? kMostOfBoth : most;
  std::vector<std::int64_t> lengths = property::sizes_up_to(std::max(of_both, least));
  for (std::int64_t multiple = 1; multiple <= 5; ++multiple) lengths.push_back(multiple * least);
  const std::int64_t dim = domain.head_dims.empty() ? 16 : domain.head_dims.front();
  for (const std::int64_t length : {std::int64_t{1024}, std::int64_t{1025}, kLongestSequence}) {
    if (!domain.square && length * least * dim <= 4 * kMostVolume) lengths.push_back(length);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  std::erase_if(lengths, [&](std::int64_t length) {
    Problem problem;
    problem.seq_q = problem.seq_k = length;
    problem.head_dim = domain.head_dims.empty() ? 1 : domain.head_dims.front();
    problem.dtype = domain.dtypes.empty() ? DType::f32 : domain.dtypes.front();
    problem.mask = !domain.causal.empty() && domain.causal.front() ? Mask::top_left : Mask::none;
    return domain.outside(problem).has_value();
  });
  return lengths;
}

// Many queries with many keys: some rows of what comes out are looked at, and of gradients a head.
void add_long(Menu& menu, const Domain& domain, const Wants& wants) {
  const bool forward = wants.pass == Pass::forward;
  menu.long_q = {768, 777};
  menu.long_k = {512, 777, 1024};
  if (forward) {
    menu.long_q.insert(menu.long_q.end(), {2047, 2048});
    menu.long_k.insert(menu.long_k.end(), {2048, 4096});
  }
  if (forward && domain.has_streams) {  // on a GPU
    menu.long_q.insert(menu.long_q.end(), {16'384, 65'535, 65'536});
    menu.long_k.insert(menu.long_k.end(), {16'385, 65'536});
  }
  const auto outside = [&](std::int64_t length) {
    Problem problem;
    problem.seq_q = problem.seq_k = length;
    problem.head_dim = menu.head_dim.front();
    problem.dtype = domain.dtypes.empty() ? DType::f32 : domain.dtypes.front();
    problem.mask = menu.masks.front();
    return domain.outside(problem).has_value();
  };
  std::erase_if(menu.long_q, outside);
  std::erase_if(menu.long_k, outside);
  std::erase_if(menu.long_q, [&](std::int64_t length) { return std::ranges::count(menu.seq_q, length) > 0; });
  if (menu.long_k.empty()) menu.long_q.clear();
  menu.seq_q.insert(menu.seq_q.end(), menu.long_q.begin(), menu.long_q.end());
  std::ranges::sort(menu.seq_q);
  menu.long_often = wants.long_often && !menu.long_q.empty();
}

// What is declared, all of it, and what is usual for the rest. One head for each of keys, the scale of the hand-out and
// contiguous tensors: a call (q, k, v, is_causal) has no place for more.
Menu domain_menu(const Domain& domain, const Wants& wants) {
  Menu menu;
  const auto promised = [&](bool causal) {
    return domain.causal.empty() ||
           std::find(domain.causal.begin(), domain.causal.end(), causal) != domain.causal.end();
  };
  if (promised(false)) menu.masks.push_back(Mask::none);
  if (promised(true)) menu.masks.push_back(Mask::top_left);
  menu.seq_q = menu.seq_k = lengths_of(domain, wants.most_seq);
  menu.head_dim = domain.head_dims.empty() ? std::vector<std::int64_t>{16, 32, 64, 128} : domain.head_dims;
  menu.heads_kv = menu.batch = {1, 2, 3, 5, 8};
  menu.heads_per_kv = {1};
  menu.scale = {0.0F};
  menu.gain = {1.0F,
               0.25F};  // 1e-2 is promised of inputs of order one; longer ones are the law of large scores' matter
  menu.layouts = {Layout::contiguous};
  menu.square = domain.square;
  return menu;
}

// What the option `deterministic` of a library is: what is promised does not hang on an option that nobody promised.
std::vector<std::int64_t> repeatable_of(const Candidate& rung, Contract contract, const Wants& wants) {
  if (rung.language != "C") return {0};
  if (wants.repeatable || (rung.domain && rung.domain->deterministic)) return {1};
  return is_promised(rung, contract) ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, 1};
}

// Of somebody's own under the hand-out's contract: whether a law that wants this menu can ask for that shape as well.
bool has_tests_shape(const Candidate& rung, const Menu& menu) {
  const auto has = [](const std::vector<std::int64_t>& sizes, std::int64_t size) {
    return std::ranges::count(sizes, size) > 0;
  };
  return rung.domain && !rung.domain->as_tests_draw && has(menu.seq_q, kTestsLength) && has(menu.seq_k, kTestsLength) &&
         has(menu.head_dim, kTestsWidth) && has(menu.batch, kTestsBatch) && has(menu.heads_kv, 1);
}

}  // namespace

bool is_promised(const Candidate& rung, Contract contract) {
  return rung.domain && (contract == Contract::handout || rung.domain->bounded());
}

Menu contract_menu(const Candidate& rung, Contract contract, const Wants& wants) {
  Menu menu;
  if (contract == Contract::full && is_promised(rung, contract)) {
    menu = domain_menu(*rung.domain, wants);
  } else if (contract == Contract::handout) {
    menu.masks = {Mask::none};
    if (!rung.domain || rung.domain->causal_in_handout) menu.masks.push_back(Mask::top_left);
    menu.square = rung.domain.has_value();  // its tests have as many keys as queries
    const bool as_drawn = rung.domain && rung.domain->as_tests_draw;
    menu.seq_q = menu.seq_k =
        as_drawn ? std::vector<std::int64_t>{kTestsLength} : std::vector<std::int64_t>{16, 32, 64, kTestsLength, 256};
    menu.head_dim = as_drawn ? std::vector<std::int64_t>{kTestsWidth} : std::vector<std::int64_t>{16, 32, 64, 128};
    menu.heads_kv = menu.heads_per_kv = {1};
    menu.batch = as_drawn ? std::vector<std::int64_t>{kTestsBatch} : std::vector<std::int64_t>{1, 2, kTestsBatch};
    menu.scale = {0.0F};
    menu.gain = {1.0F};
    menu.layouts = {Layout::contiguous};
  } else {
    menu.masks = {Mask::none, Mask::top_left, Mask::bottom_right};
    menu.seq_q = menu.seq_k = property::sizes_up_to(wants.most_seq == kLongestSequence ? kMostOfBoth : wants.most_seq);
    menu.head_dim = property::sizes_up_to(256);
    menu.heads_kv = menu.heads_per_kv = menu.batch = {1, 2, 3};
    menu.scale = {0.0F, 1.0F, 0.25F, -0.5F};
    if (rung.domain && !rung.domain->call_has_options) {
      menu.masks.pop_back();
      menu.scale.resize(1);
    }
    menu.gain = {1.0F, 0.25F, 4.0F};
    menu.long_values = wants.long_values;
    menu.small_values = wants.small_values;
    menu.layouts = {Layout::contiguous, Layout::padded, Layout::swapped, Layout::spaced};
  }
  if (wants.moderate) {
    menu.scale.resize(1);
    menu.gain.resize(1);
  }
  if (!wants.masks.empty()) {
    std::erase_if(menu.masks, [&](Mask mask) {
      return std::find(wants.masks.begin(), wants.masks.end(), mask) == wants.masks.end();
    });
  }
  menu.repeatable = repeatable_of(rung, contract, wants);
  const bool small_exists = menu.seq_q.front() <= wants.most_seq && menu.head_dim.front() <= wants.most_dim;
  // A contract that has nothing so small keeps its smallest.
  menu.seq_q = small_exists ? property::at_most(menu.seq_q, wants.most_seq) : std::vector{menu.seq_q.front()};
  menu.seq_k = menu.seq_q;
  menu.head_dim = small_exists ? property::at_most(menu.head_dim, wants.most_dim) : std::vector{menu.head_dim.front()};
  std::erase_if(menu.seq_k, [&](std::int64_t size) { return size < wants.least_seq_k; });
  std::erase_if(menu.batch, [&](std::int64_t size) { return size < wants.least_batch; });
  std::erase_if(menu.heads_kv, [&](std::int64_t heads) { return heads < wants.least_heads_kv; });
  menu.tests_shape = contract == Contract::handout && has_tests_shape(rung, menu);
  const bool of_domain = contract == Contract::full && is_promised(rung, contract);
  if (of_domain && wants.long_both && !menu.masks.empty()) add_long(menu, *rung.domain, wants);
  if (of_domain && !menu.square && wants.most_seq == kLongestSequence) {
    std::ranges::copy_if(menu.seq_k, std::back_inserter(menu.far_k),
                         [](std::int64_t length) { return length > kMostOfBoth; });
  }
  // Whole tiles of 16 that are no power of two; kernels for those alone refuse the others, which is no finding here.
  if (of_domain && wants.any_width && rung.domain->head_dims.empty() && !rung.domain->has_streams) {
    menu.head_dim = {16, 32, 48, 64, 80, 128};
  }
  return menu;
}

}  // namespace syslab::attention
