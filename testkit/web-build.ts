import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** Builds the web UI unless the build is of the present sources. */
export async function ensureWebBuild(): Promise<void> {
  const script = join(import.meta.dirname, '..', 'scripts', 'build-web.ts');
  const child = spawn(process.execPath, [script, '--if-stale'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error('the web UI could not be built');
}
