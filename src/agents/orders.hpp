// What the lab and its agents say to each other. A launcher starts several processes: rank 0's is the lab, every other
// an agent, which starts workers beside itself when the lab orders them.
//
// An agent opens every connection, to the one port that the lab listens on: first the line on which orders go and ends
// come, then for each worker three more, which become the worker's standard input, output and error output. A worker so
// started speaks to the lab itself, and the agent does not see its frames.
//
//   agent → lab    opening of a line       secret, rank, seat
//                  opening of a stream     secret, rank, worker, which of the three
//   lab → agent    start                   worker, program and arguments, environment
//                  signal                  worker, number: to its process group
//                  bye                     the lab ends well
//   agent → lab    started                 worker
//                  refused                 worker, why it could not be started
//                  ended                   worker, how it ended, what it used
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agents/seats.hpp"
#include "comm/rendezvous/messages.hpp"
#include "core/process.hpp"

namespace syslab::agents {

using comm::Clock;
using comm::Deadline;

// How long one side waits for the other to do at once what takes no time: to open a worker's streams, to say that a
// killed worker has ended, to end.
inline constexpr auto kAnswer = std::chrono::seconds(3);

namespace order {
inline constexpr std::uint64_t start = 1, signal = 2, bye = 3, started = 4, refused = 5, ended = 6;
}  // namespace order

using WorkerId = std::uint64_t;

// The first words on a connection: read alone, because what follows on a stream is not ours to read.
struct Opening {
  std::string secret;
  int rank = 0;
  std::optional<Seat> seat;  // of a line; a stream has the two below
  WorkerId worker = 0;
  int stream = 0;  // 0, 1, 2: its standard input, output, error output
};
void send_opening(int socket, const Opening& opening, Deadline deadline);  // Error(comm)
// Nothing for what is no opening, or does not come before the deadline.
std::optional<Opening> receive_opening(int socket, Deadline deadline);

struct StartOrder {
  WorkerId worker = 0;
  std::vector<std::string> argv;  // argv[0] empty: the agent's own program
  std::map<std::string, std::string> environment;
};
comm::Packet to_packet(const StartOrder& order);
StartOrder read_start(comm::PacketReader& packet);

struct EndedWorker {
  WorkerId worker = 0;
  ExitStatus exit;
};
comm::Packet to_packet(const EndedWorker& ended);
EndedWorker read_ended(comm::PacketReader& packet);

// A peer whose host is switched off or cut off is found out within half a minute.
void keep_alive(int socket);

}  // namespace syslab::agents
