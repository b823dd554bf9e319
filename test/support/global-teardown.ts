import { rmSync } from 'node:fs';
import { shared } from './shared-postgres.ts';

/** Stops the run's Postgres when the last project has finished. */
export default async function globalTeardown(): Promise<void> {
  shared.users -= 1;
  if (shared.users > 0) return;
  await shared.postgres?.stop();
  if (shared.directory) rmSync(shared.directory, { recursive: true, force: true });
}
