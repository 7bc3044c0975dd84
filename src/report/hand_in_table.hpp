// The one table of a problem in a hand-in, of the many rows and columns that the appendix has.
#pragma once

#include <string>

#include "report/table.hpp"

namespace syslab::report {

// At most twelve rows that are results, without columns that say nothing there or how far a number can be trusted.
// `appendix`: the file that has all rows; empty: there is none. Of the rows of several of `gpus` one's stay: those of
// `spoken_of`, where it has results.
Table hand_in_table(const Table& table, const std::string& appendix, const std::vector<std::string>& gpus,
                    const std::string& spoken_of = {});

// What nobody reads whole, a kernel's mangled name, by its beginning and end; what is not as long, or has words, as it
// is.
std::string short_name(std::string name);

}  // namespace syslab::report
