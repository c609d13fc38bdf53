// The tables of an export, read by those who will read them, row by row against its JSON lines.
//   node tables.mjs FOLDER     with x.jsonl, x.parquet, x.duckdb, x.arrow, x.arrows, x.csv, x.sqlite
import { readFileSync, readdirSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const folder = process.argv[2];
const columns = ['timestamp', 'cpu', 'process_id', 'thread_id', 'process', 'provider', 'provider_id', 'event', 'id',
  'version', 'opcode', 'level', 'keyword', 'activity', 'related_activity'];
const plain = value => value === undefined || value === null ? null : typeof value === 'bigint' ? Number(value) : value;
// Nanoseconds since 1970 of "2020-09-14T22:49:57.2118091Z".
const nanoseconds = text => BigInt(Date.parse(text.slice(0, 19) + 'Z')) * 1000000n + BigInt(text.slice(20, 27)) * 100n;

const text = readFileSync(`${folder}/x.jsonl`, 'utf8');
const lines = text.trimEnd().split('\n');
// Numbers of JSON may have more digits than a double: fields are compared as text.
const expected = lines.map(line => {
  const event = JSON.parse(line);
  const at = line.indexOf(',"fields":') + 10;
  let end = line.indexOf(',"truncated":true', at);
  if (end < 0) end = line.indexOf(',"tail":"', at);
  if (end < 0) end = line.indexOf(',"raw":"', at);
  if (end < 0) end = line.length - 1;
  const fields = line.slice(at, end);
  return { time: nanoseconds(event.time), fields: fields === 'null' ? null : fields,
    row: columns.map(name => plain(event[name])) };
});

let failed = 0;
function compare(name, rows, get, time) {
  if (rows.length !== expected.length) {
    console.log(`${name}: ${rows.length} rows, not ${expected.length}`);
    failed = 1;
    return;
  }
  for (let i = 0; i < rows.length; ++i) {
    const row = columns.map(column => plain(get(rows[i], column)));
    const wrong = columns.find((_, c) => row[c] !== expected[i].row[c]);
    const fields = plain(get(rows[i], 'fields'));
    if (wrong === undefined && fields === expected[i].fields && (!time || time(rows[i]) === expected[i].time)) continue;
    console.log(`${name}: row ${i} differs in ${wrong ?? 'fields or time'}: ${JSON.stringify(row)} ${fields}\n` +
      `  expected ${JSON.stringify(expected[i].row)} ${expected[i].fields}`);
    failed = 1;
    return;
  }
  console.log(`${name}: ${rows.length} rows are equal`);
}
const member = (row, column) => row[column];

const parquet = await parquetReadObjects({ file: await asyncBufferFromFile(`${folder}/x.parquet`), compressors });
compare('Parquet, hyparquet', parquet, member);

for (const kind of ['arrow', 'arrows']) {
  const table = tableFromIPC(readFileSync(`${folder}/x.${kind}`));
  const times = table.getChild('time').toArray();
  let next = 0;
  compare(`.${kind}, apache-arrow`, [...table], member, () => BigInt(times[next++]));
}

// A folder with a typed file for each kind: each row is looked for among the lines.
const byKey = new Map();
const keyOf = get => ['timestamp', 'cpu', 'thread_id', 'provider_id', 'event'].map(name => plain(get(name))).join('|');
for (const line of lines) {
  const event = JSON.parse(line), key = keyOf(name => event[name]);
  if (!byKey.has(key)) byKey.set(key, []);
  byKey.get(key).push(event.fields ?? {});
}
// Numbers of JSON and of BigInt as far as a double has digits; addresses of JSON are texts.
const simple = value => value === null || value === undefined ? null
  : typeof value === 'bigint' ? Number(value)
  : typeof value === 'string' && /^0x[0-9a-f]+$/.test(value) ? Number(BigInt(value))
  : typeof value === 'object' ? Array.from(value, simple) : value;
const same = (typed, field) => {
  const a = simple(typed), b = simple(field);
  if (JSON.stringify(a) === JSON.stringify(b)) return true;
  return typeof typed === 'string' && JSON.stringify(field) === typed; // structures and other arrays
};
// `read`: of a file its rows, and the names of their columns.
async function compareFolder(name, folder, read) {
  const left = new Map([...byKey].map(([key, fields]) => [key, [...fields]]));
  let count = 0, files = 0, lists = 0;
  for (const file of readdirSync(folder)) {
    const { rows, all } = await read(`${folder}/${file}`);
    const names = all.slice(columns.length + 1, -2);
    ++files;
    for (const row of rows) {
      ++count;
      const candidates = left.get(keyOf(name => row[name])) ?? [];
      const fieldOf = (fields, name) => name in fields ? fields[name] : fields[name.replace(/#\d+$/, '')];
      const at = candidates.findIndex(fields => names.every(name => same(row[name], fieldOf(fields, name))));
      if (at < 0) {
        console.log(`${file}: no line for ${JSON.stringify(names.map(name => simple(row[name])))}`);
        process.exit(1);
      }
      lists += names.some(name => row[name] !== null && typeof row[name] === 'object') ? 1 : 0;
      candidates.splice(at, 1);
    }
  }
  if (count !== expected.length || files < 5 || lists === 0) {
    console.log(`${name}: ${count} rows in ${files} files, ${lists} with lists; ${expected.length} are wanted`);
    failed = 1;
  } else {
    console.log(`${name}: ${count} rows in ${files} files are equal`);
  }
}
await compareFolder('--by-kind, apache-arrow', `${folder}/x.arrow.kinds`, file => {
  const table = tableFromIPC(readFileSync(file));
  return { rows: table, all: table.schema.fields.map(field => field.name) };
});
await compareFolder('--by-kind, hyparquet', `${folder}/x.parquet.kinds`, async file => {
  const buffer = await asyncBufferFromFile(file);
  const { schema } = await parquetMetadataAsync(buffer);
  // Lists have groups of their own in the schema: names of columns are children of its root.
  const all = parquetSchema({ schema }).children.map(child => child.element.name);
  return { rows: await parquetReadObjects({ file: buffer, compressors }), all };
});

let polars;
try {
  polars = (await import('nodejs-polars')).default;
} catch (error) {
  console.log(`skipped: polars: ${String(error).slice(0, 80)}`);
}
if (polars) {
  compare('.arrow, polars', polars.readIPC(readFileSync(`${folder}/x.arrow`)).toRecords(), member);
  compare('.arrows, polars', polars.readIPCStream(readFileSync(`${folder}/x.arrows`)).toRecords(), member);
}

const memory = await (await DuckDBInstance.create(':memory:')).connect();
async function ask(connection, sql) {
  const reader = await connection.runAndReadAll(sql);
  return reader.getRowObjects();
}
compare('Parquet, DuckDB', await ask(memory, `SELECT *, epoch_ns(time) AS ns FROM '${folder}/x.parquet'`), member,
  row => row.ns);
compare('CSV, DuckDB', await ask(memory, `SELECT * FROM read_csv('${folder}/x.csv', all_varchar = true)`),
  (row, column) => {
    const value = row[column];
    return value === null || value === '' ? null
      : ['timestamp', 'cpu', 'process_id', 'thread_id', 'id', 'version', 'opcode', 'level'].includes(column)
        ? Number(value) : value;
  });
const database = await (await DuckDBInstance.create(`${folder}/x.duckdb`, { access_mode: 'READ_ONLY' })).connect();
const counted = await ask(database, 'SELECT count(*) AS n, sum(timestamp) AS sum FROM events');
const sum = expected.reduce((all, event) => all + BigInt(event.row[0]), 0n);
if (Number(counted[0].n) !== expected.length || BigInt(counted[0].sum) !== sum) {
  console.log(`DuckDB: ${counted[0].n} events, not ${expected.length}, or other times`);
  failed = 1;
} else {
  console.log(`DuckDB: a table for each kind, ${counted[0].n} events together`);
}
// Addresses as numbers, stacks as lists: as the files of --by-kind have them.
const numbers = await (await DuckDBInstance.create(`${folder}/x.numbers.duckdb`, { access_mode: 'READ_ONLY' })).connect();
const [inDatabase] = await ask(numbers, 'SELECT count(*) AS n, sum(list_sum(Stack)) AS sum FROM StackWalk_Stack');
const [inParquet] = await ask(memory,
  `SELECT count(*) AS n, sum(list_sum(Stack)) AS sum FROM '${folder}/x.parquet.kinds/StackWalk_Stack.parquet'`);
const stacks = lines.map(line => JSON.parse(line)).filter(event => event.event === 'StackWalk/Stack');
const addresses = stacks.flatMap(event => event.fields.Stack).reduce((all, text) => all + BigInt(text), 0n);
for (const [name, found] of [['DuckDB', inDatabase], ['Parquet', inParquet]])
  if (Number(found.n) !== stacks.length || BigInt(found.sum) !== addresses || stacks.length === 0) {
    console.log(`${name}: ${found.n} stacks with ${found.sum}, not ${stacks.length} with ${addresses}`);
    failed = 1;
  } else {
    console.log(`${name}: ${found.n} stacks are lists of numbers`);
  }
process.exit(failed);
