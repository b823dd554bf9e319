import type { Page } from 'playwright-core';
import { setPassword } from '../../../testkit/admin-command.ts';
import { startChromium, type TestBrowser } from '../../../testkit/chromium.ts';
import { type Cluster, type ClusterOptions, startCluster } from '../../../testkit/cluster.ts';
import { type HoldfastServer, withHelpers } from '../../../testkit/holdfast-server.ts';
import { buildWeb } from '../../../testkit/web-build.ts';
import { enter } from '../../../testkit/web-session.ts';

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
  const cluster = await startCluster({ prepared: true, ...options });
  const browser = await startChromium().catch(async (error: unknown) => {
    await cluster.stop();
    throw error;
  });
  const dispose = async (): Promise<void> => {
    await browser[Symbol.asyncDispose]();
    await cluster.stop();
  };
  try {
    await setPassword(cluster, 'ada');
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
      await enter(page, url, 'ada');
      return page;
    },
    [Symbol.asyncDispose]: dispose,
  };
}
