// Laws of what lies between calls: a rung answers what it is asked now, whatever it was asked before and how often.
//
// A call is compared with another call, not with the oracle: a rung that is wrong by itself is the matter of other
// laws. So that new values have a known answer, they are the mirror image of the old ones: some features of q and k
// change their sign, which leaves all scores as they were, and some of v and dO, which come out with their sign
// changed. Every product and sum stays the same but for its sign, so what is exact stays exact. Of somebody's own,
// which is held to the hand-out's tolerance, v is twice as long besides, and so are the output, dQ and dK: the row term
// D of the backward pass, which no change of signs changes, is another one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/refusal.hpp"
#include "ops/attention/foreign.hpp"
#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"
#include "property_tests/attention/law_bodies.hpp"
#include "property_tests/on_device.hpp"
#include "property_tests/verdict.hpp"

namespace syslab::attention {
namespace {

using check::Observation;

// What one question gave; without gradients if it was the forward pass only.
struct Answer {
  ForwardValues forward;
  std::vector<double> dq, dk, dv;
};

// Changes the sign of every `step`th of `width` features.
std::vector<double> mirrored(std::vector<double> values, std::int64_t width, std::int64_t step) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (static_cast<std::int64_t>(i) % width % step == 0) values[i] = -values[i];
  }
  return values;
}
constexpr std::int64_t kOfKeys = 2, kOfValues = 3;  // steps: of q and k, and of v and dO
double longer_by(const Subject& subject) { return subject.wide() ? 2 : 1; }

