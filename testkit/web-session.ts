import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page, Request, Route } from 'playwright-core';
import { webPassword } from './admin-command.ts';
import type { TestBrowser } from './chromium.ts';
import { until } from './until.ts';

/** A page of a signed-in user, and a list of the errors and policy violations in it. */
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

/** Signs a user in on the sign-in page. */
export async function enter(page: Page, url: string, login: string): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await submitPassword(page, login);
  await page.waitForURL((to) => !to.pathname.startsWith('/sign-in'));
}

export async function submitPassword(page: Page, login: string): Promise<void> {
  await page.getByLabel('Login').fill(login);
  await page.getByLabel('Password').fill(webPassword);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/**
 * Rules of axe whose outcome depends on colors. Other rules have the same outcome in both themes, which differ only in colors (tokens.css).
 */
const colorRules = ['color-contrast', 'link-in-text-block'];

/**
 * The violations that axe finds on a page in both themes. Waits for the title of the page. `rules`: additional rules that axe does not
 * apply by default.
 */
export async function findBarriers(page: Page, rules: readonly string[] = []): Promise<string[]> {
  // Dialogs hide the title from screen readers.
  await page.locator('h1').first().waitFor();
  return await barriersIn(page, null, Object.fromEntries(rules.map((rule) => [rule, { enabled: true }])));
}

/**
 * Like `findBarriers`, for the elements that a selector finds. Open menus are checked separately: they hide the page, including its
 * landmarks, so axe's rule that all content is within a landmark does not fit them.
 */
async function barriersIn(page: Page, selector: string | null, rules: object = {}): Promise<string[]> {
  const found: string[] = [];
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await frames(page);
    const moving = (await page.evaluate(
      `[...document.querySelectorAll('*')].filter((element) => /[1-9]/.test(getComputedStyle(element).transitionDuration)).map((element) => element.className)`,
    )) as unknown[];
    if (moving.length > 0) found.push(`${page.url()} moves although less motion is asked for: ${moving.join(', ')}`);
    // Injected by the debugger, because the policy of the page permits no foreign scripts.
    if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe);
    const context = selector === null ? 'document' : JSON.stringify(selector);
    const options = {
      resultTypes: ['violations'],
      // Otherwise axe parses all styles again, for a rule that it does not apply by default. That is a fifth of its time.
      preload: false,
      ...(colorScheme === 'dark' ? { runOnly: { type: 'rule', values: colorRules } } : { rules }),
    };
    const { violations } = (await page.evaluate(`axe.run(${context}, ${JSON.stringify(options)})`)) as {
      violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
    };
    for (const { id, nodes } of violations)
      for (const { failureSummary, html } of nodes)
        found.push(`${page.url()} ${colorScheme} ${id}: ${html}\n${failureSummary ?? ''}`);
  }
  return found;
}

/** Waits until changes are drawn. */
async function frames(page: Page): Promise<void> {
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
}

/** Buttons that open no popup, or that ask the browser for something. */
const opensNothing = /^(Add to favorites|Copy|CSV|Details|Download|Favorite|Hide|Save|Show|Why)/;
const popups = '[role=dialog], [role=menu]';
const waitMs = 5_000;
/** How long a popup may take to open once the network is idle: React delays loaded content. */
const lateMs = 300;
/** Limits the wait for a request that is never answered. */
const maxRounds = 100;

/** The unanswered requests of a page, without streams. */
function requestsOf(page: Page) {
  const open = new Set<Request>();
  const add = (request: Request): void => {
    if (request.resourceType() !== 'eventsource') open.add(request);
  };
  const remove = (request: Request): void => void open.delete(request);
  page.on('request', add).on('requestfinished', remove).on('requestfailed', remove);
  return {
    open,
    end: () => void page.off('request', add).off('requestfinished', remove).off('requestfailed', remove),
  };
}

/**
 * The violations that axe finds in the dialogs and menus behind the buttons of a page, in both themes, and popups that are wider than a
 * phone. `opened` receives their names. Meanwhile, the server is only read from.
 */
