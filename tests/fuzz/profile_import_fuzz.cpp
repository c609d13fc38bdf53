// Exported profiles of any content: what is read holds together, and can be written again.
#include "etwrelog/profile_export.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog;
  const Result<ReadProfile> read = read_profile({data, size}, 4u << 20);
  if (read) (void)write_profile(read->profile, read->format, {}, [](Bytes) { return Result<void>(); });
  return 0;
}
