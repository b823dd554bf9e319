import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { setPassword } from '../testkit/admin-command.ts';
import { startChromium } from '../testkit/chromium.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { findFreePort } from '../testkit/server-process.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { ensureToolchain } from '../testkit/toolchain/toolchain.ts';
import { until } from '../testkit/until.ts';
import { submitPassword, untilAsWide } from '../testkit/web-session.ts';

/**
 * `pulumi login` in a terminal of its own, on a machine whose `xdg-open` writes the address that it is asked to open into a file. The
 * home directory is removed with it.
 */
class TerminalLogin implements AsyncDisposable {
  readonly #home: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  output = '';

  private constructor(home: string, child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#home = home;
    this.#child = child;
    this.#ended = once(child, 'close');
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
  }

  static async start(pulumi: string, url: string): Promise<TerminalLogin> {
    const home = await mkdtemp(join(tmpdir(), 'holdfast-login-'));
    await mkdir(join(home, 'bin'));
    const opener = join(home, 'bin', 'xdg-open');
    await writeFile(opener, `#!/bin/sh\nprintf '%s' "$1" >'${join(home, 'opened')}'\n`);
    await chmod(opener, 0o755);
    const child = spawn('script', ['-qefc', `'${pulumi}' login ${url}`, '/dev/null'], {
      cwd: home,
      env: { ...environment(home), PULUMI_CONSOLE_DOMAIN: new URL(url).host },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    return new TerminalLogin(home, child);
  }

  /** Presses Enter at the prompt, for a login with the browser, and returns the address that the CLI opens. */
  async openedPage(): Promise<string> {
    const wait = { timeoutMs: 120_000, everyMs: 50 };
    await until(async () => /<ENTER>/.test(this.output), 'the CLI asks for a token', wait);
    let opened = '';
    const read = async (): Promise<boolean> => {
      // The prompt may not read yet.
      this.#child.stdin.write('\r');
      opened = await readFile(join(this.#home, 'opened'), 'utf8').catch(() => '');
      return opened !== '';
    };
    await until(read, 'the CLI opens a page', { ...wait, everyMs: 500 });
    return opened;
  }

  /** Waits for its end and returns the exit code. */
  async end(): Promise<number | null> {
    await this.#ended;
    return this.#child.exitCode;
  }

  async whoami(pulumi: string): Promise<string> {
    const { stdout } = await promisify(execFile)(pulumi, ['whoami'], { cwd: this.#home, env: environment(this.#home) });
    return stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill('SIGHUP');
    await this.#ended;
    await rm(this.#home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

function environment(home: string): Record<string, string> {
  const path = [join(home, 'bin'), '/usr/local/bin', '/usr/bin', '/bin'].join(':');
  return { PATH: path, HOME: home, TERM: 'xterm', NO_COLOR: '1', DISPLAY: ':0', PULUMI_SKIP_UPDATE_CHECK: 'true' };
}

await suite('login with a browser', { ownServer: true, tools: ['pulumi-3.276', 'chromium'] }, () => {
  const server = fileServer(() => startOwnHoldfast({}, { prepared: true }));

  test(
    'pulumi login opens the page; who signs in and confirms there is logged in',
    async () => {
      const holdfast = await server();
      await setPassword(holdfast, 'ada');
      const pulumi = (await ensureToolchain({ only: ['pulumi-3.276'] }))['pulumi-3.276'];
      await using cli = await TerminalLogin.start(pulumi, holdfast.url);
      await using chromium = await startChromium();
      const page = await chromium.context.newPage();
      const refusedByPolicy: string[] = [];
      page.on('console', (message) => {
        if (/Content Security Policy/.test(message.text())) refusedByPolicy.push(message.text());
      });
      await page.goto(await cli.openedPage());
      await submitPassword(page, 'ada');
      await page.getByRole('button', { name: 'Log in the CLI' }).click();
      await page.getByRole('heading', { name: 'The Pulumi CLI is logged in' }).waitFor();
      expect(await cli.end()).toBe(0);
      expect(await cli.whoami(pulumi)).toBe('ada');
      expect(refusedByPolicy).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'a person adds a passkey and signs in with it',
    async () => {
      const port = await findFreePort();
      const url = `http://localhost:${port}`;
      // Browsers have no passkeys for addresses.
      await using holdfast = await startOwnHoldfast({ HOLDFAST_PUBLIC_URL: url }, { port, prepared: true });
      await setPassword(holdfast, 'ada');
      await using chromium = await startChromium();
      const page = await chromium.context.newPage();
      const devtools = await chromium.context.newCDPSession(page);
      await devtools.send('WebAuthn.enable');
      await devtools.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          ...{ protocol: 'ctap2', transport: 'internal' },
          ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
          automaticPresenceSimulation: true,
        },
      });
      const signIn = `${url}/sign-in?next=/account`;
      await page.goto(signIn);
      await submitPassword(page, 'ada');
      const name = `my <laptop> ${'w'.repeat(40)}`;
      const passkey = page.getByRole('listitem').filter({ hasText: name });
      await page.getByLabel('Name of a new passkey').fill(name);
      await page.getByRole('button', { name: 'Add a passkey' }).click();
      await passkey.waitFor();
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await page.goto(signIn);
      const options = '**/sign-in/passkey/options';
      await page.route(options, (route) => route.fulfill({ status: 502, body: '<html>Bad gateway</html>' }));
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
      await page.getByText('The server does not answer. Try again.').waitFor();
      await page.unroute(options);
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
      await page.getByText('You are signed in as ada').waitFor();
      await page.getByText('by passkey').waitFor();
      await passkey.getByText('Remove…').click();
      await page.setViewportSize({ width: 320, height: 800 });
      await untilAsWide(page, 320);
      await page.getByRole('button', { name: `Remove ${name}` }).click();
      await passkey.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
      await page.getByText('The passkey was not accepted').waitFor();
    },
    scenarioTimeoutMs,
  );
});
