// The prebuilt JupyterLab extension. Calls JupyterLab's own builder with the core metadata npm installed beside it, so
// that a build needs Node alone: neither a Python environment nor yarn, and nothing is downloaded.
//   node scripts/build-labextension.mjs [--watch]
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(join(here, 'package.json'));
const builder = join(
  dirname(require.resolve('@jupyter/builder/package.json')),
  'lib',
  'build-labextension.js'
);
const core = join(dirname(require.resolve('@jupyterlab/core-meta/package.json')), 'core.package.json');
const watch = process.argv.includes('--watch');
const flags = watch ? ['--watch', '--development', '--source-map'] : [];
const { status } = spawnSync(process.execPath, [builder, '--core-package-file', core, ...flags, here], {
  cwd: here,
  stdio: watch ? 'inherit' : ['ignore', 'pipe', 'inherit'],
  encoding: 'utf8'
});
if (status !== 0) {
  console.error(
    `The JupyterLab extension was not built (status ${status}): see the builder's messages above.`
  );
  process.exit(status ?? 1);
}
copyFileSync(join(here, 'install.json'), join(here, '../cutegen_lab/labextension/install.json'));
