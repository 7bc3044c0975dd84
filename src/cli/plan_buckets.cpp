// plan-buckets: the planner for models that are not ours. Their trace gives the time when each gradient is final; the
// time of an all-reduce was measured here, or is given as a law. A file of the main program, because it includes both
// towers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell_word.hpp"
#include "core/text/units.hpp"
#include "planning/ddp_caps.hpp"
#include "planning/gradient_trace.hpp"
#include "planning/planner.hpp"
#include "session/stored_case.hpp"
#include "store/cells.hpp"
#include "store/store.hpp"

namespace syslab::cli {
namespace {

using parallel::TransferCurve;
using parallel::TransferPoint;

constexpr std::uint64_t kLargestTrace = std::uint64_t{2} << 30;
constexpr Seconds kSlack{1e-4};  // for fewer buckets, since each costs the host time
constexpr const char* kMeasured = "distributed_communication_single_node";

std::string trace_text(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("there is no file '{}'; --trace names one", file));
  }
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("--trace '{}' is a folder; name the file", file));
  }
  return read_user_file(file, kLargestTrace);
}

// A number without a unit would mean seconds, or bytes a second: nobody means those here.
bool ends_without_unit(std::string_view text) {
  return !text.empty() && std::string_view("0123456789.").find(text.back()) != std::string_view::npos;
}

double rate_option(const std::string& text) {
  std::string number = text;
  const std::string_view amount = std::string_view(text).substr(0, text.size() - (text.ends_with("/s") ? 2 : 0));
  if (ends_without_unit(amount)) {
    throw Error(ErrorKind::usage, fmt::format("--beta '{}' has no unit; write 313GB/s or 2Gi/s", text));
  }
  for (const std::string_view unit : {"/s", "B"}) {
    if (number.ends_with(unit)) number.resize(number.size() - unit.size());
  }
  const std::optional<std::uint64_t> bytes = parse_bytes(number);
  if (!bytes || *bytes == 0) {
    throw Error(ErrorKind::usage, fmt::format("--beta '{}' is no rate; write 313GB/s or 2Gi/s", text));
  }
  return static_cast<double>(*bytes);
}

struct Link {
  TransferCurve curve;
  std::string text;
  std::int64_t largest = 0;  // size that was measured, in bytes; 0: a law holds for all
};

// A straight line through the law at both ends of the range that a plan can ask for.
Link link_by_law(const std::string& alpha, const std::string& beta, std::int64_t whole) {
  const std::optional<Nanoseconds> overhead = parse_duration(alpha);
  if (!overhead || overhead->count() < 0) {
    throw Error(ErrorKind::usage, fmt::format("--alpha '{}' is no duration; write 34us", alpha));
  }
  if (overhead->count() != 0 && ends_without_unit(alpha)) {
    throw Error(ErrorKind::usage, fmt::format("--alpha '{}' has no unit; write 34us", alpha));
  }
  const parallel::AffineTransfer law{Seconds(*overhead), rate_option(beta)};
  std::vector<TransferPoint> points{{1, law.time(1)}};
  if (whole > 1) points.push_back({whole, law.time(static_cast<double>(whole))});
  return {TransferCurve(std::move(points)), fmt::format("all-reduce of S bytes: {} + S / {:.4g} GB/s, as told",
                                                        format_duration(*overhead), law.bytes_per_second * 1e-9)};
}

// Sizes and times of one implementation on this many ranks of one device.
struct Measurements {
  std::map<std::int64_t, Seconds> times;
  std::string run;
};

bool chooses_link(const PlanBucketsOptions& options) {
  return options.ranks || !options.implementation.empty() || !options.device.empty() || !options.protocol.empty();
}

