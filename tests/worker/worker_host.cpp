// The verb `syslab worker` and nothing else, with the self-test experiments: what tests of the runner spawn.
#include "registry/registry.hpp"
#include "worker/serve.hpp"

int main() {
  syslab::registry::Registry::global().seal();
  return syslab::worker::serve(0, 1);
}
