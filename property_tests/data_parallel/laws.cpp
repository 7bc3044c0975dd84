#include "property_tests/data_parallel/laws.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "property_tests/data_parallel/drawn.hpp"
#include "property_tests/data_parallel/rank_laws.hpp"
#include "property_tests/draw.hpp"
#include "property_tests/law_table.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::data_parallel {
namespace {

struct Subject {
  Strategy strategy;
  std::shared_ptr<CallChannel> ranks;
};

struct Entry {
  const char* id;
  const char* statement;
  void (*body)(const Subject&, check::Contract);
  // Our own strategies are not asked it: gradients of theirs lie in one arena of one dtype, in the order in which a
  // backward pass finishes them, and there is no container to make anew.
  LawInfo::Bound bound = LawInfo::Bound::all;
  bool beyond = false;  // its inputs are not of the form of the hand-out's tests, whatever is drawn
};

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Bytes that a bucket may have; drawn so that some buckets have one member, some several and some parameters fit none.
// The hand-out's tests always name a limit; only a comment of its adapters.py says what None would mean.
double draw_limit(const Subject& subject, check::Contract contract, Training& asked) {
  if (subject.strategy != Strategy::bucketed) return kUnlimited;
  std::vector<double> limits{64, 16, 200, 1, 10'000};
  if (contract != check::Contract::handout) limits.push_back(kUnlimited);
  const double bytes = property::draw<double>("limit in bytes", limits);
  asked.bucket_mb = std::isinf(bytes) ? std::optional<double>() : bytes / 0x1p20;
  return bytes;
}

Training drawn(const Subject& subject, check::Contract contract, const Wanted& wanted, int fewest_ranks = 1) {
  Training asked = draw_training(draw_ranks(contract, fewest_ranks), wanted, contract);
  draw_limit(subject, contract, asked);
  return asked;
}

// Where what travels is late, a missing wait may be why.
void demand_one_process(const Subject& subject, const Training& asked) {
  const Trained found = train(*subject.ranks, asked);
  std::optional<Wrong> wrong = difference(asked, found);
  if (wrong && asked.late) add_forgotten_wait(*wrong, found.sent(0));
  demand_none(asked, wrong);
}

void demand_rank_0s(const Subject& subject, const Training& asked, bool buffers) {
  const Trained found = train(*subject.ranks, asked);
  std::optional<Wrong> wrong = difference_in_state(asked, found, buffers);
  if (wrong && asked.late) add_forgotten_wait(*wrong, found.sent(0));
  demand_none(asked, wrong);
}

void shares_parameters(const Subject& subject, check::Contract contract) {
  demand_rank_0s(subject, drawn(subject, contract, {.frozen = true, .forms = true, .most_steps = 1}, 2), false);
}

void equals_one_process(const Subject& subject, check::Contract contract) {
  Training asked = drawn(subject, contract, {.frozen = true, .forms = true, .many_steps = true});
  asked.keyword = property::draw<bool>("keyword argument", {false, true});
  demand_one_process(subject, asked);
}

// As large as in the hand-outs' tests, and trained at their rate. Their tolerance decides under their contract: they
// look at weights alone, and allow them torch.allclose()'s defaults.
void real_numbers(const Subject& subject, check::Contract contract) {
  constexpr double kOfficialRate = 0.1;
  Training asked = drawn(subject, contract, {.frozen = true, .forms = true, .many_steps = true});
  asked.real = true;
  asked.curve = 1;  // in long trainings, too: there is a bound
  asked.rate = kOfficialRate;
  if (contract == check::Contract::handout) asked.close = Tolerance{1e-8, 1e-5};
  demand_one_process(subject, asked);
}

void strided(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.strided = true, .most_layers = 2}, 2));
}

void tied(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.tied = true}, 2));
}

void waits(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.forms = true, .late = true}, 2));
}

void shares_buffers(const Subject& subject, check::Contract contract) {
  demand_rank_0s(subject, drawn(subject, contract, {.buffers = true, .most_steps = 1}, 2), true);
}

void unused(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.unused = true, .fewest_layers = 2}));
}

void any_order(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.tied = true, .reordered = true, .fewest_layers = 2}));
}

void accumulated(const Subject& subject, check::Contract contract) {
  Training asked = drawn(subject, contract, {.most_steps = 2});
  asked.backwards = 2;
  demand_one_process(subject, asked);
}

