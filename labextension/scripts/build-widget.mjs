// The anywidget bundles: self-contained ESM files, the run view's with its style sheet, for JupyterLab, Notebook 7, VS Code and Colab.
//   node scripts/build-widget.mjs [--watch]
import { context, build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const options = {
  absWorkingDir: here,
  entryPoints: { widget: 'src/widget.tsx', figure: 'src/figure.ts' },
  outdir: '../cutegen_lab/notebook/static',
  bundle: true,
  format: 'esm',
  target: ['es2021'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'inline',
  logLevel: 'warning'
};
// The style sheet ships unminified: esbuild would lower light-dark(), which has to follow the notebook's theme.
const styles = {
  ...options,
  entryPoints: { widget: 'style/base.css' },
  target: ['chrome123', 'firefox120', 'safari17.5']
};

if (process.argv.includes('--watch')) {
  for (const each of [options, styles]) {
    await (await context({ ...each, logLevel: 'info' })).watch();
  }
} else {
  await build({ ...options, minify: true });
  await build(styles);
}
