import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync } from 'node:zlib';
import { setPassword } from '../testkit/admin-command.ts';
import { startChromium } from '../testkit/chromium.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { buildWeb } from '../testkit/web-build.ts';
import { enter } from '../testkit/web-session.ts';
import { DataFolder } from './support/footprint.ts';
import { loadAverage, median, percentile, printTable } from './support/measures.ts';
import { dragFrames, loadAll, scrollFrames, timeUntil } from './support/page-measures.ts';
import { RawClient } from './support/raw-client.ts';
import { seedWeb } from './support/web-seed.ts';

/**
 * The web UI: weight, pages, procedures and scrolling.
 * The weight of its pages, the time until they show what they are about, procedures, and frames while long lists scroll and a graph is dragged.
 * Frames are compared with the frames of an empty page, in the same run.
 * Usage: npm run bench web -- [--stacks 10000] [--resources 50000] [--events 100000] [--calls 200] [--seconds 5]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '10000' },
    resources: { type: 'string', default: '50000' },
    events: { type: 'string', default: '100000' },
    calls: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '5' },
  },
});
const sizes = { stacks: Number(values.stacks), resources: Number(values.resources), events: Number(values.events) };
const calls = Number(values.calls);
const scrollMs = Number(values.seconds) * 1000;
const pixelsPerFrame = 60;
const graphBox = '.react-flow__node';

await buildWeb();
await printWeight();
await using server = await startOwnHoldfast({ HOLDFAST_LOG_LEVEL: 'warn' });
const client = new RawClient(server.url, server.token);
const large = await seedWeb(new DataFolder(server.dataDir), client, sizes);
const { graphed, organization, project, stack, updateId, version } = large;
console.log(`\nload ${await loadAverage()}\n`);
await printProcedures();
await printPages();

/** Compressed as they are sent. */
async function printWeight(): Promise<void> {
  const root = path.join(import.meta.dirname, '../dist/web');
  const page = await readFile(path.join(root, 'index.html'), 'utf8');
  const assets = await readdir(path.join(root, 'assets'));
  const sizeOf = async (name: string): Promise<number> => {
    const file = path.join(root, 'assets', name);
    return assets.includes(`${name}.br`) ? (await stat(`${file}.br`)).size : (await readFile(file)).length;
  };
  const first = [...page.matchAll(/\/assets\/([^"]+\.(?:js|css))"/g)].map(([, name = '']) => name);
  const others = assets.filter((name) => /\.(?:js|css)$/.test(name) && !first.includes(name));
  const lazy = await Promise.all(others.map(async (name) => [name, await sizeOf(name)] as const));
  const firstBytes = (await Promise.all(first.map(sizeOf))).reduce((sum, size) => sum + size, 0);
  printTable(
    ['part', 'kB compressed'],
    [
      ['page, scripts and styles that every page needs', (brotliCompressSync(page).length + firstBytes) / 1000],
      ...lazy
        .sort((a, b) => b[1] - a[1])
        .slice(0, 12)
        .map(([name, bytes]) => [name.replace(/-[\w-]{8}\./, '.'), bytes / 1000]),
    ],
  );
}

async function printProcedures(): Promise<void> {
  const ref = { organization, project, stack };
  const list = (rest: object = {}) => ['stacks.list', { limit: 50, ...rest }] as const;
  const timed: readonly (readonly [string, readonly [string, object]])[] = [
    ['me.get, to compare with', ['me.get', {}]],
    ['stacks.list', list()],
    ['stacks.list, text that many have', list({ text: 'project-01' })],
    ['stacks.list, text that none has', list({ text: 'nowhere' })],
    ['stacks.list, project', list({ project: 'project-042' })],
    ['stacks.list, tag', list({ tag: { name: 'team', value: 'team-7' } })],
    ['stacks.list, running', list({ status: 'running' })],
    ['stacks.list, failed', list({ status: 'failed' })],
    ['stacks.list, drifted', list({ status: 'drifted' })],
    ['stacks.list, frozen', list({ status: 'frozen' })],
    ['stacks.get', ['stacks.get', ref]],
    ['updates.list', ['updates.list', ref]],
    ['updates.get', ['updates.get', { ...ref, updateId }]],
    ['updates.statistics', ['updates.statistics', { ...ref, updateId }]],
    ['updates.events', ['updates.events', { ...ref, updateId, limit: 200 }]],
    ['updates.events, newest first', ['updates.events', { ...ref, updateId, limit: 200, newestFirst: true }]],
    ['resources.list', ['resources.list', ref]],
    ['resources.list, text', ['resources.list', { ...ref, text: 'bucket-4999' }]],
    ['versions.list', ['versions.list', ref]],
  ];
  const rows: [string, number, number][] = [];
  for (const [name, [procedure, input]] of timed) {
    const times: number[] = [];
    for (let at = 0; at < calls; at++) {
      const began = performance.now();
      const address = `${server.url}/trpc/${procedure}?input=${encodeURIComponent(JSON.stringify(input))}`;
      const answer = await fetch(address, { headers: { authorization: `token ${server.token}` } });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${name}: ${answer.status} ${text.slice(0, 300)}`);
      times.push(performance.now() - began);
    }
    rows.push([name, percentile(times, 0.5), percentile(times, 0.99)]);
  }
  printTable([`procedure, ${sizes.stacks} stacks, ${calls} calls`, 'p50 ms', 'p99 ms'], rows);
  console.log('');
}

async function printPages(): Promise<void> {
  await setPassword(server, 'ada');
  await using browser = await startChromium();
  const page = await browser.context.newPage();
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto('about:blank');
  await page.setContent('<div style="height: 1000000px"></div>');
  const frames: [string, number, number, number][] = [];
  const addFrames = async (name: string): Promise<void> => {
    const found = await scrollFrames(page, pixelsPerFrame, scrollMs);
    console.error(name, found);
    frames.push([name, found.perSecond, found.p99Ms, found.longestMs]);
  };
  await addFrames('a page without anything');
  await enter(page, server.url, 'ada');
  const base = `/${organization}/${project}/${stack}`;
  const pages: readonly (readonly [string, string, string])[] = [
    ['stacks', '/', '[role="row"][aria-rowindex="2"]'],
    ['stack', base, 'text=https://example.org/'],
    ['resources', `${base}?tab=resources`, 'text=/bucket-\\d/'],
    ['graph of resources', `${graphed}?tab=resources&shape=graph`, graphBox],
    ['updates of a stack', `${base}?tab=updates`, `main a[href$="/updates/${version}"]`],
    ['update, events', `${base}/updates/${version}?view=events`, 'text=/Message \\d/'],
    ['update, details', `${base}/updates/${version}?view=details`, 'h2:has-text("Environment")'],
  ];
  const session = await browser.context.newCDPSession(page);
  const shown: [string, number, number][] = [];
  for (const [name, address, selector] of pages) {
    const times: { cold: number[]; warm: number[] } = { cold: [], warm: [] };
    for (const kind of ['cold', 'cold', 'cold', 'warm', 'warm', 'warm', 'warm', 'warm'] as const) {
      await session.send('Network.setCacheDisabled', { cacheDisabled: kind === 'cold' });
      times[kind].push(await timeUntil(page, `${server.url}${address}`, selector));
    }
    shown.push([name, median(times.cold), median(times.warm)]);
    console.error(name, times);
  }
  printTable(['page', 'ms until it shows, without the cache of the browser', 'with it'], shown);
  console.log('');
  await page.goto(`${server.url}${graphed}?tab=resources&shape=graph`);
  await page.locator(graphBox).first().waitFor();
  const dragged = await dragFrames(page, '.react-flow__pane', '.react-flow__viewport', scrollMs);
  console.error('graph of resources', dragged);
  frames.push(['graph of resources, dragged', dragged.perSecond, dragged.p99Ms, dragged.longestMs]);
  const lists: readonly (readonly [string, string, string, number])[] = [
    ['stacks', pages[0]?.[1] as string, pages[0]?.[2] as string, sizes.stacks],
    ['resources', pages[2]?.[1] as string, pages[2]?.[2] as string, sizes.resources],
    ['events', pages[5]?.[1] as string, pages[5]?.[2] as string, sizes.events],
  ];
  for (const [name, address, selector, count] of lists) {
    await page.goto(`${server.url}${address}`);
    await page.locator(selector).first().waitFor();
    await addFrames(`${name}, while more are loaded`);
    const height = await loadAll(page, count * 30, 90_000);
    await addFrames(`${name}, ${Math.round(height / 1000)},000 pixels high`);
  }
  printTable(
    [`moving; lists by ${pixelsPerFrame} pixels a frame`, 'frames per second', 'p99 ms', 'longest ms'],
    frames,
  );
}
