// How the two ends of a connection prove to each other that they know one key, without sending it, before either
// believes another byte:
//
//   connecting → accepting    magic, nonce c
//   accepting → connecting    magic, nonce s, HMAC(key, "accepting", c, s)
//   connecting → accepting    HMAC(key, "connecting", c, s)
//
// Both nonces are fresh, so that nothing that was recorded is worth anything later; the two names keep an end from
// being answered with its own words. From the same key and nonces follows a key for each direction, with which every
// frame behind is authenticated (comm/rendezvous/messages.hpp). Who only passes bytes on between the two learns none of
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "comm/rendezvous/socket.hpp"
#include "core/files/mac.hpp"

namespace syslab::comm {

// Of one connection, when both ends are proven.
struct Session {
  Key send{}, receive{};
};

class Handshake {
 public:
  enum class Side { connecting, accepting };
  Handshake(Side side, const Key& key);

  enum class State {
    incomplete,
    proven,
    stranger,       // does not speak this
    other_version,  // a syslab that speaks another version of it
    impostor,       // speaks it and does not know the key
  };
  // Takes from `received` what is its own, and nothing of what follows.
  State take(std::string& received);
  std::string take_output();                                 // what is to be sent now
  bool greeted() const { return other_nonce_.has_value(); }  // the other end speaks this
  const Session& session() const { return session_; }

 private:
  State take_magic(std::string& received);
  Mac proof_of(Side side) const;
  void finish();

  Side side_;
  Key key_;
  Key own_nonce_ = random_key();
  std::optional<Key> other_nonce_;
  bool magic_seen_ = false;
  std::string output_;
  Session session_;
};

bool is_refusal(Handshake::State state);  // it will not get better

inline constexpr std::string_view kHangsUp = "somebody who hangs up";
// What a person is told of the other end; "" where it is proven.
std::string_view describe(Handshake::State state);

// The connecting side's, from the first byte to the last. Nothing, and who is there instead, where the other end does
// not prove itself before the deadline.
std::optional<Session> prove(int socket, const Key& key, Deadline deadline, std::string& instead);

}  // namespace syslab::comm
