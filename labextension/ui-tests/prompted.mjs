// What the analyst pins and says travels in the next prompt, and an answer that breaks it is refused: in a real
// JupyterLab, with the provider `manual:DIR` and this script in place of a model. `npm run ui:prompted`.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { part, shots, withJupyter } from './jupyter.mjs';
import {
  RUN_MIME,
  atReview,
  find,
  kernelIdle,
  openNotebook,
  runCell,
  save,
  until,
  writeNotebook
} from './notebook.mjs';

const NAME = 'prompted.ipynb';
const START = `%%cutegen --name prompted --device emulator --provider manual:asked --max-steps 6
def reference(x, y):  # x: f32[100_000]; y: f32[100_000]
    return x + 0.5 * y`;
const KERNEL = readFileSync(
  fileURLToPath(new URL('../../tests/honest/kernels/grid_stride_add.py', import.meta.url)),
  'utf8'
);
const LIVE = '.cg-live .cg-root:visible';
const WHY = 'its loop is what <i>everybody</i> here has read';

const picture = (page, name) => page.screenshot({ path: `${shots}/prompted-${name}.png` });
const live = page => page.locator(LIVE).first();
const click = (page, name) => live(page).getByRole('button', { name, exact: true }).click();

/** The prompt of a number, once it is asked. */
async function prompt(root, number) {
  const path = join(root, 'asked', `${number}.request.md`);
  await until(`prompt ${number}`, async () => existsSync(path));
  return readFileSync(path, 'utf8');
}

function answer(root, number, kernel) {
  const path = join(root, 'asked', `${number}.answer.md`);
  writeFileSync(`${path}.part`, `A kernel.\n\n\`\`\`python\n${kernel}\`\`\`\n`);
  renameSync(`${path}.part`, path);
}

async function firstKernel(page, root) {
  assert.doesNotMatch(await prompt(root, '0001'), /The analyst asks/);
  answer(root, '0001', KERNEL);
  await live(page).getByRole('button', { name: 'Approve c1', exact: true }).waitFor();
}

async function pinAndReject(page) {
  await click(page, 'Pin…');
  await page.getByLabel('Later candidates must not change').selectOption('add_kernel');
  await page.getByLabel('Why (it goes to the provider, and may be empty)').fill(WHY);
  await click(page, 'Pin');
  await page.getByRole('list', { name: 'Comments and pins' }).getByText('add_kernel of c1').waitFor();
  await click(page, 'Reject with reason…');
  await page.getByLabel('Why is c1 not good enough?').fill('more threads are needed');
  await click(page, 'Reject c1');
}

async function anAnswerThatBreaksIt(page, root) {
  const asked = await prompt(root, '0002');
  await picture(page, 'waiting');
  assert.match(asked, /The analyst asks/);
  assert.match(asked, /An answer that changes what is to be kept is refused/);
  assert.ok(asked.includes(`Keep \`add_kernel\``) && asked.includes(WHY), 'what to keep, and why');
  assert.ok(asked.includes('for i in range(bidx * threads + tidx'), 'the pinned text itself');
  assert.ok(asked.includes('more threads are needed'), 'the reason of the answer');
  answer(
    root,
    '0002',
    KERNEL.replace('mX[i] + cutlass.Float32(0.5) * mY[i]', 'cutlass.Float32(0.5) * mY[i] + mX[i]')
  );
  await live(page)
    .getByText(/breaks/)
    .first()
    .waitFor();
  await picture(page, 'broken');
}

async function oneThatKeepsIt(page, root, path) {
  await click(page, 'Retry');
  const asked = await prompt(root, '0003');
  assert.ok(asked.includes(`Keep \`add_kernel\``), 'a pin stays until it is lifted');
  answer(
    root,
    '0003',
    KERNEL.replaceAll('7, 96', '14, 128').replace('[7, 1, 1], block=[96', '[14, 1, 1], block=[128')
  );
  await live(page).getByRole('button', { name: 'Approve c3', exact: true }).waitFor();
  const run = (await save(page, path, atReview('c3')))[RUN_MIME];
  const states = ['c2', 'c3'].map(id => find(run, id).notes.map(note => note.state));
  assert.deepEqual(states, [['broken'], ['kept']]);
  assert.equal(find(run, 'c2').verdict, 'pin_broken');
  assert.equal(find(run, 'c3').verdict, 'passed');
  await picture(page, 'kept');
}

await withJupyter(
  'prompted',
  root => writeNotebook(join(root, NAME), ['%load_ext cutegen_lab', START]),
  async ({ base, root, page }) => {
    await openNotebook(page, base, NAME);
    await kernelIdle(page);
    await runCell(page, '%load_ext cutegen_lab');
    await runCell(page, '%%cutegen');
    await part(firstKernel, page, root);
    await part(pinAndReject, page);
    await part(anAnswerThatBreaksIt, page, root);
    await part(oneThatKeepsIt, page, root, join(root, NAME));
    console.log(`what was pinned travelled with the prompt; pictures in ${shots}`);
  }
);
