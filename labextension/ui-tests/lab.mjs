// Drives a real JupyterLab: `npm run ui:lab`, after `npm run build` and `pip install -e .`.
// Checks the launcher card, the command, the quickstart notebook, a saved run's output and a .cutegen-run.json file.
// PYTHON names the interpreter JupyterLab runs in, CHROMIUM the browser. Pictures go to ui-tests/shots/.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const venv = `${here}../../.venv/bin/python`;
const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');
const port = Number(process.env.PORT ?? 8977);
const shots = `${here}shots`;
const root = mkdtempSync(`${tmpdir()}/cutegen-lab-`);
mkdirSync(shots, { recursive: true });

const run = JSON.parse(readFileSync(`${here}../tests/samples/review.json`, 'utf8'));
writeFileSync(`${root}/softmax.cutegen-run.json`, JSON.stringify(run));
const data = {
  'application/vnd.cutegen.run+json': run,
  'text/html': '<p>static html</p>',
  'text/plain': 'a run'
};
const output = { output_type: 'display_data', metadata: {}, data };
const cell = {
  id: 'a',
  cell_type: 'code',
  metadata: {},
  source: 'run',
  execution_count: 1,
  outputs: [output]
};
writeFileSync(
  `${root}/saved.ipynb`,
  JSON.stringify({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { kernelspec: { name: 'python3', display_name: 'Python 3' } },
    cells: [cell]
  })
);

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
      // Not listening yet.
    }
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  throw new Error(`JupyterLab did not answer on ${base} within 60 s`);
}

let browser;
try {
  await ready();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking']
  });
  const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
  page.setDefaultTimeout(30_000);
  page.on('console', message => message.type() === 'error' && console.error(`browser: ${message.text()}`));
  page.on('pageerror', error => console.error(`browser: ${error.message}`));

  await page.goto(`${base}/lab?reset`);
  const card = page.locator('.jp-LauncherCard', { hasText: 'New CuTeGen notebook' });
  await card.waitFor();
  await page.screenshot({ path: `${shots}/lab-launcher.png` });
  await card.click();
  // Cells fill in one by one.
  for (const text of ['%load_ext cutegen_lab', '%%cutegen --name softmax', 'A new kernel, step by step']) {
    await page.locator('.jp-Notebook .jp-Cell', { hasText: text }).waitFor();
  }
  await page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').waitFor();
  assert.equal(await page.locator('.jp-Dialog').count(), 0, 'no dialog asks for a kernel');
  await page.screenshot({ path: `${shots}/lab-quickstart.png` });

  await page.goto(`${base}/lab/tree/saved.ipynb?reset`);
  const saved = page.locator('.jp-OutputArea .cg-root');
  await saved.waitFor();
  assert.match(await saved.innerText(), /one warp group a row/);
  assert.equal(await saved.locator('[data-verb]').count(), 0, 'a saved run has no verbs');
  await page.screenshot({ path: `${shots}/lab-saved.png` });

  await page.goto(`${base}/lab/tree/softmax.cutegen-run.json?reset`);
  await page.locator('.jp-MimeDocument .cg-root').waitFor();
  await page.screenshot({ path: `${shots}/lab-file.png` });
  console.log(`launcher, quickstart, saved output and run file are as they should be; pictures in ${shots}`);
} catch (error) {
  await browser
    ?.contexts()[0]
    ?.pages()[0]
    ?.screenshot({ path: `${shots}/lab-failure.png` });
  throw error;
} finally {
  await browser?.close();
  server.kill('SIGTERM');
  rmSync(root, { recursive: true, force: true });
}
