#include "worker/timed_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/json_text.hpp"
#include "stats/summary.hpp"
#include "worker/emit_times.hpp"
#include "worker/foreign.hpp"
#include "worker/law_case.hpp"
#include "worker/rank_case.hpp"

namespace syslab::worker {
namespace {

constexpr int kLawCases = 4;                     // of each, before a time
constexpr std::int64_t kMostWeights = 1 << 22;   // that are compared
constexpr std::int64_t kWeightsAStep = 512;      // of each rank, as a step has left them
constexpr std::uint64_t kSeeds = 1ULL << 31;     // that every generator takes
constexpr double kFurther = 8, kRoundings = 16;  // of the bounds of weights
constexpr double kUnit = 0x1p-24;                // of fp32
constexpr double kPhasesAgree = 50,
                 kMeetingSeconds = 1e-3;    // of phases: 2 %, and what ranks' meeting takes (call_clock.cpp)
constexpr std::size_t kStepsThatTell = 10;  // of fewer, all may have met a rank that waits for a processor
constexpr double kFewAgree = 10, kWaitSeconds = 10e-3;  // then: 9 ms of a step of 70 were left out at load 6

// What a rank tells of a step, in the order of FIELDS in syslab_timing.py.
struct Told {
  double forward, backward, exposed, update, communicating, hidden, messages, bytes, loss, state, held, peak;
};
constexpr std::int64_t kFields = sizeof(Told) / sizeof(double);

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void hold_laws(CaseContext& context, const std::vector<check::Law>& laws) {
  for (const check::Law& law : laws) {
    context.progress(0, "searching " + law.id);
    check::LawRequest request;
    request.contract = check::Contract::handout;
    request.seed = context.request().seed;
    request.max_success = kLawCases;
    const check::LawResult found = law.search(request);
    if (found.outcome != check::Outcome::not_run) context.emit(check_record(law, request.contract, found));
    // It refused all that was asked, or so much that too little is known of it.
    if (found.outcome == check::Outcome::not_run || found.outcome == check::Outcome::gave_up) {
      throw Unsupported(fmt::format("not timed, since {} was not checked: {}", law.id, found.message));
    }
    if (found.outcome != check::Outcome::passed) {
      throw CheckFailed(fmt::format("not timed, since {} does not hold: {}", law.id, found.message));
    }
  }
}

class Training {
 public:
  Training(CaseContext& context, const TimedRanks& timed, std::shared_ptr<CallChannel> channel)
      : context_(context),
        timed_(timed),
        channel_(std::move(channel)),
        case_(timed.training),
        ranks_(timed.training.at("ranks").get<std::int64_t>()),
        tokens_(context.unforeseen("tokens")),
        told_(at(ranks_)) {
    for (const std::int64_t one : timed_.parameters) total_ += one;
    // Of full sharding each rank has parts, which only the class itself puts together.
    if (timed_.training.at("communicates") && timed_.training.at("way") != "fully_sharded") {
      a_step_ = std::min(total_, kWeightsAStep);
    }
    case_["seed"] = context.unforeseen("weights").bits(0) % kSeeds;
    channel_->call("open", {}, {}, {{"case", json_text(case_)}});
  }

  void refresh() {
    keep();
    const double seed = static_cast<double>(tokens_.bits(seeds_.size()) % kSeeds);
    seeds_.push_back(static_cast<std::uint64_t>(seed));
    const std::array<NamedInput, 1> inputs{{{"seed", {&seed, DType::f64, {1}}}}};
    channel_->call("refresh", inputs, {}, {});
  }

  void step() {
    const double number = static_cast<double>(seeds_.size());  // a call with an input is timed, and no question
    const std::array<NamedInput, 1> inputs{{{"number", {&number, DType::f64, {1}}}}};
    Params where;
    if (a_step_ > 0) {
      firsts_.push_back(
          static_cast<std::int64_t>(places_.bits(firsts_.size()) % static_cast<std::uint64_t>(step_stride())));
      where = {{"first", firsts_.back()}, {"stride", step_stride()}, {"count", a_step_}};
    }
    elapsed_ = channel_->call(kStepOfRanks, inputs, {}, where);
    ask();
    fresh_ = true;
  }

