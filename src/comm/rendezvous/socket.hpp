// Stream sockets with deadlines, as the rendezvous and the control plane use them: TCP, or Unix sockets in a directory.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::comm {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Until then, as poll(2) takes it; 0 when it has passed.
int milliseconds_until(Deadline deadline);

// A listening socket that does not block. Null descriptor and errno when the port is taken; Error(comm) for what a
// neighbouring port would not mend (an unknown host). Loopback names bind the loopback, numeric addresses of this host
// themselves, others every interface: a host's name may mean the loopback to itself and something else to its peers.
// Port 0: the system chooses.
FileDescriptor listen_tcp(const std::string& host, int port);
int port_of(const FileDescriptor& listener);

// Socket files in a directory are reached through its descriptor, so that a long path fits the 108 bytes of an address.
FileDescriptor listen_unix(const std::filesystem::path& directory, const std::string& name);

// A connected socket that does not block, or a null one and the reason.
struct Connected {
  FileDescriptor socket;
  std::string why;
};
Connected connect_tcp(const std::string& host, int port, Deadline deadline);

// The same in steps, for who tries several at once.
class TcpAddress {
 public:
  static std::vector<TcpAddress> look_up(const std::string& host, std::string& why);  // none, and why
  // A socket that is connecting, or null and errno.
  FileDescriptor begin_connecting(int port) const;

 private:
  sockaddr_storage address_{};
  socklen_t size_ = 0;
};
// Once its socket is writable: 0, or the errno of what failed.
int end_connecting(int socket);
Connected connect_unix(const std::filesystem::path& directory, const std::string& name);

// All bytes before the deadline; false when the other end is gone or does not take them.
bool send_all(int socket, std::string_view bytes, Deadline deadline);

// Appends what is there to `into`, waiting until something is, the deadline passes or `wake` (−1: none) is readable.
enum class Received { bytes, nothing, end };
Received receive_some(int socket, std::string& into, Deadline deadline, int wake = -1);

}  // namespace syslab::comm
