import { rmSync } from 'node:fs';
import { shared } from './shared-postgres.ts';

export default async function globalTeardown(): Promise<void> {
  shared.users -= 1;
  if (shared.users > 0) return;
  await shared.postgres?.stop();
  if (shared.directory) rmSync(shared.directory, { recursive: true, force: true });
}
