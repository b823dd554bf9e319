import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import type { TestBrowser } from './chromium.ts';
import { holdfastProgram } from './holdfast-program.ts';
import type { OwnHoldfastServer } from './holdfast-server.ts';

const password = 'correct horse battery';
const waitMs = 120_000;

export async function setPassword({ dataDir }: OwnHoldfastServer, login: string): Promise<void> {
  const env = { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: dataDir };
  const args = [holdfastProgram, 'admin', 'user', 'set-password', login];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'ignore', 'inherit'] });
  child.stdin.end(`${password}\n`);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`set-password exited with ${code}`);
}

/** A page of somebody who is signed in, and what its policy refused or failed in it. */
export async function signIn(
  browser: TestBrowser,
  url: string,
  login: string,
): Promise<{ page: Page; refused: string[] }> {
  await browser.context.clearCookies();
  const page = await browser.context.newPage();
  page.setDefaultTimeout(waitMs);
  const refused: string[] = [];
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) refused.push(message.text());
  });
  page.on('pageerror', (error) => refused.push(error.message));
  await page.goto(`${url}/sign-in`);
  await page.getByLabel('Login').fill(login);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL((to) => !to.pathname.startsWith('/sign-in'));
  return { page, refused };
}

/** What axe finds wrong with a page in both themes, and whether it is wider than a phone. */
export async function findFlaws(page: Page): Promise<string[]> {
  const found: string[] = [];
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    // By the debugger: the policy of the page permits no scripts of others.
    await page.evaluate(axe);
    const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
      violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
    };
    for (const { id, nodes } of violations)
      found.push(...nodes.map(({ failureSummary, html }) => `${colorScheme} ${id}: ${html}\n${failureSummary ?? ''}`));
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const width = (await page.evaluate('document.documentElement.scrollWidth')) as number;
  if (width !== 390) found.push(`${page.url()} is ${width} pixels wide on a phone`);
  await page.setViewportSize({ width: 1280, height: 720 });
  return found;
}