  double seconds() const { return Seconds(elapsed_).count(); }

  // After each step some weights were read, before whoever works on could end: those of one process after so many steps
  // say what they must have been. The furthest of all.
  StepCheck check_steps(std::span<const float> first, std::span<const float> second) const {
    StepCheck worst{.name = "weights behind each step", .tolerance = 1};
    const std::array<std::int64_t, 1> all{a_step_};
    for (std::size_t step = 0; step < after_.size(); ++step) {
      const auto of = [&](std::span<const float> values, std::size_t row) {
        return values.subspan(row * at(a_step_), at(a_step_));
      };
      for (std::size_t rank = 0; rank < at(ranks_); ++rank) {
        const double error = compare_weights(of(after_[step], rank), of(first, step), of(second, step), all).worst;
        if (error <= worst.error && !worst.message.empty()) continue;
        worst.error = error;
        worst.message = fmt::format(
            "{} weights of rank {} when step {} of {} had ended against those of one process, over their bound: what a "
            "step begins must have ended by then",
            a_step_, rank, step + 1, after_.size());
      }
    }
    return worst;
  }

  StepCheck check_loss() const {
    const bool is_number = std::ranges::all_of(told_, [](const Told& one) { return std::isfinite(one.loss); });
    return {.name = "loss",
            .error = is_number ? 0 : std::numeric_limits<double>::quiet_NaN(),
            .message = fmt::format("the mean over rank 0's rows is {}", told_[0].loss)};
  }

  // All steps so far were taken by one process as well: by the lab's own, once these ranks have ended.
  std::vector<StepCheck> check_weights() {
    const auto picked = pick();
    const std::int64_t count = picked.count;
    const Params where{{"first", picked.first}, {"stride", picked.stride}};
    std::vector<float> found(at(ranks_ * count)), alone(at(2 * count));
    const std::array<NamedOutput, 1> theirs{{{"weights", {found.data(), DType::f32, {ranks_, count}}}}};
    context_.progress(1, "comparing weights with those of one process");
    channel_->call("weights", {}, theirs, where);
    channel_->call("close", {}, {}, {});
    Params asked = where;
    asked.set("case", json_text(case_));
    std::string seeds;
    for (const std::uint64_t seed : seeds_) seeds += std::to_string(seed) + " ";
    asked.set("seeds", seeds);
    const auto steps = static_cast<std::int64_t>(after_.size());
    std::vector<float> after(at(2 * steps * a_step_));
    std::vector<NamedOutput> own{{"weights", {alone.data(), DType::f32, {2, count}}}};
    if (!after.empty()) {
      own.push_back({"after", {after.data(), DType::f32, {2, steps, a_step_}}});
      std::string firsts;
      for (const std::int64_t one : firsts_) firsts += std::to_string(one) + " ";
      asked.set("firsts", firsts);
      asked.set("step_stride", step_stride());
    }
    context_.lab_ranks()->call("alone", {}, own, asked);

    const std::span<const float> first(alone.data(), at(count)), second(alone.data() + count, at(count));
    std::vector<StepCheck> checks;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      const std::span<const float> own_weights(found.data() + rank * count, at(count));
      const WeightBounds bounds = compare_weights(own_weights, first, second, picked.elements);
      checks.push_back({.name = fmt::format("weights (rank {})", rank),
                        .error = bounds.worst,
                        .tolerance = 1,
                        .message = fmt::format("weights after {} steps against those of one process, over their bound; "
                                               "furthest in parameter {} of {}",
                                               seeds_.size(), bounds.parameter, timed_.parameters.size()),
                        .fraction = static_cast<double>(count) / static_cast<double>(picked.total)});
    }
    if (!after.empty()) {
      const auto half = std::span<const float>(after).subspan(0, after.size() / 2);
      checks.push_back(check_steps(half, std::span<const float>(after).subspan(after.size() / 2)));
    }
    return checks;
  }

