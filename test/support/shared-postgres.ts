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
