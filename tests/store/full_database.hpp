// A database with something of everything in it: two runs, a sweep over four sizes with a reference, a peer and ours,
// in which attempts end in every way there is, and a search of laws, one falsified; pins and comparisons. Uids and
// times are fixed, so that the same schema gives the same rows.
#pragma once

#include "tests/store/fixture.hpp"

namespace syslab::store::test {

void make_full_database(const fs::path& path);

}  // namespace syslab::store::test
