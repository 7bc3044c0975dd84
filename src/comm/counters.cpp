#include "comm/counters.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text/units.hpp"

namespace syslab::comm {

namespace {

void take(Counters::Row& sum, const Counters::Row& row) {
  sum.calls += row.calls;
  sum.payload_bytes += row.payload_bytes;
  sum.moved_bytes += row.moved_bytes;
  sum.wire_bytes += row.wire_bytes;
}

std::uint64_t payload_of(const Signature& signature, int size) {
  const bool in_parts =
      signature.operation == Operation::reduce_scatter || signature.operation == Operation::all_gather;
  return signature.bytes() * (in_parts ? static_cast<std::uint64_t>(size) : 1);
}

}  // namespace

Counters::Row& Counters::row(const Signature& signature) {
  for (Row& row : rows_) {
    if (row.operation == signature.operation && row.kind == signature.kind.view()) return row;
  }
  return rows_.emplace_back(Row{.operation = signature.operation, .kind = std::string(signature.kind.view())});
}

void Counters::add(const Signature& signature) {
  const std::lock_guard lock(mutex_);
  Row& at = row(signature);
  ++at.calls;
  at.payload_bytes += payload_of(signature, size_);
  at.wire_bytes = wire_bytes(at.operation, size_, at.payload_bytes);
}

void Counters::add_moved(const Signature& signature, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  row(signature).moved_bytes += bytes;
}

std::vector<Counters::Row> Counters::rows() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

Counters::Row Counters::total(std::string_view kind) const {
  Row sum;
  sum.kind = kind;
  for (const Row& row : rows()) {
    if (kind.empty() || row.kind == kind) take(sum, row);
  }
  return sum;
}

Counters::Row Counters::total(Operation operation, std::string_view kind) const {
  Row sum;
  sum.operation = operation;
  sum.kind = kind;
  for (const Row& row : rows()) {
    if (row.operation == operation && (kind.empty() || row.kind == kind)) take(sum, row);
  }
  return sum;
}

std::string Counters::text() const {
  std::string text;
  for (const Row& row : rows()) {
    text += fmt::format("{} {}: {} calls, {} of payload, {} on the wire by the formula\n", to_string(row.operation),
                        row.kind, row.calls, format_bytes(row.payload_bytes),
                        format_bytes(static_cast<std::uint64_t>(std::llround(row.wire_bytes))));
  }
  return text;
}

}  // namespace syslab::comm
