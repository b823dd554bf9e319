import type { EmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';

interface SharedPostgres {
  users: number;
  starting?: Promise<void>;
  postgres?: EmbeddedPostgres;
  directory?: string;
}

const key = Symbol.for('holdfast.test.postgres');
const holder = globalThis as unknown as Record<symbol, SharedPostgres | undefined>;

/** State shared by global set-up and tear-down: Jest loads their modules separately, so it is on the global object. */
holder[key] ??= { users: 0 };
export const shared: SharedPostgres = holder[key];

/** Flags of servers with throw-away data: speed matters, crash safety does not. */
export const throwawayFlags: readonly string[] = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=400',
].flatMap((flag) => ['-c', flag]);
