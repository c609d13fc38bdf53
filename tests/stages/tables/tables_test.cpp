// Tables of values in the formats that others read: each is read back by a reader of its own.
#include "tables/table.hpp"

#include "base/output_file.hpp"
#include "etwrelog/bytes.hpp"
#include "tables/names.hpp"
#include "tests/support/pipeline_runs.hpp"

#include <filesystem>
#include <stop_token>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

namespace etwrelog::tables {
namespace {

class Memory final : public ByteTarget {
public:
  Result<void> append(std::string_view more) override {
    bytes += more;
    return {};
  }
  std::string bytes;
};

const std::vector<Column> kAllTypes = {{"time", ColumnType::timestamp},       {"small", ColumnType::integer},
                                       {"big", ColumnType::unsigned_integer}, {"real", ColumnType::real},
                                       {"yes", ColumnType::boolean},          {"text", ColumnType::text}};

Batch make_batch(std::size_t rows) {
  Batch batch;
  for (const Column &column : kAllTypes)
    batch.columns.emplace_back(column.type, column.repeats);
  for (std::size_t i = 0; i < rows; ++i) {
    batch.columns[0].add_number(1'600'000'000'000'000'000u + i);
    if (i == 1)
      batch.columns[1].add_null();
    else
      batch.columns[1].add_number(static_cast<std::uint64_t>(-static_cast<std::int64_t>(i)));
    batch.columns[2].add_number(UINT64_MAX - i);
    batch.columns[3].add_real(0.1 * static_cast<double>(i));
    batch.columns[4].add_number(i % 2);
    if (i == 2)
      batch.columns[5].add_null();
    else
      batch.columns[5].add_text(i == 0 ? "a,\"b\"\r\nc" : "plain");
  }
  batch.rows = rows;
  return batch;
}

// Pieces of a column, each with nulls here and there, put behind one another are the column made in one go.
TEST(Tables, ColumnsPutTogetherAreWhatOneColumnWouldBe) {
  std::uint32_t random = 1;
  const auto chance = [&random](std::uint32_t one_in) {
    random = random * 1'664'525 + 1'013'904'223;
    return (random >> 16) % one_in == 0;
  };
  const auto add = [](ColumnData &column, std::uint32_t value, bool null) {
    if (null) return column.add_null();
    switch (column.type()) {
    case ColumnType::text: return column.add_text(std::string(value % 5, 'a' + static_cast<char>(value % 3)));
    case ColumnType::list:
      for (std::uint32_t i = 0; i < value % 4; ++i)
        column.add_element(value + i);
      return column.end_list();
    default: return column.add_number(value);
    }
  };
  for (const auto &[type, repeats] :
       {std::pair(ColumnType::unsigned_integer, false), std::pair(ColumnType::text, false),
        std::pair(ColumnType::text, true), std::pair(ColumnType::list, false)})
    for (int round = 0; round < 50; ++round) {
      ColumnData whole(type, repeats), joined(type, repeats);
      for (int piece = 0; piece < 12; ++piece) {
        ColumnData part(type, repeats);
        const bool none = chance(4), all = chance(4);
        const std::uint32_t rows = random % 40;
        for (std::uint32_t i = 0; i < rows; ++i) {
          const bool null = all || (!none && chance(3));
          add(whole, random % 97, null);
          add(part, random % 97, null);
        }
        joined.append(part);
      }
      ASSERT_EQ(joined.rows(), whole.rows());
      ASSERT_EQ(joined.nulls(), whole.nulls());
      EXPECT_EQ(joined.valid_bits(), whole.valid_bits());
      EXPECT_TRUE(std::ranges::equal(joined.numbers(), whole.numbers()));
      for (std::size_t row = 0; row < whole.rows(); ++row) {
        ASSERT_EQ(joined.is_null(row), whole.is_null(row)) << row;
        if (type != ColumnType::text) continue;
        if (!whole.is_null(row)) {
          ASSERT_EQ(joined.text(row), whole.text(row));
        } else if (repeats) {
          ASSERT_EQ(joined.codes()[row], 0u);
        }
      }
      if (!repeats) {
        EXPECT_TRUE(std::ranges::equal(joined.ends(), whole.ends()));
      }
    }
}

// Numbers for many rows at once are those that are added one by one.
TEST(Tables, NumbersOfManyRowsAtOnceAreTheSame) {
  ColumnData one(ColumnType::integer), many(ColumnType::integer);
  for (std::uint64_t i = 0; i < 300; ++i) {
    if (i % 50 == 7) {
      one.add_null(), many.add_null();
      continue;
    }
    for (std::uint64_t k = 0; k < i % 11; ++k)
      one.add_number(i + k);
    std::uint64_t *to = many.add_numbers(i % 11);
    for (std::uint64_t k = 0; k < i % 11; ++k)
      *to++ = i + k;
  }
  EXPECT_EQ(one.rows(), many.rows());
  EXPECT_EQ(one.valid_bits(), many.valid_bits());
  EXPECT_TRUE(std::ranges::equal(one.numbers(), many.numbers()));
}

TEST(Tables, CsvQuotesWhatNeedsItAndKeepsEveryDigit) {
  Memory memory;
  const auto writer = csv_writer(memory);
  ASSERT_TRUE(writer->add_table("t", kAllTypes));
  ASSERT_TRUE(writer->write(0, make_batch(3)));
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(memory.bytes, "time,small,big,real,yes,text\r\n"
                          "1600000000000000000,0,18446744073709551615,0,false,\"a,\"\"b\"\"\r\nc\"\r\n"
                          "1600000000000000001,,18446744073709551614,0.1,true,plain\r\n"
                          "1600000000000000002,-2,18446744073709551613,0.2,false,\r\n");
}

// As JSON lines have them: more digits than an f32 has are those of its value, not zeros.
TEST(Tables, CsvHasRealNumbersAsJsonLinesHaveThem) {
  Memory memory;
  const std::vector<Column> columns = {{.name = "f32", .type = ColumnType::real, .single = true},
                                       {"f64", ColumnType::real}};
  Batch batch(columns);
  for (const double value : {123456792.0, -0.0, 0.1F + 0.0, 1e22, 5e-324}) {
    batch.columns[0].add_real(static_cast<double>(static_cast<float>(value)));
    batch.columns[1].add_real(value);
    ++batch.rows;
  }
  const auto writer = csv_writer(memory);
  ASSERT_TRUE(writer->add_table("t", columns));
  ASSERT_TRUE(writer->write(0, batch));
  EXPECT_EQ(memory.bytes, "f32,f64\r\n123456792,123456792\r\n-0.0,-0.0\r\n0.1,0.10000000149011612\r\n"
                          "1e+22,1e+22\r\n0,5e-324\r\n");
}

TEST(Tables, FilesTellColumnsOfOneNameApartAsDatabasesDo) {
  std::vector<Column> columns = kAllTypes;
  columns[4].name = "SMALL";
  Memory csv, arrow;
  ASSERT_TRUE(csv_writer(csv)->add_table("t", columns));
  EXPECT_EQ(csv.bytes, "time,small,big,real,SMALL#2,text\r\n");
  ASSERT_TRUE(arrow_writer(arrow, false)->add_table("t", columns));
  EXPECT_NE(arrow.bytes.find("SMALL#2"), std::string::npos);
}

// The parts of an Arrow file that its readers look for; tests/consumers has Arrow's own library read one.
TEST(Tables, ArrowFilesBeginAndEndAsTheFormatSays) {
  for (const bool file : {false, true}) {
    Memory memory;
    const auto writer = arrow_writer(memory, file);
    ASSERT_TRUE(writer->add_table("t", kAllTypes));
    ASSERT_TRUE(writer->write(0, make_batch(9)));
    ASSERT_TRUE(writer->write(0, make_batch(0)));
    ASSERT_TRUE(writer->finish());
    const std::string &bytes = memory.bytes;
    const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
    std::size_t at = file ? 8 : 0, messages = 0;
    if (file) {
      EXPECT_EQ(bytes.substr(0, 8), std::string("ARROW1\0\0", 8));
    }
    ASSERT_EQ(load<std::uint32_t>(data + at), 0xFFFFFFFFu);
    at += 8 + load<std::uint32_t>(data + at + 4); // the schema has no body
    EXPECT_EQ(at % 8, 0u);
    ASSERT_EQ(load<std::uint32_t>(data + at), 0xFFFFFFFFu);
    messages = load<std::uint32_t>(data + at + 4);
    EXPECT_GT(messages, 0u);
    if (file) {
      EXPECT_EQ(bytes.substr(bytes.size() - 6), "ARROW1");
      const std::uint32_t footer = load<std::uint32_t>(data + bytes.size() - 10);
      EXPECT_LT(footer, bytes.size() - 18);
    } else {
      EXPECT_EQ(bytes.substr(bytes.size() - 8), std::string("\xFF\xFF\xFF\xFF\0\0\0\0", 8));
    }
  }
}

std::string ask(sqlite3 *database, const std::string &sql) {
  std::string rows;
  auto add = [](void *out, int columns, char **values, char **) {
    for (int i = 0; i < columns; ++i)
      static_cast<std::string *>(out)
          ->append(values[i] ? values[i] : "NULL")
          .append(i + 1 < columns ? "|" : "\n");
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), add, &rows, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  return rows;
}

// Writes a file of SQLite, and opens it as anybody would.
template <class Fill> void make_database(const std::string &path, sqlite3 *&database, Fill &&fill) {
  {
    auto file = base::OutputFile::create(path, false);
    ASSERT_TRUE(file) << file.error().message();
    auto writer = sqlite_writer(*file);
    ASSERT_TRUE(writer) << writer.error().message();
    ASSERT_NO_FATAL_FAILURE(fill(**writer));
    ASSERT_TRUE(file->commit());
  }
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
}

TEST(Tables, SqliteKeepsValuesWholeAndNamesApart) {
  const testing::TempDir directory;
  std::vector<Column> columns = kAllTypes;
  columns[4].name = "SMALL"; // SQL sees no difference to "small"
  sqlite3 *database = nullptr;
  ASSERT_NO_FATAL_FAILURE(make_database(directory.file("t.db"), database, [&](TableWriter &writer) {
    ASSERT_TRUE(writer.add_table("Disk\"Io/Read", columns));
    ASSERT_TRUE(writer.write(0, make_batch(3)));
    ASSERT_TRUE(writer.write(0, make_batch(2)));
    ASSERT_TRUE(writer.finish());
  }));
  EXPECT_EQ(ask(database, "PRAGMA integrity_check"), "ok\n");
  EXPECT_EQ(ask(database, "select count(*) from \"Disk\"\"Io/Read\""), "5\n");
  EXPECT_EQ(
      ask(database, "select time, small, big, \"SMALL#2\", length(text) from \"Disk\"\"Io/Read\" limit 3"),
      "1600000000000000000|0|18446744073709551615|0|8\n"
      "1600000000000000001|NULL|18446744073709551614|1|5\n"
      "1600000000000000002|-2|18446744073709551613|0|NULL\n");
  sqlite3_close(database);
}

// An index of few rows is slower than none: thousands of kinds have few.
TEST(Tables, SqliteHasIndicesOfTablesThatAreLarge) {
  const testing::TempDir directory;
  sqlite3 *database = nullptr;
  ASSERT_NO_FATAL_FAILURE(make_database(directory.file("t.db"), database, [](TableWriter &writer) {
    for (const char *name : {"few", "many"})
      ASSERT_TRUE(writer.add_table(name, kAllTypes));
    ASSERT_TRUE(writer.write(0, make_batch(10)));
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(writer.write(1, make_batch(600)));
    ASSERT_TRUE(writer.finish());
  }));
  EXPECT_EQ(ask(database, "select name, tbl_name from sqlite_master where type = 'index'"),
            "many.time|many\n");
  EXPECT_EQ(ask(database, "select count(*) from many where time = 1600000000000000007"), "2\n");
  sqlite3_close(database);
}

// TraceLogging takes fields without a name, DuckDB no such column.
TEST(Tables, EveryColumnHasANameOfItsOwn) {
  std::vector<Column> columns = {
      {"", ColumnType::text}, {"a", ColumnType::text}, {"A", ColumnType::text}, {"", ColumnType::text}};
  tell_apart(columns);
  EXPECT_EQ(columns[0].name, "unnamed");
  EXPECT_EQ(columns[2].name, "A#2");
  EXPECT_EQ(columns[3].name, "unnamed#2");
  // Those that have such a name by themselves keep it, wherever they stand.
  columns = {{"time", ColumnType::integer},
             {"", ColumnType::text},
             {"Time", ColumnType::text},
             {"Time#2", ColumnType::text},
             {"unnamed", ColumnType::text}};
  tell_apart(columns);
  std::string names;
  for (const Column &column : columns)
    names += column.name + " ";
  EXPECT_EQ(names, "time unnamed#2 Time#3 Time#2 unnamed ");
}

TEST(Tables, NamesAreGivenOnceAndTheNextFreeNumberIsRemembered) {
  DistinctNames names;
  EXPECT_TRUE(names.take("a_3"));
  EXPECT_FALSE(names.take("A_3"));
  EXPECT_EQ(names.give("A", "_"), "A");
  EXPECT_EQ(names.give("a", "_"), "a_2");
  EXPECT_EQ(names.give("a", "_"), "a_4");
  EXPECT_EQ(names.give("a_2", "_"), "a_2_2");
  for (int i = 0; i < 200'000; ++i) // hours if each began at 2 again
    static_cast<void>(names.give("same", "#"));
  EXPECT_EQ(names.give("same", "#"), "same#200001");
}

// More than the terms that SQLite takes in one SELECT.
TEST(Tables, TheViewOfAllHasThemAllHoweverManyThereAre) {
  constexpr std::size_t kTables = 1'201;
  std::vector<Column> columns;
  for (const char *name : {"time", "timestamp", "cpu", "process_id", "thread_id"})
    columns.push_back({name, ColumnType::integer});
  for (const char *name : {"process", "provider", "provider_id", "event", "id", "version", "opcode", "level",
                           "keyword", "activity", "related_activity", "a", "b", "c"})
    columns.push_back({name, ColumnType::text});
  const auto fill = [&](TableWriter &writer) {
    for (std::size_t number = 0; number <= kTables; ++number) {
      const std::size_t i = number % kTables; // the first once more, which nobody holds open then
      if (number == i) {
        ASSERT_TRUE(writer.add_table(fmt::format("kind_{}", i), columns));
      }
      Batch batch(columns);
      batch.rows = 1;
      for (std::size_t c = 0; c < columns.size(); ++c)
        if (columns[c].type == ColumnType::integer)
          batch.columns[c].add_number(i);
        else
          batch.columns[c].add_text(columns[c].name);
      ASSERT_TRUE(writer.write(i, batch));
    }
    const Result<void> done = writer.finish();
    ASSERT_TRUE(done) << done.error().message();
  };
  const testing::TempDir directory;
  sqlite3 *database = nullptr;
  ASSERT_NO_FATAL_FAILURE(make_database(directory.file("t.db"), database, fill));
  EXPECT_EQ(ask(database, "select count(*), sum(time), min(event) from events"), "1202|720600|event\n");
  EXPECT_EQ(ask(database, "select cpu from events where time > 1198 order by timestamp"), "1199\n1200\n");
  EXPECT_EQ(ask(database, "select level, activity from events limit 1"), "level|activity\n");
  sqlite3_close(database);
  // Where its library is on the machine; consumers/tables reads what it writes.
  if (auto duck = duckdb_writer(directory.file("t.duckdb"))) fill(**duck);
}

TEST(DuckDb, ARequestToStopEndsTheCopyingOfTables) {
  const testing::TempDir directory;
  std::stop_source stop;
  int copied = 0;
  auto duck = duckdb_writer(directory.file("t.duckdb"), stop.get_token(), [&](const std::string &table) {
    if (++copied == 2) stop.request_stop();
    return directory.file(table + ".parquet");
  });
  if (!duck) GTEST_SKIP() << duck.error().message();
  const std::vector<Column> columns = {{"a", ColumnType::integer}};
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE((*duck)->add_table(fmt::format("kind_{}", i), columns));
    Batch batch(columns);
    batch.rows = 1;
    batch.columns[0].add_number(i);
    ASSERT_TRUE((*duck)->write(i, batch));
  }
  const Result<void> done = (*duck)->finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::cancelled) << done.error().message();
  EXPECT_EQ(copied, 2);
  EXPECT_TRUE(std::filesystem::exists(directory.file("kind_0.parquet")));
  EXPECT_FALSE(std::filesystem::exists(directory.file("kind_2.parquet")));
}

} // namespace
} // namespace etwrelog::tables
