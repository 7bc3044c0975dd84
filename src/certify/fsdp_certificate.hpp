// The certificate of full sharding: the exact network of certify/certificate.hpp, trained on gathered and released
// weights, ends with the same bits as one process.
#pragma once

#include "certify/certificate.hpp"
#include "parallel/fsdp/fsdp.hpp"

namespace syslab::parallel {

struct FsdpCertificateCase {
  // Only layers with or without biases; `sync` and `sharding` are not read.
  CertificateCase asked;
  FsdpOptions options;
  bool joined = false;  // each layer's weight is stored as two matrices and read as one
  int layers_of_a_unit = 1;
};

// The description of such a network for full sharding: weights are sharded, biases replicated.
FsdpParts parts_of(const FsdpCertificateCase& asked);

// This rank's part, as in train_together(). Ranks start with the same weights. Collective. Error(check) if the counted
// bytes differ from the schedule's.
Trained train_sharded(const FsdpCertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                      device::Stream communication);

// Trains both ways with a few drawn models, in the units and with the options given, without a wire dtype. Collective:
// Error(check) on every rank if any found a difference.
Certified certify_sharded(comm::Communicator& ranks, FsdpOptions options, std::uint64_t seed, device::Stream compute,
                          device::Stream communication);

}  // namespace syslab::parallel
