#include "etlz/model/learn.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace etwrelog::etlz {
namespace {

using P = Predictor;

constexpr bool is_printable(unsigned unit) {
  return unit >= 0x20 && unit < 0x7F;
}

// A UTF-16 string of printable units at `at`: its length in bytes without the terminator, or nothing.
std::optional<std::size_t> text_at(Bytes payload, std::size_t at) {
  for (std::size_t i = at; i + 2 <= payload.size(); i += 2) {
    const unsigned unit = load<std::uint16_t>(payload.data() + i);
    if (unit == 0) return i - at;
    if (!is_printable(unit)) return std::nullopt;
  }
  return std::nullopt;
}

// Tries out what the model could do, by its rules. Integers only: every machine learns the same. Column by
// column, as all that is asked of the samples is asked of a whole column.
class Relations {
public:
  Relations(Plan &plan, std::span<const Sample> samples) : plan_(plan) {
    std::size_t end = 0;
    std::array<std::size_t, kFields> at{};
    for (const PlanField &f : plan.fields) {
      if (!f.is_number() || f.width > sizeof(Value) || fields_ == kFields) break;
      at[fields_++] = end;
      end += f.width;
    }
    std::vector<const Sample *> whole;
    for (const Sample &s : samples)
      if (s.payload.size() >= end) whole.push_back(&s);
    count_ = whole.size();
    for (const Sample *const s : whole) {
      threads_.push_back(s->thread);
      processes_.push_back(s->process);
    }
    values_.resize(fields_ * count_);
    for (unsigned f = 0; f < fields_; ++f)
      for (std::size_t s = 0; s < count_; ++s)
        values_[f * count_ + s] =
            static_cast<Value>(load_width(whole[s]->payload.data() + at[f], plan.fields[f].width));
  }

  void learn() {
    if (count_ < kFewest || fields_ == 0) return;
    choose_lead();
    open_.assign(fields_ * count_, 1);
    for (unsigned f = 0; f < fields_; ++f)
      if (f != lead_) choose_predictors(f);
    for (unsigned f = 0; f < fields_; ++f)
      choose_residual(f);
  }

private:
  using Value = std::uint32_t; // learned plans have no wider numbers
  static constexpr unsigned kFields = 40, kLeads = 10;
  static constexpr std::size_t kFewest = 24;
  static constexpr std::uint8_t kNoLead = 0xFF;
  struct Guess {
    P predictor = P::previous;
    std::uint8_t arg = 0;
  };

  [[nodiscard]] const Value *column(unsigned field) const { return values_.data() + field * count_; }
  [[nodiscard]] Value mask(unsigned field) const {
    return static_cast<Value>((std::uint64_t{1} << 8 * plan_.fields[field].width) - 1);
  }

