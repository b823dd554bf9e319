import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const script = join(import.meta.dirname, '..', 'scripts', 'build-web.ts');

/** If its sources have changed since the last build. `npm test` builds it once for all tests, and announces that by a variable. */
export async function buildWeb(): Promise<void> {
  if (process.env['HOLDFAST_TEST_WEB'] === 'built') return;
  await promisify(execFile)(process.execPath, [script, '--if-stale']);
}
