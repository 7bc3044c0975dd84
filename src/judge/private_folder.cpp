#include "judge/private_folder.hpp"

namespace syslab::judge {

std::map<std::string, std::string> PrivateFolder::environment() const {
  return {{"TMPDIR", path()},
          {"XDG_CACHE_HOME", path()},
          {"TRITON_CACHE_DIR", path() + "/triton"},
          {"TORCHINDUCTOR_CACHE_DIR", path() + "/inductor"},
          {"TORCH_EXTENSIONS_DIR", path() + "/extensions"},
          {"CUDA_CACHE_PATH", path() + "/cuda"},
          {"NUMBA_CACHE_DIR", path() + "/numba"}};
}

}  // namespace syslab::judge
