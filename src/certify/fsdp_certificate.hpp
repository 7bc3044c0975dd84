// The certificate of full sharding: the network of certify/certificate.hpp, none of whose numbers is rounded, trained
// on weights that are lent and taken back, ends with the bits of one process.
#pragma once

#include "certify/certificate.hpp"
#include "parallel/fsdp/fsdp.hpp"

namespace syslab::parallel {

struct FsdpCertificateCase {
  // Layers with biases or without, nothing else; `sync` and `sharding` are not read.
  CertificateCase asked;
  FsdpOptions options;
  bool joined = false;  // each layer's weight is two matrices, read as one
  int layers_of_a_unit = 1;
};

// What full sharding is told of such a network: weights are cut, biases replicated.
FsdpParts parts_of(const FsdpCertificateCase& asked);

// This rank's part, as train_together() has it. Ranks begin with the same weights. Collective. Error(check) when the
// bytes that were counted are not the schedule's.
Trained train_sharded(const FsdpCertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                      device::Stream communication, const Interference& interference = {});

// Trains both ways with a few drawn models, in the units and with the options given, without a wire dtype. Collective:
// Error(check) on every rank if any found a difference. Returns how many parameters were compared.
std::int64_t certify_sharded(comm::Communicator& ranks, FsdpOptions options, std::uint64_t seed, device::Stream compute,
                             device::Stream communication);

}  // namespace syslab::parallel
