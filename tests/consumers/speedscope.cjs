// Exported files are what speedscope's own schema asks for.
const fs = require('fs'), path = require('path'), Ajv = require('ajv');
const schema = JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, 'speedscope/dist/release/file-format-schema.json')));
const valid = new Ajv({ strict: false }).compile(schema);
for (const name of ['x', 'hostile-x', 'bytes-x']) {
  const file = JSON.parse(fs.readFileSync(path.join(process.argv[2], name + '.speedscope.json')));
  if (!valid(file)) { console.error(valid.errors); process.exit(1); }
  if ((file.profiles[0].unit === 'bytes') !== (name === 'bytes-x')) { console.error('unit: ' + file.profiles[0].unit); process.exit(1); }
}