export async function findPopupFlaws(page: Page, opened: string[]): Promise<string[]> {
  const found: string[] = [];
  const refuse = async (route: Route): Promise<void> => {
    if (route.request().method() === 'GET') return route.fallback();
    const data = { code: 'FORBIDDEN', httpStatus: 403 };
    return route.fulfill({ status: 403, json: { error: { message: 'Only looked at', code: -32_003, data } } });
  };
  await page.route('**/trpc/**', refuse);
  const requests = requestsOf(page);
  const popup = page.locator(popups);
  /** Waits until a popup is open, or until the content that a click has requested has arrived and is drawn. */
  const untilDrawn = async (): Promise<void> => {
    for (let round = 0; round < maxRounds; round++) {
      const isIdle = requests.open.size === 0;
      await popup
        .first()
        .waitFor({ timeout: lateMs })
        .catch(() => {});
      await frames(page);
      if ((isIdle && requests.open.size === 0) || (await popup.first().isVisible())) return;
    }
  };
  const main = page.getByRole('main');
  const close = async (): Promise<void> => {
    await page.keyboard.press('Escape');
    await popup.first().waitFor({ state: 'detached' });
  };
  const addressOf = (name: string): string => `${new URL(page.url()).pathname} "${name}"`;
  const look = async (name: string): Promise<void> => {
    const address = addressOf(name);
    opened.push(address);
    found.push(...(await barriersIn(page, popups)).map((flaw) => `${address} ${flaw}`));
    if ((await page.getByRole('dialog').count()) === 0) return;
    await page.setViewportSize({ width: 390, height: 844 });
    await frames(page);
    const isWide = `[...document.querySelectorAll('${popups}')].some((popup) => popup.scrollWidth > popup.clientWidth + 1)`;
    if (await page.evaluate(isWide)) found.push(`${address} is wider than a phone`);
    await page.setViewportSize({ width: 1280, height: 720 });
  };
  /** Checks a popup that has opened meanwhile. */
  const lookAtLate = async (name: string): Promise<void> => {
    if (!(await popup.first().isVisible())) return;
    await look(name);
    await close();
  };
  const named = (await page.evaluate(
    `[...document.querySelectorAll('main button:enabled')].filter((button) => button.checkVisibility()).map((button) => ({
      name: (button.getAttribute('aria-label') ?? button.textContent).trim(),
      isMenu: button.getAttribute('aria-haspopup') === 'menu',
    }))`,
  )) as readonly { readonly name: string; readonly isMenu: boolean }[];
  const kinds = new Set<string>();
  const unclicked = new Set<string>();
  const again = new Set<string>();
  const queue = [...named];
  for (const { isMenu, name } of queue) {
    // Of the buttons that are the same in each row, one is enough.
    const kind = name.replace(/^(Actions for|Approve|Edit|Remove|Revoke|Rotate|Send again|Thaw) .*/, '$1');
    const button = main.getByRole('button', { name, exact: true }).first();
    if (kind === '' || opensNothing.test(name) || kinds.has(kind) || opened.includes(addressOf(name))) continue;
    if ((await button.count()) === 0) continue;
    kinds.add(kind);
    await lookAtLate(name);
    const opens = async (): Promise<boolean> => {
      const isClicked = await button.click({ timeout: waitMs }).then(
        () => true,
        () => false,
      );
      if (!isClicked) unclicked.add(name);
      else if (isMenu)
        await popup
          .first()
          .waitFor({ timeout: waitMs })
          .catch(() => {});
      // Some popups are loaded when they are first needed.
      else await untilDrawn();
      return await popup.first().isVisible();
    };
    if (!(await opens())) {
      // A popup that opens meanwhile, or a redrawn page, is in the way of the click. The button is tried once more, after the others.
      if (unclicked.has(name) && !again.has(name)) {
        again.add(name);
        kinds.delete(kind);
        queue.push({ isMenu, name });
      }
      continue;
    }
    await look(name);
    const items = isMenu ? await page.getByRole('menuitem').allTextContents() : [];
    await close();
    // Items that open a dialog.
    for (const item of items.filter((each) => each.endsWith('…'))) {
      if (!(await opens())) continue;
      await page.getByRole('menuitem', { name: item, exact: true }).click();
      await page.getByRole('menu').waitFor({ state: 'detached' });
      await untilDrawn();
      await lookAtLate(item);
    }
  }
  await lookAtLate('the last button');
  requests.end();
  await page.unroute('**/trpc/**', refuse);
  return found;
}

/** Like `findBarriers`, and whether the page is wider than a phone. */
export async function findFlaws(page: Page): Promise<string[]> {
  const found = await findBarriers(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await untilAsWide(page, 390);
  await page.setViewportSize({ width: 1280, height: 720 });
  return found;
}

/** Graphs and lists are laid out again some time after the window has changed. */
export async function untilAsWide(page: Page, width: number): Promise<void> {
  const isAsWide = async () => (await page.evaluate('document.documentElement.scrollWidth')) === width;
  await until(isAsWide, `${page.url()} is ${width} pixels wide`);
}

/**
 * Chooses a command of the palette by the keyboard. Enter runs the selected command, which may be another one before the search has
 * answered.
 */
export async function runCommand(page: Page, text: string, option: string | RegExp): Promise<void> {
  // The palette does not open over a dialog, and a dialog stays for a moment after its call has succeeded.
  await until(async () => (await page.locator(popups).count()) === 0, 'no dialog is open');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Stack, page or command' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.type(text);
  await page.getByRole('option', { name: option, selected: true }).waitFor();
  await page.keyboard.press('Enter');
}

/** Even across navigations. Keys do not count. */
export async function countClicks(page: Page): Promise<{ take(): number }> {
  let clicks = 0;
  await page.exposeBinding('countClick', () => void clicks++);
  await page.addInitScript(`addEventListener('click', ({ detail }) => (detail > 0 ? countClick() : undefined), true)`);
  return {
    /** Returns the clicks since the last call. */
    take: () => {
      const taken = clicks;
      clicks = 0;
      return taken;
    },
  };
}

/** The page of a test file, on which one user after another is signed in, and the actions of its tests. */
export function filePage() {
  let page: Page;
  let url: string;
  /** Errors that the browser has reported. */
  const complaints: string[] = [];
  const signInAs = async (login: string): Promise<void> => {
    // An open page would go to the sign-in page by itself.
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
        // The page itself shows refusals of the server.
        if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await signInAs('ada');
      return page;
    },

    /** Waits until the call of the dialog is done. */
    async confirm(name: string): Promise<void> {
      await dialog().getByRole('button', { name, exact: true }).click();
      await dialog().waitFor({ state: 'detached' });
    },
  };
}
