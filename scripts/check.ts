import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import path from 'node:path';

// `npm run check:static`: the static checks. `npm run check`: also the unit tests. Runs as many checks at once as there are processors, and
// runs all of them even if one fails. The output of each check is shown when it has ended, and the failed checks are named at the end.

/** Scripts of package.json, roughly the slowest first. */
const scripts = [
  ...['lint', 'typecheck', 'typecheck:web', 'check:boundaries', 'knip'],
  ...['settings -- --check', 'bench charts -- --check', 'check:lock'],
];
if (process.argv.includes('--unit')) scripts.unshift('test:unit');

async function run(script: string): Promise<boolean> {
  const child = spawn('npm', ['run', '--silent', ...script.split(' ')], {
    cwd: path.join(import.meta.dirname, '..'),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [status] = (await once(child, 'close')) as [number | null];
  process.stderr.write(Buffer.concat(chunks));
  return status === 0;
}

const failed: string[] = [];

async function runNext(): Promise<void> {
  for (let script = scripts.shift(); script !== undefined; script = scripts.shift())
    if (!(await run(script))) failed.push(script);
}

await Promise.all(Array.from({ length: availableParallelism() }, runNext));
for (const script of failed) console.error(`FAILED: npm run ${script}`);
if (failed.length > 0) process.exitCode = 1;
