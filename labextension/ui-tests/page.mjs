// Screenshots of the widget bundle on the sample runs: `npm run ui:page`, after `npm run build`.
// CHROMIUM names the browser where it is not /usr/bin/chromium. Pictures go to ui-tests/shots/.
import { readFileSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const bundle = fileURLToPath(new URL('../../cutegen_lab/notebook/static/', import.meta.url));
const flags = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
const shots = `${here}shots`;
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: flags
});
const failures = [];

async function show(name, sample, { scheme = 'light', width = 1040, act } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  page.on('pageerror', error => failures.push(`${name}: ${error.message}`));
  page.on('console', message => message.type() === 'error' && failures.push(`${name}: ${message.text()}`));
  await page.setContent('<!doctype html><body style="margin:12px"><div id="host"></div></body>');
  await page.addStyleTag({ content: readFileSync(`${bundle}widget.css`, 'utf8') });
  const view = JSON.parse(readFileSync(`${here}../tests/samples/${sample}.json`, 'utf8'));
  await page.clock.setFixedTime((view.updated_at + 2.4) * 1000);
  const module = readFileSync(`${bundle}widget.js`, 'utf8');
  await page.evaluate(
    async ([source, state]) => {
      const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
      const { default: widget } = await import(url);
      const model = { get: () => state, on() {}, off() {}, send() {} };
      widget.render({ model, el: document.getElementById('host') });
    },
    [module, view]
  );
  await act?.(page);
  if (await page.evaluate(() => globalThis.pwned !== undefined)) {
    failures.push(`${name}: text from the run was executed`);
  }
  if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)) {
    failures.push(`${name}: wider than the page`);
  }
  await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
  await page.close();
}

await show('review-light', 'review');
await show('review-dark', 'review', { scheme: 'dark' });
await show('review-narrow', 'review', { width: 420 });
await show('running', 'running');
await show('done', 'done');
await show('failed-candidate', 'review', { act: page => page.getByRole('button', { name: /^c2 / }).click() });
await show('reject', 'review', {
  act: page => page.getByRole('button', { name: /Reject with reason/ }).click()
});
await show('edit', 'review', {
  scheme: 'dark',
  act: page => page.getByRole('button', { name: 'Edit…' }).click()
});
await show('unproven', 'unproven', {
  act: page => page.getByRole('button', { name: /Approve without proof/ }).click()
});
await show('interrupted', 'interrupted');
await show('started', 'started');
await show('hostile', 'hostile');
await browser.close();
if (failures.length > 0) {
  console.error(failures.join('\n'));
  process.exit(1);
}
console.log(`12 pictures in ${shots}`);
