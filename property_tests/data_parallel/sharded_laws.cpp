#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "property_tests/data_parallel/drawn.hpp"
#include "property_tests/data_parallel/laws.hpp"
#include "property_tests/data_parallel/rank_laws.hpp"
#include "property_tests/draw.hpp"

namespace syslab::data_parallel::sharded {
namespace {

// Parameters [first, end) in one group that is there from the beginning.
Group group_of(int first, int end) {
  Group group;
  for (int i = first; i < end; ++i) group.members.push_back(i);
  return group;
}

// The hand-out's tests have more parameters than ranks: who demands that is right by them.
Training drawn(check::Contract contract, Wanted wanted, int fewest_ranks = 1, Update update = Update::momentum) {
  const int ranks = draw_ranks(contract, fewest_ranks);
  if (contract == check::Contract::handout)
    wanted.fewest_layers = std::min(std::max(wanted.fewest_layers, ranks), wanted.most_layers);
  wanted.sharded = true;
  Training asked = draw_training(ranks, wanted, contract);
  asked.sharded = true;
  asked.update = update;
  asked.groups = {group_of(0, static_cast<int>(asked.parameters.size()))};
  return asked;
}

std::optional<Wrong> ranks_differ(const Training& asked, const Trained& found) {
  for (const Parameter& parameter : asked.parameters) {
    for (std::int64_t i = parameter.first; i < parameter.first + parameter.count(); ++i) {
      for (int rank = 1; rank < asked.ranks; ++rank) {
        const double first = found.weight(0, asked.steps() - 1, i), other = found.weight(rank, asked.steps() - 1, i);
        if (first == other) continue;
        return fmt::format(
            "'{}' differs between ranks after the last step: its element {} is {} on rank 0 and {} on rank {}",
            parameter.name, i - parameter.first, first, other, rank);
      }
    }
  }
  return std::nullopt;
}

Trained demand_one_process(CallChannel& ranks, const Training& asked) {
  Trained found = train(ranks, asked);
  for (std::optional<Wrong> wrong : {difference(asked, found), ranks_differ(asked, found)}) {
    if (wrong && asked.late) add_forgotten_wait(*wrong, found.sent(0));
    demand_none(asked, wrong);
  }
  return found;
}

// A class is made as torch's optimizer is, with any of its options. Ours has the usual ones alone.
enum class Whose { ours, handed_in };

template <Whose kWhose>
Options draw_options(const std::vector<Options>& of_torch) {
  return kWhose == Whose::ours ? Options{} : property::draw("options", of_torch);
}

template <Whose kWhose>
void equals_one_process(CallChannel& ranks, check::Contract contract) {
  using enum Option;
  Training asked = drawn(contract, {.frozen = true, .forms = true, .many_steps = true});
  asked.options =
      draw_options<kWhose>({{}, {nesterov}, {dampening}, {maximize}, {nesterov, maximize}, {dampening, maximize}});
  demand_one_process(ranks, asked);
}

template <Whose kWhose>
void adamw(CallChannel& ranks, check::Contract contract) {
  using enum Option;
  Training asked =
      drawn(contract, {.frozen = true, .forms = true, .many_steps = true, .most_steps = 6}, 1, Update::adamw);
  asked.rate = asked.groups[0].rate = 0.1;
  asked.curve = 0;  // gradients are exact then, and only the update rounds
  asked.options = draw_options<kWhose>({{}, {amsgrad, betas}, {maximize}, {eps}, {amsgrad, betas, maximize, eps}});
  demand_one_process(ranks, asked);
}

void tied(CallChannel& ranks, check::Contract contract) { demand_one_process(ranks, drawn(contract, {.tied = true})); }

void waits(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(contract, {.forms = true, .many_steps = true, .late = true}, 2));
}

// Numbers that an optimizer keeps of each element: a momentum, or the two moments of AdamW.
int kept_of_each(const Training& asked) { return asked.update == Update::adamw ? 2 : 1; }

std::int64_t with_state(const Training& asked) {
  std::int64_t sum = 0;
  for (const Parameter& one : asked.parameters) sum += one.trains ? one.count() : 0;
  return kept_of_each(asked) * sum;
}

// Elements of padding that a rank may hold. A class may divide each parameter among all ranks, in parts of one size
// that are aligned; then the state of each part is longer than its elements are. Tensors of these laws are so large
// that a second copy of all state is more.
double padding_of(const Training& asked) {
  const auto trained = std::ranges::count(asked.parameters, true, &Parameter::trains);
  return static_cast<double>(kept_of_each(asked) * trained * kMostPadding);
}

Update draw_update() { return property::draw("optimizer", std::vector{Update::momentum, Update::adamw}); }

// After one step momentum is the gradient, of which every rank may have all.
constexpr int kBothSteps = 2;

void state_once(CallChannel& ranks, check::Contract contract) {
  Training asked =
      drawn(contract,
            {.frozen = true, .large = true, .fewest_layers = 2, .fewest_steps = kBothSteps, .most_steps = kBothSteps},
            1, draw_update());
  asked.looks_at_memory = true;
  const Trained found = train(ranks, asked);
  double sum = 0;
  for (int rank = 0; rank < asked.ranks; ++rank) sum += found.held_elements(rank);
  const auto expected = static_cast<double>(with_state(asked));
  const double padding = asked.ranks * padding_of(asked);
  if (sum >= expected && sum <= expected + padding) return;
  demand_none(asked, fmt::format("all {} ranks together hold {} elements of state, expected {} and at most {} of "
                                 "padding: {} of each trained element, on one rank alone",
                                 asked.ranks, sum, expected, padding, kept_of_each(asked) == 1 ? "one" : "two"));
}

void state_shared(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(
      contract,
      {.equal_sizes = true, .large = true, .most_layers = 3, .fewest_steps = kBothSteps, .most_steps = kBothSteps}, 2,
      draw_update());
  asked.looks_at_memory = true;
  const Trained found = train(ranks, asked);
  const double share = static_cast<double>(with_state(asked)) / asked.ranks, padding = padding_of(asked);
  for (int rank = 0; rank < asked.ranks; ++rank) {
    if (found.held_elements(rank) <= share + padding) continue;
    demand_none(asked,
                fmt::format("rank {} holds {} elements of state; of {} parameters of one size on {} ranks its "
                            "share is {}, with at most {} of padding",
                            rank, found.held_elements(rank), asked.parameters.size(), asked.ranks, share, padding));
  }
}

void groups(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(contract, {.fewest_layers = 2});
  const auto all = static_cast<int>(asked.parameters.size());
  const auto cut = static_cast<int>(1 + property::draw_below("first of the second group", all - 1));
  asked.groups = {group_of(0, cut), group_of(cut, all)};
  asked.groups[1].rate = 0.5;
  asked.as_groups = true;
  demand_one_process(ranks, asked);
}

// As a scheduler of torch does: it changes the groups of the optimizer that it was given.
void schedule(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(contract, {});
  for (int step = 0; step < asked.steps(); ++step) {
    asked.rate_changes.push_back(property::draw<double>("change of the rate", {0.5, 1, 2}));
  }
  demand_one_process(ranks, asked);
}

void empty_parameters(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(contract, {.empty = true, .fewest_layers = 2}, 2));
}

