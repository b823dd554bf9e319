import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { startChromium } from '../testkit/chromium.ts';

/**
 * Takes the pictures of docs/images from a running demo, in both themes, as WebP. Usage: node scripts/pictures.ts [--url
 * http://127.0.0.1:9090] [--out docs/images] [--only search,ci]
 */
const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:9090' },
    out: { type: 'string', default: path.join(import.meta.dirname, '../docs/images') },
    only: { type: 'string' },
  },
});
const { out, url } = values;
const only = values.only?.split(',');
const stack = '/acme/storefront/prod';
const wide = { width: 1280, height: 800 };
const phone = { width: 390, height: 780 };

interface Picture {
  readonly name: string;
  readonly path: string;
  /** A selector that matches once the page is complete. */
  readonly ready: string;
  /** Runs before the picture is taken. */
  readonly prepare?: (page: Page) => Promise<void>;
  readonly size?: typeof wide;
}

const pictures: readonly Picture[] = [
  { name: 'stacks', path: '/acme', ready: '[role="row"][aria-rowindex="5"]' },
  { name: 'stacks-phone', path: '/acme', ready: '[role="row"][aria-rowindex="5"]', size: phone },
  { name: 'stack', path: '/acme/storefront/staging', ready: 'h2:has-text("Latest updates")' },
  { name: 'resources', path: '/acme/storefront/staging?tab=resources&shape=graph', ready: '[data-box]' },
  { name: 'update', path: '', ready: 'main li >> text=/creating|updating|created|updated/', prepare: openRunning },
  { name: 'timing', path: `${stack}/updates/5?view=timing`, ready: 'text=Critical path' },
  { name: 'versions', path: `${stack}?tab=versions&from=3&to=5`, ready: 'main summary' },
  { name: 'search', path: '/acme/~/search?q=provider%3Aaws%20version%3A%3C7', ready: 'main table tbody tr time' },
  { name: 'ci', path: '/acme/~/ci?view=refusals&days=30', ready: 'main table tbody tr' },
  { name: 'rules', path: '/acme/~/rules', ready: 'main table tbody tr' },
  { name: 'health', path: '/~/operator/health', ready: 'main table tbody tr' },
];

await mkdir(out, { recursive: true });
await using browser = await startChromium();
const page = await browser.context.newPage();
const session = await browser.context.newCDPSession(page);
await page.goto(`${url}/sign-in`);
await page.getByLabel('Login').fill('ada');
await page.getByLabel('Password').fill('kelp holds to rock');
await page.getByRole('button', { name: 'Sign in', exact: true }).click();
await page.waitForURL((to) => !to.pathname.startsWith('/sign-in'));
await page.goto(`${url}/acme`);
await page.getByRole('button', { name: 'Dismiss the next steps' }).click();
for (const picture of pictures) if (only === undefined || only.includes(picture.name)) await take(picture);

async function take({ name, path: address, prepare, ready, size = wide }: Picture): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.goto(`${url}${address || '/acme'}`);
    await prepare?.(page);
    await page.locator(ready).first().waitFor();
    await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
    // Graphs are laid out in the frames after that.
    await page.waitForTimeout(500);
    const file = path.join(out, `${name}-${colorScheme}.webp`);
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 85 });
    await writeFile(file, data, 'base64');
    console.log(path.relative(process.cwd(), file));
  }
}

/** Opens the update that is running in the demo. */
async function openRunning(shown: Page): Promise<void> {
  await shown.goto(`${url}/acme/~/ci`);
  await shown
    .getByRole('link', { name: /^Update by/ })
    .first()
    .click();
}
