import { defineConfig } from 'vitest/config';

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: {
    environment: 'jsdom',
    include: ['tests/**/*.test.{ts,tsx}'],
    restoreMocks: true,
    testTimeout: 60_000, // a busy machine takes long over a whole run view
    setupFiles: ['tests/setup.ts'],
    // Its modules import each other without extensions, which Node does not resolve.
    server: { deps: { inline: [/@jupyter\//, /@jupyterlab\//] } }
  }
});