Link link_measured(const std::string& database, const PlanBucketsOptions& options) {
  const store::Store store = store::Store::open(database, store::Mode::read_only);
  // Back-to-back calls give the distance of buckets that queue up. The newest measurement of a size comes first.
  const store::ResultSet found = store.query(
      "SELECT v.implementation, v.world_size, v.device, v.protocol, b.value AS bytes, p.value AS seconds, v.run_uid"
      "  FROM v_measured v"
      "  JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'payload_bytes' AND b.rank = 0"
      "  JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'pipelined' AND p.value > 0"
      "   AND p.rank = (SELECT min(q.rank) FROM metric q WHERE q.attempt_id = v.attempt_id AND q.name = 'pipelined')"
      " WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.operation' = 'all_reduce'"
      " ORDER BY v.run_order DESC",
      {store::text_cell(kMeasured)});
  std::map<std::string, Measurements> groups;
  for (const auto& row : found.rows) {
    if (!options.implementation.empty() && row[0].text != options.implementation) continue;
    if (options.ranks && row[1].integer != *options.ranks) continue;
    if (!options.device.empty() && row[2].text != options.device) continue;
    if (!options.protocol.empty() && row[3].text != options.protocol) continue;
    Measurements& group = groups[fmt::format("--impl {} --ranks {} --device {} --protocol {}", shell_word(row[0].text),
                                             row[1].integer, shell_word(row[2].text), shell_word(row[3].text))];
    group.times.emplace(std::llround(row[4].real), Seconds(row[5].real));
    if (group.run.empty()) group.run = row[6].text;
  }
  if (groups.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' holds no all-reduce{} that was measured among several ranks; `syslab run {} --preset "
                            "curve -a operation=all_reduce` measures a curve, --alpha and --beta tell a law instead",
                            database, chooses_link(options) ? " of those named" : "", kMeasured));
  }
  if (groups.size() > 1) {
    std::string names;
    for (const auto& [name, group] : groups) names += "\n  " + name;
    throw Error(ErrorKind::usage, fmt::format("'{}' holds several links; say which one is meant:{}", database, names));
  }
  const auto& [name, group] = *groups.begin();
  std::vector<TransferPoint> points;
  for (const auto& [bytes, time] : group.times) points.push_back({bytes, time});
  const std::int64_t largest = points.back().bytes;
  std::string text =
      fmt::format("all-reduce of {} {}, up to {}; {}; run {}", points.size(), points.size() == 1 ? "size" : "sizes",
                  format_bytes(static_cast<std::uint64_t>(largest)), name, group.run);
  return {TransferCurve(std::move(points)), std::move(text), largest};
}

double ms(Seconds time) { return 1e3 * time.count(); }
double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// One bucketing, as a row of the comparison.
struct Choice {
  std::string name;
  parallel::BucketTimeline timeline;
};

Json to_json(const Choice& choice) {
  return {{"name", choice.name},
          {"buckets", choice.timeline.buckets.size()},
          {"exposed_ms", ms(choice.timeline.exposed())},
          {"end_ms", ms(choice.timeline.end())}};
}

class Advice {
 public:
  Advice(const parallel::GradientTrace& trace, Link link)
      : trace_(trace),
        link_(std::move(link)),
        pieces_(trace.pieces()),
        ready_(trace.ready()),
        forecast_(parallel::schedule_buckets(pieces_, ready_, link_.curve, kSlack)),
        caps_(parallel::best_ddp_caps(pieces_, ready_, link_.curve, kSlack)) {
    choices_.push_back({fmt::format("planned: the fewest buckets within {:.4g} ms of the best, {:.4g} ms", ms(kSlack),
                                    ms(forecast_.best_end - forecast_.timeline.backward_end())),
                        forecast_.timeline});
    choices_.push_back({fmt::format("DDP, bucket_cap_mb={}, first bucket {:.4g} MiB", told_cap(caps_, pieces_),
                                    mebibytes(caps_.first)),
                        caps_.timeline});
    const auto ddp = parallel::ddp_with(parallel::kDdpFirst, parallel::kDdpCap, pieces_, ready_, link_.curve);
    choices_.push_back({"DDP as it comes: 25, first bucket 1 MiB", ddp.timeline});
    choices_.push_back({"one all-reduce a gradient", simulate(parallel::schedule_one_each(pieces_))});
    choices_.push_back({"one all-reduce of all", simulate(parallel::schedule_flat(pieces_))});
  }

  // A lower bound: no bucketing exposes less.
  Seconds bound() const { return std::max(forecast_.bound - forecast_.timeline.backward_end(), Seconds(0)); }
  bool beyond_curve() const { return link_.largest > 0 && pieces_.bytes() > link_.largest; }
  std::int64_t largest_measured() const { return link_.largest; }

  Json json() const {
    Json buckets = Json::array();
    for (std::size_t i = 0; i < forecast_.timeline.buckets.size(); ++i) {
      const parallel::BucketTimes& bucket = forecast_.timeline.buckets[i];
      Json names = Json::array();
      for (int piece = begin(i); piece < end(i); ++piece) names.push_back(pieces_[piece].name);
      buckets.push_back({{"bytes", bucket.bytes},
                         {"ready_ms", ms(bucket.ready)},
                         {"start_ms", ms(bucket.start)},
                         {"end_ms", ms(bucket.end)},
                         {"gradients", std::move(names)}});
    }
    Json compared = Json::array();
    for (const Choice& choice : choices_) compared.push_back(to_json(choice));
    return {{"trace",
             {{"from", trace_.from},
              {"gradients", trace_.gradients.size()},
              {"bytes", pieces_.bytes()},
              {"steps", trace_.steps},
              {"backward_ms", ms(forecast_.timeline.backward_end())}}},
            {"link", link_.text},
            {"beyond_measured_sizes", beyond_curve()},
            {"bound_exposed_ms", ms(bound())},
            {"best_exposed_ms", ms(forecast_.best_end - forecast_.timeline.backward_end())},
            {"buckets", std::move(buckets)},
            {"ddp", {{"bucket_cap_mb", told_cap(caps_, pieces_)}, {"first_bucket_bytes", caps_.first}}},
            {"compared", std::move(compared)}};
  }

