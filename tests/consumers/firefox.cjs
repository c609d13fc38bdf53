// Mozilla's own command line opens the profile and counts as we do.
const { execFileSync } = require('child_process'), fs = require('fs'), path = require('path');
const folder = process.argv[2], cli = path.join(process.env.NODE_PATH, '.bin/profiler-cli');
const run = (...args) => execFileSync(cli, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const fail = text => { console.error(text); process.exitCode = 1; };
const facts = JSON.parse(fs.readFileSync(path.join(folder, 'facts.json')));
// Its server has half a second to start, and is left to itself if that is too little: it is asked again then.
function load(file) {
  for (let attempt = 0; attempt < 4; ++attempt) {
    try { run('load', file); return true; } catch (e) {
      for (let i = 0; i < 10; ++i) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
        try { run('thread', 'list'); return true; } catch (again) { /* not yet */ }
      }
      const left = /kill (\d+)/.exec(e.stderr || '');
      if (left) try { process.kill(+left[1]); } catch (gone) { /* it went by itself */ }
    }
  }
  return false;
}
fs.mkdirSync(process.env.PROFILER_CLI_SESSION_DIR, { recursive: true });
for (const name of ['x', 'hostile-x', 'bytes-x']) {
  if (!load(path.join(folder, name + '.firefox.json.gz'))) { console.error('its server does not start in time on this machine'); process.exit(77); }
  const threads = run('thread', 'list');
  if (!/4 threads across 3 processes/.test(threads)) fail('threads: ' + threads);
  if (name === 'x') {
    // Processor time: a millisecond for each sample, the first ones of threads too.
    const busy = [...threads.matchAll(/ ([\d,.]+)(m?)s +[\d,]+$/gm)].reduce((sum, m) => sum + m[1].replace(/,/g, '') * (m[2] ? 1 : 1000), 0);
    if (Math.round(busy) !== facts.all.sum) fail(`processor time: ${busy} ms instead of ${facts.all.sum}`);
    // Context switches: markers with the names and fields that the file's own schema gives them.
    const markers = run('thread', 'markers'), one = /(m-\d+)/.exec(markers);
    // Each thread has 750; the first begins before and the last ends behind its samples.
    if (!/^  (Running|Waiting|Ready) +250 markers/m.test(markers) || !/ 750 markers$/m.test(markers) || !one) fail('markers: ' + markers);
    else {
      const info = run('marker', 'info', one[1]);
      if (!/Type: Switch/.test(info) || !/^ *Processor: \d+$/m.test(info)) fail('marker: ' + info);
    }
    // The first thread is the busiest: six samples of ten.
    const functions = run('thread', 'functions', '--include-idle');
    const main = /game\.exe!main - self: \d+ \([^)]*\), total: (\d+)/.exec(functions);
    const update = /game\.exe!Game::Update - self: (\d+)/.exec(functions);
    if (!main || !update) fail('functions: ' + functions);
    else {
      // Recounted out of the file that is checked elsewhere.
      const lines = JSON.parse(fs.readFileSync(path.join(folder, 'x.speedscope.json')));
      const index = lines.shared.frames.findIndex(f => f.name === 'game.exe!main'), profile = lines.profiles[0];
      const total = profile.samples.filter(s => s.includes(index)).length;
      if (+main[1] !== total) fail(`main: ${main[1]} instead of ${total}`);
    }
  }
  if (name === 'bytes-x') {
    const functions = run('thread', 'functions', '--include-idle'), main = /game\.exe!main - self: \S+ \([^)]*\), total: ([^\n(]*)/.exec(functions);
    if (!main) fail('functions of bytes: ' + functions);
    console.log(`bytes of main: ${main && main[1]}`);
  }
  run('stop', '--all');
}
