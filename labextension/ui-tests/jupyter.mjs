// A real JupyterLab (or Notebook) in a folder of its own, and a browser on it. What every UI test here starts from.
// PYTHON names the interpreter Jupyter runs in, CHROMIUM the browser. Pictures go to ui-tests/shots/.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const here = fileURLToPath(new URL('.', import.meta.url));
export const shots = `${here}shots`;
const checkout = fileURLToPath(new URL('../..', import.meta.url));
const venv = `${checkout}.venv/bin/python`;
export const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');
mkdirSync(shots, { recursive: true });

export function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-quic',
      '--no-first-run'
    ]
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** This checkout and its build, not an installed one; neither the person's settings nor JupyterLab's question about news. */
function environment(root) {
  const folder = `${root}/.settings/@jupyterlab/apputils-extension`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    `${folder}/notification.jupyterlab-settings`,
    '{"fetchNews": "false", "checkForUpdates": false}'
  );
  mkdirSync(`${root}/.share/labextensions`, { recursive: true });
  symlinkSync(`${checkout}cutegen_lab/labextension`, `${root}/.share/labextensions/cutegen-lab`);
  return {
    ...process.env,
    PYTHONPATH: checkout,
    JUPYTER_PATH: `${root}/.share`,
    JUPYTERLAB_SETTINGS_DIR: `${root}/.settings`
  };
}

async function answering(base, server) {
  for (let attempt = 0; attempt < 180; attempt++) {
    if (server.exitCode !== null) {
      throw new Error(`Jupyter ended with status ${server.exitCode} before it answered`);
    }
    try {
      if ((await fetch(`${base}/api`)).ok) {
        return;
      }
    } catch {
      // Not listening yet.
    }
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  throw new Error(`Jupyter did not answer on ${base} within 90 s`);
}

/** Runs `test({ base, root, page, server })`, with a picture named after `name` where it fails, and cleans up. */
export async function withJupyter(name, prepare, test, { app = 'jupyterlab', size = [1400, 1500] } = {}) {
  const root = mkdtempSync(`${tmpdir()}/cutegen-${name}-`);
  let server = null;
  let browser = null;
  let page = null;
  try {
    await prepare(root);
    const port = await freePort();
    const settings = [
      '--no-browser',
      '--allow-root',
      `--port=${port}`,
      '--ServerApp.port_retries=0',
      '--IdentityProvider.token=',
      '--ServerApp.password=',
      `--ServerApp.root_dir=${root}`
    ];
    server = spawn(python, ['-m', app, ...settings], { stdio: 'ignore', env: environment(root) });
    const base = `http://127.0.0.1:${port}`;
    await answering(base, server);
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: size[0], height: size[1] } });
    page.setDefaultTimeout(60_000);
    page.on('pageerror', error => console.error(`browser: ${error.message}`));
    await test({ base, root, page });
  } catch (error) {
    await page?.screenshot({ path: `${shots}/${name}-failure.png` });
    throw error;
  } finally {
    await browser?.close();
    if (server !== null && server.exitCode === null) {
      const ended = new Promise(resolve => server.once('exit', resolve));
      server.kill('SIGTERM'); // Jupyter ends its kernels on the way out.
      await Promise.race([ended, new Promise(resolve => setTimeout(resolve, 10_000))]);
      server.kill('SIGKILL');
    }
    rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