  void keep() {
    if (std::exchange(fresh_, false)) kept_.push_back(told_);
  }
  std::int64_t ranks() const { return ranks_; }
  const std::vector<std::vector<Told>>& kept() const { return kept_; }
  const std::vector<Told>& last() const { return told_; }

 private:
  struct Picked {
    std::int64_t first = 0, stride = 1, count = 0, total = 0;
    std::vector<std::int64_t> elements;  // of each parameter that were picked
  };

  std::int64_t step_stride() const { return total_ / a_step_; }

  // What a step has left, in no time: some weights of each rank, which it has read behind its answer, and what it
  // tells.
  void ask() {
    std::vector<NamedOutput> outputs;
    if (a_step_ > 0) {
      std::vector<float>& found = after_.emplace_back(at(ranks_ * a_step_));
      outputs.push_back({"after", {found.data(), DType::f32, {ranks_, a_step_}}});
    }
    outputs.push_back({"told", {told_.data(), DType::f64, {ranks_, kFields}}});
    channel_->call("told", {}, outputs, {});
  }

  // Every so many, from a place on that nobody knows before.
  Picked pick() const {
    Picked made;
    made.total = total_;
    made.stride = std::max<std::int64_t>(1, (made.total + kMostWeights - 1) / kMostWeights);
    made.first =
        static_cast<std::int64_t>(context_.unforeseen("positions").bits(0) % static_cast<std::uint64_t>(made.stride));
    const auto before = [&](std::int64_t end) {  // picked positions below `end`
      return end <= made.first ? 0 : (end - made.first - 1) / made.stride + 1;
    };
    std::int64_t begin = 0;
    for (const std::int64_t one : timed_.parameters) {
      made.elements.push_back(before(begin + one) - before(begin));
      begin += one;
    }
    made.count = before(made.total);
    return made;
  }

  CaseContext& context_;
  const TimedRanks& timed_;
  std::shared_ptr<CallChannel> channel_;
  Json case_;
  std::int64_t ranks_, total_ = 0, a_step_ = 0;  // weights: all, and those that are read after each step
  RandomStream tokens_, places_ = context_.unforeseen("places");
  std::vector<std::uint64_t> seeds_;
  std::vector<std::int64_t> firsts_;       // of each step, where its weights begin
  std::vector<std::vector<float>> after_;  // of each step, rank after rank
  std::vector<Told> told_;
  std::vector<std::vector<Told>> kept_;
  Nanoseconds elapsed_{};
  bool fresh_ = false;
};

void emit_for_rank(CaseContext& context, std::int64_t rank, const std::string& name,
                   const std::vector<double>& seconds) {
  const int number = static_cast<int>(rank);
  context.emit(SampleRecord{.series = name, .unit = "s", .rank = number, .values = seconds});
  MetricRecord median = median_metric(name, "s", seconds);
  median.rank = number;
  context.emit(median);
}

// What emit_times() tells of rank 0, of the others: a step is one of all ranks.
void emit_same_time(CaseContext& context, std::int64_t rank, const std::vector<double>& seconds) {
  emit_for_rank(context, rank, "time", seconds);
  const stats::Summary summary = stats::summarize(seconds);
  for (const auto& [name, value] : {std::pair{"time_q1", summary.q1},
                                    {"time_q3", summary.q3},
                                    {"time_min", summary.min},
                                    {"time_mean", summary.mean},
                                    {"time_stddev", summary.standard_deviation}}) {
    context.emit(MetricRecord{.name = name, .unit = "s", .value = value, .rank = static_cast<int>(rank)});
  }
}

class Tale {
 public:
  Tale(CaseContext& context, const TimedRanks& timed, const Training& training, const std::vector<double>& seconds)
      : context_(context), timed_(timed), training_(training), seconds_(seconds) {}

