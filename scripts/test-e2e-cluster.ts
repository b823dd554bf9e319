import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { startCluster } from '../e2e/support/cluster.ts';

// `npm run test:e2e:cluster`: the end-to-end tests through the proxy of a cluster. Arguments go to Jest.

await using cluster = await startCluster({
  onProgress: (what) => console.error(`cluster: starting ${what}`),
  onCrash: (part) => console.error(`cluster: ${part.name} has ended by itself:\n${part.log.slice(-3_000)}`),
});
const tests = spawn('npm', ['run', '--silent', 'test:e2e', '--', ...process.argv.slice(2)], {
  cwd: path.join(import.meta.dirname, '..'),
  stdio: 'inherit',
  env: { ...process.env, HOLDFAST_TEST_URL: cluster.url, HOLDFAST_TEST_TOKEN: cluster.token },
});
// Ctrl-C reaches the tests by itself; the cluster is stopped when they have ended.
process.on('SIGINT', () => {});
const [code] = (await once(tests, 'exit')) as [number | null];
for (const part of [...cluster.apis, ...cluster.workers]) {
  const faults = part.log.split('\n').filter((line) => /^\{"level":"(error|fatal)"/.test(line));
  for (const line of faults) console.error(`${part.name} logged ${line}`);
}
process.exitCode = code ?? 1;
