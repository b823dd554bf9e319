import type { EmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';

interface SharedPostgres {
  users: number;
  starting?: Promise<void>;
  postgres?: EmbeddedPostgres;
  directory?: string;
}

const key = Symbol.for('holdfast.test.postgres');
const holder = globalThis as unknown as Record<symbol, SharedPostgres | undefined>;

/** What global set-up and tear-down share: Jest loads their modules apart, so it lies on the global object. */
holder[key] ??= { users: 0 };
export const shared: SharedPostgres = holder[key];
