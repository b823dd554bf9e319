import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const script = join(import.meta.dirname, '..', 'scripts', 'build-web.ts');

/**
 * Builds the web UI for servers of tests and of the demo, if its sources have changed since the last time. `npm test` does so once
 * and says it.
 */
export async function buildWeb(): Promise<void> {
  if (process.env['HOLDFAST_TEST_WEB'] === 'built') return;
  await promisify(execFile)(process.execPath, [script, '--if-stale']);
}
