#include "comm/rendezvous/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "comm/rendezvous/socket.hpp"
#include "core/build_info.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

using std::chrono::milliseconds;

std::string key_of(std::string_view name, int rank) { return fmt::format("{}/{}", name, rank); }

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

milliseconds since(Clock::time_point begin) { return std::chrono::duration_cast<milliseconds>(Clock::now() - begin); }

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last - first < 2) last = first;  // "0, 1" reads better than "0–1"
    parts.push_back(last == first ? std::to_string(ranks[first]) : fmt::format("{}–{}", ranks[first], ranks[last]));
    first = last + 1;
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

Rendezvous::Rendezvous(const RendezvousOptions& options) : options_(options), rank_(options.rank), size_(options.size) {
  if (options_.build.empty()) {
    const BuildInfo& build = build_info();
    options_.build = fmt::format("{} {}{}", build.version, build.git_sha,
                                 build.git_diff.empty() ? "" : "+" + build.git_diff.substr(0, 12));
  }
}

void Rendezvous::say(const std::string& text) const {
  const std::string line = fmt::format("rank {} of {}: {}", rank_, size_, text);
  if (options_.say) {
    options_.say(line);
  } else {
    fmt::print(stderr, "syslab: {}\n", line);
  }
}

std::string Rendezvous::get(std::string_view key, milliseconds limit) {
  if (auto found = find(key, limit)) return *found;
  throw RankError(Fault::late,
                  fmt::format("rank {} waited {:.1f} s for '{}', which no rank has set", rank_, seconds(limit), key));
}

std::vector<std::string> Rendezvous::gather(std::string_view name, std::string_view text, milliseconds limit) {
  const Clock::time_point begin = Clock::now();
  bool noticed = false;
  set(key_of(name, rank_), text);
  std::vector<std::string> all(static_cast<std::size_t>(size_));
  std::vector<int> missing;
  const auto look = [&] {
    missing.clear();
    for (int rank = 0; rank < size_; ++rank) {
      if (!find(key_of(name, rank), milliseconds(0))) missing.push_back(rank);
    }
  };
  for (int rank = 0; rank < size_; ++rank) {
    while (true) {
      const milliseconds until = noticed ? limit : std::min(limit, options_.notice);
      auto found = find(key_of(name, rank), std::max(until - since(begin), milliseconds(0)));
      if (found) {
        all[static_cast<std::size_t>(rank)] = std::move(*found);
        break;
      }
      look();
      if (missing.empty()) continue;
      const std::string who = fmt::format("rank{} {} of {}", missing.size() == 1 ? "" : "s", rank_list(missing), size_);
      if (since(begin) >= limit) {
        const std::string reason =
            fmt::format("{} did not come to '{}' within {:.1f} s: not started, still busy, or sent elsewhere ({}){}",
                        who, name, seconds(limit), options_.address, hint());
        fail(reason);
        throw RankError(Fault::late, reason);
      }
      noticed = true;
      // The lowest rank that is here prints the message for all.
      int first_here = 0;
      while (std::find(missing.begin(), missing.end(), first_here) != missing.end()) ++first_here;
      if (first_here == rank_) {
        say(fmt::format("'{}' waits since {:.1f} s for {}, at most {:.1f} s", name, seconds(since(begin)), who,
                        seconds(limit)));
      }
    }
  }
  return all;
}

std::unique_ptr<Rendezvous> open_rendezvous(const RendezvousOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw Error(ErrorKind::usage, fmt::format("rank {} of {} ranks: ranks count from 0 and stay below their number",
                                              options.rank, options.size));
  }
  std::unique_ptr<Rendezvous> rendezvous;
  if (options.address.starts_with("tcp://")) {
    rendezvous = open_tcp_rendezvous(options);
  } else if (options.address.starts_with("file:")) {
    rendezvous = open_file_rendezvous(options);
  } else {
    throw Error(ErrorKind::usage,
                fmt::format("rendezvous '{}' is none: say tcp://HOST:PORT/TOKEN, where HOST is rank 0's, or "
                            "file:DIRECTORY, which all ranks see and no earlier run has used",
                            options.address));
  }
  rendezvous->wait_all("rendezvous", options.limit);
  return rendezvous;
}

}  // namespace syslab::comm
