#include "runner/intake.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/units.hpp"

namespace syslab::runner {
namespace {

constexpr std::size_t kMostRecords = 1'000'000;
constexpr std::size_t kMostRecordBytes = 256U << 20;

}  // namespace

std::optional<worker::ProgressRecord> Intake::take(const std::string& text) {
  const Json message = parse_message(text);
  if (ending.end) {
    throw Error(ErrorKind::comm,
                fmt::format("the worker sent {} after its end", json_text(message.value("type", Json()))));
  }
  worker::Record record = record_of(message);
  if (auto* progress = std::get_if<worker::ProgressRecord>(&record)) {
    ending.last_progress = progress->text;
    return std::move(*progress);
  }
  if (const auto* end = std::get_if<worker::EndRecord>(&record)) {
    ending.end = *end;
    return std::nullopt;
  }
  record_bytes_ += text.size();
  if (ending.records.size() >= kMostRecords || record_bytes_ > kMostRecordBytes) {
    throw Error(ErrorKind::comm, fmt::format("the case sent more than an attempt may hold ({} records or {})",
                                             kMostRecords, format_bytes(kMostRecordBytes)));
  }
  ending.records.push_back(std::move(record));
  return std::nullopt;
}

worker::Record Intake::record_of(const Json& message) const {
  try {
    return worker::record_from_json(message);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}, {}", sender, error.what()));
  }
}

bool Intake::accept(const std::string& text, std::optional<worker::ProgressRecord>& progress) {
  try {
    if (auto taken = take(text)) progress = std::move(taken);
    return true;
  } catch (const Error& error) {
    ending.wire_error = error.what();
    return false;
  }
}

void Intake::bury(WorkerProcess& worker) {
  Remains remains = worker.bury();
  std::optional<worker::ProgressRecord> progress;
  for (const std::string& text : remains.late) {
    if (!ending.wire_error.empty() || !accept(text, progress)) break;
  }
  if (ending.wire_error.empty()) ending.wire_error = remains.broken;
  ending.exit = remains.exit;
  ending.pending_bytes = remains.pending_bytes;
  ending.stderr_tail = std::move(remains.stderr_tail);
  ending.last_lines = std::move(remains.last_lines);
}

}  // namespace syslab::runner
