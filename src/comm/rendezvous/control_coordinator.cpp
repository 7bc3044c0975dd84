#include "comm/rendezvous/control_coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "comm/rendezvous/rendezvous.hpp"
#include "core/error.hpp"

namespace syslab::comm {
namespace {

// A rank sends four heartbeats a second: a longer silence is mentioned.
constexpr double kSilence = 1.5;  // seconds
constexpr std::chrono::milliseconds kCoordinatorAway{1'000};

// The number of the last operation of that kind that a rank has entered.
std::uint64_t entered(const Progress& progress, bool of_host) {
  return of_host ? progress.host_queued : progress.queued;
}

}  // namespace

Packet& operator<<(Packet& packet, const Progress& progress) {
  return packet << progress.step << progress.phase << progress.queued << progress.started << progress.done
                << progress.host_queued << progress.waiting << progress.waiting_number
                << static_cast<std::uint64_t>(progress.waiting_of_host)
                << static_cast<std::uint64_t>(progress.waiting_peer);
}

Progress read_progress(PacketReader& packet) {
  Progress progress;
  progress.step = packet.number();
  progress.phase = packet.text();
  progress.queued = packet.number();
  progress.started = packet.number();
  progress.done = packet.number();
  progress.host_queued = packet.number();
  progress.waiting = packet.text();
  progress.waiting_number = packet.number();
  progress.waiting_of_host = packet.number() != 0;
  progress.waiting_peer = static_cast<int>(packet.number());
  return progress;
}

Packet& operator<<(Packet& packet, const Ending& ending) {
  return packet << static_cast<std::uint64_t>(ending.kind) << static_cast<std::uint64_t>(ending.culprit)
                << ending.reason << ending.operation << ending.number;
}

Ending read_ending(PacketReader& packet) {
  Ending ending;
  ending.kind = static_cast<EndingKind>(packet.number());
  ending.culprit = static_cast<int>(packet.number());
  ending.reason = packet.text();
  ending.operation = packet.text();
  ending.number = packet.number();
  return ending;
}

ControlCoordinator::ControlCoordinator(FileDescriptor listener, const Key& key, int size,
                                       std::chrono::milliseconds limit)
    : size_(size), limit_(limit), server_(std::move(listener), key, *this) {}

double ControlCoordinator::silent_seconds(const Rank& rank) const {
  return std::chrono::duration<double>(Clock::now() - rank.heard).count();
}

std::string ControlCoordinator::whereabouts(const Rank& rank) const {
  std::string text;
  if (!rank.progress.phase.empty())
    text += fmt::format("in phase {}, step {}", rank.progress.phase, rank.progress.step);
  if (!rank.progress.waiting.empty()) {
    text += fmt::format("{}in {}", text.empty() ? "" : ", ", rank.progress.waiting);
  } else {
    text += fmt::format("{}behind operation #{}", text.empty() ? "" : ", ", rank.progress.queued);
  }
  // Heartbeats are a quarter of a second apart: the last report may be older than the event.
  const double silent = silent_seconds(rank);
  if (silent > kSilence && !rank.left) {
    text += fmt::format(", and has not beaten for {:.1f} s", silent);
  } else if (rank.gone) {
    text += fmt::format(" when it was last heard, {:.2f} s before", silent);
  }
  return text;
}

void ControlCoordinator::on_message(Peer peer, std::string_view payload) {
  PacketReader packet(payload);
  const std::uint64_t what = packet.number();
  if (what == control_message::hello) {
    const int number = static_cast<int>(packet.number());
    ranks_[number] = {peer, packet.text(), {}, Clock::now()};
    return server_.send(peer, Packet() << control_message::welcome);
  }
  const auto found =
      std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& one) { return one.second.peer == peer; });
  if (found == ranks_.end()) throw Error(ErrorKind::comm, "a word of somebody who is no rank");
  const int number = found->first;
  Rank& rank = found->second;
  rank.heard = Clock::now();
  rank.progress = read_progress(packet);
  switch (what) {
    case control_message::beat:
      server_.send(peer, Packet() << control_message::alive);
      return look_for_leavers(rank.progress);
    case control_message::ask: {
      const Ending likely = diagnose(number, rank.progress);
      return server_.send(peer, Packet() << control_message::told << likely.reason);
    }
    case control_message::time_out:
      return end(diagnose(number, rank.progress));
    case control_message::fail: {
      Ending told = read_ending(packet);
      // A communicator's texts already name their rank.
      if (!told.reason.starts_with("rank ")) told.reason = fmt::format("rank {} failed: {}", number, told.reason);
      told.operation = rank.progress.waiting;
      told.number = rank.progress.waiting_number;
      return end(std::move(told));
    }
    case control_message::bye:
      rank.left = true;
      if (std::all_of(ranks_.begin(), ranks_.end(),
                      [](const auto& one) { return one.second.left || one.second.gone; })) {
        for (const auto& [other, state] : ranks_) server_.send(state.peer, Packet() << control_message::all_left);
      }
      for (const auto& [other, state] : ranks_) {
        if (!state.left) look_for_leavers(state.progress);
      }
      return;
    default:
      return;
  }
}

