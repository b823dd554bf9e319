import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { ensureToolchain } from './toolchain/toolchain.ts';

/** A busy machine must not fail a test. */
const waitMs = 120_000;
/** Without the sandbox, because tests may run as root, and without features that contact other hosts. */
const flags = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
];

/** Its profile is removed on disposal. */
export interface TestBrowser extends AsyncDisposable {
  readonly context: BrowserContext;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts Chromium without a window. Throws ToolUnavailableError if it is not on this machine and cannot be installed. */
export async function startChromium(): Promise<TestBrowser> {
  const executablePath = (await ensureToolchain({ only: ['chromium'] })).chromium;
  const profile = await mkdtemp(join(tmpdir(), 'holdfast-chromium-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: flags });
  context.setDefaultTimeout(waitMs);
  const dispose = async (): Promise<void> => {
    await context.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  return { context, [Symbol.asyncDispose]: dispose };
}
