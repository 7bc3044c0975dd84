#include "runner/ranks/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "runner/ranks/gang.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {
namespace {

using Kernel = std::pair<std::string, std::string>;  // code, name

Json without(const std::string& why) { return {{"why", why}}; }

std::map<Kernel, std::int64_t> kernels_of(const Json& code) {
  std::map<Kernel, std::int64_t> launches;
  for (const Json& one : code.at("kernels")) {
    launches[{one.at("code").get<std::string>(), one.at("name").get<std::string>()}] +=
        one.at("launches").get<std::int64_t>();
  }
  return launches;
}

Json told_by(const Json& facts) {
  return facts.is_object() && facts.contains("code") && facts["code"].is_object() ? facts["code"] : without("");
}

Json asked_of_ranks(const worker::CaseRequest& measured, const WorkerProcess::Command& command,
                    std::chrono::milliseconds limit_of_waits, std::chrono::milliseconds patience, Watch& watch) {
  worker::CaseRequest ask = measured;
  ask.task = Task::code;
  ask.kernel_code = false;
  const OomWitness witness;
  Gang gang(ask, command, limit_of_waits);
  gang.hear({}, {}, {Clock::now() + patience, watch, {}});
  const bool well = gang.ended_well();
  std::vector<RankEnding> endings = gang.endings();
  MeasureSpec spec = ask;
  spec.timeout = patience;
  const Launch launch = judge_ranks(endings, spec, witness);
  if (!well) return without("the ranks that listen: " + first_line(launch.detail));
  std::vector<Json> of_ranks;
  const Json facts = parse_json(launch.facts_json);
  for (const Json& rank : facts.at("ranks")) of_ranks.push_back(told_by(rank));
  return joined_code(of_ranks);
}

// How much of a run may go into questions.
class Allowance {
 public:
  bool is_left() const { return asking_ <= std::chrono::minutes(1) + (Clock::now() - first_) / 4; }
  void took(Clock::duration time) { asking_ += time; }

 private:
  Clock::time_point first_ = Clock::now();
  Clock::duration asking_{};
};

}  // namespace

Json joined_code(const std::vector<Json>& of_ranks) {
  if (of_ranks.empty()) return without("no rank told of its kernels");
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].contains("digest")) continue;
    const auto told = of_ranks[rank].find("why");  // of a foreign worker anything
    const std::string why =
        told != of_ranks[rank].end() && told->is_string() ? told->get<std::string>() : std::string();
    return without(fmt::format("rank {}: {}", rank, why.empty() ? "it told of no kernels" : why));
  }
  std::vector<std::map<Kernel, std::int64_t>> each;
  try {
    std::ranges::transform(of_ranks, std::back_inserter(each), kernels_of);
  } catch (const Json::exception&) {
    return without("a rank told of kernels that cannot be read");
  }
  Sha256 digest;
  std::map<Kernel, std::int64_t> all;
  Json differ = Json::array();
  for (std::size_t rank = 0; rank < each.size(); ++rank) {
    digest.update(fmt::format("rank {}\n", rank));
    std::map<std::string, std::int64_t> launches;  // by code: names are for people
    for (const auto& [kernel, count] : each[rank]) {
      launches[kernel.first] += count;
      all[kernel] += count;
    }
    for (const auto& [code, count] : launches) digest.update(fmt::format("{} {}\n", code, count));
    if (each[rank] != each[0]) differ.push_back(rank);
  }
  Json code{{"digest", hex_of(digest.finish())}, {"kernels", Json::array()}};
  for (const auto& [kernel, count] : all) {
    code["kernels"].push_back({{"name", kernel.second}, {"code", kernel.first}, {"launches", count}});
  }
  if (!differ.empty()) code["ranks_differ"] = std::move(differ);
  return code;
}

bool is_code_of_ranks_wanted() { return environment_variable("SYSLAB_KERNEL_CODE") == "ranks"; }

std::string with_code_of_ranks(const std::string& facts, const worker::CaseRequest& measured,
                               const WorkerProcess::Command& command, std::chrono::milliseconds limit_of_waits,
                               Clock::time_point deadline, Watch& watch) {
  Json all = parse_json(facts);
  if (!all.is_object() || !all.contains("code")) return facts;
  static Allowance allowance;
  const auto began = Clock::now();
  const std::chrono::milliseconds patience = worker::patience_within(deadline - began);
  Json code;
  if (!allowance.is_left()) {
    code = without("its kernels were asked for in earlier cases");
  } else if (patience.count() <= 0) {
    code = without("too little of --timeout was left");
  } else {
    try {
      code = asked_of_ranks(measured, command, limit_of_waits, patience, watch);
    } catch (const Error& error) {
      code = without(error.what());
    }
    allowance.took(Clock::now() - began);
  }
  all["code"] = std::move(code);
  for (const char* each : {"ranks", "launches"}) {
    if (!all.contains(each)) continue;
    for (Json& one : all[each]) {
      if (one.is_object()) one.erase("code");
      if (one.is_object() && one.contains("ranks")) {
        for (Json& rank : one["ranks"]) rank.erase("code");
      }
    }
  }
  return repaired_json_text(all);
}

}  // namespace syslab::runner
