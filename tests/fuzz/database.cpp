// A file that is given as --db.
#include <cstdlib>

#include "store/options.hpp"
#include "store/store.hpp"
#include "tests/fuzz/ascending_memory.hpp"
#include "tests/fuzz/patched.hpp"
#include "tests/store/sqlite_memory.hpp"

namespace {

using syslab::fuzz::AscendingMemory;

// SQLite's blocks are small and many: more than half of the time of an input went into the sanitizer's memory for them.
// Before the first use of SQLite, which refuses it later.
const bool kConfigured = syslab::store::take_sqlite_memory_from<AscendingMemory>();

// Views are the program's own and the same for every input; making them takes longer than reading a file. So over a
// damaged schema they are made for inputs of every sixteenth length alone.
syslab::store::OpenOptions without_views() {
  syslab::store::OpenOptions options = syslab::store::default_options();
  options.now = [] { return std::string("2026-01-01T00:00:00.000Z"); };  // the same file in every process
  options.schema.views.clear();
  return options;
}

void remove_beside(const std::filesystem::path& path) {
  for (const char* beside : {"-wal", "-shm", "-journal"}) unlink((path.string() + beside).c_str());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  if (!kConfigured) std::abort();
  const AscendingMemory memory;
  static const store::OpenOptions options = without_views(), with_views = [] {
    store::OpenOptions made = without_views();
    made.schema.views = store::default_options().schema.views;
    return made;
  }();
  static const std::string good = fuzz::made_by([](const std::filesystem::path& path) {
    { store::Store::open(path, store::Mode::create, options); }
    remove_beside(path);
  });
  const fuzz::InputFile file(fuzz::patched(good, data, size), ".db");
  fuzz::read_or_refuse([&] {
    const store::Store store =
        store::Store::open(file.path(), store::Mode::read_only, size % 16 == 15 ? with_views : options);
    store.query("SELECT count(*) FROM attempt");
  });
  remove_beside(file.path());
  return 0;
}
