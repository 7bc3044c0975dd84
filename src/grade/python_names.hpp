// What a Python text names, by what its imports say that a name means. A variable, a comment or a description that is
// called like a library names nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syslab::grade {

struct PythonName {
  // "torch.nn.functional.scaled_dot_product_attention", where "F" is imported as torch.nn.functional, or assigned;
  // "?.data_ptr" of something that was not imported; "torch.*" of a star import, and "*.relu" of what may be from one;
  // of a text in quotation marks the text, with a quotation mark before it.
  std::string name;
  int line = 0;  // from 1
};

// In the order of the text: each import, each use of what was imported, each attribute of anything else, each text that
// is no description. Code that is no Python gives names, too, and is never an error. Of the module that a name is bound
// to, 200 bytes count, so that all names of a text take no more than 200 bytes for each of its bytes.
std::vector<PythonName> names_in(std::string_view code);

}  // namespace syslab::grade