void zero_grad(const Subject& subject, check::Contract contract) {
  Training asked = drawn(subject, contract, {});
  const bool first = property::draw<bool>("set_to_none first", {false, true});
  for (std::size_t step = 0; step < asked.set_to_none.size(); ++step)
    asked.set_to_none[step] = (step % 2 == 0) == first;
  demand_one_process(subject, asked);
}

void mixed_dtypes(const Subject& subject, check::Contract contract) {
  demand_one_process(subject, drawn(subject, contract, {.mixed = true, .fewest_layers = 2}));
}

void resumes(const Subject& subject, check::Contract contract) {
  Training asked = drawn(subject, contract, {.frozen = true, .most_steps = 3});
  RC_PRE(asked.steps() > 1);
  asked.resume_at = 1;
  asked.evaluates = true;
  demand_one_process(subject, asked);
}

// Also what only runs beside training, such as dropout: a container that seeds torch makes it repeat itself.
void keeps_random_numbers(const Subject& subject, check::Contract contract) {
  Training asked = drawn(subject, contract, {.most_layers = 2});
  asked.seeds_torch = true;
  static_cast<void>(train(*subject.ranks, asked));  // raises; what comes out is other laws'
}

// --- what travels, and when ---

// Of each gradient, as what is trained here is fp32.
std::vector<std::int64_t> elements_of_gradients(const Training& asked) {
  std::vector<std::int64_t> elements;
  for (const Parameter& one : asked.parameters) {
    if (one.trains) elements.push_back(one.count());
  }
  return elements;
}

constexpr std::int64_t kBytes = size_of(DType::f32);

// Messages of buckets that are filled in reverse order of registration.
int packed(const Training& asked, double limit) {
  std::vector<std::int64_t> elements = elements_of_gradients(asked);
  std::ranges::reverse(elements);
  int buckets = 0;
  double held = 0;
  for (const std::int64_t one : elements) {
    const auto bytes = static_cast<double>(one * kBytes);
    if (buckets == 0 || held + bytes > limit) {
      ++buckets;
      held = 0;
    }
    held += bytes;
  }
  return buckets;
}

// Messages of a step that carry gradients. Where none reduces, ranks may gather gradients and sum them themselves, or
// reduce them on one rank. A class that reduces may gather what is no gradient, and whole numbers are flags where
// anything else travels.
std::vector<Sent> reduced_in(const std::vector<Sent>& all, int step) {
  using Kind = Sent::Kind;
  for (const std::vector<Kind>& way :
       {std::vector{Kind::all_reduce, Kind::reduce_scatter}, std::vector{Kind::all_gather}, std::vector{Kind::reduce},
        std::vector{Kind::whole_numbers}}) {
    std::vector<Sent> found;
    for (const Sent& one : all) {
      if (one.step == step && std::ranges::count(way, one.kind) > 0) found.push_back(one);
    }
    if (!found.empty()) return found;
  }
  return {};
}

std::string sends_nothing(int step) {
  return fmt::format("step {} calls no collective of torch.distributed that could sum gradients", step);
}

// What a bucket of at most `most` bytes may send: scattered and gathered, as many elements for each rank.
double sent_at_most(const Sent& one, int ranks, double most) {
  const bool in_parts = one.kind == Sent::Kind::reduce_scatter || one.kind == Sent::Kind::all_gather;
  if (!in_parts || std::isinf(most) || one.elements == 0) return most;
  const double size = static_cast<double>(one.bytes) / static_cast<double>(one.elements);
  return std::ceil(std::floor(most / size) / ranks) * ranks * size;
}

// Whether some gradient has no message of its own that could hold it. What a class sends besides, such as padding, is
// its own business.
std::optional<Wrong> wrong_sizes(const Training& asked, const std::vector<Sent>& sent, int step) {
  std::vector<std::int64_t> sizes = elements_of_gradients(asked), found;
  for (const Sent& one : sent) found.push_back(one.elements);
  std::ranges::sort(sizes);
  std::vector<Sent> ordered = sent;
  std::ranges::sort(ordered, {}, &Sent::elements);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (ordered[i].elements >= sizes[i]) continue;
    return fmt::format("step {} sends messages of {} elements, expected one for each gradient, of {} elements", step,
                       fmt::join(found, ", "), fmt::join(elements_of_gradients(asked), ", "));
  }
  return std::nullopt;
}

