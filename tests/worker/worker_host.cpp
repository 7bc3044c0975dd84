// The verb `syslab worker` and nothing else, with the self-test experiments: what tests of the runner spawn.
#include "worker/wire/serve.hpp"

int main() { return syslab::worker::serve(0, 1); }
