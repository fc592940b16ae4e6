// The film and the picture of README.md, from a real JupyterLab: a cell is run, the evidence read, refinements approved. It
// is shown faster than it went: pictures are taken when something has changed, and each is shown for a while.
// `npm run ui:film`, after `make install` and `pip install pillow`; on a busy machine it takes minutes.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { python, shots, withJupyter } from './jupyter.mjs';
import { kernelIdle, openNotebook, runCell, writeNotebook } from './notebook.mjs';

const NAME = 'softmax.ipynb';
const image = name => fileURLToPath(new URL(`../../docs/images/${name}`, import.meta.url));
const OUT = image('film.webp');
const MOST_BYTES = 2_000_000;
const PATIENCE = 400_000; // ms, for a candidate on a busy machine
const CELL = [
  '%%cutegen --name softmax --device emulator --provider templates:vec=1,threads_per_row=32,rows_per_block=1,loads=1',
  'def reference(x):  # x: bf16[512, 1024]',
  '    return torch.softmax(x, dim=-1)'
];
/** Frames as an animated WebP: [[file, milliseconds], ...]. */
const ENCODE = `import json, sys
from PIL import Image
shown = json.load(open(sys.argv[1]))
frames = [Image.open(file).convert("RGB") for file, _ in shown]
frames[0].save(sys.argv[2], save_all=True, append_images=frames[1:], duration=[ms for _, ms in shown], loop=0,
               lossless=True, quality=60, method=4)`;

const folder = `${shots}/film`;
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const frames = [];

async function frame(page, milliseconds) {
  const file = join(folder, `${String(frames.length).padStart(3, '0')}.png`);
  await page.screenshot({ path: file });
  frames.push([file, milliseconds]);
}

/** A picture as each step begins or ends, until `button` is there. */
async function watch(page, button) {
  const names = page.locator('.cg-live .cg-root .cg-attempt').first().locator('.cg-step-name');
  const words = async () => (await names.allInnerTexts()).join();
  let before = '';
  for (const end = Date.now() + PATIENCE; !(await button.count());) {
    if (Date.now() > end) {
      throw new Error('no candidate came to its review');
    }
    const now = await words();
    if (now !== before) {
      await frame(page, 450);
      before = now;
    }
    await page.waitForTimeout(250);
  }
}

async function press(page, locator, milliseconds) {
  await locator.hover();
  await frame(page, 600);
  await locator.click();
  await page.waitForTimeout(400);
  await frame(page, milliseconds);
}

await withJupyter(
  'film',
  root => writeNotebook(join(root, NAME), ['%load_ext cutegen_lab', '']),
  async ({ base, page }) => {
    page.setDefaultTimeout(PATIENCE);
    await openNotebook(page, base, NAME);
    await page.keyboard.press('Control+b'); // the sidebar makes way
    await kernelIdle(page);
    await runCell(page, '%load_ext');
    await kernelIdle(page);
    const cell = page.locator('.jp-Notebook .jp-CodeCell').nth(1);
    await cell.locator('.cm-content').click();
    await frame(page, 700);
    for (const line of CELL) {
      await page.keyboard.insertText(line === CELL[0] ? line : `\n${line}`);
      await frame(page, 700);
    }
    await page.keyboard.press('Control+Enter');
    const widget = page.locator('.cg-live .cg-root').first();
    await widget.waitFor();
    await widget.evaluate(element => element.scrollIntoView({ block: 'start' }));
    const approve = id => widget.getByRole('button', { name: `Approve ${id}`, exact: true });
    await watch(page, approve('c1'));
    await widget.evaluate(element => element.scrollIntoView({ block: 'start' }));
    await frame(page, 2500);
    await press(page, widget.getByRole('tab', { name: 'Profile' }), 0);
    await widget.locator('.cg-figure .gtitle').waitFor();
    frames.pop();
    await frame(page, 2500);
    await press(page, widget.getByRole('tab', { name: 'Review' }), 500);
    await press(page, approve('c1'), 450);
    await watch(page, approve('c2'));
    await frame(page, 3000);
    await press(page, approve('c2'), 450);
    await watch(page, approve('c3'));
    await page.screenshot({ path: image('widget.png') });
    await press(page, widget.getByRole('tab', { name: 'Compare' }), 3500);
  },
  { size: [1200, 860] }
);

writeFileSync(join(folder, 'frames.json'), JSON.stringify(frames));
execFileSync(python, ['-c', ENCODE, join(folder, 'frames.json'), OUT], { stdio: 'inherit' });
const seconds = frames.reduce((sum, [, milliseconds]) => sum + milliseconds, 0) / 1000;
const bytes = statSync(OUT).size;
console.log(`${frames.length} pictures, ${seconds.toFixed(0)} s, ${Math.round(bytes / 1000)} KB in ${OUT}`);
if (bytes > MOST_BYTES) {
  throw new Error(`the film has ${bytes} bytes, over ${MOST_BYTES}`);
}
