import type { Page } from 'playwright-core';
import { percentile } from './measures.ts';

/** Frames of a page while it scrolls. */
interface Frames {
  readonly perSecond: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** How far it went, in pixels. */
  readonly pixels: number;
}

/**
 * Scrolls the page down and up, by `pixelsPerFrame` at each frame, for `ms`. By the debugger: the policy of the pages permits no script of
 * others.
 */
export async function scrollFrames(page: Page, pixelsPerFrame: number, ms: number): Promise<Frames> {
  const script = `new Promise((resolve) => {
    const times = [];
    let last = null, began = null, direction = 1, pixels = 0;
    const step = (now) => {
      began ??= now;
      if (last !== null) times.push(now - last);
      last = now;
      const before = window.scrollY;
      window.scrollBy(0, direction * ${pixelsPerFrame});
      pixels += Math.abs(window.scrollY - before);
      if (window.scrollY === before) direction = -direction;
      if (now - began < ${ms}) requestAnimationFrame(step); else resolve({ times, pixels });
    };
    requestAnimationFrame(step);
  })`;
  const { pixels, times } = (await page.evaluate(script)) as { times: number[]; pixels: number };
  return {
    perSecond: (times.length * 1000) / times.reduce((sum, time) => sum + time, 0),
    p99Ms: percentile(times, 0.99),
    longestMs: Math.max(...times),
    pixels,
  };
}

/** Drags `selector` around by its left upper corner, for `ms`. `moved`: what must be elsewhere after that. */
export async function dragFrames(page: Page, selector: string, moved: string, ms: number): Promise<Frames> {
  const before = await page.locator(moved).getAttribute('style');
  const box = await page.locator(selector).boundingBox();
  if (box === null) throw new Error(`${selector} is not shown`);
  const [x, y] = [box.x + 12, box.y + 12];
  const script = `new Promise((resolve) => {
    const times = [];
    let last = null, began = null;
    const step = (now) => {
      began ??= now;
      if (last !== null) times.push(now - last);
      last = now;
      if (now - began < ${ms}) requestAnimationFrame(step); else resolve(times);
    };
    requestAnimationFrame(step);
  })`;
  await page.mouse.move(x, y);
  await page.mouse.down();
  let isOver = false;
  const sampled = page.evaluate(script).finally(() => {
    isOver = true;
  }) as Promise<number[]>;
  let pixels = 0;
  for (let turn = 0; !isOver; turn += 0.1) {
    await page.mouse.move(x + 150 * Math.abs(Math.sin(turn)), y + 100 * Math.abs(Math.sin(turn / 2)));
    pixels += 15;
  }
  await page.mouse.up();
  const times = await sampled;
  if ((await page.locator(moved).getAttribute('style')) === before) throw new Error(`${moved} has not moved`);
  return {
    perSecond: (times.length * 1000) / times.reduce((sum, time) => sum + time, 0),
    p99Ms: percentile(times, 0.99),
    longestMs: Math.max(...times),
    pixels,
  };
}

/** Scrolls to the end again and again, so that the page loads more, until it is `pixels` high or `maxMs` are over. Returns its height in pixels. */
export async function loadAll(page: Page, pixels: number, maxMs: number): Promise<number> {
  const script = `new Promise((resolve) => {
    const began = performance.now();
    const step = () => {
      const height = document.documentElement.scrollHeight;
      if (height >= ${pixels} || performance.now() - began > ${maxMs}) { window.scrollTo(0, 0); resolve(height); return; }
      window.scrollTo(0, height);
      setTimeout(step, 30);
    };
    step();
  })`;
  return (await page.evaluate(script)) as number;
}

/** Time from the beginning of the navigation until `selector` shows, in ms. */
export async function timeUntil(page: Page, url: string, selector: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' });
  await page.locator(selector).first().waitFor();
  return (await page.evaluate('new Promise((done) => requestAnimationFrame(() => done(performance.now())))')) as number;
}
