import { readFileSync } from 'node:fs';
import type { IBackend, Look } from '../src/run/verbs';

/** What is not shown as it is: names of things, and what TypeScript has words for. */
const UNSHOWN = new Set([
  'key',
  'verbs',
  'status',
  'state',
  'basis',
  'severity',
  'tone',
  'kind',
  'bytes_counted'
]);
/** Values that TypeScript has other words for. */
const COMPARED = new Set(['blocks per multiprocessor', 'registers per thread', 'shared memory per block']);
/** Fields that are dictionaries of names which are shown. */
const NAMED = new Set(['provenance', 'versions', 'baselines']);
/** Units, and names that are the same in every language. */
const EVERYWHERE = ['s', 'ms', 'µs', 'min', 'T', 'KiB', 'MiB', 'PTX', 'SASS', 'SVG', 'PyTorch'];

const pieces = (shown: string) => shown.split(/[^\p{L}\p{N}]+/u).filter(piece => /[A-Za-z]/.test(piece));

/**
 * Data in which no English sentence is left: texts of several words are in Cyrillic letters, and the single words that
 * remain, and may be shown, are added to `shown`.
 */
export function disguised<T>(data: T, shown: Set<string>): T {
  const walk = (value: unknown, field: string): unknown => {
    if (Array.isArray(value)) {
      return value.map(each => walk(each, field));
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value);
      if (NAMED.has(field)) {
        entries.flatMap(([name]) => pieces(name)).forEach(piece => shown.add(piece));
      }
      return Object.fromEntries(entries.map(([name, each]) => [name, walk(each, name)]));
    }
    if (typeof value !== 'string' || UNSHOWN.has(field) || COMPARED.has(value) || field === 'svg') {
      return value;
    }
    if (/\s/.test(value)) {
      return value.replace(/[A-Za-z]/g, 'ж');
    }
    pieces(value).forEach(piece => shown.add(piece));
    return value;
  };
  return walk(data, '') as T;
}

/** What of the page people read or hear. A drawing is the kernel's, and the names of keys are no words. */
export function textsShown(root: Element): string[] {
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, node =>
    node instanceof Element && node.matches('.cg-drawing svg, kbd, style')
      ? NodeFilter.FILTER_REJECT
      : NodeFilter.FILTER_ACCEPT
  );
  const found: string[] = [];
  for (let node = nodes.nextNode(); node !== null; node = nodes.nextNode()) {
    if (node instanceof Element) {
      const names = [
        'aria-label',
        'aria-description',
        'aria-placeholder',
        'aria-roledescription',
        'aria-valuetext',
        'alt',
        'placeholder',
        'title'
      ];
      found.push(...names.map(name => node.getAttribute(name) ?? ''));
    } else {
      found.push(node.textContent ?? '');
    }
  }
  return found;
}

/** Words that are neither in marks, nor data, nor the same everywhere. */
export function untranslated(root: Element, shown: ReadonlySet<string>): string[] {
  const known = (piece: string) => shown.has(piece) || EVERYWHERE.includes(piece) || /^\d+e\d*$/.test(piece);
  return textsShown(root).flatMap(each =>
    pieces(each.replace(/⟦[^⟦⟧]*⟧/g, ' '))
      .filter(piece => !known(piece))
      .map(piece => `${piece} in: ${each}`)
  );
}

const answer = (name: string): unknown => JSON.parse(readFileSync(`tests/answers/${name}.json`, 'utf8'));

/** A kernel that answers everything, in disguise. */
export function kernelFor(shown: Set<string>): IBackend {
  const code = {
    candidate_id: 'c1',
    workload: 'main',
    ptx: [{ text: 'ld жж ;', line: 1, stall: null }],
    sass: [],
    sass_note: 'nvdisasm is not installed'
  };
  const answers: Partial<Record<Parameters<Look>[0]['query'], unknown>> = {
    plots: answer('plots'),
    plot: Object.values(answer('plot') as object)[0],
    layouts: {
      candidate_id: 'c5',
      layouts: [
        { layout: '(4,8):(8,1)', what: 'a layout', lines: [1, 2, 3, 4, 5, 6], text: 'x = y' },
        ...(answer('layouts') as { layouts: unknown[] }).layouts
      ]
    },
    layout: (answer('layout_pictures') as unknown[])[0],
    machine_code: code,
    export: {
      formats: [{ name: 'kernel', suffix: '.py', help: 'the kernel', needs: 'nvidia-cutlass-dsl' }],
      paths: ['a.py']
    }
  };
  return {
    ask: () => Promise.resolve(),
    look: ({ query, candidate_id }) =>
      Promise.resolve(disguised({ ...(answers[query] as object), candidate_id }, shown))
  };
}
