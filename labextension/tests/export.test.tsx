import { render } from 'preact';
import { act } from 'preact/test-utils';
import { describe, expect, it, vi } from 'vitest';
import { Export } from '../src/run/export';
import type { Look } from '../src/run/verbs';
import type { ExportView } from '../src/schema';
import { host } from './host';

const FORMATS: ExportView['formats'] = [
  { name: 'kernel', suffix: '.py', help: 'the kernel', needs: 'nvidia-cutlass-dsl' },
  { name: 'wheel', suffix: '.whl', help: 'a package', needs: 'torch <b>' }
];

async function settled(act_: () => void): Promise<void> {
  await act(async () => {
    act_();
    await new Promise(done => setTimeout(done));
  });
}

async function opened(look: Look): Promise<HTMLButtonElement[]> {
  await settled(() => render(<Export id="c2" look={look} />, host));
  const details = host.querySelector('details');
  await settled(() => {
    details?.setAttribute('open', '');
  });
  return [...host.querySelectorAll('button')];
}

const status = () => host.querySelector('[role=status]')?.textContent;

describe('the export menu', () => {
  it('asks for the formats when it is opened, and writes the one that is chosen', async () => {
    const look = vi.fn<Look>(({ text }) =>
      Promise.resolve({ formats: FORMATS, paths: text ? [`r-c2.${text}`] : [] })
    );
    const buttons = await opened(look);
    expect(look).toHaveBeenCalledExactlyOnceWith({ query: 'export', candidate_id: 'c2', text: '' });
    expect(buttons.map(button => button.textContent)).toEqual(['kernel', 'wheel']);
    expect(buttons[1]?.title).toBe('Needs torch <b>');
    expect(status()).toBe('');
    await settled(() => buttons[1]?.click());
    expect(look).toHaveBeenLastCalledWith({ query: 'export', candidate_id: 'c2', text: 'wheel' });
    expect(status()).toBe('Wrote r-c2.wheel.');
    await settled(() => host.querySelector('details')?.dispatchEvent(new Event('toggle')));
    expect(look).toHaveBeenCalledTimes(2);
  });

  it('says why nothing was written, and can be asked again', async () => {
    const look: Look = ({ text }) =>
      text ? Promise.reject(new Error('it exists')) : Promise.resolve({ formats: FORMATS, paths: [] });
    const buttons = await opened(look);
    await settled(() => buttons[0]?.click());
    expect(status()).toBe('it exists');
    expect(buttons[0]?.disabled).toBe(false);
  });

  it('says that it writes until the kernel answers', async () => {
    let answer: (value: unknown) => void = () => undefined;
    const look: Look = ({ text }) =>
      text ? new Promise(resolve => (answer = resolve)) : Promise.resolve({ formats: FORMATS, paths: [] });
    const buttons = await opened(look);
    await settled(() => buttons[0]?.click());
    expect(status()).toBe('Writing kernel…');
    expect(buttons.every(button => button.disabled)).toBe(true);
    await settled(() => answer({ formats: FORMATS, paths: ['k.py'] }));
    expect(status()).toBe('Wrote k.py.');
  });
});
