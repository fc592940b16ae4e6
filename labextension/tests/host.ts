// The element that a test draws into: a new one for each test, emptied and removed after it.
import { render } from 'preact';
import { afterEach, beforeEach } from 'vitest';

export let host: HTMLElement;

beforeEach(() => {
  host = document.body.appendChild(document.createElement('div'));
});

afterEach(() => {
  render(null, host);
  host.remove();
});
