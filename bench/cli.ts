import { parseArgs } from 'node:util';
import { startCluster } from '../testkit/cluster.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { PulumiWorkspace } from '../testkit/pulumi-cli.ts';
import { stashProgram } from '../testkit/stash-program.ts';
import { median, printTable } from './support/measures.ts';
import { startNullServer } from './support/null-server.ts';

/**
 * The real CLI against the null server, Holdfast and the file backend.
 * They alternate in each round: wall time of up, no-op up, preview and destroy of N Stash resources, and the ratio of up to
 * that of the null server. With --chained each resource waits for the previous one, so the CLI also waits for every write.
 * Usage: npm run bench cli -- [--counts 20,100,500] [--rounds 3] [--tuned] [--chained]
 *   [--targets null,file,embedded,cluster] [--modes auto,journal,delta,full] [--url URL --token TOKEN]
 * The target `cluster` starts a cluster as `npm run cluster` does, unless --url names a running one.
 */
const { values } = parseArgs({
  options: {
    counts: { type: 'string', default: '20,100,500' },
    rounds: { type: 'string', default: '3' },
    tuned: { type: 'boolean', default: false },
    chained: { type: 'boolean', default: false },
    targets: { type: 'string', default: 'null,file,embedded' },
    modes: { type: 'string', default: 'auto' },
    url: { type: 'string' },
    token: { type: 'string' },
  },
});

interface Target {
  readonly name: string;
  readonly open: () => Promise<PulumiWorkspace>;
  /** If not, only the first up is meaningful. */
  readonly storesState: boolean;
}

const tuning = values.tuned ? { PULUMI_JOURNALING_BATCH_PERIOD: '2' } : {};
const parallel = values.tuned ? ['--parallel', '64'] : [];

async function main(): Promise<void> {
  await using nullServer = await startNullServer();
  await using resources = new AsyncDisposableStack();
  const selected = values.targets.split(',');
  const targets: Target[] = [
    {
      name: 'null',
      storesState: false,
      open: () => PulumiWorkspace.create({ backendUrl: nullServer.url, accessToken: 'x', env: tuning }),
    },
  ];
  if (selected.includes('file')) {
    targets.push({ name: 'file backend', storesState: true, open: () => PulumiWorkspace.create({ env: tuning }) });
  }
  for (const mode of selected.includes('embedded') ? values.modes.split(',') : []) {
    const server = resources.use(await startOwnHoldfast({ HOLDFAST_CHECKPOINT_MODE: mode }));
    targets.push({ name: `embedded (${mode})`, storesState: true, open: () => server.workspace({ env: tuning }) });
  }
  if (selected.includes('cluster')) {
    const { url, token } = await openCluster(resources);
    targets.push({
      name: 'cluster',
      storesState: true,
      open: () => PulumiWorkspace.create({ backendUrl: url, accessToken: token, env: tuning }),
    });
  }
  for (const count of values.counts.split(',').map(Number))
    await compare(targets, count, () => nullServer.readCounts());
}

async function openCluster(resources: AsyncDisposableStack): Promise<{ url: string; token: string }> {
  const { url, token } = values;
  if (url !== undefined && token !== undefined) return { url, token };
  return resources.use(await startCluster());
}

async function compare(
  targets: readonly Target[],
  count: number,
  readCounts: () => { requests: number; bytes: number },
): Promise<void> {
  const seconds = new Map(
    targets.map(({ name }) => [
      name,
      { up: [] as number[], noop: [] as number[], preview: [] as number[], destroy: [] as number[] },
    ]),
  );
  let floor = { requests: 0, bytes: 0 };
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const target of targets) {
      await using workspace = await target.open();
      await workspace.writeProgram(stashProgram({ project: 'bench', count, chained: values.chained }));
      await workspace.runOk(['login']);
      await workspace.runOk(['stack', 'init', target.name === 'file backend' ? 'dev' : `dev-org/bench/b${Date.now()}`]);
      const counts = seconds.get(target.name) as NonNullable<ReturnType<typeof seconds.get>>;
      const time = async (into: number[], args: string[]) => {
        const { durationMs } = await workspace.runOk(args, { timeoutMs: 600_000 });
        into.push(durationMs / 1000);
      };
      readCounts();
      await time(counts.up, ['up', '--yes', '--skip-preview', ...parallel]);
      if (target.name === 'null') floor = readCounts();
      if (!target.storesState) continue;
      await time(counts.noop, ['up', '--yes', '--skip-preview', ...parallel]);
      await time(counts.preview, ['preview', ...parallel]);
      await time(counts.destroy, ['destroy', '--yes', '--skip-preview', ...parallel]);
    }
  }
  const base = median(seconds.get('null')?.up ?? []);
  console.log(
    `\nN = ${count}${values.tuned ? ' (tuned client)' : ''}${values.chained ? ' (chained)' : ''}; null server: ${floor.requests} requests, ${floor.bytes} bytes sent`,
  );
  printTable(
    ['target', 'up s', '× null', 'no-op up s', 'preview s', 'destroy s'],
    [...seconds].map(([name, { up, noop, preview, destroy }]) => [
      name,
      median(up),
      median(up) / base,
      median(noop),
      median(preview),
      median(destroy),
    ]),
  );
}

await main();
