// Pictures compared with those in ui-tests/baselines/, a quarter as wide and high and in grey: layout, themes and what
// is there show, and how a machine smooths its letters does not. ACCEPT=1 writes them anew; look at them before you
// commit. Where one differs, ui-tests/shots/NAME.diff.png shows where.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';

const folder = fileURLToPath(new URL('baselines/', import.meta.url));
const shots = fileURLToPath(new URL('shots/', import.meta.url));
const SCALE = 4;
const MOST = 0.01; // of a picture's pixels may differ
const TALLER = 2; // pixels of the small picture: a line of text is 5

/** A picture, a quarter as wide and high, in grey. */
function small(data) {
  const whole = PNG.sync.read(data);
  const [width, height] = [Math.floor(whole.width / SCALE), Math.floor(whole.height / SCALE)];
  const picture = new PNG({ width, height });
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let dy = 0; dy < SCALE; dy++) {
        for (let dx = 0; dx < SCALE; dx++) {
          const at = 4 * ((y * SCALE + dy) * whole.width + x * SCALE + dx);
          sum += 0.299 * whole.data[at] + 0.587 * whole.data[at + 1] + 0.114 * whole.data[at + 2];
        }
      }
      const grey = Math.round(sum / SCALE ** 2);
      picture.data.set([grey, grey, grey, 255], 4 * (y * width + x));
    }
  }
  return picture;
}

/** Rows `0` to `height` of a picture. */
function top(picture, height) {
  return picture.data.subarray(0, 4 * picture.width * height);
}

/** How the screenshot `data` differs from the baseline of that name, in words; '' where it does not. */
export function difference(name, data) {
  const now = small(data);
  const path = `${folder}${name}.png`;
  if (process.env.ACCEPT) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, PNG.sync.write(now, { colorType: 0 }));
    return '';
  }
  if (!existsSync(path)) {
    return `${name}: no baseline; ACCEPT=1 writes it`;
  }
  const before = PNG.sync.read(readFileSync(path));
  if (now.width !== before.width || Math.abs(now.height - before.height) > TALLER) {
    return `${name}: ${now.width} × ${now.height} (a quarter), ${before.width} × ${before.height} before`;
  }
  const height = Math.min(now.height, before.height);
  const shown = new PNG({ width: now.width, height });
  const count = pixelmatch(top(before, height), top(now, height), shown.data, now.width, height, {
    threshold: 0.2
  });
  if (count <= MOST * now.width * height) {
    return '';
  }
  writeFileSync(`${shots}${name}.diff.png`, PNG.sync.write(shown));
  const share = ((100 * count) / (now.width * height)).toFixed(1);
  return `${name}: ${share}% of the picture differs, see shots/${name}.diff.png`;
}