  void tell() {
    const double time = stats::summarize(seconds_).median;
    double parameters = 0, loss = 0;
    for (const std::int64_t one : timed_.parameters) parameters += static_cast<double>(one);
    for (const Told& one : training_.last()) loss += one.loss / static_cast<double>(training_.ranks());
    const std::string doubt = phases_apart(longest_together(), seconds_);
    if (!doubt.empty()) context_.emit(FactRecord{json_text({{"suspect", doubt}})});
    for (std::int64_t rank = 0; rank < training_.ranks(); ++rank) {
      if (rank > 0) emit_same_time(context_, rank, seconds_);
      number(rank, "tokens_per_second", "1/s", timed_.tokens * static_cast<double>(training_.ranks()) / time);
      number(rank, "parameters", "1", parameters);
      number(rank, "loss", "1", loss);
      for (const auto& [name, phase] : kPhases) {
        doubt.empty() ? series(rank, name, phase) : missing(rank, name, "s", doubt.c_str());
      }
      of_last(rank, doubt);
    }
  }

 private:
  static constexpr std::array<std::pair<const char*, double Told::*>, 4> kPhases{{{"forward", &Told::forward},
                                                                                  {"backward", &Told::backward},
                                                                                  {"exposed", &Told::exposed},
                                                                                  {"update", &Told::update}}};

  // Of each step what its phases took on the rank that tells of most.
  std::vector<double> longest_together() const {
    std::vector<double> longest(seconds_.size(), 0);
    for (std::int64_t rank = 0; rank < training_.ranks(); ++rank) {
      std::vector<double> together(seconds_.size(), 0);
      for (const auto& [name, phase] : kPhases) {
        const std::vector<double> one = values(rank, phase);
        for (std::size_t i = 0; i < one.size(); ++i) together[i] += one[i];
      }
      for (std::size_t i = 0; i < together.size(); ++i) longest[i] = std::max(longest[i], together[i]);
    }
    return longest;
  }

  std::vector<double> values(std::int64_t rank, double Told::*field) const {
    const auto& all = training_.kept();
    std::vector<double> found;
    for (std::size_t i = all.size() - std::min(all.size(), seconds_.size()); i < all.size(); ++i) {
      found.push_back(all[i][at(rank)].*field);
    }
    return found;
  }
  void series(std::int64_t rank, const char* name, double Told::*field) {
    emit_for_rank(context_, rank, name, values(rank, field));
  }
  void number(std::int64_t rank, const char* name, const char* unit, double value) {
    context_.emit(MetricRecord{.name = name, .unit = unit, .value = value, .rank = static_cast<int>(rank)});
  }
  void missing(std::int64_t rank, const char* name, const char* unit, const char* why) {
    context_.emit(MetricRecord{.name = name, .unit = unit, .note = why, .rank = static_cast<int>(rank)});
  }

  void of_last(std::int64_t rank, const std::string& doubt) {
    const Told& last = training_.last()[at(rank)];
    const std::vector<double> busy = values(rank, &Told::communicating), hidden = values(rank, &Told::hidden);
    const bool known = std::ranges::all_of(busy, [](double one) { return std::isfinite(one); });
    constexpr const char* kUnseen =
        "what travels does not go through torch.distributed's functions, or tells not when it ends";
    if (known && doubt.empty() && (last.messages > 0 || !timed_.training.at("communicates").get<bool>())) {
      emit_for_rank(context_, rank, "communicating", busy);
      double whole = 0, under = 0;
      for (std::size_t i = 0; i < busy.size(); ++i) whole += busy[i], under += hidden[i];
      number(rank, "overlapped", "1", whole > 0 ? under / whole : 0);
      number(rank, "buckets", "1", last.messages);
      number(rank, "gradient_bytes", "B", last.bytes);
    } else {
      const char* const why = doubt.empty() ? kUnseen : doubt.c_str();
      missing(rank, "communicating", "s", why);
      missing(rank, "overlapped", "1", why);
    }
    number(rank, "optimizer_bytes", "B", last.state);
    number(rank, "weight_bytes", "B", last.held);
    if (std::isfinite(last.peak)) number(rank, "peak_memory", "B", last.peak);
  }

