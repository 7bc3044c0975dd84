#include "comm/rendezvous/handshake.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace syslab::comm {
namespace {

constexpr std::string_view kMagic("syslab\x02\n", 8);
constexpr std::size_t kName = 6;  // bytes of the magic that are the same in all versions
constexpr std::size_t kPart = sizeof(Key);

std::string_view name_of(Handshake::Side side) {
  return side == Handshake::Side::connecting ? "connecting" : "accepting";
}

std::string take_front(std::string& bytes, std::size_t count) {
  std::string front = bytes.substr(0, count);
  bytes.erase(0, count);
  return front;
}

}  // namespace

Handshake::Handshake(Side side, const Key& key) : side_(side), key_(key) {
  // The accepting end sends nothing to a peer that does not speak this protocol.
  if (side_ == Side::connecting) output_ = std::string(kMagic).append(bytes_of(own_nonce_));
}

Handshake::State Handshake::take_magic(std::string& received) {
  const std::size_t known = std::min(received.size(), kMagic.size());
  if (std::string_view(received).substr(0, known) != kMagic.substr(0, known)) {
    return received.size() >= kName && received.starts_with(kMagic.substr(0, kName)) ? State::other_version
                                                                                     : State::stranger;
  }
  if (known < kMagic.size()) return State::incomplete;
  received.erase(0, kMagic.size());
  magic_seen_ = true;
  return State::proven;
}

Mac Handshake::proof_of(Side side) const {
  const bool connecting = side_ == Side::connecting;
  return mac_of(key_, {name_of(side), bytes_of(connecting ? own_nonce_ : *other_nonce_),
                       bytes_of(connecting ? *other_nonce_ : own_nonce_)});
}

void Handshake::finish() {
  const bool connecting = side_ == Side::connecting;
  const auto of_direction = [&](std::string_view from) {
    return mac_of(key_, {"frames of ", from, bytes_of(connecting ? own_nonce_ : *other_nonce_),
                         bytes_of(connecting ? *other_nonce_ : own_nonce_)});
  };
  session_.send = of_direction(name_of(side_));
  session_.receive = of_direction(name_of(connecting ? Side::accepting : Side::connecting));
}

Handshake::State Handshake::take(std::string& received) {
  if (!magic_seen_) {
    if (const State state = take_magic(received); state != State::proven) return state;
  }
  if (!other_nonce_) {
    const std::size_t wanted = side_ == Side::connecting ? 2 * kPart : kPart;  // the nonce and the proof
    if (received.size() < wanted) return State::incomplete;
    const std::string nonce = take_front(received, kPart);
    std::copy(nonce.begin(), nonce.end(), other_nonce_.emplace().begin());
    if (side_ == Side::accepting) {
      output_.append(kMagic).append(bytes_of(own_nonce_)).append(bytes_of(proof_of(Side::accepting)));
    }
  }
  if (received.size() < kPart) return State::incomplete;
  const std::string proof = take_front(received, kPart);
  if (!same(proof_of(side_ == Side::connecting ? Side::accepting : Side::connecting), proof)) return State::impostor;
  if (side_ == Side::connecting) output_.append(bytes_of(proof_of(Side::connecting)));
  finish();
  return State::proven;
}

std::string Handshake::take_output() { return std::exchange(output_, {}); }

bool is_refusal(Handshake::State state) {
  return state != Handshake::State::incomplete && state != Handshake::State::proven;
}

std::string_view describe(Handshake::State state) {
  switch (state) {
    case Handshake::State::incomplete:
      return "somebody who does not answer";
    case Handshake::State::proven:
      return "";
    case Handshake::State::stranger:
      return "somebody else's server";
    case Handshake::State::other_version:
      return "a syslab that speaks another version (start all ranks from one build)";
    case Handshake::State::impostor:
      return "somebody who does not know the secret of this launch";
  }
  return "";
}

std::optional<Session> prove(int socket, const Key& key, Deadline deadline, std::string& instead) {
  Handshake handshake(Handshake::Side::connecting, key);
  std::string received;
  Handshake::State state = Handshake::State::incomplete;
  while (true) {
    if (!send_all(socket, handshake.take_output(), deadline)) break;
    if (state == Handshake::State::proven) return handshake.session();
    const Received more = receive_some(socket, received, deadline);
    if (more == Received::end) break;
    if (more == Received::bytes) state = handshake.take(received);
    if (more == Received::nothing || is_refusal(state)) {
      instead = describe(state);
      return std::nullopt;
    }
  }
  instead = kHangsUp;
  return std::nullopt;
}

}  // namespace syslab::comm