std::vector<double> times(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

Sample mirror_of(const Subject& subject, Sample sample) {
  const std::int64_t width = sample.problem.head_dim;
  sample.q = mirrored(std::move(sample.q), width, kOfKeys);
  sample.k = mirrored(std::move(sample.k), width, kOfKeys);
  sample.v = times(mirrored(std::move(sample.v), width, kOfValues), longer_by(subject));
  sample.dout = mirrored(std::move(sample.dout), width, kOfValues);
  return sample;
}

// The answer that a mirrored question has, as that to the question itself.
Answer mirrored_back(const Subject& subject, Answer answer, std::int64_t width) {
  const double back = 1 / longer_by(subject);
  answer.forward.out = times(mirrored(std::move(answer.forward.out), width, kOfValues), back);
  answer.dq = times(mirrored(std::move(answer.dq), width, kOfKeys), back);
  answer.dk = times(mirrored(std::move(answer.dk), width, kOfKeys), back);
  answer.dv = mirrored(std::move(answer.dv), width, kOfValues);
  return answer;
}

Sample with_other_values(Sample sample) {
  sample.q = query_values(sample, "other q");
  sample.k = key_values(sample, "other k");
  sample.v = key_values(sample, "other v");
  if (!sample.dout.empty()) sample.dout = query_values(sample, "other dout");
  return sample;
}

using Sizes = std::vector<std::int64_t>;

// Sets `size` to another of `sizes`; false if there is none.
bool another(const Sizes& sizes, std::int64_t& size) {
  const auto found = std::ranges::find_if(sizes, [size](std::int64_t one) { return one != size; });
  if (found == sizes.end()) return false;
  size = *found;
  return true;
}

bool another_length(const Subject& subject, Problem& problem) {
  if (!another(subject.menu.seq_k, problem.seq_k)) return false;
  if (subject.menu.square) problem.seq_q = problem.seq_k;
  return true;
}

bool another_mask(const Subject& subject, Problem& problem) {
  const auto found = std::ranges::find_if(subject.menu.masks, [&](Mask mask) { return mask != problem.mask; });
  if (found == subject.menu.masks.end()) return false;
  problem.mask = *found;
  return true;
}

bool takes(const Subject& subject, const Problem& problem, Pass pass) { return !subject.rung.supports(problem, pass); }

// The same question of another length, or of another batch, and of every other seed of another width; nothing if the
// rung has only one of each.
std::optional<Sample> of_another_shape(const Subject& subject, Sample sample) {
  Problem& problem = sample.problem;
  if (!another_length(subject, problem) && !another(subject.menu.batch, problem.batch)) return std::nullopt;
  if (sample.seed % 2 != 0) another(subject.menu.head_dim, problem.head_dim);
  if (!takes(subject, problem, subject.asks_backward(problem) ? Pass::backward : Pass::forward)) return std::nullopt;
  return with_other_values(std::move(sample));
}

// What a forward pass between those of one question may differ in besides its values: state may be kept by any of it.
struct Intruder {
  Sample sample;
  const char* how = "";
};

Intruder intruder_of(const Subject& subject, const Sample& sample) {
  Sample other = sample;
  const char* how = "";
  switch (sample.seed / 2 % 4) {
    case 0:
      if (another_mask(subject, other.problem)) how = " under another mask";
      break;
    case 1:
      if (another(subject.menu.head_dim, other.problem.head_dim)) how = " of another width";
      break;
    case 2:
      if (another_length(subject, other.problem)) how = " of another length";
      break;
    default:
      break;
  }
  if (!takes(subject, other.problem, Pass::forward)) return {with_other_values(sample)};
  return {with_other_values(std::move(other)), how};
}

// Asks the rung again and again in the same memory, and compares with its first answer.
class Conversation {
 public:
  Conversation(const Subject& subject, const Sample& sample, Observation& observation)
      : subject_(subject),
        sample_(sample),
        observation_(observation),
        backward_(subject.asks_backward(sample.problem)),
        call_(backward_ ? call_backward(subject.rung, sample)
                        : BackwardCall{call_forward(subject.rung, sample), empty(), empty(), empty(), empty(), {}}),
        first_(answer()) {}

  bool backward() const { return backward_; }
  void ask_forward(const Sample& sample) { call_again(subject_.rung, sample, call_.forward); }
  void ask_backward(const Sample& sample) {
    if (backward_) call_backward_again(subject_.rung, sample, call_);
  }
  void ask(const Sample& sample) {
    ask_forward(sample);
    ask_backward(sample);
  }

  // The question and its mirror image in turns, in tensors of their own, all on their way before anything is waited
  // for. Fails unless each answer is the first.
  void demand_first_at_once(const Sample& mirror, int calls) {
    std::vector<const Sample*> samples;
    for (int i = 0; i < calls; ++i) samples.push_back(i % 2 == 0 ? &sample_ : &mirror);
    const auto demand_of = [&](std::size_t i, Answer found) {
      if (i % 2 != 0) found = mirrored_back(subject_, std::move(found), sample_.problem.head_dim);
      demand(fmt::format("call {} of {} at once, in {} streams", i + 1, calls, property::OnDevice::kLanes), found);
    };
    if (!backward_) {
      const std::vector<ForwardCall> asked = call_forward_at_once(subject_.rung, samples);
      for (std::size_t i = 0; i < asked.size(); ++i) demand_of(i, {values_of(asked[i]), {}, {}, {}});
      return;
    }
    const std::vector<BackwardCall> asked = call_backward_at_once(subject_.rung, samples);
    for (std::size_t i = 0; i < asked.size(); ++i) demand_of(i, answer_of(asked[i]));
  }

  // Fails unless the last answer is the first, within twice its bounds.
  void demand_first(const std::string& when) { demand(when, answer()); }
  void demand_mirrored_first(const std::string& when) {
    demand(when, mirrored_back(subject_, answer(), sample_.problem.head_dim));
  }

 private:
  static check::GuardedTensor empty() { return check::GuardedTensor({"", DType::f32, Shape{0}}); }

  static Answer answer_of(const BackwardCall& call) {
    return {values_of(call.forward), to_doubles(call.dq.view()), to_doubles(call.dk.view()),
            to_doubles(call.dv.view())};
  }
  Answer answer() const {
    if (!backward_) return {values_of(call_.forward), {}, {}, {}};
    return answer_of(call_);
  }

  void demand(const std::string& when, const Answer& found) {
    const auto same = [&](const char* name, const std::vector<double>& now, const Shape& shape,
                          const std::vector<double>& then, auto bounds) {
      if (now == then) return observation_.record(0, 0);
      try {
        property::demand_within(when + ": " + name, now, shape, then,
                                subject_.exact() ? std::vector{0.0} : twice(bounds()), observation_);
      } catch (const FoundFault& differs) {
        const bool finite = differs.finding() == FindingKind::wrong_value;
        property::fail(differs.what(), finite ? FindingKind::kept_state : differs.finding());
      }
    };
    const Sample& sample = sample_;
    same("out", found.forward.out, sample.query_shape(), first_.forward.out, [&] { return forward().out; });
    same("lse", found.forward.lse, sample.lse_shape(), first_.forward.lse, [&] { return forward().lse; });
    if (!backward_) return;
    same("dq", found.dq, sample.query_shape(), first_.dq, [&] { return gradients().dq; });
    same("dk", found.dk, sample.key_shape(), first_.dk, [&] { return gradients().dk; });
    same("dv", found.dv, sample.key_shape(), first_.dv, [&] { return gradients().dv; });
  }

  std::vector<double> twice(const Expected& expected) const {
    std::vector<double> tolerance = subject_.allowed(expected.value, expected.tolerance);
    for (double& bound : tolerance) bound *= 2;
    return tolerance;
  }

  check::GuardedTensor tensor(const Shape& shape, const std::vector<double>& values) const {
    return property::input("", sample_.problem.dtype, shape, contiguous_strides(shape), values);
  }
  ForwardOracle forward() const {
    const auto q = tensor(sample_.query_shape(), sample_.q), k = tensor(sample_.key_shape(), sample_.k),
               v = tensor(sample_.key_shape(), sample_.v);
    return forward_oracle(sample_.problem, q.view(), k.view(), v.view(), subject_.part(sample_.problem));
  }
  BackwardOracle gradients() const {
    const auto q = tensor(sample_.query_shape(), sample_.q), k = tensor(sample_.key_shape(), sample_.k),
               v = tensor(sample_.key_shape(), sample_.v), dout = tensor(sample_.query_shape(), sample_.dout);
    return backward_oracle(sample_.problem, q.view(), k.view(), v.view(), dout.view(), subject_.part(sample_.problem));
  }

  const Subject& subject_;
  const Sample& sample_;
  Observation& observation_;
  bool backward_;
  BackwardCall call_;
  Answer first_;
};

// A question in between, whose answer is nobody's business here, nor whether it is refused.
void ask_in_between(const Rung& rung, const Sample& sample, Pass pass) {
  try {
    pass == Pass::forward ? static_cast<void>(call_forward(rung, sample))
                          : static_cast<void>(call_backward(rung, sample));
  } catch (const Unsupported&) {
  } catch (const Refusal&) {
  }
}

}  // namespace

