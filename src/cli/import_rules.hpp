// Rules for another program's log beyond the wire format's syntax, so that its numbers mean the same as ours in tables.
// Everything throws Error(usage) with what was found.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "registry/registry.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::cli {

using UtcTime = std::chrono::sys_time<std::chrono::milliseconds>;

// "2026-05-01T12:34:56.789Z", with up to nine digits of a second or none; `key` names it in the message. Neither before
// 1970 nor more than a day ahead of this machine's clock: an attempt of the future would stay the newest for ever.
UtcTime utc_time(const char* key, std::string_view text);
// As the store writes times, with milliseconds: they are compared as texts.
std::string to_text(UtcTime time);

// Ranks within the case's world; declared metrics in their declared units; intervals around their values; times that
// can be times; checks that passed within their own tolerances.
void check_record(const worker::Record& record, const registry::Experiment& experiment, int world_size);

// The same of a whole case: a metric in seconds that has the name of a series of its rank is the median or the mean of
// its samples, and `n` is their number.
void check_metrics_against_samples(std::span<const worker::Record> records);

}  // namespace syslab::cli
