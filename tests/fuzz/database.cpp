// A file that is given as --db.
#include "store/store.hpp"
#include "tests/fuzz/patched.hpp"

namespace {

void remove_beside(const std::filesystem::path& path) {
  for (const char* beside : {"-wal", "-shm", "-journal"}) unlink((path.string() + beside).c_str());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  static const std::string good = fuzz::made_by([](const std::filesystem::path& path) {
    { store::Store::open(path, store::Mode::create); }
    remove_beside(path);
  });
  const fuzz::InputFile file(fuzz::patched(good, data, size), ".db");
  fuzz::read_or_refuse([&] {
    const store::Store store = store::Store::open(file.path(), store::Mode::read_only);
    store.query("SELECT count(*) FROM attempt");
  });
  remove_beside(file.path());
  return 0;
}
