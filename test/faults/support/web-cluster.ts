import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Page } from 'playwright-core';
import { startChromium, type TestBrowser } from '../../../testkit/chromium.ts';
import { type Cluster, type ClusterOptions, startCluster } from '../../../testkit/cluster.ts';
import { holdfastProgram } from '../../../testkit/holdfast-program.ts';
import { type HoldfastServer, withHelpers } from '../../../testkit/holdfast-server.ts';
import { buildWeb } from '../../../testkit/web-build.ts';
import { enter, webPassword } from '../../../testkit/web-session.ts';

const waitMs = 120_000;

/** A cluster with the web UI of these sources, and a browser. */
export interface WebCluster extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly browser: TestBrowser;
  /** The cluster as the CLI uses it. */
  readonly server: HoldfastServer;
  /** A new page on which the site admin `ada` is signed in, on the list of stacks. */
  signIn(): Promise<Page>;
}

/** Starts them, and gives `ada` a password. */
export async function startWebCluster(options: ClusterOptions = {}): Promise<WebCluster> {
  await buildWeb();
  const cluster = await startCluster(options);
  const browser = await startChromium().catch(async (error: unknown) => {
    await cluster.stop();
    throw error;
  });
  const dispose = async (): Promise<void> => {
    await browser[Symbol.asyncDispose]();
    await cluster.stop();
  };
  try {
    await setPassword(cluster);
  } catch (error) {
    await dispose();
    throw error;
  }
  const { organization, token, url } = cluster;
  return {
    cluster,
    browser,
    server: withHelpers({
      ...{ url, token, organization, managementUrl: cluster.apiManagementUrls[0] as string },
      faults: () => [],
      [Symbol.asyncDispose]: async () => undefined,
    }),
    signIn: async () => {
      const page = await browser.context.newPage();
      page.setDefaultTimeout(waitMs);
      await enter(page, url, 'ada');
      return page;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

async function setPassword({ databaseUrl }: Cluster): Promise<void> {
  const env = { PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: databaseUrl };
  const args = [holdfastProgram, 'admin', 'user', 'set-password', 'ada'];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'ignore', 'inherit'] });
  child.stdin.end(`${webPassword}\n`);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`set-password exited with ${code}`);
}
