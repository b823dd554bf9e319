import { parseArgs } from 'node:util';
import { onEndSignal } from '../src/shared/platform/lifecycle/end-signals.ts';
import { startCluster } from '../testkit/cluster.ts';
import { CommandFailedError, ToolUnavailableError } from '../testkit/toolchain/command.ts';

// `npm run cluster`: runs a cluster as processes on this machine until Ctrl-C. HOLDFAST_DATABASE_URL uses your own
// database; every other HOLDFAST_* variable is passed on.

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '9090' },
    apis: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log('npm run cluster -- [--port 9090] [--apis 3] [--workers 2]');
  process.exit(0);
}

const ownSettings = Object.fromEntries(
  Object.entries(process.env).filter(
    (entry): entry is [string, string] => /^HOLDFAST_(?!TEST_|DATABASE_URL$)/.test(entry[0]) && entry[1] !== undefined,
  ),
);
const databaseUrl = process.env['HOLDFAST_DATABASE_URL'];

const { promise: end, resolve: leave } = Promise.withResolvers<number>();
onEndSignal(() => leave(0), { second: () => process.exit(1) });

const starting = startCluster({
  port: Number(values.port),
  apis: Number(values.apis),
  workers: Number(values.workers),
  settings: ownSettings,
  ...(databaseUrl ? { databaseUrl } : {}),
  onProgress: (what) => console.error(`cluster: starting ${what}`),
  onCrash: (part) => {
    console.error(`cluster: ${part.name} exited unexpectedly; end of its log:\n${part.log.slice(-3_000)}`);
    leave(1);
  },
});
// A signal during startup takes effect after the startup.
starting.catch(() => leave(1));
try {
  const cluster = await starting;
  const [apis, workers] = [cluster.apis.length, cluster.workers.length];
  console.log(`
Holdfast runs as a cluster of ${apis} API replicas and ${workers} workers behind ${cluster.url}. Log in with:

  PULUMI_ACCESS_TOKEN=${cluster.token} pulumi login ${cluster.url}

Its organization is ${cluster.organization}. Ctrl-C stops it and removes its data.
`);
  process.exitCode = await end;
  console.error('cluster: stopping');
  await cluster.stop();
  console.error('cluster: stopped');
} catch (error) {
  const plain = error instanceof ToolUnavailableError || error instanceof CommandFailedError;
  console.error(plain ? error.message : error);
  process.exitCode = 1;
}
