import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { webPassword } from './admin-command.ts';
import type { TestBrowser } from './chromium.ts';
import { pollUntil } from './poll.ts';

/** A page of somebody who is signed in, and what its policy refused or failed in it. */
export async function signIn(
  browser: TestBrowser,
  url: string,
  login: string,
): Promise<{ page: Page; refused: string[] }> {
  await browser.context.clearCookies();
  const page = await browser.context.newPage();
  const refused: string[] = [];
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) refused.push(message.text());
  });
  page.on('pageerror', (error) => refused.push(error.message));
  await enter(page, url, login);
  return { page, refused };
}

/** Signs somebody in on the page of sign-in. */
export async function enter(page: Page, url: string, login: string): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await submitPassword(page, login);
  await page.waitForURL((to) => !to.pathname.startsWith('/sign-in'));
}

/** Fills in and sends the form of the sign-in page that is shown. */
export async function submitPassword(page: Page, login: string): Promise<void> {
  await page.getByLabel('Login').fill(login);
  await page.getByLabel('Password').fill(webPassword);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Rules of axe whose outcome depends on colors. Others find the same in both themes, which differ in colors only (tokens.css). */
const colorRules = ['color-contrast', 'link-in-text-block'];

/** What axe finds wrong with a page in both themes. Waits for the title of the page. `rules`: those that axe does not apply by itself. */
export async function findBarriers(page: Page, rules: readonly string[] = []): Promise<string[]> {
  const found: string[] = [];
  // Dialogs hide it from readers.
  await page.locator('h1').first().waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    const moving = (await page.evaluate(
      `[...document.querySelectorAll('*')].filter((element) => /[1-9]/.test(getComputedStyle(element).transitionDuration)).map((element) => element.className)`,
    )) as unknown[];
    if (moving.length > 0) found.push(`${page.url()} moves although less motion is asked for: ${moving.join(', ')}`);
    // By the debugger: the policy of the page permits no scripts of others.
    if (!(await page.evaluate("'axe' in window")))
      await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
    const options = {
      resultTypes: ['violations'],
      rules: Object.fromEntries(rules.map((rule) => [rule, { enabled: true }])),
      ...(colorScheme === 'dark' ? { runOnly: { type: 'rule', values: colorRules }, rules: {} } : {}),
    };
    const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as {
      violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
    };
    for (const { id, nodes } of violations)
      for (const { failureSummary, html } of nodes)
        found.push(`${page.url()} ${colorScheme} ${id}: ${html}\n${failureSummary ?? ''}`);
  }
  return found;
}

/** The same, and whether the page is wider than a phone. */
export async function findFlaws(page: Page): Promise<string[]> {
  const found = await findBarriers(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await untilAsWide(page, 390);
  await page.setViewportSize({ width: 1280, height: 720 });
  return found;
}

/** Waits until the page is as wide as its window. Graphs and lists are laid out again some time after the window has changed. */
export async function untilAsWide(page: Page, width: number): Promise<void> {
  const isAsWide = async () => (await page.evaluate('document.documentElement.scrollWidth')) === width;
  await pollUntil(`${page.url()} is ${width} pixels wide`, isAsWide);
}

/** Chooses a command of the palette by the keyboard. Enter runs what is selected, which others may be before the search has answered. */
export async function runCommand(page: Page, text: string, option: string | RegExp): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Stack, page or command' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.type(text);
  await page.getByRole('option', { name: option, selected: true }).waitFor();
  await page.keyboard.press('Enter');
}

/** The page of a test file, on which one person after another is signed in, and what its tests do with it. */
export function filePage() {
  let page: Page;
  let url: string;
  /** What the browser complained about. */
  const complaints: string[] = [];
  const signInAs = async (login: string): Promise<void> => {
    // A page that is open would leave for the sign-in page by itself.
    await page.goto('about:blank');
    await page.context().clearCookies();
    await enter(page, url, login);
  };
  const dialog = () => page.getByRole('dialog');
  return {
    complaints,
    dialog,
    signInAs,
    row: (text: string) => page.getByRole('row').filter({ hasText: text }),

    /** Opens the page for `ada`, an admin. */
    async openPage(browser: TestBrowser, serverUrl: string): Promise<Page> {
      page = await browser.context.newPage();
      url = serverUrl;
      page.on('console', (message) => {
        // Refusals of the server that the page shows.
        if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await signInAs('ada');
      return page;
    },

    /** Presses the button of the dialog that does it, and waits until it is done. */
    async confirm(name: string): Promise<void> {
      await dialog().getByRole('button', { name, exact: true }).click();
      await dialog().waitFor({ state: 'detached' });
    },
  };
}