void keeps_no_state(const Subject& subject, Observation& observation) {
  const Sample sample = subject.draw(subject.drawn());
  const Sample mirror = mirror_of(subject, sample), others = with_other_values(sample);
  Conversation talk(subject, sample, observation);
  const Intruder intruder = intruder_of(subject, sample);
  if (talk.backward()) {
    talk.ask_forward(sample);
    ask_in_between(subject.rung, intruder.sample, Pass::forward);
    talk.ask_backward(sample);
    talk.demand_first(fmt::format("a backward pass after the forward pass of other tensors{}", intruder.how));
  }
  talk.ask(others);
  talk.ask(mirror);
  talk.demand_mirrored_first("new values in the same memory");
  if (const auto other = of_another_shape(subject, sample)) {
    ask_in_between(subject.rung, *other, talk.backward() ? Pass::backward : Pass::forward);
  }
  const Company company({.interleaved = intruder.sample.problem});
  talk.ask(sample);
  talk.demand_first(fmt::format(
      "asked again, after a call of another shape and with another call{} before its outputs were read", intruder.how));
}

void repeats(const Subject& subject, Observation& observation) {
  constexpr int kCalls = 12;
  const Sample sample = subject.draw(subject.drawn()), mirror = mirror_of(subject, sample);
  Conversation talk(subject, sample, observation);
  for (int call = 2; call <= kCalls; ++call) {
    const std::string when = fmt::format("call {} of {}", call, kCalls);
    if (call % 2 == 0) {
      talk.ask(mirror);
      talk.demand_mirrored_first(when);
    } else {
      talk.ask(sample);
      talk.demand_first(when);
    }
  }
  // What calls share without the stream's order, such as memory of the library's own, only shows here.
  constexpr int kAtOnce = 6;
  if (subject.rung.device == device::Kind::cuda && !subject.rung.last_call_time) {
    talk.demand_first_at_once(mirror, kAtOnce);
  }
  if (!subject.rung.domain || !subject.rung.domain->has_streams) return;
  constexpr int kInCompany = 2;
  const Company company({.streams = property::OnDevice::kLanes});
  for (int call = 1; call <= kInCompany; ++call) {
    talk.ask(sample);
    talk.demand_first(
        fmt::format("while calls of other values run in {} other streams", property::OnDevice::kLanes - 1));
  }
}

// The process of an implementation is watched between calls: what it writes after it has returned fails the next call
// (src/worker/judged/foreign.cpp). So here nothing is compared; there is only time for such a write.
void finishes_when_it_returns(const Subject& subject, Observation&) {
  constexpr std::chrono::milliseconds kPause{2};
  const Sample sample = subject.draw(subject.drawn());
  if (!subject.asks_backward(sample.problem)) {
    ForwardCall call = call_forward(subject.rung, sample);
    std::this_thread::sleep_for(kPause);
    call_again(subject.rung, sample, call);
    return;
  }
  BackwardCall call = call_backward(subject.rung, sample);
  std::this_thread::sleep_for(kPause);
  call_backward_again(subject.rung, sample, call);
}

}  // namespace syslab::attention
