// A real JupyterLab (or another host of notebooks) in a folder of its own, and a browser on it. What every UI test here
// starts from.
// PYTHON names the interpreter Jupyter runs in, CHROMIUM the browser, PATIENCE_S how long a step may take. Pictures go to ui-tests/shots/.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const here = fileURLToPath(new URL('.', import.meta.url));
export const shots = `${here}shots`;
const checkout = fileURLToPath(new URL('../..', import.meta.url));
const venv = `${checkout}.venv/bin/python`;
export const python = process.env.PYTHON ?? (existsSync(venv) ? venv : 'python3');
/** How long anything may take: a machine with much else to do is slow, and only a failure waits this long. */
export const PATIENCE_MS = 1000 * Number(process.env.PATIENCE_S ?? 300);
mkdirSync(shots, { recursive: true });

/** Takes one part of a walk, and says what it took: of a walk that is cut off, where it was. */
export async function part(steps, ...args) {
  const start = Date.now();
  console.log(`${steps.name} …`);
  await steps(...args);
  console.log(`${steps.name}: ${((Date.now() - start) / 1000).toFixed(0)} s`);
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Nothing serious or critical in what is ours. */
export async function accessible(page, what, selector) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(
    root => globalThis.axe.run(root, { resultTypes: ['violations'] }),
    selector
  );
  const bad = violations.filter(each => ['serious', 'critical'].includes(each.impact));
  const told = bad.map(
    ({ id, nodes }) => `${id}: ${nodes.map(each => `${each.target} ${each.failureSummary}`).join('; ')}`
  );
  assert.deepEqual(told, [], `axe on ${what}`);
}

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

/** This checkout and its build, not an installed one; nor the person's settings and workspaces, or a question about news. */
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
    JUPYTERLAB_SETTINGS_DIR: `${root}/.settings`,
    JUPYTERLAB_WORKSPACES_DIR: `${root}/.workspaces`
  };
}

async function answering(url, server) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
    if (server.exitCode !== null) {
      throw new Error(`the server ended with status ${server.exitCode} before it answered`);
    }
    try {
      if ((await fetch(url)).ok) {
        return;
      }
    } catch {
      // Not listening yet.
    }
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  throw new Error(`no answer from ${url} within ${PATIENCE_MS / 1000} s`);
}

/** `python -m ${words}`, which answers at `base` + `path` once it is ready; it may be ended and started again. */
class Server {
  constructor(base, path, words, root) {
    this.base = base;
    this.ready = `${base}${path}`;
    this.words = words;
    this.options = { cwd: root, stdio: 'ignore', env: environment(root) };
    this.process = null;
  }

  async start() {
    this.process = spawn(python, ['-m', ...this.words], this.options);
    await answering(this.ready, this.process);
  }

  async stop() {
    if (this.process === null || this.process.exitCode !== null) {
      return;
    }
    const ended = new Promise(resolve => this.process.once('exit', resolve));
    this.process.kill('SIGTERM'); // Jupyter ends its kernels on the way out.
    await Promise.race([ended, new Promise(resolve => setTimeout(resolve, 30_000))]);
    this.process.kill('SIGKILL');
  }
}

/**
 * Runs `test({ base, root, page, server })` in JupyterLab or another of Jupyter's applications, with a picture named after
 * `name` where it fails, and cleans up. `prefix`: where the server lives on its host, as "/user/ada".
 */
export function withJupyter(name, prepare, test, { app = 'jupyterlab', size, prefix = '' } = {}) {
  const words = (root, port) => [
    app,
    '--no-browser',
    '--allow-root',
    `--port=${port}`,
    '--ServerApp.port_retries=0',
    '--IdentityProvider.token=',
    '--ServerApp.password=',
    `--ServerApp.base_url=${prefix}/`,
    `--ServerApp.root_dir=${root}`
  ];
  return withServer(name, prepare, words, test, { path: '/api', prefix, size });
}

/** Errors that may be in the console, by why. */
const EXPECTED = {
  'the server is stopped': /ERR_CONNECTION|ERR_EMPTY_RESPONSE/,
  'an output has a widget whose kernel is gone, which ipywidgets says': /widget model not found/,
  'a kernel has ended, and JupyterLab asks for it once more': /\/api\/(kernels|sessions)\/[\w-]{36}/,
  'Notebook 7.6.5 says it of itself, without this extension too':
    /'schema'[^]*static\/notebook\/notebook_core/,
  'a file is broken': /broken\.cutegen/
};

/** Errors in the console of every page of `context` from now on. */
function errorsOf(context) {
  const errors = [];
  const add = (...said) => {
    const text = said.join(' ');
    if (!Object.values(EXPECTED).some(each => each.test(text))) {
      errors.push(text);
    }
  };
  context.on('weberror', failed => add(failed.error().message, failed.error().stack ?? ''));
  context.on('console', message => message.type() === 'error' && add(message.text(), message.location().url));
  return errors;
}

/** As `withJupyter`, of the server `python -m ${words(root, port)}`, which answers at `path` once it is ready. */
export async function withServer(
  name,
  prepare,
  words,
  test,
  { path = '/', prefix = '', size = [1400, 1500] } = {}
) {
  const root = mkdtempSync(`${tmpdir()}/cutegen-${name}-`);
  let server = null;
  let browser = null;
  let page = null;
  try {
    await prepare(root);
    const port = await freePort();
    server = new Server(`http://127.0.0.1:${port}${prefix}`, path, words(root, port), root);
    await server.start();
    browser = await launchBrowser();
    const context = await browser.newContext({ viewport: { width: size[0], height: size[1] } });
    context.setDefaultTimeout(PATIENCE_MS);
    const errors = errorsOf(context);
    page = await context.newPage();
    await test({ base: server.base, root, page, server });
    assert.deepEqual(errors, [], 'errors in the console');
  } catch (error) {
    await page?.screenshot({ path: `${shots}/${name}-failure.png` });
    throw error;
  } finally {
    await browser?.close();
    await server?.stop();
    rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
