// A checkpoint to go on from, as it was before checkpoints had checksums: those would refuse whatever is changed in it.
#include "train/checkpoint.hpp"

#include "tests/fuzz/ascending_memory.hpp"
#include "tests/fuzz/patched.hpp"
#include "tests/model/without_checksums.hpp"

namespace {

using namespace syslab;

model::ModelConfig smallest() {
  model::ModelConfig config = model::find_model("tiny");
  config.vocab = 8;
  config.d_model = 8;
  config.d_ff = 8;
  config.layers = 1;
  config.heads = 1;
  config.context = 4;
  return config;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::AscendingMemory memory;
  static const model::ModelConfig config = smallest();
  static model::ParameterArena arena(model::ParameterLayout(config), {}, {});
  static const train::Settings settings = train::settings_of(config);
  static const std::string good = test::without_checksums(fuzz::made_by([](const std::filesystem::path& path) {
    const train::TrainingState state{.step = 10, .next_batch = 10, .scaler = train::LossScaler::State{1024.0F, 3}};
    train::save_checkpoint(path, arena, state, settings);
  }));
  const fuzz::InputFile file(fuzz::patched(good, data, size), ".checkpoint");
  fuzz::read_or_refuse([&] { train::load_checkpoint(file.path(), arena, settings); });
  return 0;
}
