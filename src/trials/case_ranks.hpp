// The way from a case of a lab to the other ranks that do it: what every experiment of several ranks begins with.
//
//   const auto ranks = parallel::join(parallel::case_rank(context.request(), "shm"));
//
// The lab knows no communicator and this tower knows no lab: case_rank() is a template and takes anything with the
// members it reads (worker::CaseRequest).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.hpp"

namespace syslab::parallel {

struct CaseRank {
  std::string backend;     // of comm::ConnectOptions
  std::string rendezvous;  // as the host of the case gave it; empty for one rank alone
  int rank = 0, size = 1;
  int device_index = 0;  // the GPU of this rank, where the backend works on one
  std::string what;      // the case, which must be the same on all ranks
};

template <typename Request>
CaseRank case_rank(const Request& request, std::string backend) {
  return {.backend = std::move(backend),
          .rendezvous = request.rendezvous,
          .rank = request.rank,
          .size = request.world_size,
          .device_index = request.device_index,
          .what = request.experiment + " " + request.case_uid + " " + request.implementation};
}

// Returns when all ranks have come. Unsupported where this build has no such backend; Error(comm) at the limit. Gloo
// is joined as a peer that is measured: nothing is compared before its operations.
std::unique_ptr<comm::Communicator> join(const CaseRank& rank);

// Rank 0's number, on all ranks, to the bit. Collective, of the host.
double of_first(comm::Communicator& ranks, double own);

// What keeps the ranks of a case in step (worker::RankCase), by these.
template <typename Case>
void keep_in_step(Case& rank_case, comm::Communicator& ranks) {
  rank_case.of_first = [&ranks](double own) { return of_first(ranks, own); };
  rank_case.barrier = [&ranks] { ranks.barrier(); };
}

}  // namespace syslab::parallel
