// What the lab and its agents say to each other. A launcher starts several processes: rank 0's is the lab, every other
// an agent, which starts workers on its host when the lab orders it.
//
// An agent opens every connection, to the one port that the lab listens on: first the line on which orders go and ends
// come, then for each worker one more, which carries its standard input, output and error output (agents/relay.hpp).
// Each begins with both sides' proof that they are of this launch, and all that follows is authenticated
// (comm/rendezvous/messages.hpp). An order names no program: an agent starts its own, as a worker, and nothing else.
//
//   agent → lab    opening of a line       rank, seat
//                  opening of a worker     rank, worker
//   lab → agent    start                   worker, environment
//                  signal                  worker, number: to its process group
//                  bye                     the lab ends well
//   agent → lab    started                 worker
//                  refused                 worker, why it could not be started
//                  ended                   worker, how it ended, what it used
//                  stopped                 worker, whether it is stopped (SIGSTOP), when that changes
//                  alive                   four times a second while it has workers
//   lab → agent    alive                   to each of these, as soon as it looks
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agents/seats.hpp"
#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "core/files/mac.hpp"
#include "core/process/process.hpp"

namespace syslab::agents {

using comm::Clock;
using comm::Deadline;

// How long one side waits for the other to do at once what takes no time: to open a worker's streams, to say that a
// killed worker has ended, to end.
inline constexpr auto kAnswer = std::chrono::seconds(3);

// An agent that has not been heard for so long is out of reach: it is stopped, or its host or the way to it is gone.
// What its ranks could still say is not waited for.
inline constexpr auto kSilence = std::chrono::milliseconds(1500);
// A lab that has not looked for so long while workers run is stopped for good, or out of reach.
inline constexpr auto kLabSilence = std::chrono::seconds(30);

namespace order {
inline constexpr std::uint64_t start = 1, signal = 2, bye = 3, started = 4, refused = 5, ended = 6, stopped = 7,
                               alive = 8;
}  // namespace order

using WorkerId = std::uint64_t;

// The first words on a connection.
struct Opening {
  int rank = 0;
  std::optional<Seat> seat;  // of a line
  WorkerId worker = 0;       // of a worker's
};
comm::Packet to_packet(const Opening& opening);
// Nothing for what is no opening, or of another version.
std::optional<Opening> read_opening(std::string_view payload);

// What of a worker's environment the lab decides. A variable may name a library to be loaded: an agent takes no others.
bool is_for_workers(std::string_view variable);

struct StartOrder {
  WorkerId worker = 0;
  std::map<std::string, std::string> environment;
};
comm::Packet to_packet(const StartOrder& order);
// Error(comm) for a variable that is not for workers; `worker` is set as soon as it is known.
StartOrder read_start(comm::PacketReader& packet, WorkerId& worker);

struct EndedWorker {
  WorkerId worker = 0;
  ExitStatus exit;
};
comm::Packet to_packet(const EndedWorker& ended);
EndedWorker read_ended(comm::PacketReader& packet);

// Of the line and the workers' connections of one launch.
Key agents_key(const comm::Rendezvous& rendezvous, std::string_view launch);
// Processes with the same one reach each other over the loopback.
std::string place_of(const Seat& seat);

// A peer on a host that is down or unreachable is detected within half a minute.
void keep_alive(int socket);

}  // namespace syslab::agents