void mixed_dtypes(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(contract, {.mixed = true, .fewest_layers = 2}));
}

void added_group(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(contract, {.fewest_layers = 2});
  const auto all = static_cast<int>(asked.parameters.size());
  asked.groups = {group_of(0, 1), group_of(1, all)};
  asked.groups[1].from = static_cast<int>(property::draw_below("steps before", asked.steps()));
  if (asked.groups[1].from == 0) asked.groups = {group_of(0, all)};
  asked.as_groups = true;
  demand_one_process(ranks, asked);
}

void without_gradients(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(contract, {.unused = true, .fewest_layers = 2}));
}

void few_parameters(CallChannel& ranks, check::Contract contract) {
  demand_one_process(ranks, drawn(contract, {.most_layers = 1}, 2));
}

void closure(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(contract, {});
  asked.closure = true;
  asked.seeds_torch = true;  // a closure may have dropout
  demand_one_process(ranks, asked);
}

void zero_grad(CallChannel& ranks, check::Contract contract) {
  Training asked = drawn(contract, {.fewest_layers = 2});
  asked.checks_zero_grad = true;
  asked.set_to_none.assign(asked.set_to_none.size(), property::draw<bool>("set_to_none", {true, false}));
  demand_one_process(ranks, asked);
}

// Laws of what is handed in alone: ours has zeros in place of a missing gradient, and no loss yet when gradients are
// queued.
template <Whose kWhose>
constexpr RankLaw kEntries[] = {
    {"sharded.equals_one_process",
     "weights are those of the optimizer that is not sharded, with the same keyword arguments, to the bit",
     equals_one_process<kWhose>},
    {"sharded.adamw", "the same with AdamW, within what fp32 rounds", adamw<kWhose>},
    {"sharded.tied_weights", "a weight with two names is updated once", tied},
    {"sharded.waits", "weights of other ranks are waited for before step() returns", waits},
    {"sharded.state_once", "the state of each element is on one rank alone, padding aside", state_once},
    {"sharded.state_shared", "of parameters of one size each rank holds the state of as many, padding aside",
     state_shared},
    {"sharded.groups", "each group of parameters keeps its options", groups, LawInfo::Bound::all, kBeyond},
    {"sharded.learning_rate", "a rate that a schedule changes in param_groups holds from the next step on", schedule,
     LawInfo::Bound::handed_in, kBeyond},
    {"sharded.added_group", "a group may be added between steps", added_group, LawInfo::Bound::all, kBeyond},
    {"sharded.without_gradients", "parameters without a gradient stay as they are", without_gradients,
     LawInfo::Bound::handed_in, kBeyond},
    {"sharded.few_parameters", "some ranks may have no parameter", few_parameters, LawInfo::Bound::all, kBeyond},
    {"sharded.empty_parameters", "parameters without elements change nothing for the others", empty_parameters,
     LawInfo::Bound::handed_in, kBeyond},
    {"sharded.mixed_dtypes", "parameters in fp32 and fp64 may be side by side, and fp64 keeps its bits", mixed_dtypes,
     LawInfo::Bound::handed_in, kBeyond},
    {"sharded.closure", "step(closure) calls it, returns its loss and does not seed torch's random numbers", closure,
     LawInfo::Bound::handed_in, kBeyond},
    {"sharded.zero_grad", "zero_grad() clears gradients of all parameters, also of other ranks'", zero_grad,
     LawInfo::Bound::all, kBeyond},
};

// The hand-out's tests compare with the optimizer that is not sharded, and look at waits.
bool asked_by_handout(const RankLaw& entry) {
  constexpr std::array kAsked{"sharded.equals_one_process", "sharded.adamw", "sharded.tied_weights", "sharded.waits"};
  return std::ranges::count(kAsked, std::string_view(entry.id)) > 0;
}

template <Whose kWhose>
std::vector<check::Law> laws_of(std::shared_ptr<CallChannel> ranks) {
  return laws_of_ranks(kEntries<kWhose>, asked_by_handout, std::move(ranks),
                       never_drawn(" (except where the size of all state is asked)"));
}

}  // namespace

std::vector<check::Law> laws(std::shared_ptr<CallChannel> ranks) { return laws_of<Whose::handed_in>(std::move(ranks)); }
std::vector<check::Law> laws_of_ours(std::shared_ptr<CallChannel> ranks) {
  return laws_of<Whose::ours>(std::move(ranks));
}

std::vector<LawInfo> law_list() { return infos_of_ranks(kEntries<Whose::handed_in>, asked_by_handout); }

}  // namespace syslab::data_parallel::sharded
