// The page and the SVG in a real browser: what a person does with them gives the numbers of the profile.
const fs = require('fs'), path = require('path'), { chromium } = require('playwright-core');
const folder = path.resolve(process.argv[2]), facts = JSON.parse(fs.readFileSync(path.join(folder, 'facts.json')));
let failures = 0;
const equal = (what, found, wanted) => { if (String(found) !== String(wanted)) { ++failures; console.error(`${what}: expected ${wanted}, found ${found}`); } };
const group = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true });
  const open = async name => {
    const page = await context.newPage();
    page.on('pageerror', e => { ++failures; console.error(name + ': ' + e.message); });
    page.on('request', r => { if (!r.url().startsWith('file:')) { ++failures; console.error(name + ' asks for ' + r.url()); } });
    await page.goto('file://' + path.join(folder, name));
    return page;
  };

  const page = await open('x.html');
  const sum = () => page.locator('#selected').getAttribute('data-value');
  const table = async () => {
    await page.click('#tab-top');
    const rows = await page.$$eval('#top tbody tr', all => all.map(tr => [...tr.cells].map(c => c.textContent)));
    return Object.fromEntries(rows.map(r => [r[4], { self: r[0], total: r[2], share: r[3] }]));
  };
  const same = async (what, wanted) => {
    equal(what + ': samples', await sum(), wanted.sum);
    const rows = await table();
    equal(what + ': functions', Object.keys(rows).length, Object.keys(wanted.total).length);
    for (const [name, total] of Object.entries(wanted.total)) {
      equal(`${what}: ${name}: total`, rows[name] && rows[name].total, group(total));
      const share = total / wanted.sum, digits = share < 0.1 ? 2 : 1; // with its 95 % confidence interval
      equal(`${what}: ${name}: share`, rows[name] && rows[name].share,
        `${(100 * total / wanted.sum).toFixed(digits)} % ±${(196 * Math.sqrt(share * (1 - share) / wanted.sum)).toFixed(digits)}`);
      equal(`${what}: ${name}: self`, rows[name] && rows[name].self, group(wanted.self[name] || 0));
    }
    await page.click('#tab-flame');
  };
  await same('opened', facts.all);
  // A stretch by its numbers, then a process, then all of the time again.
  await page.fill('#from', String(facts.part.from / 1e9)); await page.press('#from', 'Enter');
  await page.fill('#to', String(facts.part.to / 1e9)); await page.press('#to', 'Enter');
  await same('stretch', facts.part);
  await page.click('#who button[data-process="0"]');
  await same('stretch of a process', facts.game_part);
  await page.click('#whole');
  await same('process', facts.game);
  // A stretch by the mouse.
  const box = await page.locator('#time').boundingBox();
  await page.mouse.move(box.x + 300, box.y + 50); await page.mouse.down();
  await page.mouse.move(box.x + 420, box.y + 60, { steps: 5 }); await page.mouse.move(box.x + 600, box.y + 60); await page.mouse.up();
  const part = await page.evaluate(() => ({ from: profile.state.from, to: profile.state.to, sum: profile.sum() }));
  if (!(part.from > 0 && part.to < 4e9 && part.sum > 0 && part.sum < facts.game.sum)) { ++failures; console.error('mouse', part); }
  // The menu of the other button leaves it, and so does a touch that becomes a scroll.
  const stretch = () => page.evaluate(() => [profile.state.from, profile.state.to, profile.sum(), document.getElementById('from').value].join());
  const selected = await stretch();
  await page.mouse.move(box.x + 700, box.y + 60); await page.mouse.down({ button: 'right' }); await page.mouse.up({ button: 'right' });
  equal('the other button', await stretch(), selected);
  await page.evaluate(() => {
    const canvas = document.getElementById('time'), at = canvas.getBoundingClientRect();
    canvas.setPointerCapture = () => {};
    for (const [type, x] of [['down', 100], ['move', 200], ['cancel', 200], ['move', 300]])
      canvas.dispatchEvent(new PointerEvent('pointer' + type, { pointerId: 1, clientX: at.left + x, clientY: at.top + 50, bubbles: true }));
    delete canvas.setPointerCapture;
  });
  equal('a touch that scrolls', await stretch(), selected);
  // Escape goes back to all, from wherever one is; in a field it takes back what was typed.
  const picked = () => page.evaluate(() => [profile.state.from, profile.state.process, profile.zoomed()].join());
  const allOfIt = `0,-1,${facts.all.sum}`, game = () => page.click('#who button[data-process="0"]');
  await page.focus('#time'); await page.keyboard.press('Escape');
  equal('all by keyboard, on the time line', await picked(), allOfIt);
  await game(); await page.fill('#from', '1'); await page.press('#from', 'Enter');
  await page.fill('#to', '2'); await page.press('#to', 'Escape');
  equal('Escape in a field', `${await page.inputValue('#to')} ${await page.evaluate(() => profile.state.process)}`, '4.000 0');
  await page.focus('#tab-top'); await page.keyboard.press('Escape');
  equal('all by keyboard, on a tab', await picked(), allOfIt);
  await game();
  // Searching: what passes through a match, counted once though it calls itself.
  await page.fill('#search', 'game::update');
  equal('search', await page.locator('#found').getAttribute('data-value'), facts.game.total['game.exe!Game::Update']);
  await page.fill('#search', '');
  // Zooming by the mouse and by the keyboard.
  const cell = await page.evaluate(() => profile.cells().find(c => c.name === 'game.exe!Game::Update'));
  const canvas = await page.locator('#stacks').boundingBox();
  await page.mouse.click(canvas.x + cell.x + cell.w / 2, canvas.y + cell.depth * 20 + 10);
  equal('zoom', await page.evaluate(() => profile.zoomed()), cell.total);
  const wide = await page.evaluate(() => profile.cells().find(c => c.name === 'game.exe!Game::Update').w);
  equal('zoomed width', Math.round(wide), Math.round(canvas.width));
  await page.focus('#stacks'); await page.keyboard.press('Escape');
  equal('zoomed out', await picked(), allOfIt);
  await game(); await page.focus('#stacks');
  await page.keyboard.press('ArrowDown'); await page.keyboard.press('Enter');
  equal('zoom by keyboard', await page.evaluate(() => profile.zoomed()) < facts.game.sum, true);
  // Other views draw, also on a narrow screen, without scrolling sideways.
  for (const tab of ['tree', 'quality']) await page.click('#tab-' + tab);
  equal('classes', (await page.textContent('#quality')).includes(group(facts.game.sum)), true);
  await page.setViewportSize({ width: 360, height: 700 });
  for (const tab of ['flame', 'top', 'tree', 'quality']) {
    await page.click('#tab-' + tab);
    equal('narrow: ' + tab, await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  }
  // In a low window the canvas is as high as what is seen of it, whatever the stacks; the keyboard's frame is in sight,
  // and the mouse finds what is drawn there.
  await page.setViewportSize({ width: 1280, height: 60 });
  await page.click('#tab-flame'); await page.focus('#stacks');
  for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowDown');
  const seen = await page.evaluate(() => {
    const s = document.getElementById('scroll'), c = profile.cells().find(x => x.node === profile.state.focus);
    return { canvas: document.getElementById('stacks').clientHeight, height: s.clientHeight, up: s.scrollTop, c };
  });
  equal('low: canvas', seen.canvas, seen.height);
  equal('low: in sight', seen.up > 0 && seen.c.depth * 20 >= seen.up && (seen.c.depth + 1) * 20 <= seen.up + seen.height, true);
  await page.evaluate(({ c, up }) => {
    const s = document.getElementById('stacks'), r = s.getBoundingClientRect();
    s.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: r.left + c.x + c.w / 2, clientY: r.top + c.depth * 20 + 10 - up }));
  }, seen);
  equal('low: click', await page.evaluate(() => profile.state.zoom), seen.c.node);
  await page.setViewportSize({ width: 1280, height: 900 });
  // What is drawn anew keeps the keyboard where it was; a menu on the time line selects nothing.
  const at = () => page.evaluate(() => document.activeElement.textContent);
  await page.focus('#who button[data-process="0"]'); await page.keyboard.press('Enter');
  equal('focus: process', (await at()).startsWith(await page.textContent('#who button[data-process="0"] span')), true);
  await page.click('#tab-top'); await page.focus('#top th:nth-child(3) button'); await page.keyboard.press('Enter');
  equal('focus: sort', await at(), 'Total');
  await page.fill('#from', '1'); await page.press('#from', 'Enter');
  await page.click('#time', { button: 'right', position: { x: 300, y: 50 } });
  equal('menu', await page.evaluate(() => profile.state.from), 1e9);
  // The address tells the view: Back goes to the one before, a link opens one, and no address opens nothing.
  const viewOf = where => where.evaluate(() => { const s = profile.state; return JSON.stringify([s.process, s.from, s.to, s.zoom, s.tab, s.search, profile.sum(), profile.zoomed()]); });
  const views = await open('x.html'), view = () => viewOf(views);
  const wentThrough = [await view()], settled = () => views.waitForTimeout(500);
  for (const step of [() => views.click('#who button[data-process="0"]'), () => views.evaluate(() => profile.zoomTo(profile.cells()[2].node)),
    async () => { await views.fill('#from', '1'); await views.press('#from', 'Enter'); }, () => views.click('#tab-top'), () => views.fill('#search', 'leaf')]) {
    await step(); await settled(); wentThrough.push(await view());
  }
  equal('views differ', new Set(wentThrough).size, 6);
  const link = views.url().split('#')[1];
  for (const was of wentThrough.slice(0, -1).reverse()) { await views.goBack(); equal('back', await view(), was); }
  for (const was of wentThrough.slice(1)) { await views.goForward(); equal('forward', await view(), was); }
  const linked = await open('x.html#' + link);
  equal('link', await viewOf(linked), wentThrough[5]);
  equal('link: search', await linked.inputValue('#search'), 'leaf');
  const odd = await open('x.html#process=99&thread=-7&from=nothing&to=1e99&zoom=99999999&tab=__proto__&search');
  equal('odd link', await odd.evaluate(() => profile.sum()), facts.all.sum);
  await open('hostile-x.html');

  const svg = await open('x.svg');
  await svg.fill('#search', 'Game::Update');
  const share = (100 * facts.all.total['game.exe!Game::Update'] / facts.all.sum).toFixed(2);
  const said = await svg.textContent('#found');
  if (!said.startsWith(share + ' %,')) { ++failures; console.error(`svg search: ${said} instead of ${share} %`); }
  await svg.fill('#search', '');
  const labels = () => svg.$$eval('g.f text', all => all.filter(t => t.textContent !== '').length), before = await labels();
  const main = svg.locator('g.f', { has: svg.locator('text=/^game.exe!main$/') }).first();
  await main.click();
  equal('svg zoom', Math.round(+(await main.locator('rect').getAttribute('width'))), 1176);
  await svg.click('#reset');
  equal('svg reset', +(await main.locator('rect').getAttribute('width')) < 1100, true);
  equal('svg reset: names that fit', await labels(), before);
  // By the keyboard: from the search box through the button to the picture, its root first.
  const keys = await open('x.svg');
  const told = () => keys.textContent('#details'), names = async pressed => {
    const all = [];
    for (const key of pressed) { await keys.keyboard.press(key); all.push((await told()).split(': ')[0]); }
    return all.join(' > ');
  };
  const resting = await told();
  await keys.focus('#reset'); await keys.keyboard.press('Shift+Tab'); await keys.keyboard.press('Shift+Tab');
  const root = (await told()).split(': ')[0];
  const steps = await keys.evaluate(() => {
    const all = [...document.querySelectorAll('#flame g.f')].map(g => { const r = g.querySelector('rect'); return { name: g.querySelector('title').textContent.split('\n')[0], x: +r.getAttribute('x'), w: +r.getAttribute('width'), y: +r.getAttribute('y') }; });
    const path = [all[0]];
    for (let i = 0; i < 3; ++i) {
      const at = path[i], above = all.filter(f => f.y < at.y && f.y > at.y - 20 && f.x >= at.x - 0.02 && f.x + f.w <= at.x + at.w + 0.02);
      path.push(above.reduce((a, b) => a.w >= b.w ? a : b));
    }
    return path.map(f => f.name);
  });
  equal('svg keyboard: root', root, steps[0]);
  equal('svg keyboard: callees', await names(['ArrowUp', 'ArrowUp', 'ArrowUp']), steps.slice(1).join(' > '));
  equal('svg keyboard: callers', await names(['ArrowDown']), steps[2]);
  await keys.keyboard.press('Enter');
  const widthAt = () => keys.$eval('g.f.at rect', r => Math.round(+r.getAttribute('width')));
  equal('svg keyboard: zoom', await widthAt(), 1176);
  await keys.keyboard.press('Backspace'); await keys.keyboard.press('Backspace');
  equal('svg keyboard: back', await widthAt() < 1176, true);
  await keys.keyboard.press('Tab');
  equal('svg keyboard: left', await told(), resting);
  await open('hostile-x.svg');
  await browser.close();
  if (failures) process.exit(1);
})().catch(e => { console.error(e); process.exit(1); });