  // For each sample the last one before it with the same value of `field`; itself if there is none.
  void find_earlier(unsigned field, std::vector<std::uint32_t> &earlier) {
    const Value *const v = column(field);
    last_.assign(std::bit_ceil(2 * count_), 0);
    earlier.resize(count_);
    for (std::uint32_t s = 0; s < count_; ++s) {
      std::size_t slot = (v[s] * 0x9E37'79B9'7F4A'7C15ull >> 32) & (last_.size() - 1);
      while (last_[slot] != 0 && v[last_[slot] - 1] != v[s])
        slot = (slot + 1) & (last_.size() - 1);
      earlier[s] = last_[slot] != 0 ? last_[slot] - 1 : s;
      last_[slot] = s + 1;
    }
  }

  // How many values differ from the one before.
  [[nodiscard]] std::size_t changes(unsigned field) const {
    const Value *const v = column(field);
    std::size_t n = 0;
    for (std::size_t s = 1; s < count_; ++s)
      n += v[s] != v[s - 1] ? 1 : 0;
    return n;
  }
  // How many of these are the value of the earlier sample.
  [[nodiscard]] std::size_t found(unsigned field, const std::vector<std::uint32_t> &earlier) const {
    const Value *const v = column(field);
    std::size_t n = 0;
    for (std::size_t s = 1; s < count_; ++s)
      n += static_cast<unsigned>(v[s] != v[s - 1]) & static_cast<unsigned>(v[s] == v[earlier[s]]) &
           static_cast<unsigned>(earlier[s] != s);
    return n;
  }

  void choose_lead() {
    // Those that are neither constant nor ever new, those that change most often first.
    std::vector<std::pair<std::size_t, unsigned>> leads;
    std::vector<std::size_t> all_changes(fields_);
    for (unsigned f = 0; f < fields_; ++f) {
      all_changes[f] = changes(f);
      if (all_changes[f] * 8 < count_) continue; // so many can be found at most
      find_earlier(f, earlier_);
      if (found(f, earlier_) * 8 >= count_) leads.emplace_back(all_changes[f], f);
    }
    std::ranges::stable_sort(leads, std::ranges::greater{}, &std::pair<std::size_t, unsigned>::first);
    if (leads.size() > kLeads) leads.resize(kLeads);
    std::size_t fewest = SIZE_MAX;
    for (const auto &[of_lead, lead] : leads) {
      // How often neither the last value nor that of the earlier sample is right.
      find_earlier(lead, earlier_);
      std::size_t sum = of_lead;
      for (unsigned f = 0; f < fields_; ++f)
        if (f != lead && all_changes[f] != 0) sum += all_changes[f] - found(f, earlier_);
      if (sum >= fewest) continue;
      fewest = sum;
      lead_ = static_cast<std::uint8_t>(lead);
    }
    if (lead_ == kNoLead) lead_ = 0; // as good as any
    find_earlier(lead_, earlier_);
    // Where there is none, a look-up finds nothing, and the last value is taken.
    for (std::uint32_t s = 1; s < count_; ++s)
      if (earlier_[s] == s) earlier_[s] = s - 1;
    plan_.lead = lead_;
    PlanField &f = plan_.fields[lead_];
    f.first = P::match, f.second = P::previous;
  }

  // Where a guess is right.
  void mark_hits(Guess g, unsigned field, std::uint8_t *hits) const {
    const Value *const v = column(field);
    const auto mark = [this, v, hits, bits = mask(field)](auto &&expected) {
      for (std::size_t s = 1; s < count_; ++s)
        hits[s] = ((expected(s) ^ v[s]) & bits) == 0 ? 1 : 0;
    };
    switch (g.predictor) {
    case P::lookup: mark([v, earlier = earlier_.data()](std::size_t s) { return v[earlier[s]]; }); break;
    case P::field:
      mark([v, other = column(g.arg)](std::size_t s) { return other[s] + v[s - 1] - other[s - 1]; });
      break;
    case P::slot: {
      const bool thread = g.arg == static_cast<std::uint8_t>(Slot::thread_id);
      mark([id = thread ? threads_.data() : processes_.data()](std::size_t s) { return id[s]; });
      break;
    }
    case P::previous: mark([v](std::size_t s) { return v[s - 1]; }); break;
    default: mark([](std::size_t) { return Value{0}; }); break;
    }
  }

  void choose_predictors(unsigned field) {
    std::vector<Guess> guesses = {{P::lookup, 0}, {P::previous, 0}, {P::zero, 0}};
    if (plan_.fields[field].width == 4) {
      guesses.push_back({P::slot, static_cast<std::uint8_t>(Slot::thread_id)});
      guesses.push_back({P::slot, static_cast<std::uint8_t>(Slot::process_id)});
    }
    for (unsigned other = 0; other < fields_; ++other)
      if (other == lead_ || (other < field && field - other <= 8))
        if (other != field && plan_.fields[other].width == plan_.fields[field].width)
          guesses.push_back({P::field, static_cast<std::uint8_t>(other)});
    hits_.resize(guesses.size() * count_);
    for (std::size_t g = 0; g < guesses.size(); ++g)
      mark_hits(guesses[g], field, hits_.data() + g * count_);
    std::uint8_t *const open = open_.data() + field * count_;
    for (const bool first : {true, false}) {
      std::size_t most = 0;
      std::size_t best = first ? 0 : 1; // lookup, previous
      for (std::size_t g = 0; g < guesses.size(); ++g) {
        const std::uint8_t *const hits = hits_.data() + g * count_;
        std::size_t n = 0;
        for (std::size_t s = 1; s < count_; ++s)
          n += hits[s] & open[s];
        // Of those that are about as good the first: it is likelier to go on being right.
        if (n <= most + count_ / 64) continue;
        most = n;
        best = g;
      }
      PlanField &f = plan_.fields[field];
      (first ? f.first : f.second) = guesses[best].predictor;
      (first ? f.first_arg : f.second_arg) = guesses[best].arg;
      const std::uint8_t *const hits = hits_.data() + best * count_;
      for (std::size_t s = 1; s < count_; ++s)
        open[s] = static_cast<std::uint8_t>(open[s] & (hits[s] ^ 1));
    }
  }

  // How many bits a column takes, of 256 each: by how often its bytes occur, and what it takes to tell that.
  class Column {
  public:
    void add(std::uint8_t byte) {
      if (counts_[byte]++ == 0) bytes_[different_++] = byte;
      ++size_;
    }
    [[nodiscard]] std::uint64_t cost() const {
      std::uint64_t bits = 0;
      for (std::size_t i = 0; i < different_; ++i) {
        const std::uint32_t n = counts_[bytes_[i]];
        bits += n * std::uint64_t{log_of(size_) - log_of(n)} + kOfEach;
      }
      return bits;
    }
    void clear() {
      while (different_ > 0)
        counts_[bytes_[--different_]] = 0;
      size_ = 0;
    }

  private:
    static constexpr std::uint64_t kOfEach = 5 * 256;
    // The logarithm to base 2, in 256ths: linear from one power to the next.
    [[nodiscard]] static std::uint32_t log_of(std::uint32_t n) {
      const auto width = static_cast<unsigned>(std::bit_width(n)) - 1;
      return width * 256 + ((n << 8 >> width) & 255);
    }
    std::array<std::uint32_t, 256> counts_{};
    std::array<std::uint8_t, 256> bytes_{}; // that occur
    std::size_t different_ = 0;
    std::uint32_t size_ = 0;
  };

  // What is not predicted is written byte by byte, or as a difference where that takes less.
  void choose_residual(unsigned field) {
    PlanField &f = plan_.fields[field];
    const Value *const v = column(field);
    written_.clear();
    for (std::uint32_t s = 1; s < count_; ++s)
      if (field == lead_ ? v[s] != v[s - 1] : open_[field * count_ + s] != 0) written_.push_back(s);
    std::uint64_t least = 0;
    for (unsigned i = 0; i < f.width; ++i) {
      bytes_.clear();
      for (const std::uint32_t s : written_)
        bytes_.add(static_cast<std::uint8_t>(v[s] >> 8 * i));
      least += bytes_.cost();
    }
    least -= least / 8; // what is hard to tell stays as it is
    for (const P base : {P::previous, P::lookup}) {
      if (field == lead_ && base == P::lookup) continue;
      bytes_.clear();
      std::uint64_t raw = 0;
      const unsigned shift = 64 - 8u * f.width;
      for (const std::uint32_t s : written_) {
        const std::uint64_t difference = std::uint64_t{v[s]} - v[base == P::lookup ? earlier_[s] : s - 1];
        const Token t =
            signed_token(static_cast<std::uint64_t>(static_cast<std::int64_t>(difference << shift) >> shift));
        bytes_.add(t.symbol);
        raw += t.raw_bits;
      }
      const std::uint64_t cost = bytes_.cost() + raw * 256;
      if (cost >= least) continue;
      least = cost;
      f.residual = Residual::signed_token;
      f.base = base;
    }
  }

  Plan &plan_;
  unsigned fields_ = 0;
  std::size_t count_ = 0;
  std::vector<Value> values_;              // column by column
  std::vector<Value> threads_, processes_; // of each sample
  std::uint8_t lead_ = kNoLead;
  std::vector<std::uint32_t> earlier_; // of the lead, once that is chosen: where it is looked up
  std::vector<std::uint32_t> last_;    // by hash, plus 1
  std::vector<std::uint8_t> hits_;     // of each guess
  std::vector<std::uint8_t> open_;     // of each field: what no predictor hits
  std::vector<std::uint32_t> written_;
  Column bytes_;
};

} // namespace

void learn_relations(Plan &plan, std::span<const Sample> samples) {
  Relations(plan, samples).learn();
}

Plan learned_plan(std::span<const Bytes> payloads) {
  Plan plan;
  if (payloads.empty()) return plan;
  std::size_t shortest = payloads[0].size(), longest = shortest;
  for (const Bytes p : payloads)
    shortest = std::min(shortest, p.size()), longest = std::max(longest, p.size());
  // The numbers reach up to the first place where (nearly) every sample has a readable string.
  std::size_t numbers = shortest, strings = 0;
  if (shortest != longest || payloads.size() == 1) {
    for (std::size_t at = 0; at + 2 <= shortest && at <= 256 && strings == 0; at += 2) {
      std::size_t texts = 0, hits = 0;
      for (const Bytes p : payloads) {
        const auto length = text_at(p, at);
        if (!length) break;
        ++hits;
        if (*length >= 4) ++texts;
      }
      if (hits != payloads.size() || texts * 4 < payloads.size() * 3) continue;
      numbers = at;
      std::vector<std::size_t> places(payloads.size(), at);
      for (bool more = true; more && strings < 16;) {
        for (std::size_t i = 0; i < payloads.size() && more; ++i) {
          const auto length = text_at(payloads[i], places[i]);
          more = length.has_value();
          if (more) places[i] += *length + 2;
        }
        strings += more ? 1 : 0;
      }
    }
  }
  numbers = std::min<std::size_t>(numbers, 400);
  auto number = [&plan](unsigned width) { plan.fields.push_back(field_of(Kind::number, width, "number")); };
  for (std::size_t at = 0; at < numbers;) {
    const std::size_t left = numbers - at;
    const unsigned width = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    number(width);
    at += width;
  }
  for (std::size_t i = 0; i < strings; ++i)
    plan.fields.push_back(field_of(Kind::wstr, 0, "string"));
  if (shortest != longest || numbers < shortest) {
    PlanField rest = field_of(Kind::rest, 0, "rest");
    rest.text = kTextBytes;
    plan.fields.push_back(rest);
  }
  return plan;
}

} // namespace etwrelog::etlz