  CaseContext& context_;
  const TimedRanks& timed_;
  const Training& training_;
  const std::vector<double>& seconds_;
};

}  // namespace

WeightBounds compare_weights(std::span<const float> found, std::span<const float> alone,
                             std::span<const float> otherwise, std::span<const std::int64_t> elements) {
  const auto square = [](double value) { return value * value; };
  double apart_of_all = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) apart_of_all += square(double{alone[i]} - otherwise[i]);
  WeightBounds worst;
  std::size_t begin = 0;
  for (std::size_t parameter = 0; parameter < elements.size(); ++parameter) {
    const std::size_t end = begin + at(elements[parameter]);
    double distance = 0, apart = 0, size = 0;
    for (std::size_t i = begin; i < end; ++i) {
      distance += square(double{found[i]} - alone[i]);
      apart += square(double{alone[i]} - otherwise[i]);
      size += square(alone[i]);
    }
    const double share = apart_of_all * static_cast<double>(end - begin) / static_cast<double>(alone.size());
    const double bound = kFurther * std::sqrt(std::max(apart, share)) + kRoundings * kUnit * std::sqrt(size);
    const double ratio = distance == 0 ? 0 : std::sqrt(distance) / bound;
    if (!(ratio <= worst.worst))
      worst = {std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio, parameter};
    begin = end;
  }
  return worst;
}

std::string phases_apart(std::span<const double> told, std::span<const double> times) {
  const auto low = [](std::vector<double> values) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  if (told.empty()) return {};
  const double usual = low({times.begin(), times.end()}), sum = low({told.begin(), told.end()});
  std::vector<double> missing, beyond;
  for (std::size_t i = 0; i < told.size(); ++i) {
    missing.push_back(times[i] - told[i]);
    beyond.push_back(told[i] - times[i]);
  }
  const bool few = told.size() < kStepsThatTell;
  const double allowed = few ? usual / kFewAgree + kWaitSeconds : usual / kPhasesAgree + kMeetingSeconds;
  if (low(missing) <= allowed && low(beyond) <= allowed) return {};
  const auto text = [](double seconds) {
    return format_duration(std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)));
  };
  return fmt::format("its own clock tells of phases of {} together, the lab's of steps of {} (first deciles of {})",
                     text(sum), text(usual), told.size());
}

void run_timed_ranks(CaseContext& context, const TimedRanks& timed) {
  hold_laws(context, timed.laws);
  RankCase made;
  made.in_another_process = true;
  made.of_first = [](double own) { return own; };
  made.barrier = [] {};
  made.check = [](device::Stream) { return std::vector<StepCheck>{}; };
  made.start = [&](device::Stream) {
    const auto training = std::make_shared<Training>(
        context, timed, context.request().mine ? context.rank_channel() : context.lab_ranks());
    RankRun run;
    run.owner = training;
    RankSeries& steps = run.series.emplace_back();
    steps.refresh = [training] { training->refresh(); };
    steps.call = [training] { training->step(); };
    steps.self_time = [training] { return training->seconds(); };
    steps.verify = [training] { return training->check_loss(); };
    // Ranks that send nothing train apart, each on its own.
    if (timed.training.at("communicates")) steps.verify_all = [training] { return training->check_weights(); };
    run.tell = [training, &timed](CaseContext& told, const std::vector<std::vector<double>>& seconds) {
      training->keep();
      Tale(told, timed, *training, seconds[0]).tell();
    };
    return run;
  };
  run_rank_case(context, made);
}

}  // namespace syslab::worker
