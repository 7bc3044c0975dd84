#include "worker/case_context.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "worker/foreign.hpp"
#include "worker/metric_range.hpp"

namespace syslab::worker {
namespace {

struct Kept {
  std::string what;
  std::shared_ptr<ForeignWorker> worker;
};

Kept& kept() {
  static Kept one;
  return one;
}

// Which Python process a case needs; empty: none.
std::string process_for(const CaseRequest& request) {
  if (!request.mine || request.mine->python_class.empty()) return {};
  return fmt::format("{}\n{}\n{}\n{}\n{}", request.mine->path, request.mine->python_class, request.device,
                     request.memory_limit_bytes, request.world_size);
}

// No number leaves that a host would refuse; the note of its metric says what was found.
CaseContext::Emit checked(CaseContext::Emit emit) {
  return [emit = std::move(emit)](const Record& record) {
    const auto* metric = std::get_if<MetricRecord>(&record);
    emit(metric == nullptr ? record : Record(sendable(*metric)));
  };
}

}  // namespace

CaseContext::CaseContext(CaseRequest request, Emit emit, BurstLine* bursts)
    : request_(std::move(request)), emit_(checked(std::move(emit))), bursts_(bursts) {
  if (Kept& one = kept(); one.worker && (one.what != process_for(request_) || !one.worker->usable())) one = {};
}

BurstLine& CaseContext::bursts() {
  if (bursts_ == nullptr) throw Error(ErrorKind::internal, "nobody orders bursts of this case");
  return *bursts_;
}

// By experiment and case as well as by seed: two experiments of one run draw unrelated numbers under the same name.
RandomStream CaseContext::stream(std::string_view name) const {
  return RandomStream::derive(request_.seed, request_.experiment, request_.case_uid, name);
}

void CaseContext::metric(std::string name, std::string unit, double value) {
  MetricRecord record;
  record.name = std::move(name);
  record.unit = std::move(unit);
  record.value = value;
  record.rank = request_.rank;
  emit_(record);
}

void CaseContext::missing_metric(std::string name, std::string unit, std::string why) {
  MetricRecord record;
  record.name = std::move(name);
  record.unit = std::move(unit);
  record.note = std::move(why);
  record.rank = request_.rank;
  emit_(record);
}

void CaseContext::progress(double fraction, std::string text) { emit_(ProgressRecord{std::move(text), fraction}); }

std::shared_ptr<CallChannel> CaseContext::channel() {
  if (channel_) return channel_;
  if (!request_.mine || request_.mine->python_class.empty()) {
    throw Error(ErrorKind::internal, fmt::format("implementation '{}' of this case does not live in another process",
                                                 request_.implementation));
  }
  if (kept().worker) return channel_ = kept().worker;
  ForeignOptions options;
  options.command = python_worker_command(*request_.mine);
  options.device = request_.device;
  options.rank = request_.rank;
  options.world_size = request_.world_size;
  // On a GPU the limit is of another memory, and CUDA reserves more addresses than any limit of ours allows.
  options.memory_limit_bytes = request_.device == "cpu" ? request_.memory_limit_bytes : 0;
  options.own_group = false;  // the runner ends our group, and with it whatever the user's class has started
  kept() = {process_for(request_), std::make_shared<ForeignWorker>(std::move(options))};
  channel_ = kept().worker;
  return channel_;
}

}  // namespace syslab::worker