// A bucket has several gradients within the limit, or one alone.
std::optional<Wrong> wrong_buckets(const Training& asked, const std::vector<Sent>& sent, int step, double limit) {
  const std::vector<std::int64_t> sizes = elements_of_gradients(asked);
  const auto is_one = [&](const Sent& bucket, std::int64_t size) {
    const auto bytes = static_cast<double>(size * kBytes);
    return bytes > limit && bucket.elements >= size &&
           static_cast<double>(bucket.bytes) <= sent_at_most(bucket, asked.ranks, bytes);
  };
  std::int64_t sum = 0;
  for (const Sent& one : sent) {
    sum += one.elements;
    if (static_cast<double>(one.bytes) <= sent_at_most(one, asked.ranks, limit)) continue;
    if (std::ranges::any_of(sizes, [&](std::int64_t size) { return is_one(one, size); })) continue;
    return fmt::format("step {} sends a bucket of {} bytes: the limit is {:.0f}, and no single gradient has as many",
                       step, one.bytes, limit);
  }
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (sum < all) {
    return fmt::format("step {} reduces {} elements in buckets, the gradients have {}: others travel in another way",
                       step, sum, all);
  }
  const int most = packed(asked, limit);
  if (std::cmp_less_equal(sent.size(), most)) return std::nullopt;
  return fmt::format(
      "step {} sends {} messages for {} gradients, in buckets of at most {:.0f} bytes, filled in reverse order of "
      "registration, there are {}",
      step, sent.size(), sizes.size(), limit, most);
}

std::optional<Wrong> wrong_messages(const Subject& subject, const Training& asked, const Trained& found, double limit) {
  const std::vector<std::int64_t> sizes = elements_of_gradients(asked);
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  demand_all_counted(found.sent(0));
  for (int step = 0; step < asked.steps(); ++step) {
    const std::vector<Sent> sent = reduced_in(found.sent(0), step);
    if (sent.empty()) return sends_nothing(step);
    const std::string begin =
        fmt::format("step {} sends {} messages for {} gradients", step, sent.size(), sizes.size());
    std::optional<Wrong> wrong;
    switch (subject.strategy) {
      case Strategy::naive:
      case Strategy::individual:
        if (sent.size() != sizes.size()) return begin + ", expected one each";
        wrong = wrong_sizes(asked, sent, step);
        break;
      case Strategy::flat:
        if (sent.size() != 1) return begin + ", expected one for all";
        if (sent[0].elements < all) {
          wrong = fmt::format("step {} sends one message of {} elements, the gradients have {}", step, sent[0].elements,
                              all);
        }
        break;
      case Strategy::bucketed:
        wrong = wrong_buckets(asked, sent, step, limit);
    }
    if (wrong) return wrong;
  }
  return std::nullopt;
}

void messages(const Subject& subject, check::Contract contract) {
  const bool tied = property::draw<bool>("tied", {false, true});
  Training asked = draw_training(draw_ranks(contract, 2), {.frozen = true, .tied = tied});
  const double limit = draw_limit(subject, contract, asked);
  demand_none(asked, wrong_messages(subject, asked, train(*subject.ranks, asked), limit));
}

void overlaps(const Subject& subject, check::Contract contract) {
  Training asked = draw_training(draw_ranks(contract, 2), {.fewest_layers = 3, .most_layers = 5, .most_steps = 2});
  if (subject.strategy == Strategy::bucketed) asked.bucket_mb = 4 / 0x1p20;  // a gradient each
  const Trained found = train(*subject.ranks, asked);
  const std::size_t gradients = elements_of_gradients(asked).size();
  demand_all_counted(found.sent(0));
  for (int step = 0; step < asked.steps(); ++step) {
    const std::vector<Sent> sent = reduced_in(found.sent(0), step);
    if (sent.empty()) demand_none(asked, sends_nothing(step));
    const Sent& first = sent.front();
    if (!first.in_backward || std::cmp_greater_equal(first.ready, gradients)) {
      demand_none(asked,
                  fmt::format("in step {} the first message is sent when {} of {} gradients are final{}: nothing is "
                              "left of the backward pass to hide it",
                              step, first.ready, gradients, first.in_backward ? "" : ", behind the backward pass"));
    }
    if (!first.asynchronous) {
      const bool all = std::ranges::none_of(sent, &Sent::asynchronous);
      demand_none(asked, fmt::format("{} of step {} block{} the backward pass: expected async_op=True",
                                     all ? "all messages" : "the first message", step, all ? "" : "s"));
    }
  }
}