  std::string text(const Console& console) const {
    std::string text;
    const auto line = [&](std::string_view name, const std::string& what) {
      text += fmt::format("{:<9}{}\n", name, what);
    };
    line("gradients", fmt::format(" {}, {}; from {}, {}", trace_.gradients.size(),
                                  format_bytes(static_cast<std::uint64_t>(pieces_.bytes())), trace_.from,
                                  trace_.steps == 1 ? "one step" : fmt::format("{} steps", trace_.steps)));
    line("backward", fmt::format(" {:.4g} ms until the last of them is final", ms(forecast_.timeline.backward_end())));
    line("link", " " + link_.text);
    line("bound", fmt::format(" {:.4g} ms exposed at least, however they are bucketed", ms(bound())));
    text += "\n" +
            console.styled(fmt::format("{:>8} {:>13} {:>10}", "buckets", "exposed [ms]", "end [ms]"), Style::bold) +
            "\n";
    for (const Choice& choice : choices_) {
      text += fmt::format("{:>8} {:>13.4g} {:>10.4g}  {}\n", choice.timeline.buckets.size(),
                          ms(choice.timeline.exposed()), ms(choice.timeline.end()), choice.name);
    }
    text += "\n" +
            console.styled(fmt::format("{:>6} {:>10} {:>10} {:>10} {:>10}  {}", "bucket", "MiB", "ready [ms]",
                                       "start [ms]", "end [ms]", "gradients of the plan"),
                           Style::bold) +
            "\n";
    for (std::size_t i = 0; i < forecast_.timeline.buckets.size(); ++i) {
      const parallel::BucketTimes& bucket = forecast_.timeline.buckets[i];
      text += fmt::format("{:>6} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g}  {}\n", i + 1, mebibytes(bucket.bytes),
                          ms(bucket.ready), ms(bucket.start), ms(bucket.end), names(i));
    }
    return text + fmt::format(
                      "\nfor PyTorch: DistributedDataParallel(model, bucket_cap_mb={}), and before it\n"
                      "torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = {}\n",
                      told_cap(caps_, pieces_), caps_.first);
  }

 private:
  parallel::BucketTimeline simulate(const parallel::BucketSchedule& plan) const {
    return parallel::simulate(plan, pieces_, ready_, link_.curve);
  }
  int begin(std::size_t bucket) const { return forecast_.schedule.begin(static_cast<int>(bucket)); }
  int end(std::size_t bucket) const { return forecast_.schedule.end(static_cast<int>(bucket)); }

  // "lm_head.weight … layers.11.norm.weight (9)"
  std::string names(std::size_t bucket) const {
    const int count = end(bucket) - begin(bucket);
    if (count == 1) return pieces_[begin(bucket)].name;
    return fmt::format("{} … {} ({})", pieces_[begin(bucket)].name, pieces_[end(bucket) - 1].name, count);
  }

  const parallel::GradientTrace& trace_;
  Link link_;
  parallel::GradientPieces pieces_;
  std::vector<Seconds> ready_;
  parallel::Forecast forecast_;
  parallel::DdpCaps caps_;
  std::vector<Choice> choices_;
};

}  // namespace

Exit execute(const Context& context, const PlanBucketsOptions& options) {
  if (options.alpha && (options.curve || chooses_link(options))) {
    throw Error(ErrorKind::usage,
                "--alpha and --beta tell a law, --curve, --impl, --ranks, --device and --protocol choose measurements: "
                "give one or the other");
  }
  const std::string contents = trace_text(options.trace);
  const parallel::GradientTrace trace = [&] {
    try {
      return parallel::read_gradient_trace(contents);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("'{}': {}", options.trace, one_line(error.what())));
    }
  }();
  if (!options.alpha) {
    if (!options.curve) {
      require_database(context);
    } else if (std::error_code ignored; !std::filesystem::exists(*options.curve, ignored)) {
      throw Error(ErrorKind::usage, fmt::format("there is no database '{}'; --curve names one with measurements of {}",
                                                *options.curve, kMeasured));
    }
  }
  const std::int64_t whole = trace.pieces().bytes();
  const Advice advice(trace, options.alpha ? link_by_law(*options.alpha, *options.beta, whole)
                                           : link_measured(options.curve.value_or(context.global.database), options));
  if (advice.beyond_curve()) {
    context.console.note(fmt::format("sizes beyond {} were not measured: they count as slow a byte as that one",
                                     format_bytes(static_cast<std::uint64_t>(advice.largest_measured()))));
  }
  if (context.console.json()) {
    context.console.print_document(advice.json());
  } else {
    context.console.print(advice.text(context.console));
  }
  return Exit::well;
}

}  // namespace syslab::cli
