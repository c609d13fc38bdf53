// Parts of an archive from anywhere, with right checksums: of three parts of one trace, one is changed, and
// all are joined. The first byte chooses the part, the second what the rest of the input is.
//   0  the header's fields   1  the trailer's   2  the entries of the part's index   3  what follows the
//   counts there   4  the whole part
// Nothing may crash or hang; what is joined opens as an archive, or is refused.
#include "tests/fuzz/archive_parts.hpp"

#include <array>
#include <cstdlib>

namespace {

using namespace etwrelog;
using testing::ArchiveBytes;

constexpr std::size_t kFixed = pipeline::kPartEndSize, kSealed = kFixed - 8; // header and trailer of a part
constexpr std::uint64_t kMemory = 64u << 20;

const std::array<ArchiveBytes, 3> &parts() {
  static const std::array<ArchiveBytes, 3> made = [] {
    const auto input = read::memory_input("seed", testing::incompressible_trace(Codec::none));
    std::array<ArchiveBytes, 3> all;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      pipeline::ArchiveOptions options;
      options.run.threads = 1;
      options.segment = 1u << 16;
      Result<OutputStream> out = OutputStream::open(Output::memory(all[i]));
      if (!out || !pipeline::pack_part(*input, {i + 1, 3}, *out, options) || !out->commit()) std::abort();
    }
    return all;
  }();
  return made;
}

ArchiveBytes with_fields(ArchiveBytes part, std::size_t at, Bytes fields) {
  std::copy_n(fields.begin(), std::min(fields.size(), kSealed),
              part.begin() + static_cast<std::ptrdiff_t>(at));
  etlz::seal(part.data() + at, kFixed);
  return part;
}

// The part with another index; the trailer tells its size.
ArchiveBytes with_index(const ArchiveBytes &part, Bytes entries, Bytes facts) {
  const ArchiveBytes trailer(part.end() - kFixed, part.end());
  const auto index_at = load<std::uint64_t>(trailer.data() + 24);
  ArchiveBytes out(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(index_at));
  etlz::InStream old(Bytes(part).subspan(static_cast<std::size_t>(index_at) + 24));
  const ArchiveBytes index = testing::index_of(etlz::get_varint(old), entries, facts);
  out.insert(out.end(), index.begin(), index.end());
  out.insert(out.end(), trailer.begin(), trailer.end());
  store(out.data() + out.size() - kFixed + 32, std::uint64_t{index.size()});
  etlz::seal(out.data() + out.size() - kFixed, kFixed);
  return out;
}

ArchiveBytes changed(const ArchiveBytes &part, std::uint8_t how, Bytes rest) {
  switch (how % 5) {
  case 0: return with_fields(part, 0, rest);
  case 1: return with_fields(part, part.size() - kFixed, rest);
  case 2: return with_index(part, rest, {});
  case 3: return with_index(part, {}, rest);
  default: {
    if (rest.size() < 2 * kFixed) return ArchiveBytes(rest.begin(), rest.end());
    ArchiveBytes whole(rest.begin(), rest.end());
    std::copy_n(part.begin(), 8, whole.begin());
    std::copy_n(part.end() - kFixed, 8, whole.end() - kFixed);
    etlz::seal(whole.data(), kFixed);
    etlz::seal(whole.data() + whole.size() - kFixed, kFixed);
    return whole;
  }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) return 0;
  std::vector<std::unique_ptr<read::Input>> inputs;
  for (std::size_t i = 0; i < parts().size(); ++i)
    inputs.push_back(read::memory_input("part", i == data[0] % parts().size()
                                                    ? changed(parts()[i], data[1], Bytes(data + 2, size - 2))
                                                    : parts()[i]));
  RunOptions run;
  run.threads = 1;
  run.memory = kMemory;
  ArchiveBytes archive;
  Result<OutputStream> out = OutputStream::open(Output::memory(archive));
  if (!out) std::abort();
  if (!pipeline::join_parts(inputs, *out, run)) return 0;
  if (!out->commit()) std::abort();
  if (!pipeline::open_archive(read::memory_input("joined", std::move(archive)), kMemory)) std::abort();
  return 0;
}
