// Deflate streams, by the first byte:
//   0  the rest is a stream: what zlib decodes, and is taken apart here, comes back
//   1  the rest is content and corrections: whatever comes of them, nothing crashes
//   2  the rest is content, which zlib encodes in a way that the second and third byte choose: it comes back
// Parameters are looked for, which takes long, where the first byte is 192 or more; otherwise it chooses
// them.
#include "codec/deflate/predictor.hpp"
#include "tests/support/deflated.hpp"

#include <algorithm>
#include <cstring>

namespace {

using namespace etwrelog;
using namespace etwrelog::codec::deflate;
using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kMost = 1u << 18;

Fetch fetch(Bytes bytes) {
  return [bytes](std::uint64_t at, MutableBytes into) -> Result<std::size_t> {
    if (at >= bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), bytes.size() - at);
    if (count != 0) std::memcpy(into.data(), bytes.data() + at, count);
    return count;
  };
}

// What a stream decodes to, of at most kMost bytes.
bool inflated(Bytes stream, Buffer &content) {
  content.resize(kMost);
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) return false;
  z.next_in = const_cast<std::uint8_t *>(stream.data());
  z.avail_in = static_cast<uInt>(stream.size());
  z.next_out = content.data();
  z.avail_out = static_cast<uInt>(content.size());
  const bool good = ::inflate(&z, Z_FINISH) == Z_STREAM_END;
  content.resize(content.size() - z.avail_out);
  inflateEnd(&z);
  return good;
}

Parameters chosen(std::uint8_t by) {
  Parameters parameters;
  parameters.kind = static_cast<Parameters::Kind>(by / 3 % 4);
  parameters.level = static_cast<std::uint8_t>(1 + by / 12 % 9);
  parameters.filtered = by % 2 != 0;
  parameters.forgets = by / 2 % 2 != 0;
  return parameters;
}

void there_and_back(Bytes stream, Bytes content, bool must, std::uint8_t by) {
  const Stretch stretch{fetch(content), 0, content.size()};
  const std::optional<Measured> measured = measure(fetch(stream), 0, stretch);
  if (!measured) {
    if (must) std::abort();
    return;
  }
  Following following;
  following.most_predicted = std::uint64_t{1} << 40; // whatever it takes: what is there must come back
  const Parameters parameters =
      by >= 192 ? find_parameters(fetch(stream), 0, stretch, {}, following).parameters : chosen(by);
  Predictor predictor(fetch(stream), 0, stretch, parameters, following);
  Corrections c;
  Step step = Step::more;
  while (step == Step::more)
    step = predictor.next(c);
  if (step != Step::end) std::abort();
  Restorer restorer({fetch(content), 0, measured->decoded}, parameters, following);
  if (measured->decoded != content.size()) return; // predicted with more behind
  CorrectionsView view{c.shape, c.heads, c.places, c.distances};
  Buffer out;
  do
    step = restorer.next(view, out);
  while (step == Step::more);
  if (step != Step::end || !std::ranges::equal(out, stream.first(measured->end))) std::abort();
}

void restore_anything(Bytes in) {
  Parameters parameters;
  if (in.size() < kParameterBytes + 4 || !take_parameters(in, parameters)) return;
  Bytes sizes = in.first(4);
  in = in.subspan(4);
  auto stream = [&] {
    const std::size_t size = std::min<std::size_t>(sizes.front(), in.size());
    const Bytes front = in.first(size);
    sizes = sizes.subspan(1);
    in = in.subspan(size);
    return front;
  };
  CorrectionsView view;
  view.shape = stream();
  view.heads = stream();
  view.places = stream();
  view.distances = stream();
  Following following;
  Restorer restorer({fetch(in), 0, in.size()}, parameters, following);
  Buffer out;
  while (restorer.next(view, out) == Step::more && out.size() < kMost) {
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 3) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] % 3) {
  case 0: {
    Buffer content;
    const bool decodes = inflated(rest, content);
    there_and_back(rest, content, decodes, data[0]);
    break;
  }
  case 1: restore_anything(rest); break;
  default: {
    const Bytes content = rest.subspan(2);
    testing::DeflateWay way;
    way.level = rest[0] % 10;
    way.memory_level = 1 + rest[0] / 10 % 9;
    way.strategy = rest[1] % 5;
    way.window_bits = 9 + rest[1] / 5 % 7;
    if (rest[1] >= 128) way.flush = Z_SYNC_FLUSH, way.every = 64;
    there_and_back(testing::deflated(content, way), content, true, data[0]);
  }
  }
  return 0;
}
