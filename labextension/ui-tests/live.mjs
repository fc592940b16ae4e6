// Drives the quickstart in a real JupyterLab with a live kernel: `npm run ui:live`, after `make install`.
// Runs the first cells, approves a candidate by its button, saves, and opens the notebook again without a kernel.
// PYTHON names the interpreter JupyterLab runs in, CHROMIUM the browser. Pictures go to ui-tests/shots/.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const venv = `${here}../../.venv/bin/python`;
const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');
const port = Number(process.env.PORT ?? 8979);
const shots = `${here}shots`;
const root = mkdtempSync(`${tmpdir()}/cutegen-live-`);
mkdirSync(shots, { recursive: true });
const path = `${root}/quickstart.ipynb`;
copyFileSync(`${here}../../notebooks/01_quickstart.ipynb`, path);
const notebook = JSON.parse(readFileSync(path, 'utf8'));
for (const cell of notebook.cells) {
  if (cell.cell_type === 'code') {
    cell.outputs = [];
    cell.source = [].concat(cell.source).join('').replace(' --wait', '');
  }
}
notebook.cells = notebook.cells.slice(0, 4);
writeFileSync(path, JSON.stringify(notebook));

const settings = [
  '--no-browser',
  '--allow-root',
  `--port=${port}`,
  '--IdentityProvider.token=',
  '--ServerApp.password='
];
const server = spawn(python, ['-m', 'jupyterlab', ...settings, `--ServerApp.root_dir=${root}`], {
  stdio: 'ignore'
});
const base = `http://127.0.0.1:${port}`;

async function ready() {
  for (let attempt = 0; attempt < 120; attempt++) {
    try {
      if ((await fetch(`${base}/api`)).ok) {
        return;
      }
    } catch {
      // not up yet
    }
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  throw new Error('JupyterLab did not start');
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-quic',
    '--no-first-run'
  ]
});
try {
  await ready();
  const page = await browser.newPage({ viewport: { width: 1400, height: 1500 } });
  await page.goto(`${base}/lab/tree/quickstart.ipynb`);
  await page.locator('.jp-Notebook').waitFor({ timeout: 60000 });
  await page.locator('.jp-NotebookPanel-toolbar').waitFor();
  await page.waitForTimeout(3000);
  await page.locator('.jp-mod-searchable, .jp-Notebook').first().click();
  await page.locator('.lm-MenuBar-itemLabel', { hasText: /^Run$/ }).click();
  await page.locator('.lm-Menu-itemLabel', { hasText: /^Run All Cells$/ }).click();
  const approve = page.getByRole('button', { name: 'Approve c1', exact: true });
  await approve.waitFor({ timeout: 120000 });
  await page.waitForFunction(
    () => {
      const button = [...document.querySelectorAll('button')].find(
        b => b.textContent?.trim() === 'Approve c1'
      );
      return button !== undefined && !button.disabled;
    },
    null,
    { timeout: 120000 }
  );
  await page.screenshot({ path: `${shots}/live-review.png` });
  await approve.click();
  await page.waitForFunction(() => document.body.textContent?.includes('c2'), null, { timeout: 120000 });
  await page.waitForTimeout(4000);
  await page.screenshot({ path: `${shots}/live-approved.png` });
  await page.keyboard.press('Control+s');
  await page.waitForTimeout(2000);
  const saved = JSON.parse(readFileSync(path, 'utf8'));
  const outputs = saved.cells.flatMap(cell => cell.outputs ?? []);
  const bundle = outputs.find(output => output.data?.['application/vnd.cutegen.run+json']);
  assert.ok(bundle, 'the saved notebook holds the run');
  assert.ok(bundle.data['text/html'], 'and its static HTML');
} finally {
  await browser.close();
  server.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
}