constexpr Entry kShared[] = {
    {"ddp.shares_parameters", "every rank begins with rank 0's parameters, also those that do not train",
     shares_parameters},
    {"ddp.equals_one_process",
     "gradients and weights are those of one process on the whole batch, to the bit; keyword arguments reach the "
     "module",
     equals_one_process},
    {"ddp.real_numbers", "numbers that need all bits of fp32 keep them: the same within what fp32 rounds",
     real_numbers},
    {"ddp.tied_weights", "a weight that is used twice is reduced once, after both uses", tied},
    {"ddp.waits", "nothing that travels is read before it was waited for", waits},
    {"ddp.messages", "a step sends as many messages, and as large, as the strategy promises", messages},
    {"ddp.shares_buffers", "every rank begins with rank 0's buffers", shares_buffers, LawInfo::Bound::all, kBeyond},
    {"ddp.unused_parameters", "parameters that a step does not use change nothing for the others", unused,
     LawInfo::Bound::all, kBeyond},
    {"ddp.any_order", "gradients may become final in any order, another in each step", any_order,
     LawInfo::Bound::handed_in, kBeyond},
    {"ddp.accumulated", "a second backward pass before the update adds to the gradients", accumulated,
     LawInfo::Bound::all, kBeyond},
    {"ddp.zero_grad", "gradients may be cleared to zeros or to None, now so and now so", zero_grad,
     LawInfo::Bound::handed_in, kBeyond},
    {"ddp.mixed_dtypes", "parameters in fp32 and fp64 may be side by side, and fp64 keeps its bits", mixed_dtypes,
     LawInfo::Bound::handed_in, kBeyond},
    {"ddp.resumes",
     "a new container that loads the state of another trains on as that one, and evaluates as the module", resumes,
     LawInfo::Bound::handed_in, kBeyond},
    {"ddp.strided_parameters", "parameters whose columns lie next to each other, not their rows, are reduced too",
     strided, LawInfo::Bound::handed_in, kBeyond},
    {"ddp.keeps_random_numbers", "making a container and training with it does not seed torch's random numbers",
     keeps_random_numbers, LawInfo::Bound::handed_in, kBeyond},
};
constexpr Entry kOverlap[] = {
    {"ddp.overlaps", "communication begins while the backward pass still computes", overlaps},
};

// The hand-out's tests look at how ranks begin and end, on real numbers too, and at waits.
bool asked_by_handout(const Entry& entry) {
  return entry.body == shares_parameters || entry.body == equals_one_process || entry.body == real_numbers ||
         entry.body == tied || entry.body == waits;
}

std::vector<const Entry*> entries(Strategy strategy) {
  std::vector<const Entry*> list;
  for (const Entry& one : kShared) list.push_back(&one);
  if (strategy == Strategy::individual || strategy == Strategy::bucketed) {
    for (const Entry& one : kOverlap) list.push_back(&one);
  }
  return list;
}

}  // namespace

std::vector<check::Law> laws(Strategy strategy, std::shared_ptr<CallChannel> ranks) {
  std::vector<check::Law> list;
  for (const Entry* entry : entries(strategy)) {
    list.push_back({.id = entry->id,
                    .statement = entry->statement,
                    .search =
                        [entry, subject = Subject{strategy, ranks}](const check::LawRequest& request) {
                          return search_of_ranks(
                              entry->id, request, entry->beyond,
                              [&](check::Contract contract) { entry->body(subject, contract); }, never_drawn());
                        },
                    .asked_by_handout = asked_by_handout(*entry)});
  }
  return list;
}

std::vector<LawInfo> law_list(Strategy strategy) {
  std::vector<LawInfo> list;
  for (const Entry* entry : entries(strategy)) {
    list.push_back({.id = entry->id,
                    .statement = entry->statement,
                    .bound = entry->bound,
                    .asked_by_handout = asked_by_handout(*entry)});
  }
  return list;
}

}  // namespace syslab::data_parallel
