// Checkpoints of a state that is divided among ranks, which any number of ranks resumes, divided in any way.
//
//   save_sharded(ranks, "run", own_pieces, {.step = 1000, .next_batch = 1000}, settings, stream);
//   const TrainingState state = load_sharded(ranks, "run", wanted_pieces, settings, stream);
//
// Each rank writes the pieces that it has into a file of its own; what is read is whatever of all files lies in the
// pieces that are wanted. Whoever divides a state says which those are: own_pieces() and wanted_pieces() of
// DataParallelStep, FsdpStep and ShardedOptimizer.
//
//   run/manifest.safetensors             which files there are, their digests, the state and the settings; no tensors
//   run/shard-5f2c…-0-of-2.safetensors   "first_moment 4096 layers.0.attn.q_proj.weight", …
//
// NOTE: whole or not at all. A save writes files of new names, each aside, synced and renamed; when all ranks have
// theirs, rank 0 replaces the manifest, and what the one before it named is removed. Whoever is lost on the way, the
// manifest names files that are whole: those of the save before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "comm/communicator.hpp"
#include "parallel/state_piece.hpp"
#include "train/checkpoint.hpp"

namespace syslab::parallel {

// Collective; waits for the stream. Pieces of all ranks together hold each element once. Error(usage) on every rank
// where they do not, and where any cannot write, or writes where rank 0 does not see it, with its reason: the
// checkpoint that was there stays and nothing of this one is left. Where a rank is lost, what it left goes with the
// next save.
void save_sharded(comm::Communicator& ranks, const std::filesystem::path& directory, std::span<const StatePiece> own,
                  const train::TrainingState& state, const train::Settings& settings, device::Stream stream);

// Collective: every file is read whole by one rank, which holds it against its digest. Error(usage) on every rank,
// before anything is written to a piece: no checkpoint, a file that is missing, torn or changed, by its name; settings
// that differ, each with both values; a wanted element that no file has, one that two pieces have, another dtype.
train::TrainingState load_sharded(comm::Communicator& ranks, const std::filesystem::path& directory,
                                  std::span<const StatePiece> wanted, const train::Settings& settings,
                                  device::Stream stream);

}  // namespace syslab::parallel
