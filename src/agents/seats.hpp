// What each process of a launch offers to the ranks of a case on its host: its host, its processors, its GPUs. From
// these follows who shares what. Plain data and functions of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/rendezvous/messages.hpp"

namespace syslab::agents {

struct Seat {
  std::string host;               // as people name it, and others reach it
  std::string system;             // the same for processes that see each other's files and memory
  std::string processors;         // that it may use, as a list: "0-3"
  int processor_count = 1;        // of these
  bool threads_are_set = false;   // its OMP_NUM_THREADS says how many threads it wants
  std::vector<std::string> gpus;  // that it sees, by CUDA_VISIBLE_DEVICES or by number
  int local_rank = 0;             // among the processes of its host
};

// Of this process. SYSLAB_HOST, where it is set, is the name of its host.
Seat this_seat(int local_rank);

comm::Packet& operator<<(comm::Packet& packet, const Seat& seat);
Seat read_seat(comm::PacketReader& packet);

// The ranks 0, 1, … of a case sit on the first `ranks` seats.
bool on_one_host(std::span<const Seat> seats, int ranks);
// OMP_NUM_THREADS of a rank: its part of the processors, where others of the case may use the same ones; 0: what its
// environment says. Ranks that would each take all processors would mostly wait for one another.
int threads_of(std::span<const Seat> seats, int rank, int ranks);
// Which GPU of those that a rank's process sees is the rank's.
int gpu_of(const Seat& seat);
// How many ranks, from rank 0 on, have a GPU each.
int ranks_with_a_gpu(std::span<const Seat> seats);

// "4 ranks on node7 (0, 1) and node8 (2, 3)"
std::string text_of(std::span<const Seat> seats);

}  // namespace syslab::agents
