// A training run on disk: weights, moments, where it stands and what it was told, in one safetensors file. A run that
// is resumed goes on bit for bit; one that was told something else is refused.
//
//   save_checkpoint("run.safetensors", arena, {.step = 1000, .next_batch = 1000}, settings);
//   const TrainingState state = load_checkpoint("run.safetensors", arena, settings);
//
// Tensors: the weights under their own names (so that whoever reads weights reads a checkpoint, too), the moments under
// "optimizer.m." and "optimizer.v."; everything else is metadata, as text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/arena.hpp"
#include "model/safetensors.hpp"
#include "train/loss_scaler.hpp"

namespace syslab::train {

struct TrainingState {
  std::int64_t step = 0;                    // optimizer steps taken; what was skipped is none
  std::uint64_t next_batch = 0;             // number of the next batch to draw
  std::optional<LossScaler::State> scaler;  // where losses are scaled
  std::vector<std::int64_t> group_steps;    // of an optimizer whose groups count their own; empty: of another
  bool operator==(const TrainingState&) const = default;
};

// Name → value, as text: all that decides how a run goes on (learning rates, precision, seed, data …).
using Settings = std::map<std::string, std::string>;
// "model.vocab" → "10000" and so on.
Settings settings_of(const model::ModelConfig& config);

struct CheckpointInfo {
  TrainingState state;
  Settings settings;
};
// What a checkpoint says of itself, without its tensors. Error(usage) for any other file.
CheckpointInfo inspect_checkpoint(const std::filesystem::path& path);

// Whole or not at all: the file that was there before stays until the new one is on the disk. Waits for the arena's
// stream. The arena has moments.
void save_checkpoint(const std::filesystem::path& path, const model::ParameterArena& arena, const TrainingState& state,
                     const Settings& settings);

// Error(usage), as save_checkpoint() would say it, for a name under which none can be written: a file is made beside it
// and removed. So that a run learns of it before its first step and not behind its last.
void check_place(const std::filesystem::path& path);

// Reads weights (and their copy) and moments into the arena. Error(usage) before anything is written: a file that is no
// checkpoint or not of this model, one kept in another dtype than the arena's, or settings that differ from those it
// was saved with, naming each with both values.
TrainingState load_checkpoint(const std::filesystem::path& path, model::ParameterArena& arena,
                              const Settings& settings);

// For checkpoints of another shape (parallel/sharded_checkpoint.hpp): what is told of state and settings, the way back
// (Error(usage) for a file that is no checkpoint), and Error(usage) naming each setting that differs.
model::FileMetadata metadata_of(const TrainingState& state, const Settings& settings);
CheckpointInfo info_of(const model::SafetensorsReader& reader);
void check_settings(const model::SafetensorsReader& reader, const Settings& saved, const Settings& now);

}  // namespace syslab::train
