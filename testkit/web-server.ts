import { afterAll, expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { setPassword } from './admin-command.ts';
import { startChromium, type TestBrowser } from './chromium.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from './holdfast-server.ts';
import { fileServer } from './suite.ts';
import { buildWeb } from './web-build.ts';
import { findFlaws } from './web-session.ts';

export interface WebServer {
  readonly server: OwnHoldfastServer;
  readonly browser: TestBrowser;
}

/**
 * Returns a function that provides the server and the browser of a test file. They are started on first use and stopped after the
 * last test. `ada`, an admin, and the `viewers` can sign in.
 */
export function fileWebServer({
  reviewer = false,
  settings = {},
  viewers = [],
}: {
  reviewer?: boolean;
  settings?: Record<string, string>;
  viewers?: readonly string[];
} = {}): () => Promise<WebServer> {
  let browser: Promise<TestBrowser> | undefined;
  afterAll(async () => (await browser)?.[Symbol.asyncDispose]());
  const server = fileServer(async () => {
    await buildWeb();
    const started = await startOwnHoldfast(settings, { prepared: true, reviewer, viewers });
    await Promise.all(['ada', ...viewers].map((login) => setPassword(started, login)));
    return started;
  });
  return async () => {
    browser ??= startChromium();
    const [chromium, holdfast] = await Promise.all([browser, server()]);
    return { browser: chromium, server: holdfast };
  };
}

/** Expects that the loaded page is accessible, in both themes and on a phone. */
export async function expectSound(page: Page): Promise<void> {
  await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
  expect(await findFlaws(page)).toEqual([]);
}