void ControlCoordinator::on_gone(Peer peer) {
  for (auto& [number, rank] : ranks_) {
    if (rank.peer != peer || rank.left) continue;
    rank.gone = true;
    end({{EndingKind::death, number},
         fmt::format("rank {} ({}) ended without a word, {}: it was killed or crashed", number, rank.process,
                     whereabouts(rank)),
         rank.progress.waiting,
         rank.progress.waiting_number});
  }
}

void ControlCoordinator::on_tick() {
  if (ended_) return;
  // If the coordinator was itself stopped or starved, it could hear nobody: no rank is to blame for the silence.
  const Deadline now = Clock::now();
  const bool was_away = now - last_tick_ > kCoordinatorAway;
  last_tick_ = now;
  if (was_away) {
    for (auto& [number, rank] : ranks_) rank.heard = now;
  }
  for (const auto& [number, rank] : ranks_) {
    if (rank.left || rank.gone || now - rank.heard < limit_) continue;
    return end({{EndingKind::silence, number},
                fmt::format("rank {} ({}) has stopped beating for {:.1f} s, {}: it is stopped, or its host is gone",
                            number, rank.process, silent_seconds(rank), whereabouts(rank)),
                rank.progress.waiting,
                rank.progress.waiting_number});
  }
}

// Ends the job if a rank waits in an operation that another rank left without entering.
void ControlCoordinator::look_for_leavers(const Progress& waiting) {
  if (waiting.waiting.empty() || waiting.waiting_peer >= 0) return;
  for (const auto& [number, rank] : ranks_) {
    const std::uint64_t last = entered(rank.progress, waiting.waiting_of_host);
    if (!rank.left || last >= waiting.waiting_number) continue;
    return end({{EndingKind::left, number},
                fmt::format("rank {} has left behind operation #{} and {} waits for it", number, last, waiting.waiting),
                waiting.waiting,
                waiting.waiting_number});
  }
}

Ending ControlCoordinator::diagnose(int reporter, const Progress& waiting) const {
  Ending ending{{EndingKind::time_out, -1}, {}, waiting.waiting, waiting.waiting_number};
  std::vector<int> behind;
  for (const auto& [number, rank] : ranks_) {
    if (waiting.waiting_peer >= 0 ? number == waiting.waiting_peer
                                  : entered(rank.progress, waiting.waiting_of_host) < waiting.waiting_number) {
      behind.push_back(number);
    }
  }
  if (waiting.waiting.empty()) {
    ending.reason = fmt::format("rank {} has reached its limit", reporter);
    return ending;
  }
  if (behind.empty() && !waiting.waiting_of_host && waiting.waiting_peer < 0) {
    for (const auto& [number, rank] : ranks_) {
      if (rank.progress.started >= waiting.waiting_number) continue;
      ending.culprit = number;
      ending.reason = fmt::format(
          "rank {} has queued {}, in which rank {} waits, and not begun it: its work before it does "
          "not end; it is {}",
          number, waiting.waiting, reporter, whereabouts(rank));
      return ending;
    }
  }
  if (behind.empty()) {
    ending.reason = fmt::format("all ranks have entered {} and it does not end", waiting.waiting);
    const auto longest = std::ranges::max_element(
        ranks_, {}, [&](const auto& one) { return one.second.left ? 0 : silent_seconds(one.second); });
    if (longest != ranks_.end() && !longest->second.left && silent_seconds(longest->second) > kSilence) {
      ending.culprit = longest->first;
      ending.reason += fmt::format("; rank {} is {}", longest->first, whereabouts(longest->second));
    }
    return ending;
  }
  // Who is behind may itself wait for another that is: the one that does not beat keeps the others, or the last of
  // all. On a busy machine several do not beat; one that is stopped is silent for longest.
  const int keeps_others = *std::min_element(behind.begin(), behind.end(), [&](int left, int right) {
    const Rank &one = ranks_.at(left), &other = ranks_.at(right);
    const bool one_beats = one.left || silent_seconds(one) <= kSilence;
    const bool other_beats = other.left || silent_seconds(other) <= kSilence;
    if (one_beats != other_beats) return !one_beats;
    if (!one_beats) return one.heard < other.heard;
    return entered(one.progress, waiting.waiting_of_host) < entered(other.progress, waiting.waiting_of_host);
  });
  ending.culprit = keeps_others;
  const char* verb = behind.size() == 1 ? "has" : "have";
  ending.reason = waiting.waiting_peer >= 0
                      ? fmt::format("rank {} waits in {} for rank {}", reporter, waiting.waiting, behind.front())
                      : fmt::format("rank{} {} {} not entered {}, in which rank {} waits",
                                    behind.size() == 1 ? "" : "s", rank_list(behind), verb, waiting.waiting, reporter);
  ending.reason += fmt::format("; rank {} is {}", keeps_others, whereabouts(ranks_.at(keeps_others)));
  return ending;
}

void ControlCoordinator::end(Ending ending) {
  if (ended_) return;
  ended_ = true;
  Packet packet;
  packet << control_message::ending << ending;
  for (const auto& [number, rank] : ranks_) server_.send(rank.peer, packet);
}

}  // namespace syslab::comm
