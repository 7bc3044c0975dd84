// The front door of whoever listens: accepts connections, and returns those with an authenticated peer. All are heard
// at once, none for longer than kProofLimit; of more than kStrangers that have proven nothing the oldest goes. So
// neither the idle nor the slow nor the many keep anybody waiting who can prove himself at once.
//
//   poll() on reception.descriptor(), and now and then without; then
//   for (Admitted& one : reception.admit()) …
#pragma once

#include <atomic>
#include <list>
#include <vector>

#include "comm/rendezvous/handshake.hpp"

namespace syslab::comm {

inline constexpr std::chrono::seconds kProofLimit{2};
inline constexpr std::size_t kStrangers = 256;

struct Admitted {
  FileDescriptor socket;
  Session session;
  std::string received;  // behind the proof, when it came along with it
};

class Reception {
 public:
  Reception(FileDescriptor listener, const Key& key);

  int descriptor() const { return epoll_.get(); }  // readable when admit() has something to do
  std::vector<Admitted> admit();                   // does not wait
  const FileDescriptor& listener() const { return listener_; }
  // How many spoke as a syslab does and did not prove that they know the key: for who explains why ranks are missing.
  std::size_t unproven() const { return unproven_; }

 private:
  struct Stranger {
    FileDescriptor socket;
    Handshake handshake;
    Deadline until;
    std::string received;
  };
  enum class Verdict { waits, admitted, leaves };

  void accept_all();
  bool has_room();
  void stop_accepting();
  Verdict hear(Stranger& stranger);

  const Key key_;
  FileDescriptor listener_, epoll_, timer_;
  std::list<Stranger> strangers_;  // the oldest first
  Deadline accept_at_{};           // not before: there was no descriptor or no memory for one more
  std::atomic<std::size_t> unproven_ = 0;
};

}  // namespace syslab::comm
